"""Running commands and keeping what came of them in a file that is valid at any moment."""

import datetime
import json
import os
import signal
import subprocess
import time

from regressions import environment

EXIT_PASSED, EXIT_FAILED, EXIT_BLOCKED = 0, 1, 2


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Command:
    """One command of a suite. `blocked` is why it cannot be run here, or None."""

    def __init__(self, suite, name, arguments, variables=None, blocked=None):
        self.suite, self.name, self.arguments = suite, name, arguments
        self.variables, self.blocked = variables or {}, blocked

    def plan(self):
        return {"suite": self.suite, "name": self.name, "command": self.arguments, "environment": self.variables,
                "blocked": self.blocked}


class Results:
    """results.json in a folder of its own; written anew, and put in place whole, after every command."""

    def __init__(self, folder, arguments, tool):
        self.path = os.path.join(folder, "results.json")
        self.folder = folder
        self.data = {"state": "running", "started": now(), "arguments": arguments,
                     "environment": environment.describe(tool), "commands": []}
        self.write()

    def write(self):
        aside = self.path + ".new"
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, self.path)

    def add(self, record):
        self.data["commands"].append(record)
        self.write()

    def finish(self, state):
        self.data["state"], self.data["ended"] = state, now()
        self.data["counts"] = self.counts()
        self.write()

    def counts(self):
        statuses = [record["status"] for record in self.data["commands"]]
        return {status: statuses.count(status) for status in ("passed", "failed", "timeout", "blocked")}

    def exit_status(self):
        counts = self.counts()
        if counts["failed"] or counts["timeout"] or not self.data["commands"]:
            return EXIT_FAILED
        return EXIT_BLOCKED if counts["blocked"] else EXIT_PASSED


def stop_group(process):
    """Ends a command with all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_command(command, number, folder, seconds):
    """Runs one command to its end or its time limit; returns its record."""
    log = os.path.join(folder, f"{number:03d}-{command.suite}-{command.name}.log".replace("/", "_").replace(" ", "_"))
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
            code = process.wait(timeout=seconds)
            record.update(status="passed" if code == 0 else "failed", exit_status=code)
            if code:
                record["reason"] = f"exit status {code}: see {os.path.basename(log)}"
        except subprocess.TimeoutExpired:
            record.update(status="timeout", reason=f"it ran longer than {seconds:g} seconds")
        finally:
            stop_group(process)
    record["seconds"] = round(time.monotonic() - begin, 3)
    return record
