"""Both output files or neither: whatever goes wrong, what was there before stays, and nothing is left behind."""

import os
import resource
import shutil
import subprocess

import numpy as np
import pytest

import harness
import tensor_files
from harness import run

# Makes the N-th call of a function fail; loaded into the tool with LD_PRELOAD.
FAILING_CALLS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static int fails(const char* name) {
  static int calls;
  const char* wanted = getenv("FAIL_CALL");
  const char* which = getenv("FAIL_AT");
  return wanted && which && strcmp(wanted, name) == 0 && ++calls == atoi(which);
}
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (fails("pthread_create")) return EAGAIN;
  return NEXT(pthread_create)(thread, attributes, start, argument);
}
int rename(const char* from, const char* to) {
  if (fails("rename")) { errno = EIO; return -1; }
  return NEXT(rename)(from, to);
}
int link(const char* from, const char* to) {
  if (fails("link")) { errno = EPERM; return -1; }
  return NEXT(link)(from, to);
}
int fsync(int descriptor) {
  if (getenv("TALKATIVE")) (void)!write(STDERR_FILENO, "a driver's message\n", 19); /* while the outputs are open */
  if (fails("fsync")) { errno = ENOSPC; return -1; }
  return NEXT(fsync)(descriptor);
}
"""


@pytest.fixture(scope="session")
def failing_calls(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "no C compiler for the library that makes calls fail"
    folder = tmp_path_factory.mktemp("failing")
    (folder / "failing.c").write_text(FAILING_CALLS.replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <unistd.h>\n#include <stdio.h>"))
    library = folder / "failing.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "failing.c", "-ldl"], check=True)
    return str(library)


@pytest.fixture
def folder(tmp_path):
    return harness.small(harness.Folder(tmp_path))


def failing(library, call, at):
    return {"FAIL_CALL": call, "FAIL_AT": str(at), "LD_PRELOAD": library}


def snapshot(folder):
    return {name: (folder.path / name).read_bytes() for name in folder.names()}


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("call, at", [("rename", 1), ("rename", 2), ("fsync", 1), ("fsync", 2)])
@pytest.mark.plain_build
def test_a_failing_call_leaves_everything_as_it_was(folder, failing_calls, old, call, at):
    if old:
        folder.out_params.write_text("old parameters")
        folder.out_state.write_text("old state")
    before = snapshot(folder)
    outcome = folder.step(environment=failing(failing_calls, call, at))
    assert outcome.code == 1 and outcome.out == "" and outcome.err, outcome
    assert snapshot(folder) == before


@pytest.mark.plain_build
def test_a_machine_without_room_for_a_thread_leaves_nothing_behind(folder, failing_calls):
    """libgomp ends the program there, in the middle of the step."""
    many = np.ones(200_000, np.float32)
    folder.write({"a": many}, {"a": many})
    before = snapshot(folder)
    outcome = folder.step(environment=failing(failing_calls, "pthread_create", 1))
    assert outcome.code == 1 and "hread" in outcome.err, outcome
    assert snapshot(folder) == before


@pytest.mark.plain_build
def test_a_file_system_without_hard_links(folder, failing_calls):
    folder.out_params.write_text("old parameters")
    outcome = folder.step(environment=failing(failing_calls, "link", 1))
    assert outcome.code == 0, outcome
    assert len(folder.results()[0]) == 2
    assert folder.names() == ["grads.safetensors", "out-params.safetensors", "out-state.safetensors", "params.safetensors"]


def test_a_full_disk_leaves_everything_as_it_was(folder):
    folder.write({"w": np.zeros(100000, np.float32)}, {"w": np.zeros(100000, np.float32)})
    folder.out_state.write_text("old state")
    before = snapshot(folder)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))  # noqa: E731
    outcome = folder.step(preexec_fn=limit)
    assert outcome.code == 1 and outcome.out == "" and "out-state" in outcome.err, outcome
    assert snapshot(folder) == before


@pytest.mark.parametrize("old", [True, False])
def test_a_report_that_cannot_be_written_takes_the_files_back(folder, old):
    if old:
        folder.out_params.write_text("old parameters")
        folder.out_state.write_text("old state")
    before = snapshot(folder)
    with open("/dev/full", "w", encoding="utf-8") as full:
        outcome = folder.step(stdout=full)
    assert outcome.code == 1 and "stdout" in outcome.err, outcome
    assert snapshot(folder) == before


def test_a_closed_pipe_is_an_error_too(folder):
    before = snapshot(folder)
    reader, writer = os.pipe()
    os.close(reader)
    outcome = folder.step(stdout=writer)
    os.close(writer)
    assert outcome.code == 1 and snapshot(folder) == before, outcome


@pytest.mark.parametrize("closed", [(2,), (0, 2)])
@pytest.mark.plain_build
def test_what_is_printed_on_a_closed_stream_is_in_no_file(folder, failing_calls, closed):
    assert folder.step().code == 0
    fine = folder.out_params.read_bytes(), folder.out_state.read_bytes()
    environment = {**failing(failing_calls, "none", 0), "TALKATIVE": "1"}
    assert folder.step(environment=environment, preexec_fn=lambda: [os.close(stream) for stream in closed]).code == 0
    assert (folder.out_params.read_bytes(), folder.out_state.read_bytes()) == fine


def test_a_closed_standard_output_is_an_error(folder):
    before = snapshot(folder)
    outcome = folder.step(preexec_fn=lambda: os.close(1))
    assert outcome.code == 1 and "stdout" in outcome.err and snapshot(folder) == before, outcome


@pytest.mark.parametrize("option", ["--out-params", "--out-state"])
def test_an_output_that_the_report_goes_to_is_refused(folder, option):
    """Renaming over it would leave the report in a file that has no name."""
    report = folder.path / "report"
    with open(report, "w", encoding="utf-8") as file:
        for path in (report, "/dev/stdout"):
            outcome = folder.step(option, path, stdout=file)
            assert outcome.code == 2 and "standard output" in outcome.err, outcome
    assert report.read_bytes() == b"" and not folder.out_params.exists() and not folder.out_state.exists()


def test_an_interrupt_removes_unfinished_files(tmp_path):
    """SIGTERM at any moment: either nothing has changed, or both files are there; never anything else."""
    folder = harness.Folder(tmp_path)
    size = 4_000_000
    folder.write({"w": np.ones(size, np.float32)}, {"w": np.ones(size, np.float32)})
    before = folder.names()
    for delay in (0.005, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15):
        words = [harness.TOOL, *map(str, folder.arguments())]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.terminate()
        process.wait(30)
        new = sorted(set(folder.names()) - set(before))
        assert new in ([], ["out-params.safetensors", "out-state.safetensors"]), (delay, new)
        for name in new:
            tensor_files.read(tmp_path / name)
            os.unlink(tmp_path / name)


def test_old_outputs_are_replaced_and_keep_their_mode(folder):
    folder.out_params.write_text("old")
    folder.out_params.chmod(0o640)
    assert folder.step().code == 0
    assert folder.out_params.stat().st_mode & 0o777 == 0o640
    assert len(folder.results()[0]) == 2
    assert folder.names() == ["grads.safetensors", "out-params.safetensors", "out-state.safetensors", "params.safetensors"]


def test_new_outputs_follow_the_umask(folder):
    outcome = folder.step(preexec_fn=lambda: os.umask(0o027))
    assert outcome.code == 0 and folder.out_state.stat().st_mode & 0o777 == 0o640


def test_a_checkpoint_can_be_updated_where_it_is(folder):
    assert folder.step().code == 0
    expected = folder.result_bytes()
    os.unlink(folder.out_params)
    os.unlink(folder.out_state)
    tensor_files.write(folder.state, {})
    words = ["--out-params", folder.params, "--out-state", folder.state]
    assert folder.step(*words).code == 0
    assert (folder.params.read_bytes(), folder.state.read_bytes()) == expected


def test_a_symbolic_link_is_written_through(folder):
    target = folder.path / "deep"
    target.mkdir()
    (target / "real").write_text("old")
    folder.out_params.symlink_to("deep/real")
    assert folder.step().code == 0
    assert folder.out_params.is_symlink() and len(tensor_files.read(target / "real")) == 2
    assert os.listdir(target) == ["real"]


def test_relative_paths(folder):
    outcome = run("step", "--params", "params.safetensors", "--grads", "./grads.safetensors", "--out-params", "p",
                  "--out-state", "../" + folder.path.name + "/s", "--device", "cpu", cwd=folder.path)
    assert outcome.code == 0 and {"p", "s"} <= set(folder.names()), outcome


@pytest.mark.parametrize("case", ["same", "same otherwise spelled", "same by link", "hard link", "grads", "state", "params"])
def test_outputs_that_would_destroy_something_are_refused(folder, case):
    tensor_files.write(folder.state, {})
    words = {
        "same": ["--out-params", folder.path / "x", "--out-state", folder.path / "x"],
        "same otherwise spelled": ["--out-params", folder.path / "x", "--out-state", f"{folder.path}/./x"],
        "same by link": ["--out-params", folder.path / "a", "--out-state", folder.path / "b"],
        "hard link": ["--out-params", folder.path / "c", "--out-state", folder.path / "a"],
        "grads": ["--out-params", folder.grads],
        "state": ["--out-params", folder.state],
        "params": ["--out-state", folder.params],
    }[case]
    (folder.path / "a").write_text("a")
    (folder.path / "b").symlink_to("a")
    os.link(folder.path / "a", folder.path / "c")
    before = snapshot(folder)
    outcome = folder.step(*words)
    assert outcome.code == 2 and outcome.out == "" and outcome.err, outcome
    assert snapshot(folder) == before


@pytest.mark.parametrize("path", ["missing/x", "params.safetensors/x", "folder", "folder/", "new/", "", "/dev/null", "pipe", "dangling"])
def test_places_where_no_file_can_be_are_refused(folder, path):
    (folder.path / "folder").mkdir()
    os.mkfifo(folder.path / "pipe")
    (folder.path / "dangling").symlink_to("nowhere")
    before = folder.names()
    for option in ("--out-params", "--out-state"):
        outcome = folder.step(option, path and os.path.join(folder.path, path))
        assert outcome.code == 2 and outcome.out == "" and outcome.err, outcome
    assert folder.names() == before and os.path.exists("/dev/null") and not os.path.isfile("/dev/null")


@pytest.mark.parametrize("option", ["--params", "--grads", "--state", "--out-params", "--out-state"])
def test_a_path_that_is_too_long_is_refused_with_the_reason(folder, option):
    outcome = folder.step(option, "x" * 3000)
    assert outcome.code == 2 and "File name too long" in outcome.err, outcome


def test_missing_inputs_change_nothing(folder):
    folder.out_params.write_text("old")
    before = snapshot(folder)
    for option in ("--params", "--grads", "--state"):
        outcome = folder.step(option, folder.path / "missing")
        assert outcome.code == 2 and "missing" in outcome.err, outcome
    assert snapshot(folder) == before
