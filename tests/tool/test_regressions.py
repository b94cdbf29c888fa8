"""The acceptance runner: what it records, and how it ends."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import harness

RUNNER = os.path.join(harness.ROOT, "tools/run_gradient_guard_regressions.py")
sys.path.insert(0, os.path.join(harness.ROOT, "tools"))
results = importlib.import_module("regressions.results")


def run(*words, seconds=300):
    return subprocess.run([sys.executable, RUNNER, *words], capture_output=True, text=True, timeout=seconds, check=False)


def record_of(arguments, blocked=None, seconds=20, folder="."):
    return results.run_command(results.Command("suite", "name", arguments, blocked=blocked), 1, str(folder), seconds)


def test_reference_passes_and_is_recorded(tmp_path):
    folder = tmp_path / "logs"
    done = run("--suite", "reference", "--log-dir", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("reference passed: 2 passed, 0 failed, 0 timed out, 0 blocked")
    document = json.loads((folder / "results.json").read_text())
    assert document["state"] == "finished" and document["counts"]["passed"] == 2
    environment = document["environment"]
    assert environment["tools"]["gcc"] and len(environment["sources_sha256"]["SConstruct"]) == 64
    for command in document["commands"]:
        assert command["status"] == "passed" and command["seconds"] >= 0 and (folder / command["log"]).exists()


def test_a_missing_device_is_blocked_and_never_passed(tmp_path):
    done = run("--suite", "cuda", "--offline", "--compiler", "both", "--log-dir", str(tmp_path / "logs"))
    document = json.loads((tmp_path / "logs/results.json").read_text())
    if any(device["backend"] == "cuda" and device["available"] for device in document["environment"]["devices"]):
        pytest.skip("there is a CUDA device here")
    assert done.returncode == 2
    assert {command["status"] for command in document["commands"]} == {"blocked"}
    assert all(command["reason"] for command in document["commands"])
    assert " blocked: 0 passed" in done.stdout.splitlines()[-1]


def test_a_missing_program_is_blocked(tmp_path):
    done = run("--suite", "bench", "--offline", "--build", "build/nothing-here", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 2, done.stdout


def test_failure_time_out_and_missing_tool_are_told_apart(tmp_path):
    assert record_of(["true"], folder=tmp_path)["status"] == "passed"
    failed = record_of(["false"], folder=tmp_path)
    assert failed["status"] == "failed" and failed["exit_status"] == 1
    late = record_of(["sh", "-c", "sleep 60 & sleep 60"], seconds=0.3, folder=tmp_path)
    assert late["status"] == "timeout" and late["exit_status"] is None and late["seconds"] < 20
    assert record_of(["no-such-program-anywhere"], folder=tmp_path)["status"] == "blocked"
    assert record_of(["true"], blocked="for a reason", folder=tmp_path)["reason"] == "for a reason"


@pytest.mark.parametrize(
    "statuses, code",
    [(["passed"], 0), (["passed", "blocked"], 2), (["blocked", "failed"], 1), (["passed", "timeout"], 1), ([], 1)],
)
def test_exit_status_of_a_run(tmp_path, statuses, code):
    kept = results.Results(str(tmp_path), {}, "no tool")
    for status in statuses:
        kept.add({"status": status})
    assert kept.exit_status() == code


def test_dry_run_prints_the_plan_and_touches_nothing(tmp_path):
    folder = tmp_path / "logs"
    done = run("--suite", "all", "--dry-run", "--amsgrad", "--dtype", "bf16", "--log-dir", str(folder))
    assert done.returncode == 0 and not folder.exists()
    plan = json.loads(done.stdout)
    assert {command["suite"] for command in plan["commands"]} == {
        "oracle", "reference", "host", "build", "opencl", "cuda", "bench"
    }
    bench = [command for command in plan["commands"] if command["suite"] == "bench"]
    assert all("4x65536" in command["command"] and "--amsgrad" in command["command"] for command in bench)


def test_wrong_usage_is_a_failure_and_not_blocked(tmp_path):
    assert run("--suite", "everything").returncode == 1
    assert run("--suite", "bench", "--elements", "0").returncode == 1
    assert run().returncode == 1
    (tmp_path / "something").write_text("here")
    assert run("--suite", "reference", "--log-dir", str(tmp_path)).returncode == 1


def test_an_interrupted_run_leaves_a_valid_file(tmp_path):
    folder = tmp_path / "logs"
    process = subprocess.Popen([sys.executable, RUNNER, "--suite", "host", "--offline", "--log-dir", str(folder)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while time.monotonic() < end and not (folder / "results.json").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert json.loads((folder / "results.json").read_text())["state"] == "running"


def test_a_planted_fault_in_the_model_is_found():
    python = importlib.import_module("regressions.environment").python_with("numpy", "torch")
    if not python:
        pytest.skip("no Python here has both NumPy and PyTorch")
    code = (
        "import sys; sys.path.insert(0, 'tools/regressions'); import oracle\n"
        "from regressions import model\n"
        "right = model.tile_sums\n"
        "model.tile_sums = lambda x: right(x) * model.F32({factor})\n"
        "sys.argv = ['oracle.py', '--quick', '--seed', '1']; sys.exit(oracle.main())\n"
    )
    for factor, expected in (("1.0", 0), ("1.000001", 1)):
        done = subprocess.run([python, "-c", code.format(factor=factor)], capture_output=True, text=True, timeout=300,
                              cwd=harness.ROOT, check=False)
        assert done.returncode == expected, done.stdout + done.stderr
