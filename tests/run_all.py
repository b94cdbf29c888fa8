#!/usr/bin/env python3
"""Runs the project's tests and checks and counts them: the last line is `N passed, N failed, N skipped`.

    tests/run_all.py [--build build/release-gcc] [--require cpu,opencl,pytorch] [SUITE...]

Suites, in the order in which they run (all of them if none is named):
  configurations  every other way to build: clang, guard=host, guard=none, one backend; what those without a guard or backends do
  sources         formatter and linters
  library         public headers and exported symbols
  installation    install, and build against it with pkg-config and CMake
  criterion       the test programs in BUILD/tests
  examples        the example programs, on every required backend
  tool            the tests of the command-line tool (pytest)
  acceptance      the acceptance runner's oracle, reference, host, build and opencl suites, in their quick forms
  readme          the program and the reports in README.md, and the links of all documents

It builds nothing but the configurations and the installation; `./dev test` builds first and then calls it.
A test may be skipped only for what this machine cannot have, a GPU, an instruction set or memory; the end lists each of
these once with the number of its tests. Any other skip is a failure.
Exit status: 0 only if something ran and nothing failed.
"""

import argparse
import glob
import os
import sys
import time
import traceback
import xml.etree.ElementTree

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [TESTS, os.path.join(os.path.dirname(TESTS), "tools")]

from checks import acceptance, guards, library, readme, sources  # noqa: E402
from checks.results import Results, find_program, run  # noqa: E402
from regressions.environment import python_with  # noqa: E402
from regressions.results import tests_of  # noqa: E402

SUITES = ["configurations", "sources", "library", "installation", "criterion", "examples", "tool", "acceptance", "readme"]
PROGRAM_SECONDS = 1800  # one test program; each test has a shorter limit of its own
BACKENDS = ("cpu", "opencl", "cuda")


def build_configurations(results):
    clang = find_program("clang")
    if clang:
        results.command("build with clang", ["scons", "-Q", f"CC={clang}", "lib"], 600)
    else:
        results.fail("build with clang", "clang is not installed")
    for option in ("guard=full", "guard=host", "guard=none", "backends=cpu", "backends=opencl", "backends=cuda"):
        results.command(f"build {option}", ["scons", "-Q", option, "lib"], 600)
    guards.check_guards(results)


def variant_options(build):
    """The options that give this build folder: build/MODE-CC."""
    mode, compiler = os.path.basename(build).split("-", 1)
    return [f"mode={mode}", f"CC={compiler}"]


def count_tap(results, name, tap):
    """Counts one program's tests from its TAP file; their names, only where they did not pass."""
    passed = 0
    for state, test, text in tests_of(tap):
        if state == "failed":
            results.fail(f"{name} {test}", text)
        elif state == "skipped":
            results.skip(f"{name} {test}", text)
        else:
            passed += 1
    results.passed += passed
    return passed


def run_criterion(results, build):
    programs = [path for path in sorted(glob.glob(f"{build}/tests/test_*")) if os.access(path, os.X_OK)]
    # What a deleted or renamed test left behind is not run.
    programs = [path for path in programs if glob.glob(f"tests/*/{os.path.basename(path)}.c")]
    if not programs:
        results.fail("criterion", f"no test program in {build}/tests")
    for path in programs:
        name = os.path.basename(path)
        tap_path = os.path.join(results.logs, name + ".tap")
        if os.path.exists(tap_path):
            os.remove(tap_path)
        start = time.monotonic()
        code, text = run([path, f"--tap={tap_path}", f"-j{os.cpu_count() or 1}"], PROGRAM_SECONDS, name=name)
        seconds = time.monotonic() - start
        with open(os.path.join(results.logs, name + ".log"), "w", encoding="utf-8") as file:
            file.write(text)
        failed, skipped = results.failed, results.skipped
        tap = ""
        if os.path.exists(tap_path):
            with open(tap_path, encoding="utf-8", errors="replace") as file:
                tap = file.read()
        passed = count_tap(results, name, tap)
        failed, skipped = results.failed - failed, results.skipped - skipped
        if code and not failed:
            results.fail(name, f"{text}\n(exit status {code})")
        elif failed:
            print("           " + "\n           ".join(text.rstrip().splitlines()[-40:]), flush=True)
        elif not passed and not skipped:
            results.fail(name, "it ran no test")
        else:
            print(f"  ok       {name}  {passed} tests, {skipped} skipped, {seconds:.1f} s", flush=True)


def run_examples(results, build):
    """Each runs to a good end; what train_digits prints is the same on every device."""
    results.command("example quickstart", [f"{build}/examples/quickstart"], 120)
    devices = [name for name in os.environ.get("GG_TEST_REQUIRE", "cpu").split(",") if name]
    outputs = {}
    for device in devices:
        program = [f"{build}/examples/train_digits", device]
        # The device's name is on standard error, apart from what is compared.
        code, output = run(["sh", "-c", '"$@" 2>/dev/null', "sh", *program], 300)
        if code:
            results.fail(f"example train_digits on {device}", run(program, 300)[1] + f"\n(exit status {code})")
        else:
            results.ok(f"example train_digits on {device}", output.rstrip().rsplit("\n", 1)[-1])
            outputs[device] = output
    if len(devices) > 1 and len(outputs) == len(devices):
        problem = "" if len(set(outputs.values())) == 1 else "their outputs differ"
        results.judge(f"train_digits gives the same bits on {' and '.join(devices)}", problem)


def run_pytest(results, build):
    if not glob.glob("tests/tool/test_*.py"):
        results.fail("pytest", "no test in tests/tool")
        return
    report = os.path.join(results.logs, "pytest.xml")
    if os.path.exists(report):
        os.remove(report)
    tool = os.path.abspath(f"{build}/gradguard")
    environment = dict(os.environ, GRADGUARD_TOOL=tool, PYTHONDONTWRITEBYTECODE="1")
    arguments = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
                 f"--basetemp={os.path.abspath(results.logs)}/pytest", "tests/tool"]
    code, text = run(arguments, 1200, name="pytest", env=environment)
    with open(os.path.join(results.logs, "pytest.log"), "w", encoding="utf-8") as file:
        file.write(text)
    try:
        cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        cases = []
    failed = passed = 0
    for case in cases:
        kinds = {child.tag: child for child in case}
        name = f"{case.get('classname', '')}.{case.get('name')}"
        if "failure" in kinds or "error" in kinds:
            failed += 1
            results.fail(name)
        elif "skipped" in kinds:
            results.skip(name, kinds["skipped"].get("message", ""))
        else:
            passed += 1
    results.passed += passed
    if failed or code:
        print("           " + "\n           ".join(text.rstrip().splitlines()[-60:]), flush=True)
    if code and not failed:
        results.fail("pytest", f"exit status {code}")
    print(f"  {'ok    ' if not code else 'FAILED'}   pytest  {passed} tests passed", flush=True)


def set_sanitizer_options():
    """For a build with AddressSanitizer. A test asks for more memory than there is. What is found with a stack frame kept
    after its return is found by every compiler, not by those alone whose default that is. The sanitizer's alternative
    signal stacks are off: threads that OpenCL and OpenMP end late unmap theirs twice ("unable to unmmap")."""
    suppressions = os.path.abspath("tests/checks/lsan.supp")  # quoted: the folder may have blanks in its name
    options = "allocator_may_return_null=1:detect_stack_use_after_return=1:use_sigaltstack=0"
    os.environ.setdefault("ASAN_OPTIONS", options)
    os.environ.setdefault("LSAN_OPTIONS", f"suppressions='{suppressions}':print_suppressions=0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release-gcc", help="the build folder whose products are tested")
    parser.add_argument("--require", help="what must be there, of cpu, opencl, cuda, pytorch: its absence is a failure")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.suites) - set(SUITES))
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}")
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    required = [name for name in (arguments.require or "").split(",") if name]
    if set(required) - {*BACKENDS, "pytorch"}:
        parser.error(f"--require {arguments.require}: expected some of {', '.join(BACKENDS)}, pytorch")
    if required:
        os.environ["GG_TEST_REQUIRE"] = ",".join(name for name in required if name in BACKENDS)
    set_sanitizer_options()

    results = Results("build/logs")
    if "pytorch" in required:
        problem = "" if python_with("numpy", "torch") else "no Python here has NumPy and PyTorch (./dev test installs them)"
        results.judge("PyTorch is there for the oracle", problem)
    actions = {
        "configurations": lambda: build_configurations(results),
        "sources": lambda: sources.check_all(results, arguments.build),
        "library": lambda: library.check_all(results, arguments.build),
        "installation": lambda: library.check_installation(results, variant_options(arguments.build)),
        "criterion": lambda: run_criterion(results, arguments.build),
        "examples": lambda: run_examples(results, arguments.build),
        "tool": lambda: run_pytest(results, arguments.build),
        "acceptance": lambda: acceptance.check_acceptance(results, arguments.build),
        "readme": lambda: readme.check_readme(results, arguments.build),
    }
    for suite in SUITES:
        if not arguments.suites or suite in arguments.suites:
            start = time.monotonic()
            print(f"{suite}:", flush=True)
            try:
                actions[suite]()
            except Exception:  # a broken check is a failure to count, and no reason to leave the others out
                results.fail(suite, traceback.format_exc())
            print(f"  ({time.monotonic() - start:.1f} s)", flush=True)
    for missing, count in sorted(results.missing.items()):
        print(f"skipped {count}: {missing}")
    if results.failures:
        print("\nfailed:\n  " + "\n  ".join(results.failures))
    print(f"{results.passed} passed, {results.failed} failed, {results.skipped} skipped", flush=True)
    return 0 if results.passed and not results.failed else 1


if __name__ == "__main__":
    sys.exit(main())
