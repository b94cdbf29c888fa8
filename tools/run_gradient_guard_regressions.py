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
  cuda       the regressions on a CUDA device, by each kernel route of --compiler
  bench      the fused and the staged path in alternation, results compared to the bit

A missing tool or device is `blocked`, never `passed`. Exit status: 0 if everything passed, 2 if something is blocked
and nothing failed, 1 otherwise. Nothing is installed. A fresh folder holds a log for each command and results.json,
which is valid at any moment.
"""

import argparse
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from regressions import results, suites  # noqa: E402
from regressions.environment import ROOT  # noqa: E402


class Parser(argparse.ArgumentParser):
    """Exits with 1 for wrong usage: 2 would read as blocked."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(results.EXIT_FAILED, f"{self.prog}: {message}\n")


def at_least(least):
    def parse(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return parse


def parse_arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--suite", required=True, choices=[*suites.SUITES, "all"])
    add("--compiler", choices=sorted(suites.COMPILERS), default="all", help="CUDA kernel routes; both: nvrtc and ptx")
    add("--elements", type=at_least(1), default=65536, help="of each tensor in bench")
    add("--tensors", type=at_least(1), default=4, help="in bench")
    add("--iterations", type=at_least(1), default=3, help="batches of each path in bench")
    add("--samples", type=at_least(1), default=5, help="timed steps in a batch")
    add("--warmup", type=at_least(0), default=2, help="steps before them")
    add("--dtype", choices=["f32", "f16", "bf16"], default="f32", help="of the gradients in bench")
    add("--amsgrad", action="store_true", help="in bench")
    add("--timeout", type=float, default=1200, help="seconds for one command")
    add("--log-dir", help="a new folder; default build/regressions/TIME-PID")
    add("--build", default="build/release-gcc", help="folder of the built programs")
    add("--quick", action="store_true", help="fewer cases, for continuous integration")
    add("--dry-run", action="store_true", help="print the commands as JSON and do nothing")
    add("--offline", action="store_true", help="build nothing: use what is there")
    arguments = parser.parse_args()
    if not arguments.timeout > 0:
        parser.error("--timeout must be above 0")
    return arguments


def fresh_folder(arguments):
    folder = arguments.log_dir or os.path.join(
        ROOT, "build/regressions", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + f"-{os.getpid()}")
    return os.path.abspath(folder)


def build_products(plan, arguments, folder):
    """Builds what the suites run, so that they test these sources. Returns a command that failed, or None."""
    needs = {"oracle", "host", "opencl", "cuda", "bench"}
    if not needs & {command.suite for command in plan}:
        return None
    for words in suites.Suites(arguments, folder).products():
        command = results.Command("products", "build", words)
        record = results.run_command(command, 0, folder, arguments.timeout)
        if record["status"] != "passed":
            return record
    return None


def say(record):
    reason = f": {record['reason']}" if record["reason"] else ""
    print(f"{record['status']:8} {record['suite']:10} {record['name']}  ({record['seconds']:.1f} s){reason}", flush=True)


def main():
    arguments = parse_arguments()
    chosen = suites.SUITES if arguments.suite == "all" else [arguments.suite]
    folder = fresh_folder(arguments)
    if arguments.dry_run:
        made = suites.Suites(arguments, folder)
        plan = [command.plan() for suite in chosen for command in made.commands(suite)]
        print(json.dumps({"log_dir": folder, "commands": plan}, indent=1))
        return results.EXIT_PASSED
    if os.path.exists(folder) and os.listdir(folder):
        print(f"{folder} exists and is not empty: a run has a fresh folder", file=sys.stderr)
        return results.EXIT_FAILED
    os.makedirs(folder, exist_ok=True)

    def interrupted(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    made = suites.Suites(arguments, folder)
    kept = results.Results(folder, vars(arguments), made.tool)
    try:
        failed = build_products([results.Command(suite, "", []) for suite in chosen], arguments, folder)
        if failed:
            kept.add(failed)
            say(failed)
        else:
            number = 0
            for suite in chosen:
                for command in made.commands(suite):
                    number += 1
                    record = results.run_command(command, number, folder, arguments.timeout)
                    kept.add(record)
                    say(record)
        kept.finish("finished")
    except KeyboardInterrupt:
        kept.finish("interrupted")
        print("interrupted", file=sys.stderr)
        return results.EXIT_FAILED
    counts, status = kept.counts(), kept.exit_status()
    word = {0: "passed", 1: "failed", 2: "blocked"}[status]
    print(f"{arguments.suite} {word}: {counts['passed']} passed, {counts['failed']} failed, {counts['timeout']} timed out, "
          f"{counts['blocked']} blocked; {os.path.join(folder, 'results.json')}")
    return status


if __name__ == "__main__":
    sys.exit(main())
