"""The acceptance runner's suites, in their quick forms, counted command by command."""

import json
import os
import shutil
import sys

from checks.results import run

SUITES = ["oracle", "reference", "host", "build", "opencl"]


def check_acceptance(results, build):
    for suite in SUITES:
        folder = os.path.abspath(f"build/logs/acceptance-{suite}")
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "tools/run_gradient_guard_regressions.py", "--suite", suite, "--quick", "--offline",
                   "--build", build, "--log-dir", folder]
        code, text = run(command, 900, name=f"acceptance {suite}")
        try:
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                records = json.load(file)["commands"]
        except (OSError, ValueError, KeyError):
            records = []
        for record in records:
            name = f"{suite} {record['name']}"
            if record["status"] == "passed":
                results.passed += 1
            elif record["status"] == "blocked":
                results.skip(name, record["reason"])
            else:
                results.fail(name, record["reason"])
        if not records or (code and all(record["status"] == "passed" for record in records)):
            results.fail(f"acceptance {suite}", text)
        print(f"  {'ok      ' if code == 0 else 'see above'} acceptance {suite}: {text.rstrip().splitlines()[-1]}", flush=True)
