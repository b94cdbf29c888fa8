"""Running commands and keeping what came of them in a file that is valid at any moment."""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import time

from regressions import environment

EXIT_PASSED, EXIT_FAILED, EXIT_BLOCKED = 0, 1, 2
STATUSES = ("passed", "failed", "timeout", "blocked")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Command:
    """One command of a suite. `blocked` is why it cannot be run here, or None; `tap` the TAP file that it writes, if it
    is a test program; `blocked_exits` the exit statuses by which it says itself that something is missing."""

    def __init__(self, suite, name, arguments, variables=None, blocked=None, tap=None, blocked_exits=None):
        self.suite, self.name, self.arguments = suite, name, arguments
        self.variables, self.blocked, self.tap = variables or {}, blocked, tap
        self.blocked_exits = blocked_exits or {}

    def plan(self):
        return {"suite": self.suite, "name": self.name, "command": self.arguments, "environment": self.variables,
                "blocked": self.blocked}


class Results:
    """results.json in a folder of its own; written anew, and put in place whole, before and after every command."""

    def __init__(self, folder, arguments):
        self.path = os.path.join(folder, "results.json")
        self.folder = folder
        self.data = {"state": "running", "started": now(), "arguments": arguments, "environment": None, "running": None,
                     "commands": []}
        self.write()

    def write(self):
        aside = self.path + ".new"
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, self.path)

    def describe(self, described):
        self.data["environment"] = described
        self.write()

    def begin(self, command):
        """What an interrupted run was at."""
        self.data["running"] = command.plan()
        self.write()

    def add(self, record):
        self.data["running"] = None
        self.data["commands"].append(record)
        self.write()

    def last(self):
        return self.data["commands"][-1] if self.data["commands"] else None

    def finish(self, state):
        self.data["state"], self.data["ended"] = state, now()
        self.data["counts"] = self.counts()
        self.data["exit_status"] = EXIT_FAILED if state == "interrupted" else self.exit_status()
        self.write()

    def counts(self):
        statuses = [record["status"] for record in self.data["commands"]]
        return {status: statuses.count(status) for status in STATUSES}

    def exit_status(self):
        counts = self.counts()
        if counts["failed"] or counts["timeout"] or not self.data["commands"]:
            return EXIT_FAILED
        return EXIT_BLOCKED if counts["blocked"] else EXIT_PASSED

    def skipped_tests(self):
        return sum(record.get("tests", {}).get("skipped", 0) for record in self.data["commands"])


def stop_group(process):
    """Ends a command with all that it has started. Criterion's runner removes its socket only if it ends by itself."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"/tmp/criterion_{process.pid}.sock")


def tests_of(tap):
    """What a TAP text says of each test: passed, failed or skipped, its name, and what is behind it."""
    for line in tap.splitlines():
        match = re.match(r"(not ok|ok)\s+(?:\d+\s+)?-\s+(\S+)\s*(.*)", line)
        if not match:
            continue
        state, test, rest = match.groups()
        skip = re.search(r"#\s*SKIP\b\s*(.*)", rest)
        if state == "not ok":
            yield "failed", test, rest
        elif skip:
            yield "skipped", test, skip[1].strip()
        else:
            yield "passed", test, rest


def read_tap(path):
    """Names of the tests that passed and failed, and the reasons of those skipped; None without a file. What a filter
    left out is in none of them: Criterion calls that `test was skipped`."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            tests = list(tests_of(file.read()))
    except OSError:
        return None
    passed = [test for state, test, _ in tests if state == "passed"]
    failed = [test for state, test, _ in tests if state == "failed"]
    reasons = [text for state, _, text in tests if state == "skipped" and text != "test was skipped"]
    return passed, failed, reasons


def judge_tests(record, path):
    """A test program that ended well has passed only if a test of it did: a filter may leave nothing, and all of its
    tests may have been skipped."""
    found = read_tap(path)
    if found is None:
        record.update(status="failed", reason=record["reason"] or "it said nothing about its tests")
        return
    passed, failed, reasons = found
    record["tests"] = {"passed": len(passed), "failed": len(failed), "skipped": len(reasons)}
    if failed:
        record.update(status="failed", reason=f"failed: {', '.join(failed[:5])}{' ...' if len(failed) > 5 else ''}")
    elif record["status"] == "passed" and not passed:
        record.update(status="blocked" if reasons else "failed", reason=reasons[0] if reasons else "it ran no test")
    elif record["status"] == "passed" and reasons:
        record["reason"] = f"{len(reasons)} of its tests skipped: {'; '.join(sorted(set(reasons)))}"


def judge(record, command, code, log):
    record["exit_status"] = code
    if code == 0:
        record["status"] = "passed"
    elif code in command.blocked_exits:
        record.update(status="blocked", reason=command.blocked_exits[code])
    else:
        end = f"signal {-code}" if code < 0 else f"exit status {code}"
        record.update(status="failed", reason=f"{end}: see {os.path.basename(log)}")
    if command.tap:
        judge_tests(record, command.tap)


def run_command(command, number, folder, seconds):
    """Runs one command to its end or its time limit; returns its record."""
    log = os.path.join(folder, re.sub(r"[^\w.,=+-]+", "_", f"{number:03d}-{command.suite}-{command.name}") + ".log")
    record = dict(command.plan(), log=os.path.basename(log), seconds=0.0, exit_status=None, reason=command.blocked)
    if command.blocked:
        record.update(status="blocked", log=None)
        return record
    begin = time.monotonic()
    with open(log, "wb") as file:
        try:
            process = subprocess.Popen(command.arguments, stdout=file, stderr=subprocess.STDOUT, cwd=environment.ROOT,
                                       stdin=subprocess.DEVNULL, env=dict(os.environ, **command.variables),
                                       start_new_session=True)
        except OSError as error:
            record.update(status="blocked", reason=f"{command.arguments[0]}: {error.strerror}")
            return record
        try:
            judge(record, command, process.wait(timeout=seconds), log)
        except subprocess.TimeoutExpired:
            record.update(status="timeout", reason=f"it ran longer than {seconds:g} seconds")
        finally:
            stop_group(process)
    record["seconds"] = round(time.monotonic() - begin, 3)
    return record
