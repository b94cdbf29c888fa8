"""./dev: what it says when there is nothing to build."""

import fcntl
import os
import subprocess

import pytest

import harness

DEV = os.path.join(harness.ROOT, "dev")


@pytest.mark.parametrize("words, code", [([], 0), (["help"], 0), (["--help"], 0), (["no-such-command"], 2)])
def test_help_waits_for_no_build_and_writes_nothing(tmp_path, words, code):
    copy = tmp_path / "dev"
    copy.write_bytes(open(DEV, "rb").read())
    copy.chmod(0o755)
    done = subprocess.run([copy, *words], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == code and "usage: ./dev COMMAND" in (done.stderr if code else done.stdout), done
    assert os.listdir(tmp_path) == ["dev"]
    os.mkdir(tmp_path / "build")
    with open(tmp_path / "build/.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert subprocess.run([copy, *words], capture_output=True, timeout=20, check=False).returncode == code
