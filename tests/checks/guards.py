"""Builds without the guard, or without backends, do what is left to them: the same steps, the same decisions."""

import os
import tempfile

from checks.results import run

LINK = ["-fopenmp", "-ldl", "-lpthread", "-lm"]


def run_with(build, source, *arguments):
    """Compiles a program against a build folder's static library and runs it; its exit status, output and errors."""
    with tempfile.TemporaryDirectory(prefix="gradguard-guards-") as folder:
        program, errors = os.path.join(folder, "program"), os.path.join(folder, "errors")
        compiled = run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{build}/include", source, "-o", program,
                        f"{build}/libgradguard.a", *LINK], 120)
        if compiled[0]:
            return compiled[0], "", compiled[1]
        code, text = run(["sh", "-c", '"$@" 2>"$0"', errors, program, *arguments], 120)
        with open(errors, encoding="utf-8", errors="replace") as file:
            return code, text, file.read()


def check_guards(results):
    """Needs the folders of guard=full, guard=none and guard=host."""
    full, none, host = "build/release-gcc", "build/release-gcc-guard-none", "build/release-gcc-guard-host"
    for device in [name for name in os.environ.get("GG_TEST_REQUIRE", "cpu").split(",") if name]:
        code, expected, text = run_with(full, "tests/builds/plain_step.c", device)
        problem = text if code or "guarded: GG_OK" not in text else ""
        if not problem:
            code, found, text = run_with(none, "tests/builds/plain_step.c", device)
            if code or "GG_ERROR_UNSUPPORTED" not in text or "guard=full" not in text:
                problem = f"exit status {code}: {text}"
            elif found != expected:
                problem = f"with the guard {expected}without {found}"
        results.judge(f"guard=none takes the same plain steps on {device}", problem, expected.strip())
    code, text, errors = run_with(host, "tests/builds/decision_alone.c")
    right = code == 0 and text == "norm 5, clip coefficient 0.200000\n"
    results.judge("guard=host decides without a device", "" if right else f"exit status {code}: {text}{errors}")
