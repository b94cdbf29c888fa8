"""What tests/run_all.py counts."""

import os
import shutil
import subprocess


class Results:
    """Counts, and the failures to repeat at the end. Every line of output says one thing a person wants to know."""

    def __init__(self, logs):
        self.logs = logs
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        os.makedirs(logs, exist_ok=True)

    def ok(self, name, remark=""):
        self.passed += 1
        print(f"  ok       {name}{'  ' + remark if remark else ''}", flush=True)

    def fail(self, name, text=""):
        self.failed += 1
        self.failures.append(name)
        print(f"  FAILED   {name}", flush=True)
        lines = text.rstrip().splitlines()
        if len(lines) > 60:
            lines = lines[:20] + [f"... {len(lines) - 60} lines left out ..."] + lines[-40:]
        for line in lines:
            print("           " + line, flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"  skipped  {name}: {reason}", flush=True)

    def judge(self, name, problem, remark=""):
        """`problem` is the text of what is wrong; empty means passed."""
        if problem:
            self.fail(name, problem)
        else:
            self.ok(name, remark)

    def command(self, name, arguments, seconds, **options):
        """Runs a command as one check, its output kept in a log; true if it succeeded."""
        log = os.path.join(self.logs, name.replace("/", "-").replace(" ", "-") + ".log")
        code, text = run(arguments, seconds, **options)
        with open(log, "w", encoding="utf-8") as file:
            file.write(text)
        self.judge(name, "" if code == 0 else f"{text}\n(exit status {code}; log: {log})")
        return code == 0


def run(arguments, seconds, **options):
    """Exit status and output of a command; a time-out is a failure that says so."""
    try:
        done = subprocess.run(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout or ""
        if isinstance(output, bytes):
            output = output.decode(errors="replace")
        return 124, f"{output}\n{arguments[0]}: still running after {seconds} s, stopped"
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout


def find_program(*names):
    """The first of these programs that is installed, or None."""
    return next((name for name in names if shutil.which(name)), None)
