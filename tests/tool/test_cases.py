"""The project's cases (tests/data/cases.json) from file to file, in both modes and on every backend."""

import json
import math
import os

import numpy as np
import pytest

import harness
from tensor_files import Bf16

with open(os.path.join(harness.ROOT, "tests/data/cases.json"), encoding="utf-8") as cases_file:
    CASES = json.load(cases_file)

OPTIONS = {"learning_rate": "lr", "epsilon": "eps", "gradient_scale": "grad-scale", "skip_update": "skip-update",
           "max_norm": "max-norm", "weight_decay": "weight-decay", "on_nonfinite": "on-nonfinite"}
MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def gradient(tensor):
    """Values are numbers, "nan", "inf", or bits as "0x...."."""
    kind = {"f32": np.float32, "f16": np.float16, "bf16": Bf16}[tensor["gradient"]]
    values = tensor["values"] if "values" in tensor else [tensor.get("all", 0.0)] * tensor["elements"]
    bits = [isinstance(value, str) and value.startswith("0x") for value in values]
    numbers = kind(np.array([0.0 if raw else float(value) for raw, value in zip(bits, values)], np.float32))
    stored = numbers.bits if kind is Bf16 else numbers.view(np.uint32 if kind is np.float32 else np.uint16)
    for at, raw in enumerate(bits):
        if raw:
            stored[at] = int(values[at], 16)
    return numbers


def write(folder, case):
    params, grads, state = {}, {}, {}
    for tensor in case["tensors"]:
        name, n = tensor["name"], tensor["elements"]
        params[name] = np.zeros(n, np.float32) + np.float32(tensor.get("parameter", 1.0))
        grads[name] = gradient(tensor)
        for kind in MOMENTS[: 3 if case["options"].get("amsgrad") else 2]:
            state[f"{name}.{kind}"] = np.zeros(n, np.float32) + np.float32(tensor.get(kind, 0.0))
        state[f"{name}.step"] = np.int64(tensor.get("step", 0))
    folder.write(params, grads, state)
    return params, state


def words(options):
    result = ["--weight-decay", "0"]
    for name, value in options.items():
        option = "--" + OPTIONS.get(name, name)
        if value is not False:
            result += [option] if value is True else [option, str(value)]
    return result


def assert_after(case, folder):
    params, state = folder.results()
    for expected in case["expect"].get("after", []):
        name = case["tensors"][expected["tensor"]]["name"]
        assert state[f"{name}.step"] == expected["step"]
        for sample in expected["at"]:
            for kind, value in sample.items():
                if kind == "index":
                    continue
                found = float((params[name] if kind == "parameter" else state[f"{name}.{kind}"])[sample["index"]])
                tolerance = 1e-6 if kind == "parameter" else 2e-6
                assert math.isclose(found, float(value), rel_tol=tolerance, abs_tol=1.5e-45), (name, kind, found, value)


@pytest.mark.parametrize("backend", ["cpu", "opencl", "cuda"])
@pytest.mark.parametrize("mode", ["out-of-place", "in-place"])
def test_cases(tmp_path, backend, mode):
    harness.need(backend)
    for number, case in enumerate(CASES):
        path = tmp_path / str(number)
        path.mkdir()
        folder = harness.Folder(path)
        params, state = write(folder, case)
        before = folder.names()
        outcome = folder.step(*words(case["options"]), *(["--in-place"] if mode == "in-place" else []), device=backend)
        expect, where = case["expect"], (case["name"], outcome)
        code = {"applied": 0, "skipped": 3, "error": 4, "argument_error": 2}[expect["action"]]
        assert outcome.code == code, where
        if code in (2, 4):
            assert folder.names() == before, where
        elif expect.get("unchanged"):
            new_params, new_state = folder.results()
            assert {k: v.tobytes() for k, v in new_params.items()} == {k: v.tobytes() for k, v in params.items()}, where
            assert {k: v.tobytes() for k, v in new_state.items()} == {k: v.tobytes() for k, v in state.items()}, where
        if code == 2:
            continue
        report = outcome.json
        assert report["action"] == expect["action"] and report["reason"] == expect.get("reason"), where
        for key in ("norm", "clip_coefficient", "max_abs"):
            if key in expect:
                close = report[key] == expect[key] or math.isclose(report[key], expect[key], rel_tol=2e-7)
                assert close, (key, where)
        by_name = {tensor["name"]: tensor for tensor in report["tensors"]}
        for tensor, measured in zip(case["tensors"], expect.get("per_tensor", [])):
            found = by_name[tensor["name"]]
            assert found["nonfinite"] == sorted(measured["nonfinite"]) and found["max_abs"] == measured["max_abs"], where
            close = found["norm"] == measured["norm"] or math.isclose(found["norm"], measured["norm"], rel_tol=2e-7)
            assert close, where
        if code in (0, 3):
            assert_after(case, folder)
