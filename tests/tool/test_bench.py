"""gradguard-bench: its files, its comparison of bits, its arguments."""

import json
import os
import subprocess

import harness

PROGRAM = os.path.join(os.path.dirname(harness.TOOL), "gradguard-bench")


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, check=False)


def test_paths_give_the_same_bits_and_everything_is_in_the_file(tmp_path):
    file = tmp_path / "bench.json"
    done = run("--device", "cpu", "--shapes", "5x3001", "--dtype", "bf16", "--amsgrad", "--path", "fused", "--path",
               "staged", "--path", "plain", "--path", "stats", "--quick", "--seed", "7", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "the same bits on every path and device" in done.stdout
    document = json.loads(file.read_text())
    assert document["same_bits"] is True and document["settings"]["seed"] == 7
    rows = {row["path"]: row for row in document["rows"]}
    assert set(rows) == {"fused", "staged", "plain", "stats"}
    elements = 5 * 3001
    assert rows["fused"]["bytes"] == elements * (2 + 2 + 32) and rows["plain"]["bytes"] == elements * (2 + 32)
    assert rows["stats"]["bytes"] == elements * 2
    assert rows["staged"]["traffic_bytes"] == rows["fused"]["traffic_bytes"] + 8 * elements
    assert rows["fused"]["digests"] == rows["staged"]["digests"]
    assert rows["fused"]["digests"] != rows["plain"]["digests"]  # clipping does something
    for row in rows.values():
        assert len(row["samples_ms"]) == 6 and min(row["samples_ms"]) == row["min_ms"] <= row["median_ms"]
        assert row["floor_ms"] > 0 and row["copy_gb_per_s"] > 0


def digests_of(folder, *words):
    file = folder / "bench.json"
    done = run("--device", "cpu", "--shapes", "3x5000", "--quick", "--json", str(file), *words)
    assert done.returncode == 0, done.stderr
    return {tuple(row["digests"]) for row in json.loads(file.read_text())["rows"]}


def test_every_route_and_mode_gives_the_same_digests(tmp_path):
    words = ["--kernel", "all", "--seed", "3", "--mode"]
    digests = digests_of(tmp_path, *words, "in-place") | digests_of(tmp_path, *words, "out-of-place")
    assert len(digests) == 1


def test_other_data_give_other_digests(tmp_path):
    assert not digests_of(tmp_path, "--seed", "1") & digests_of(tmp_path, "--seed", "2")


def test_shapes_are_listed_for_other_programs():
    shapes = json.loads(run("--list-shapes").stdout)
    assert len(shapes["llama-1.2b"]) == 146 and len(shapes["gpt2-124m"]) == 148

    def elements(name):
        total = 0
        for shape in shapes[name]:
            size = 1
            for part in shape:
                size *= part
            total += size
        return total

    assert elements("llama-1.2b") == 1235814400 and elements("gpt2-124m") == 124439808


def test_bad_arguments_are_refused():
    for words in (["--shapes", "many"], ["--shapes", "0x5"], ["--dtype", "f64"], ["--path", "best"], ["--samples", "0"],
                  ["--kernel", "avx2"], ["--seed", "-1"], ["--mode", "sideways"], ["extra"], ["--no-such-option"]):
        done = run(*words)
        assert done.returncode == 2 and done.stderr, words
    assert run("--device", "cuda:97", "--shapes", "1x1").returncode == 5
    assert run("--help").returncode == 0
