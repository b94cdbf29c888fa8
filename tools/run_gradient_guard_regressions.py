#!/usr/bin/env python3
"""The acceptance runner: runs suites of commands and records what came of each.

    tools/run_gradient_guard_regressions.py --suite oracle|reference|host|build|opencl|cuda|bench|all [OPTION...]

Suites (docs/acceptance.md says what each proves):
  oracle     a NumPy model of the reduction against exact sums, PyTorch's clip and AdamW against the formula, and the
             library against both
  reference  the reference formula alone, with nothing but a C compiler
  host       policy, validation and steps on the cpu backend
  build      every combination of backends, guard and compiler
  opencl     the regressions on an OpenCL device
  cuda       the regressions on a CUDA device, by each kernel variant of --compiler
  bench      the fused and the staged path in alternation, results compared to the bit

A missing tool or device is `blocked`, never `passed`. Exit status: 0 if everything passed, 2 if something is blocked
and nothing failed, 1 otherwise. Nothing is installed. A fresh folder holds a log for each command and results.json,
which is valid at any moment.
"""

import argparse
import contextlib
import fcntl
import json
import math
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from regressions import environment, results, suites  # noqa: E402
from regressions.arguments import at_least  # noqa: E402


class Parser(argparse.ArgumentParser):
    """Exits with 1 for wrong usage: 2 would read as blocked."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(results.EXIT_FAILED, f"{self.prog}: {message}\n")


def parse_arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--suite", required=True, choices=[*suites.SUITES, "all"])
    add("--compiler", choices=sorted(suites.COMPILERS), default="all", help="CUDA kernel variants; both: nvrtc and ptx")
    add("--elements", type=at_least(1), default=65536, help="of each tensor in bench")
    add("--tensors", type=at_least(1), default=4, help="in bench")
    add("--iterations", type=at_least(1), default=3, help="batches of each path in bench")
    add("--samples", type=at_least(1), default=5, help="timed steps in a batch")
    add("--warmup", type=at_least(0), default=2, help="steps before them")
    add("--dtype", choices=["f32", "f16", "bf16"], default="f32", help="of the gradients in bench")
    add("--amsgrad", action="store_true", help="in bench")
    add("--timeout", type=float, default=1200, help="seconds for one command")
    add("--log-dir", metavar="FOLDER", help="a new folder; default build/regressions/TIME-PID")
    add("--build", default="build/release-gcc", metavar="FOLDER", help="of what is built; default build/release-gcc")
    add("--quick", action="store_true", help="fewer cases, for continuous integration")
    add("--dry-run", action="store_true", help="print the commands as JSON and do nothing")
    add("--offline", action="store_true", help="build nothing: use what is there")
    arguments = parser.parse_args()
    if not 0 < arguments.timeout < math.inf:  # results.json holds it, and JSON has no infinity
        parser.error("--timeout must be above 0 and finite")
    return arguments


def fresh_folder(arguments):
    folder = arguments.log_dir or os.path.join(
        environment.ROOT, "build/regressions", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + f"-{os.getpid()}")
    return os.path.abspath(folder)


@contextlib.contextmanager
def building_alone(needed):
    """One build at a time: SCons keeps what it knows in one file, and ./dev holds the same lock. What ./dev runs finds
    GRADGUARD_BUILD_LOCK set and does not wait for it."""
    if not needed or os.environ.get("GRADGUARD_BUILD_LOCK") == "held":
        yield
        return
    os.makedirs(os.path.join(environment.ROOT, "build"), exist_ok=True)
    with open(os.path.join(environment.ROOT, "build/.lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Waiting for another build in this folder to end.", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(record, before):
    """One line; a reason that the line before has given is not said again."""
    reason = f": {record['reason']}" if record["reason"] else ""
    if reason and before and before["reason"] == record["reason"]:
        reason = ": as above"
    tests = f", {record['tests']['passed']} tests" if "tests" in record else ""
    print(f"{record['status']:8} {record['suite']:10} {record['name']}  ({record['seconds']:.1f} s{tests}){reason}",
          flush=True)


def said(words, status):
    """Prints the last words; the exit status, which is a failure if nobody can have read them."""
    try:
        print(words, flush=True)
    except OSError as error:
        print(f"standard output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python tries again at its end, and exits with 120
        return results.EXIT_FAILED
    return status


def print_plan(arguments, chosen, folder):
    made = suites.Suites(arguments, folder)
    products = made.products() if suites.NEED_PRODUCTS & set(chosen) else []
    plan = [command.plan() for command in products + [command for suite in chosen for command in made.commands(suite)]]
    return said(json.dumps({"log_dir": folder, "commands": plan}, indent=1), results.EXIT_PASSED)


def run_all(arguments, chosen, folder, kept):
    """Runs the products' command and then the suites', one after another."""
    made = suites.Suites(arguments, folder)
    number = 0

    def run(command):
        nonlocal number
        number += 1
        kept.begin(command)
        record = results.run_command(command, number, folder, arguments.timeout)
        before = kept.last()
        kept.add(record)
        say(record, before)
        return record["status"] == "passed"

    modules = suites.PYTHON_MODULES if "oracle" in chosen else ()
    kept.describe(environment.describe(made.tool, modules))
    products = made.products() if suites.NEED_PRODUCTS & set(chosen) else []
    built = all([run(command) for command in products])
    if products:  # the tool that lists the devices is a new one
        environment.devices.cache_clear()
        kept.describe(environment.describe(made.tool, modules))
    for suite in chosen:
        for command in made.commands(suite):
            if not built and suite in suites.NEED_PRODUCTS:
                command.blocked = "the build of what it runs failed"
            run(command)


def final_sentence(suite, kept):
    counts = kept.counts()
    word = {0: "passed", 1: "failed", 2: "blocked"}[kept.exit_status()]
    skipped = f" ({kept.skipped_tests()} tests skipped within them)" if kept.skipped_tests() else ""
    return (f"{suite} {word}: {counts['passed']} passed, {counts['failed']} failed, {counts['timeout']} timed out, "
            f"{counts['blocked']} blocked{skipped}; see {kept.path}")


def interrupted(number, frame):
    # A second signal would only cut short what the first has begun. It may be here already, and Python complains of one
    # that has arrived and is then ignored: hence a handler that does nothing.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: None)
    raise KeyboardInterrupt


def main():
    arguments = parse_arguments()
    chosen = suites.SUITES if arguments.suite == "all" else [arguments.suite]
    folder = fresh_folder(arguments)
    if arguments.dry_run:
        return print_plan(arguments, chosen, folder)
    try:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            print(f"{folder} is not empty: a run has a fresh folder", file=sys.stderr)
            return results.EXIT_FAILED
        kept = results.Results(folder, vars(arguments))
    except OSError as error:
        print(f"{folder}: {error.strerror}", file=sys.stderr)
        return results.EXIT_FAILED
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if name != signal.SIGHUP or signal.getsignal(name) != signal.SIG_IGN:  # nohup has its way
            signal.signal(name, interrupted)
    try:
        builds = suites.NEED_PRODUCTS | {"build"}
        with building_alone(not arguments.offline and bool(builds & set(chosen))):
            run_all(arguments, chosen, folder, kept)
        kept.finish("finished")
        sentence = final_sentence(arguments.suite, kept)
    except KeyboardInterrupt:
        kept.finish("interrupted")
        sentence = f"{arguments.suite} interrupted; see {kept.path}"
    except OSError as error:  # nobody reads standard output any more, the disk is full, the log folder is gone
        with contextlib.suppress(OSError):
            kept.finish("interrupted")
        sentence = f"{arguments.suite} interrupted: {error}; see {kept.path}"
    return said(sentence, kept.data["exit_status"])


if __name__ == "__main__":
    sys.exit(main())
