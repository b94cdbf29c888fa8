"""Checks of the sources: formatter and linters, one configuration each (.clang-format, .clang-tidy)."""

import concurrent.futures
import json
import os
import re

from checks.results import find_program, progress, run

C_SUFFIXES = (".c", ".h", ".cu", ".cl")
C_FOLDERS = ("api", "host", "backends", "kernels", "tools", "examples", "bench", "tests")
TIDY_FOLDERS = ("host/", "backends/", "tools/", "examples/", "bench/")


def files(suffixes, folders):
    found = []
    for folder in folders:
        for place, _, names in os.walk(folder):
            found += [os.path.join(place, name) for name in names if name.endswith(suffixes)]
    return sorted(found)


def check_format(results):
    name = "format"
    program = "build/tools/bin/clang-format"  # the one version that decides
    if not os.path.exists(program):
        return results.fail(name, f"{program} is not installed (./dev test installs it)")
    paths = files(C_SUFFIXES, C_FOLDERS)
    code, text = run([program, "--dry-run", "-Werror", *paths], 120)
    cure = "\n(./dev format repairs it)"
    return results.judge(name, text + cure if code else "", f"{len(paths)} files")


def check_tidy(results, build):
    """clang-tidy over everything but the tests, each file once, whatever number of times it is compiled."""
    name = "clang-tidy"
    program = find_program("clang-tidy")
    if not program:
        return results.fail(name, "clang-tidy is not installed")
    if not os.path.exists("compile_commands.json"):
        return results.fail(name, "compile_commands.json is not there: build with scons first")
    with open("compile_commands.json", encoding="utf-8") as file:
        database = json.load(file)
    commands = {}
    for entry in database:
        if entry["file"].startswith(TIDY_FOLDERS):
            commands.setdefault(entry["file"], entry)
    folder = os.path.join(build, "clang-tidy")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(list(commands.values()), file)

    done = []

    def tidy(path):
        outcome = run([program, "-p", folder, "--quiet", path], 300)
        done.append(path)
        return outcome

    # The largest files first, so that no core waits for one at the end.
    order = sorted(commands, key=os.path.getsize, reverse=True)
    with progress(lambda: f"clang-tidy, {len(done)} of {len(order)} files"):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            outcomes = list(pool.map(tidy, order))
    noise = re.compile(r"^\d+ warnings? (generated|treated)|^Suppressed ")
    problems = [
        "\n".join(line for line in text.splitlines() if not noise.match(line)) for code, text in outcomes if code
    ]
    return results.judge(name, "\n".join(problems), f"{len(order)} files")


def check_python(results):
    paths = files((".py",), ("site_scons", "tests", "tools", "examples", "bench", "docs"))
    return results.command("pyflakes", ["/usr/bin/python3", "-m", "pyflakes", *paths], 60)


def shell_scripts():
    return ["dev", ".ci/run", *files((".sh",), ("tests", "tools", "examples", "bench", "docs"))]


def check_shell(results):
    if not find_program("shellcheck"):
        return results.fail("shellcheck", "shellcheck is not installed")
    return results.command("shellcheck", ["shellcheck", "--shell=bash", *shell_scripts()], 60)


# Commands that may end before they have read everything.
EARLY_READERS = re.compile(
    r"(?<!\|)\|(?!\|)&?\s*(?:\w+=\S*\s+)*"
    r"(?:head\b|grep\s+(?:-\w+\s+)*-\w*[qm]|grep\s.*--(?:quiet|silent|max-count)"
    r"|sed\s[^|]*[\d$/;{\s'\"]q(?:['\";}\s]|$)|awk\b[^|]*\bexit\b|read\b|cmp\b|diff\b)")


def check_pipelines(results):
    """No pipeline whose reader may end early: under pipefail the writer's SIGPIPE then decides, now and then."""
    problems = []
    for path in shell_scripts():
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file.read().replace("\\\n", "  ").splitlines(), 1):
                if EARLY_READERS.search(line.split("#")[0] if line.lstrip().startswith("#") else line):
                    problems.append(f"{path}:{number}: {line.strip()}")
    results.judge("no pipeline ends before its writer", "\n".join(problems))


def check_all(results, build):
    check_format(results)
    check_tidy(results, build)
    check_python(results)
    check_shell(results)
    check_pipelines(results)
