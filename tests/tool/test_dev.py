"""./dev: what it says when there is nothing to build."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

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


# ---- Packages (tools/provide.sh), with programs in the place of apt's ------------------------------------------------

APT_GET = """#!/bin/sh
case "$*" in
  *--assume-no*) echo "Need to get 3,210 kB/12.3 MB of archives."; exit 1 ;;
esac
echo "$@" >>"$CALLS"
if [ "$(grep -c "^$1 " "$CALLS")" -le "${REFUSALS:-0}" ]; then
  echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt)" >&2
  exit 100
fi
"""


def provide(tmp_path, command, user=None, programs=(), **variables):
    """Runs `command` in bash after tools/provide.sh, in a folder of its own and with a PATH of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {"apt-get": APT_GET, "dpkg-query": "#!/bin/sh\nexit 1\n", "sleep": "#!/bin/sh\n", **dict(programs)}
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("sh", "env", "sed", "grep", "tail", "yes"):
        os.symlink(shutil.which(name), folder / name)
    (tmp_path / "build").mkdir()
    shutil.copy(os.path.join(harness.ROOT, "tools/provide.sh"), tmp_path)
    words = [shutil.which("bash"), "-c", f"set -euo pipefail; source ./provide.sh; {command}"]
    if user and os.geteuid() == 0:
        words = [shutil.which("setpriv"), f"--reuid={user}", "--clear-groups", *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
                          env={"PATH": str(folder), "CALLS": str(tmp_path / "calls"), **variables})


def test_missing_packages_are_named_with_their_size_and_a_held_lock_is_waited_for(tmp_path):
    done = provide(tmp_path, "need first second", REFUSALS="2", programs={"sudo": '#!/bin/sh\nexec "$@"\n'})
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [
        "Missing packages, to be installed with apt: first second",
        "Waiting for another program to release apt's lock (apt or dpkg is running).",
        "Fetching 12.3 MB.",
        "Waiting for another program to release apt's lock (apt or dpkg is running).",
    ]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["update"] * 3 + ["install"] * 3


def test_a_lock_that_is_never_released_ends_the_command(tmp_path):
    done = provide(tmp_path, "need first", REFUSALS="100000", programs={"sudo": '#!/bin/sh\nexec "$@"\n'})
    assert done.returncode == 1 and "held apt's lock for ten minutes" in done.stderr, done
    assert "Could not get lock" in done.stderr


def test_without_sudo_the_advice_is_all_that_there_is_to_do():
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        done = provide(folder, "need first second", user=65534)
        assert done.returncode == 1 and not (folder / "calls").exists(), done
    assert "As root: apt-get update && apt-get install first second" in done.stderr


@pytest.mark.parametrize("candidate, offered", [("1.13.1+dfsg-4", "yes"), ("(none)", "no")])
def test_whether_apt_offers_a_package_does_not_depend_on_who_is_faster(tmp_path, candidate, offered):
    policy = f"#!/bin/sh\necho '  Candidate: {candidate}'\nyes a line that nobody reads | sed 20000q\n"
    command = "for i in 1 2 3 4 5 6 7 8 9 10; do if apt_offers some; then echo yes; else echo no; fi; done"
    done = provide(tmp_path, command, programs={"apt-cache": policy})
    assert done.stdout.split() == [offered] * 10, done
