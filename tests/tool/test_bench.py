"""gradguard-bench: its files, its comparison of bits, its arguments."""

import json
import os
import re
import subprocess
import sys

import pytest

import harness

FOLDER = os.path.dirname(harness.TOOL)
PROGRAM = os.path.join(FOLDER, "gradguard-bench")
DOUBLE = os.path.join(FOLDER, "tests", "bench-flipped-bit")  # tests/tool/flipped_bit.c

ROW = {"device", "backend", "kind", "name", "compute_units", "driver", "kernel", "path", "bytes", "traffic_bytes",
       "copy_gb_per_s", "floor_ms", "median_ms", "min_ms", "max_ms", "first_ms", "ratio", "gb_per_s", "reduction_launches", "update_launches",
       "scratch_bytes", "samples_ms", "digests"}


def run(*words, program=PROGRAM, **variables):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **variables})


def test_backends_side_by_side_give_the_same_bits(tmp_path):
    harness.need("cpu")
    harness.need("opencl")
    file = tmp_path / "bench.json"
    done = run("--device", "cpu", "--device", "opencl", "--shapes", "3x4097", "--dtype", "f16", "--quick", "--json",
               str(file))
    assert done.returncode == 0, done.stderr
    assert "devices in alternation" in done.stdout
    document = json.loads(file.read_text())
    assert document["same_bits"] is True and document["settings"]["alternating_devices"] is True
    assert {"build", "revision", "machine", "settings", "rows"} <= set(document)
    rows = document["rows"]
    assert [(row["backend"], row["path"]) for row in rows] == [
        ("cpu", "fused"), ("cpu", "staged"), ("opencl", "fused"), ("opencl", "staged")]
    assert len({tuple(row["digests"]) for row in rows}) == 1 and len(rows[0]["digests"]) == 2
    for row in rows:
        assert set(row) == ROW
        assert row["name"] and row["driver"] and row["kernel"]
        staged = row["path"] == "staged"
        assert row["update_launches"] == (2 if staged else 1)
        assert row["scratch_bytes"] >= 4 * 3 * 4097 if staged else row["scratch_bytes"] < 16384


def sections(text, option):
    """Option -> what is said about it, up to the next one."""
    parts = re.split(option, text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def test_help_and_man_page_have_the_same_options_and_defaults():
    with open(os.path.join(harness.ROOT, "docs/gradguard-bench.1"), encoding="utf-8") as file:
        manual = sections(file.read(), r"^\.It Fl -([a-z-]+)")
    listed = sections(run("--help").stdout, r"^  --([a-z-]+)")
    assert len(listed) > 10 and set(listed) == set(manual)
    for option, text in listed.items():
        assert "unrecognized" not in run(f"--{option}", "x", "left over").stderr, option
        default = re.search(r"\(default ([\w.-]+)", text)
        described = re.search(r"^The default is\s+(?:\.Cm )?([\w.-]*\w)", manual[option], re.M)
        if default:
            assert described and described[1] == default[1], option


@pytest.mark.parametrize("place", ["fused:0:0", "staged:1:1", "staged:2:0", "staged:3:1"])
def test_one_flipped_bit_fails_the_run(tmp_path, place):
    words = ["--device", "cpu", "--shapes", "2x1001", "--amsgrad", "--quick", "--json", str(tmp_path / "bench.json")]
    assert run(*words, program=DOUBLE).returncode == 0  # it lies only when asked to
    done = run(*words, program=DOUBLE, FLIPPED_BIT=place)
    assert done.returncode == 1
    batch = int(place[-1]) + 1
    assert f"after batch {batch} the bits of staged on cpu" in done.stderr and "DIFFERENT BITS" in done.stdout
    assert json.loads((tmp_path / "bench.json").read_text())["same_bits"] is False


def test_a_backend_that_differs_from_the_other_fails_the_run():
    harness.need("opencl")
    # The double counts the batches of a path over all devices: the second one of the first batch is OpenCL's.
    done = run("--device", "cpu", "--device", "opencl", "--shapes", "2x1001", "--path", "fused", "--quick",
               program=DOUBLE, FLIPPED_BIT="fused:1:1")
    assert done.returncode == 1
    assert "after batch 1 the bits of fused on opencl" in done.stderr and "those of fused on cpu" in done.stderr


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
        assert row["first_ms"] > 0
        assert len(row["samples_ms"]) == 6 and min(row["samples_ms"]) == row["min_ms"] <= row["median_ms"]
        assert row["floor_ms"] > 0 and row["copy_gb_per_s"] > 0


def digests_of(folder, *words):
    file = folder / "bench.json"
    done = run("--device", "cpu", "--shapes", "3x5000", "--quick", "--json", str(file), *words)
    assert done.returncode == 0, done.stderr
    return {tuple(row["digests"]) for row in json.loads(file.read_text())["rows"]}


def test_every_variant_and_mode_gives_the_same_digests(tmp_path):
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
                  ["--kernel", "avx2"], ["--seed", "-1"], ["--max-norm", "-1"],
                  ["--dtype", "f16", "--grad-scale", "1e9"], ["--dtype", "f16", "--grad-scale", "1e-9"],
                  ["--grad-scale", "0"], ["--grad-scale", "nan"], ["--mode", "sideways"], ["extra"], ["--no-such-option"],
                  ["--device", "cpu:" + "x" * 80], ["--device", "cpu", "--kernel", "portable" + " " * 20]):
        done = run(*words)
        assert done.returncode == 2 and done.stderr, words
    assert run("--device", "cuda:97", "--shapes", "1x1").returncode == 5
    assert run("--help").returncode == 0


def test_a_file_that_cannot_be_written_is_known_before_anything_is_measured(tmp_path):
    done = run("--device", "cpu", "--json", str(tmp_path / "no" / "bench.json"))
    assert done.returncode == 1 and done.stdout == "" and "cannot be written" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["--list-shapes"], ["--device", "cpu", "--shapes", "1x100", "--quick"]])
def test_results_that_cannot_be_printed_are_an_error(words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "standard output" in done.stderr


def test_the_tool_runs_it_with_the_same_arguments():
    done = subprocess.run([harness.TOOL, "bench", "--list-shapes"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == run("--list-shapes").stdout


@pytest.mark.parametrize("words", [
    "compare_pytorch.py --samples 0", "compare_pytorch.py --samples -1", "compare_pytorch.py --warmup -1",
    "compare_pytorch.py --json no/such/folder.json", "compare_pytorch.py --shapes 0x5", "compare_pytorch.py --shapes 5x0",
    "accuracy.py --json no/such/folder.json", "accuracy.py --json /dev/null --largest 0"])
def test_the_python_benchmarks_refuse_bad_arguments_before_they_measure(words):
    pytest.importorskip("torch")
    if "compare" in words:
        words += f" --device cpu --program {PROGRAM}"
    program, *rest = words.split()
    done = subprocess.run([sys.executable, os.path.join(harness.ROOT, "bench", program), *rest], capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode and done.stdout == "" and done.stderr and "Traceback" not in done.stderr, done
