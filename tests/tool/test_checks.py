"""The checks of tests/checks: what they must find."""

import os
import sys

import pytest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))

from checks import results, skips, sources  # noqa: E402


@pytest.mark.parametrize("line", [
    "if apt-cache policy x 2>/dev/null | grep -q 'Candidate: [^(]'; then",
    "ps aux | grep -c x | head -1", "dmesg | grep -F -m1 error", "git log | sed 1q", "ls |& head", "cat x | grep --quiet y",
    "ls -l | awk '{ print; exit }'", "make 2>&1 | LC_ALL=C grep -iq error",
])
def test_a_pipeline_whose_reader_ends_early_is_found(line):
    assert sources.EARLY_READERS.search(line)


@pytest.mark.parametrize("line", [
    "grep -q x file || head -1 file", "cat x | grep -c y", "ls | sed -n '$p'", "x | awk 'END { print n }'",
    "tail -n 25 log | sed 's/^/  /'", 'grep -qE x <<<"$text"',
])
def test_other_pipelines_are_left_alone(line):
    assert not sources.EARLY_READERS.search(line)


def test_a_skip_counts_only_for_what_the_machine_does_not_have(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(skips, "has_gpu", lambda: False)
    monkeypatch.setattr(skips, "has_instructions", lambda variant: variant == "avx2")
    found = results.Results(str(tmp_path))
    found.skip("a", "no cuda device here")
    found.skip("b", "no cuda device here offers the kernel variant ptx")
    found.skip("c", "no cpu device here offers the kernel variant avx512")
    found.skip("d", "cpu has 25.3 GB of memory, the tensors need 60.1 GB")
    assert (found.skipped, found.failed) == (4, 0)
    assert found.missing == {"no NVIDIA GPU": 2, "no avx512 instructions": 1, "not enough memory": 1}
    for reason in ("no Python here has numpy and torch", "no opencl device here", "cmake is not installed", "", "GPU",
                   "no cpu device here offers the kernel variant avx2"):
        found.skip("e", reason)
    monkeypatch.setattr(skips, "has_gpu", lambda: True)
    found.skip("f", "no cuda device here")
    assert (found.skipped, found.failed) == (4, 7)
    assert "may be skipped only for" in capsys.readouterr().out
