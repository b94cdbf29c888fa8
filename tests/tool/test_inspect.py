"""Finding non-finite values."""

import math

import numpy as np
import pytest

import harness
import tensor_files
from harness import run
from tensor_files import Bf16

KEYS = {"norm", "max_abs", "nonfinite", "grad_scale", "elements", "tensors", "device", "backend", "kernel",
        "reduction_launches", "update_launches", "readback_bytes", "scratch_bytes"}
TENSOR_KEYS = {"name", "dtype", "shape", "elements", "norm", "max_abs", "nonfinite", "nonfinite_count", "first_index"}


@pytest.fixture(params=["cpu", "opencl", "cuda"])
def device(request):
    harness.need(request.param)
    return request.param


def bad_gradients():
    source = np.random.default_rng(5)
    clean = source.normal(0, 1, (100, 70)).astype(np.float32)
    broken = clean.copy()
    broken[31, 7] = np.nan
    broken[99, 69] = np.nan
    broken[31, 8] = -np.inf
    half = source.normal(0, 1, (4, 5, 6)).astype(np.float16)
    half[2, 3, 4] = np.inf
    wide = Bf16(source.normal(0, 1, 5000).astype(np.float32))
    wide.bits[4999] = 0x7F7F  # the largest finite value
    return {"clean": clean, "broken": broken, "half": half, "wide": wide, "empty": np.zeros((0, 2), np.float32)}


def test_kinds_counts_and_first_places(tmp_path, device):
    path = tensor_files.write(tmp_path / "grads.safetensors", bad_gradients())
    outcome = run("inspect", "--grads", path, "--grad-scale", "0.5", "--device", device, "--report", "json")
    assert outcome.code == 0, outcome
    report = outcome.json
    assert set(report) == KEYS and report["backend"] == device
    assert report["norm"] == "inf" and report["nonfinite"] == ["inf", "nan", "overflow"] and report["grad_scale"] == 0.5
    tensors = {tensor["name"]: tensor for tensor in report["tensors"]}
    assert all(set(tensor) == TENSOR_KEYS for tensor in report["tensors"])
    found = {name: (t["nonfinite"], t["nonfinite_count"], t["first_index"]) for name, t in tensors.items()}
    none = {"nan": 0, "inf": 0, "overflow": 0}
    nowhere = {"nan": None, "inf": None, "overflow": None}
    assert found["clean"] == found["empty"] == ([], none, nowhere)
    assert found["broken"] == (["inf", "nan"], {**none, "nan": 2, "inf": 1}, {**nowhere, "nan": 31 * 70 + 7, "inf": 31 * 70 + 8})
    assert found["half"] == (["inf"], {**none, "inf": 1}, {**nowhere, "inf": 2 * 30 + 3 * 6 + 4})
    assert found["wide"] == (["overflow"], {**none, "overflow": 1}, {**nowhere, "overflow": 4999})
    assert tensors["half"]["dtype"] == "F16" and tensors["half"]["shape"] == [4, 5, 6]
    assert tensors["clean"]["max_abs"] == 2 * float(np.max(np.abs(bad_gradients()["clean"])))


def test_text_answers_where_it_began(tmp_path):
    path = tensor_files.write(tmp_path / "grads.safetensors", bad_gradients())
    outcome = run("inspect", "--grads", path, "--grad-scale", "0.5", "--device", "cpu")
    assert outcome.code == 0 and outcome.err == "", outcome
    assert "3 of 5 tensors hold non-finite values" in outcome.out
    largest = 2 * np.abs(np.delete(bad_gradients()["clean"], 31 * 70 + np.array([7, 8]))[:-1]).max()
    assert f'"broken"  F32 [100, 70], max |g| {largest:.9g} of its finite values\n' in outcome.out
    assert "nan       2 of 7000, first at 2177 = [31, 7]" in outcome.out
    assert "inf       1 of 120, first at 82 = [2, 3, 4]" in outcome.out
    assert "overflow  1 of 5000, first at 4999\n" in outcome.out
    assert outcome.out.index('"broken"') < outcome.out.index('"clean"')


def test_text_of_a_fine_file(tmp_path):
    path = tensor_files.write(tmp_path / "grads.safetensors", {"a": np.float32([3]), "b": np.float16([4])})
    outcome = run("inspect", "--grads", path, "--device", "cpu")
    assert outcome.code == 0 and "no NaN, no Inf, no overflow" in outcome.out and "norm          5\n" in outcome.out


def test_a_long_list_stays_readable(tmp_path):
    many = {f"layer.{at}": np.float32([at if at % 2 else np.nan]) for at in range(500)}
    path = tensor_files.write(tmp_path / "grads.safetensors", many)
    outcome = run("inspect", "--grads", path, "--device", "cpu")
    assert len(outcome.out.splitlines()) < 150 and "250 of 500" in outcome.out
    assert len(run("inspect", "--grads", path, "--device", "cpu", "--report", "json").json["tensors"]) == 500


@pytest.mark.parametrize("magnitude", [1e-44, 1e-30, 1e-3, 1e20, 3e38])
def test_norm_over_the_whole_range(tmp_path, magnitude):
    values = np.full(1000, magnitude, np.float32)
    path = tensor_files.write(tmp_path / "grads.safetensors", {"a": values})
    report = run("inspect", "--grads", path, "--device", "cpu", "--report", "json").json
    assert math.isclose(report["norm"], float(values[0]) * math.sqrt(1000), rel_tol=2e-7) and report["nonfinite"] == []


def test_no_tensor_at_all(tmp_path):
    path = tensor_files.write(tmp_path / "grads.safetensors", {})
    outcome = run("inspect", "--grads", path, "--device", "cpu", "--report", "json")
    assert outcome.code == 0 and outcome.json["tensors"] == [] and outcome.json["elements"] == 0, outcome


@pytest.mark.parametrize("scale", ["0", "-2", "1e-40", "1e60"])
def test_a_scale_without_an_fp32_reciprocal_is_exit_2(tmp_path, scale):
    folder = harness.small(harness.Folder(tmp_path))
    outcome = folder.inspect("--grad-scale", scale)
    assert outcome.code == 2 and outcome.out == "" and outcome.err, outcome
