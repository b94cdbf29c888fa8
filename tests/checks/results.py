"""What tests/run_all.py counts."""

import collections
import contextlib
import os
import shutil
import subprocess
import threading
import time

from checks.skips import what_is_missing

PROGRESS_SECONDS = 15  # between two lines of what takes long


class Results:
    """Counts, and the failures to repeat at the end. Every line of output says one thing a person wants to know."""

    def __init__(self, logs):
        self.logs = logs
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.missing = collections.Counter()  # what this machine lacks, and the tests skipped for it
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
        """A test that said it cannot run here: a failure, unless no machine like this one could run it."""
        missing = what_is_missing(reason)
        if missing:
            self.skipped += 1
            self.missing[missing] += 1
        else:
            self.fail(name, f"skipped: {reason}\n(a test may be skipped only for a GPU, an instruction set or memory)")

    def judge(self, name, problem, remark=""):
        """`problem` is the text of what is wrong; empty means passed."""
        if problem:
            self.fail(name, problem)
        else:
            self.ok(name, remark)

    def command(self, name, arguments, seconds, **options):
        """Runs a command as one check, its output kept in a log; true if it succeeded."""
        log = os.path.join(self.logs, name.replace("/", "-").replace(" ", "-") + ".log")
        code, text = run(arguments, seconds, name=name, **options)
        with open(log, "w", encoding="utf-8") as file:
            file.write(text)
        self.judge(name, "" if code == 0 else f"{text}\n(exit status {code}; log: {log})")
        return code == 0


@contextlib.contextmanager
def progress(describe):
    """Says every few seconds that something is still going on; `describe` gives the words."""
    over, begin = threading.Event(), time.monotonic()

    def tell():
        while not over.wait(PROGRESS_SECONDS):
            print(f"  ...      {describe()}, {time.monotonic() - begin:.0f} s", flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def run(arguments, seconds, name=None, **options):
    """Exit status and output of a command; a time-out is a failure that says so. With a `name` it shows progress."""
    try:
        with progress(lambda: name) if name else contextlib.nullcontext():
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
