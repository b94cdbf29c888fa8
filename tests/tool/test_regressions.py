"""The acceptance runner: what it records, how it ends, and that its oracle finds faults."""

import glob
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
suites = importlib.import_module("regressions.suites")
environment = importlib.import_module("regressions.environment")

ACCEPTANCE = [
    "--suite oracle",
    "--suite reference",
    "--suite host",
    "--suite build",
    "--suite cuda --compiler both",
    "--suite bench --compiler both --elements 65536 --tensors 4 --dtype bf16 --amsgrad",
]


def run(*words, seconds=300, **options):
    options.update(capture_output=True, text=True, timeout=seconds, check=False)
    return subprocess.run([sys.executable, RUNNER, *words], **options)


def planned(*words):
    done = run(*words, "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["commands"]


def record_of(arguments, folder, seconds=20, **options):
    return results.run_command(results.Command("suite", "name", arguments, **options), 1, str(folder), seconds)


def record_of_tests(lines, folder, code=0):
    """The record of a test program that writes these lines of TAP."""
    path = os.path.join(str(folder), "tests.tap")
    script = f"printf '%s\\n' \"$@\" > {path}; exit {code}"
    return record_of(["sh", "-c", script, "sh", *lines], folder, tap=path)


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("waited in vain")


# ---- What is recorded ------------------------------------------------------------------------------------------------


def test_reference_passes_and_is_recorded(tmp_path):
    folder = tmp_path / "logs"
    done = run("--suite", "reference", "--log-dir", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("reference passed: 2 passed, 0 failed, 0 timed out, 0 blocked")
    document = json.loads((folder / "results.json").read_text())
    assert document["state"] == "finished" and document["counts"]["passed"] == 2 and document["exit_status"] == 0
    assert document["arguments"]["suite"] == "reference" and document["running"] is None
    described = document["environment"]
    assert described["system"] and described["python"] and "git_revision" in described and "git_changes" in described
    assert described["tools"]["cc"] and isinstance(described["devices"], list)
    for path in ("SConstruct", "host/step.c", "kernels/reduce.h", "tools/regressions/model.py"):
        assert len(described["sources_sha256"][path]) == 64
    for command in document["commands"]:
        assert command["status"] == "passed" and command["exit_status"] == 0 and command["seconds"] >= 0
        assert (folder / command["log"]).exists() and command["command"] and command["reason"] is None


def test_a_missing_device_is_blocked_and_never_passed(tmp_path):
    done = run("--suite", "cuda", "--offline", "--compiler", "both", "--log-dir", str(tmp_path / "logs"),
               env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
    document = json.loads((tmp_path / "logs/results.json").read_text())
    assert done.returncode == 2
    assert {command["status"] for command in document["commands"]} == {"blocked"}
    assert all(command["reason"] for command in document["commands"])
    assert " blocked: 0 passed" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("suite", ["host", "opencl", "bench"])
def test_a_missing_program_is_blocked(tmp_path, suite):
    done = run("--suite", suite, "--offline", "--build", "build/nothing-here", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 2, done.stdout
    assert " blocked: 0 passed, 0 failed" in done.stdout.splitlines()[-1]


def test_without_tools_everything_that_needs_them_is_blocked(tmp_path):
    """An empty PATH: no compiler, no SCons, no git."""
    for suite in ("reference", "build"):
        done = run("--suite", suite, "--log-dir", str(tmp_path / suite), env=dict(os.environ, PATH=str(tmp_path)))
        assert done.returncode == 2, done.stdout + done.stderr
        document = json.loads((tmp_path / suite / "results.json").read_text())
        assert {command["status"] for command in document["commands"]} == {"blocked"}


def test_failure_time_out_and_missing_tool_are_told_apart(tmp_path):
    assert record_of(["true"], tmp_path)["status"] == "passed"
    failed = record_of(["false"], tmp_path)
    assert failed["status"] == "failed" and failed["exit_status"] == 1
    killed = record_of(["sh", "-c", "kill -SEGV $$"], tmp_path)
    assert killed["status"] == "failed" and "signal 11" in killed["reason"]
    assert record_of(["no-such-program-anywhere"], tmp_path)["status"] == "blocked"
    assert record_of(["true"], tmp_path, blocked="for a reason")["reason"] == "for a reason"
    assert record_of(["sh", "-c", "exit 5"], tmp_path, blocked_exits={5: "no device"})["status"] == "blocked"
    assert record_of(["sh", "-c", "exit 5"], tmp_path)["status"] == "failed"


def test_a_time_out_ends_everything_that_the_command_started(tmp_path):
    late = record_of(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; sleep 60"], tmp_path, seconds=0.5)
    assert late["status"] == "timeout" and late["exit_status"] is None and late["seconds"] < 20

    def gone():
        try:
            state = open(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat", encoding="utf-8").read()
        except OSError:
            return True
        return state.rpartition(")")[2].split()[0] == "Z"

    wait_for(gone, 20)


def test_a_test_program_passes_only_by_tests_that_passed(tmp_path):
    filtered = "ok - s::left_out  # SKIP test was skipped"
    absent = "ok - s::absent  # SKIP no cuda device here"
    record = record_of_tests(["ok - s::one  (0.01s)", filtered, absent], tmp_path)
    assert record["status"] == "passed" and record["tests"] == {"passed": 1, "failed": 0, "skipped": 1}
    assert "no cuda device here" in record["reason"]
    assert record_of_tests([filtered], tmp_path)["status"] == "failed"
    assert record_of_tests([filtered, absent], tmp_path)["status"] == "blocked"
    bad = record_of_tests(["ok - s::one", "not ok - s::two"], tmp_path, code=1)
    assert bad["status"] == "failed" and "s::two" in bad["reason"]
    assert record_of_tests(["ok - s::one"], tmp_path, code=1)["status"] == "failed"
    assert record_of(["true"], tmp_path, tap=str(tmp_path / "never-written.tap"))["status"] == "failed"


# ---- How a run ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statuses, code",
    [(["passed"], 0), (["passed", "blocked"], 2), (["blocked", "failed"], 1), (["passed", "timeout"], 1), ([], 1)],
)
def test_exit_status_of_a_run(tmp_path, statuses, code):
    kept = results.Results(str(tmp_path), {})
    for status in statuses:
        kept.add({"status": status})
    assert kept.exit_status() == code


def test_a_time_out_is_counted_apart(tmp_path):
    done = run("--suite", "reference", "--timeout", "0.001", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 1 and " 0 failed, " in done.stdout and " 0 timed out" not in done.stdout


def test_wrong_usage_is_a_failure_and_not_blocked(tmp_path):
    for words in ("", "--suite everything", "--suite bench --elements 0", "--suite bench --elements many",
                  "--suite bench --dtype f64", "--suite host --timeout nan", "--suite reference --timeout inf",
                  "--suite host --unknown"):
        assert run(*words.split()).returncode == 1, words
    (tmp_path / "something").write_text("here")
    assert run("--suite", "reference", "--log-dir", str(tmp_path)).returncode == 1
    assert run("--suite", "reference", "--log-dir", str(tmp_path / "something")).returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_a_valid_file(tmp_path, number):
    path = tmp_path / "logs/results.json"
    process = subprocess.Popen([sys.executable, RUNNER, "--suite", "host", "--offline", "--build",
                                os.path.dirname(harness.TOOL), "--log-dir", str(tmp_path / "logs")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: path.exists() and json.loads(path.read_text())["running"])
    process.send_signal(number)
    process.wait()
    document = json.loads(path.read_text())
    assert document["running"]["command"]
    if number == signal.SIGKILL:
        assert document["state"] == "running"
    else:
        assert document["state"] == "interrupted" and process.returncode == 1 and document["exit_status"] == 1


def test_two_signals_at_once_end_it_like_one(tmp_path):
    path = tmp_path / "logs/results.json"
    process = subprocess.Popen([sys.executable, RUNNER, "--suite", "host", "--offline", "--build",
                                os.path.dirname(harness.TOOL), "--log-dir", str(tmp_path / "logs")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: path.exists() and json.loads(path.read_text())["running"])
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    assert process.communicate()[1] == "" and process.returncode == 1
    assert json.loads(path.read_text())["state"] == "interrupted"


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
@pytest.mark.parametrize("kind", ["full", "closed"])
def test_a_run_that_cannot_say_what_came_of_it_has_failed(tmp_path, kind, words):
    reader, writer = os.pipe()
    os.close(reader)
    output = os.open("/dev/full", os.O_WRONLY) if kind == "full" else writer
    done = subprocess.run([sys.executable, RUNNER, "--suite", "reference", "--log-dir", str(tmp_path / "logs"), *words],
                          stdout=output, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert done.returncode == 1 and done.stderr.startswith("standard output: "), done
    if not words:
        document = json.loads((tmp_path / "logs/results.json").read_text())
        assert document["state"] == "interrupted" and document["commands"][0]["status"] == "passed"


def test_a_log_folder_that_vanishes_ends_the_run_without_a_traceback(tmp_path):
    process = subprocess.Popen([sys.executable, RUNNER, "--suite", "host", "--offline", "--build",
                                os.path.dirname(harness.TOOL), "--log-dir", str(tmp_path / "logs")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: (tmp_path / "logs/results.json").exists())
    os.rename(tmp_path / "logs", tmp_path / "elsewhere")
    said, complained = process.communicate(timeout=120)
    assert process.returncode == 1 and "interrupted" in said and complained == "", (said, complained)


# ---- Plans -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ACCEPTANCE)
def test_the_acceptance_commands_are_understood_as_written(line):
    assert planned(*line.split())


def test_dry_run_prints_the_plan_and_touches_nothing(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "logs"
    home.mkdir()
    done = run("--suite", "all", "--dry-run", "--amsgrad", "--dtype", "bf16", "--iterations", "7", "--samples", "9",
               "--warmup", "1", "--log-dir", str(folder), env=dict(os.environ, HOME=str(home)))
    assert done.returncode == 0 and not folder.exists() and not os.listdir(home)
    plan = json.loads(done.stdout)
    assert {command["suite"] for command in plan["commands"]} - {"products"} == set(suites.SUITES)
    bench = [" ".join(command["command"]) for command in plan["commands"] if command["suite"] == "bench"]
    for words in ("--shapes 4x65536", "--dtype bf16", "--path fused --path staged", "--batches 7", "--samples 9",
                  "--warmup 1", "--amsgrad"):
        assert all(words in command for command in bench), words


@pytest.mark.parametrize("compiler, variants", [("nvrtc", "nvrtc"), ("both", "nvrtc ptx"), ("all", "cubin ptx nvrtc")])
def test_compiler_chooses_the_kernel_variants(compiler, variants):
    commands = planned("--suite", "cuda", "--compiler", compiler)
    found = {command["environment"]["GRADGUARD_CUDA_KERNELS"] for command in commands if command["suite"] == "cuda"}
    assert found == set(variants.split())


def test_build_has_every_combination_once():
    names = [command["name"] for command in planned("--suite", "build")]
    assert len(names) == len(set(names)) == 2 * (2 * 7 + 1)


def test_every_test_program_belongs_to_a_suite():
    programs = {os.path.basename(path)[len("test_") : -2] for path in glob.glob(f"{harness.ROOT}/tests/*/test_*.c")}
    named = {*suites.DEVICELESS, *suites.EVERY_BACKEND, *suites.ONE_BACKEND["opencl"], *suites.ONE_BACKEND["cuda"]}
    assert programs - named == {"large"} and not named - programs


# ---- The oracle ------------------------------------------------------------------------------------------------------

FAULTS = {
    "nothing": ("exact", "", 0),
    "a sum that is off by 1e-6": (
        "exact", "right = model.tile_sums; model.tile_sums = lambda x: right(x) * model.F32(1.000001)", 1),
    "small magnitudes that vanish": (
        "exact", "right = model.power_of_two; model.power_of_two = lambda k: right(k) * (k < 60)", 1),
    "1 - beta rounded twice": (
        "pytorch",
        "right = model.constants\n"
        "model.constants = lambda options, step: dict(right(options, step), ob2=model.F32(1) - model.F32(0.999))", 1),
    "a sum in another order": (
        "library",
        "model.tile_sums = lambda x: ((q := model.fma(x[..., :4], x[..., :4], x[..., 4:] * x[..., 4:]))[..., 0]"
        " + q[..., 1]) + (q[..., 2] + q[..., 3])", 1),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[pytest.mark.plain_build] * (FAULTS[name][0] == "library")) for name in FAULTS])
def test_the_oracle_finds_a_planted_fault(fault):
    judge, change, expected = FAULTS[fault]
    python = environment.python_with(*suites.PYTHON_MODULES)
    assert python, "no Python here has both NumPy and PyTorch"
    library = os.path.join(os.path.dirname(harness.TOOL), "libgradguard.so")
    code = (
        "import sys; sys.path.insert(0, 'tools/regressions'); import oracle\n"
        "from regressions import model\n"
        f"{change}\n"
        f"sys.argv = ['oracle.py', '--quick', '--seed', '1', '--judge', '{judge}', '--library', '{library}']\n"
        "sys.exit(oracle.main())\n"
    )
    done = subprocess.run([python, "-B", "-c", code], capture_output=True, text=True, timeout=300, cwd=harness.ROOT,
                          check=False)
    assert done.returncode == expected, done.stdout + done.stderr
    assert ("WRONG" in done.stdout) == bool(expected)
