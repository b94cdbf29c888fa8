"""What a step computes and reports, against the formulas in FP64."""

import math
import os

import numpy as np
import pytest

import adamw
import harness
import tensor_files
from tensor_files import Bf16, widened

SEED = int.from_bytes(os.urandom(4), "little")
STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
REPORT_KEYS = {"action", "reason", "norm", "max_abs", "nonfinite", "clip_coefficient", "grad_scale", "elements",
               "passed_through", "tensors", "device", "backend", "kernel", "reduction_launches", "update_launches",
               "readback_bytes", "scratch_bytes"}


@pytest.fixture
def folder(tmp_path):
    return harness.Folder(tmp_path)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8).tobytes()


def random_problem(seed, scale, amsgrad, steps=None):
    """Mixed dtypes, an empty tensor, a scalar and one large enough for several blocks."""
    print("seed", seed)
    source = np.random.default_rng(seed)
    shapes = {"embed.weight": (301, 257), "layer.0.weight": (64, 3, 5), "layer.0.bias": (64,), "scalar": (),
              "empty": (0, 4), "head": (10007,)}
    kinds = [np.float32, np.float16, Bf16, np.float32, np.float16, np.float16]
    params, grads, state = {}, {}, {}
    for at, (name, shape) in enumerate(shapes.items()):
        params[name] = source.normal(0, 1, shape).astype(np.float32)
        grads[name] = kinds[at]((source.normal(0, 0.01, shape) * scale).astype(np.float32))
        if steps is not None:
            state[f"{name}.exp_avg"] = source.normal(0, 0.01, shape).astype(np.float32)
            state[f"{name}.exp_avg_sq"] = (source.uniform(0.5, 1, shape) * 1e-4).astype(np.float32)
            if amsgrad:
                state[f"{name}.max_exp_avg_sq"] = (source.uniform(0.5, 1, shape) * 1e-4).astype(np.float32)
            state[f"{name}.step"] = np.int64(steps + at)
    return params, grads, state


def assert_close(result, expected, tolerance, what):
    error = np.abs(result.astype(np.float64) - expected)
    limit = tolerance * np.maximum(np.abs(expected), 1e-30)
    assert np.all(error <= limit), (what, float(np.max(error - limit)))


def assert_step(folder, outcome, params, grads, state, options):
    """The files and the report of an applied step."""
    o = {**adamw.DEFAULTS, **options}
    norm = adamw.group_norm([widened(g) for g in grads.values()], o["grad_scale"])
    c = adamw.coefficient(norm, o)
    assert outcome.code == 0 and outcome.json["action"] == "applied" and outcome.json["reason"] is None, outcome
    assert math.isclose(outcome.json["norm"], norm, rel_tol=2e-7)
    assert math.isclose(outcome.json["clip_coefficient"], c, rel_tol=3e-7)
    new_params, new_state = folder.results()
    assert set(new_params) == set(params)
    for name, p in params.items():
        step = int(state.get(f"{name}.step", 0)) + (p.size != 0)
        assert new_state[f"{name}.step"] == step and new_state[f"{name}.step"].shape == ()
        before = [widened(state.get(f"{name}.{kind}", np.zeros(p.shape))) for kind in STATE]
        after = adamw.update(widened(p), widened(grads[name]), *before, max(step, 1), c, o)
        # Cancellation in p' is bounded by the size of its terms, not by that of the result.
        limit = 1e-6 * (np.abs(widened(p)) + o["lr"] * 100)
        assert np.all(np.abs(new_params[name] - after[0]) <= limit), name
        moment_limit = 2e-6 * (np.abs(before[0]) + np.abs(widened(grads[name]) / o["grad_scale"]))
        assert np.all(np.abs(new_state[f"{name}.exp_avg"] - after[1]) <= moment_limit), name
        assert_close(new_state[f"{name}.exp_avg_sq"], after[2], 2e-6, name)
        if o["amsgrad"]:
            assert_close(new_state[f"{name}.max_exp_avg_sq"], after[3], 2e-6, name)
        else:
            assert f"{name}.max_exp_avg_sq" not in new_state


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_norm": 1.0},
        {"max_norm": 0.5, "clip_epsilon": 0.0, "grad_scale": 1024.0},
        {"max_norm": 0.0, "weight_decay": 0.1},
        {"max_norm": 1e9},
        {"amsgrad": True, "max_norm": 1.0},
        {"maximize": True, "weight_decay": 0.0},
        {"amsgrad": True, "maximize": True, "grad_scale": 65536.0, "lr": 0.01, "beta1": 0.5, "beta2": 0.99, "eps": 1e-6},
        {"lr": 0.0},
        {"beta1": 0.0, "beta2": 0.0},
    ],
)
@pytest.mark.parametrize("steps", [None, 0, 1000])
def test_a_step_follows_the_formulas(folder, options, steps):
    params, grads, state = random_problem(SEED, options.get("grad_scale", 1), options.get("amsgrad"), steps)
    folder.write(params, grads, state if steps is not None else None)
    if options.get("beta1") == 0 or options.get("beta2") == 0:
        options = {**options, "beta2": options["beta2"] or 1e-300}  # the judge takes a logarithm
    outcome = folder.step(*adamw.words(options))
    assert_step(folder, outcome, params, grads, state, options)


def test_several_steps_chain_through_the_files(folder):
    params, grads, state = random_problem(SEED, 1, False)
    folder.write(params, grads)
    for _ in range(3):
        outcome = folder.step("--max-norm", "0.5")
        assert_step(folder, outcome, params, grads, state, {"max_norm": 0.5})
        os.replace(folder.out_params, folder.params)
        os.replace(folder.out_state, folder.state)
        params, state = tensor_files.read(folder.params), tensor_files.read(folder.state)
    assert state["head.step"] == 3 and state["empty.step"] == 0


def test_in_place_gives_the_same_bytes(folder):
    params, grads, state = random_problem(SEED, 64, True, 5)
    folder.write(params, grads, state)
    words = ["--amsgrad", "--max-norm", "0.1", "--grad-scale", "64"]
    assert folder.step(*words).code == 0
    out_of_place = folder.result_bytes()
    assert folder.step(*words, "--in-place").code == 0
    assert folder.result_bytes() == out_of_place


def test_threads_do_not_change_the_bytes(folder):
    params, grads, state = random_problem(SEED, 1, False, 5)
    folder.write(params, grads, state)
    results = set()
    for threads in ("1", "2", "5"):
        assert folder.step("--max-norm", "1", environment={"OMP_NUM_THREADS": threads}).code == 0
        results.add(folder.result_bytes())
    assert len(results) == 1


@pytest.mark.parametrize("backend", ["opencl", "cuda"])
@pytest.mark.parametrize("words", [[], ["--amsgrad", "--maximize", "--in-place"]])
def test_every_backend_gives_the_bytes_of_the_cpu(folder, backend, words):
    harness.need(backend)
    params, grads, state = random_problem(SEED, 128, "--amsgrad" in words, 17)
    folder.write(params, grads, state)
    words = [*words, "--max-norm", "0.7", "--grad-scale", "128"]
    expected = folder.step(*words)
    files = folder.result_bytes()
    outcome = folder.step(*words, device=backend)
    assert outcome.code == 0 and outcome.json["backend"] == backend, outcome
    assert folder.result_bytes() == files
    for key in ("norm", "max_abs", "clip_coefficient", "tensors", "readback_bytes"):
        assert outcome.json[key] == expected.json[key], key


def test_report_schema(folder):
    params, grads, state = random_problem(SEED, 1, False)
    folder.write(params, grads)
    report = folder.step().json
    assert set(report) == REPORT_KEYS
    assert report["backend"] == "cpu" and report["device"] == "cpu" and isinstance(report["kernel"], str)
    assert report["elements"] == sum(p.size for p in params.values())
    assert report["readback_bytes"] == 12 * sum(p.size != 0 for p in params.values())
    assert report["clip_coefficient"] == 1 and report["grad_scale"] == 1 and report["nonfinite"] == []
    by_name = {tensor["name"]: tensor for tensor in report["tensors"]}
    assert set(by_name) == set(params)
    for name, tensor in by_name.items():
        values = widened(grads[name])
        assert set(tensor) == {"name", "elements", "norm", "max_abs", "nonfinite"}
        assert tensor["elements"] == values.size and tensor["nonfinite"] == []
        assert math.isclose(tensor["norm"], adamw.group_norm([values], 1), rel_tol=2e-7)
        assert tensor["max_abs"] == (np.max(np.abs(values)) if values.size else 0)
    assert report["max_abs"] == max(tensor["max_abs"] for tensor in report["tensors"])


def test_numbers_round_trip(folder):
    folder.write({"w": np.float32([1])}, {"w": np.float32([0.1])})
    outcome = folder.step("--grad-scale", "0.1")
    assert outcome.json["grad_scale"] == 0.1
    assert outcome.json["tensors"][0]["max_abs"] == float(np.float32(0.1) * (np.float32(1 / 0.1)))


def test_text_report_says_what_happened(folder):
    harness.small(folder)
    outcome = folder.step("--max-norm", "1", "--report", "text")
    assert outcome.code == 0 and outcome.err == "" and outcome.out.startswith("applied"), outcome
    assert "clip coeff." in outcome.out and '"b"' in outcome.out
    folder.write({"w": np.float32([1])}, {"w": np.float32([np.nan])})
    outcome = folder.step("--report", "text")
    assert outcome.code == 3 and outcome.out.startswith("skipped") and "gradguard inspect" in outcome.out
    outcome = folder.step("--report", "text", "--skip-update")
    assert outcome.code == 3 and "requested" in outcome.out


# ---- Skips and refusals ----


def nonfinite_problem(folder):
    params, grads, state = random_problem(SEED, 1, False, 3)
    grads["layer.0.weight"][5, 1, 2] = np.nan
    grads["head"][7] = np.inf
    folder.write(params, grads, state)
    return params, grads, state


def assert_unchanged(folder, params, state):
    new_params, new_state = folder.results()
    assert {name: bits(value) for name, value in new_params.items()} == {name: bits(p) for name, p in params.items()}
    assert {name: bits(value) for name, value in new_state.items()} == {name: bits(s) for name, s in state.items()}


@pytest.mark.parametrize("mode", [[], ["--in-place"]])
def test_a_skip_leaves_every_bit_alone(folder, mode):
    params, _, state = nonfinite_problem(folder)
    outcome = folder.step("--max-norm", "1", *mode)
    assert outcome.code == 3 and outcome.err == "", outcome
    report = outcome.json
    assert (report["action"], report["reason"], report["norm"], report["clip_coefficient"]) == ("skipped", "nonfinite", "inf", 1)
    assert report["nonfinite"] == ["inf", "nan"]
    assert {t["name"]: t["nonfinite"] for t in report["tensors"] if t["nonfinite"]} == {"layer.0.weight": ["nan"], "head": ["inf"]}
    assert all(t["norm"] == "inf" for t in report["tensors"] if t["nonfinite"])
    assert_unchanged(folder, params, state)
    assert folder.out_params.read_bytes() == folder.params.read_bytes()


def test_a_requested_skip_looks_at_nothing(folder):
    params, _, state = nonfinite_problem(folder)
    outcome = folder.step("--skip-update", "--on-nonfinite", "error")
    assert outcome.code == 3, outcome
    report = outcome.json
    assert (report["action"], report["reason"], report["norm"], report["max_abs"]) == ("skipped", "requested", None, None)
    assert report["reduction_launches"] == report["update_launches"] == report["readback_bytes"] == 0
    assert all(t["norm"] is None and t["nonfinite"] == [] for t in report["tensors"])
    assert_unchanged(folder, params, state)


def test_the_error_policy_writes_nothing(folder):
    nonfinite_problem(folder)
    folder.out_params.write_text("old")
    before = folder.names()
    outcome = folder.step("--on-nonfinite", "error")
    assert outcome.code == 4 and "non-finite" in outcome.err, outcome
    assert (outcome.json["action"], outcome.json["reason"], outcome.json["norm"]) == ("error", "nonfinite", "inf")
    assert outcome.json["update_launches"] == 0
    assert folder.names() == before and folder.out_params.read_text() == "old"


def test_the_error_policy_applies_a_fine_step(folder):
    harness.small(folder)
    assert folder.step("--on-nonfinite", "error").code == 0


@pytest.mark.parametrize("tensors", [{}, {"e": np.zeros((0, 3), np.float32)}])
def test_nothing_to_do_is_a_skip(folder, tensors):
    folder.write(tensors, tensors)
    outcome = folder.step()
    assert outcome.code == 3 and (outcome.json["action"], outcome.json["reason"]) == ("skipped", "empty"), outcome
    assert set(folder.results()[0]) == set(tensors)


def test_a_skip_without_state_writes_zeros(folder):
    folder.write({"w": np.float32([1, 2])}, {"w": np.float32([np.inf, 0])})
    assert folder.step("--amsgrad").code == 3
    _, state = folder.results()
    assert set(state) == {"w.exp_avg", "w.exp_avg_sq", "w.max_exp_avg_sq", "w.step"}
    assert all(not np.any(value) for value in state.values())


# ---- Matching ----


def test_a_parameter_without_a_gradient_passes_through_with_its_state(folder):
    frozen = np.float32([[1, np.nan], [-0.0, np.inf]])
    params = {"frozen": frozen, "w": np.float32([1]), "table": np.arange(5, dtype=np.int64), "new": np.float32([7])}
    state = {"frozen.exp_avg": frozen * 2, "frozen.max_exp_avg_sq": frozen, "frozen.step": np.int64(41)}
    tensor_files.write(folder.params, params, {"format": "pt"})
    tensor_files.write(folder.grads, {"w": np.float32([1])})
    tensor_files.write(folder.state, state, {"who": "someone"})
    outcome = folder.step()
    assert outcome.code == 0 and [t["name"] for t in outcome.json["tensors"]] == ["w"], outcome
    assert outcome.json["passed_through"] == 3 and outcome.json["elements"] == 1
    new_params, new_state = folder.results()
    assert list(new_params) == list(params)
    for name in ("frozen", "table", "new"):
        assert bits(new_params[name]) == bits(params[name])
    assert set(new_state) == {*state, "w.exp_avg", "w.exp_avg_sq", "w.step"}
    for name, value in state.items():
        assert bits(new_state[name]) == bits(value)
    assert tensor_files.read_header(folder.out_params)[0]["__metadata__"] == {"format": "pt"}
    assert tensor_files.read_header(folder.out_state)[0]["__metadata__"] == {"who": "someone"}


def test_absent_state_entries_are_zero(folder):
    folder.write({"w": np.float32([1])}, {"w": np.float32([2])}, {"w.exp_avg": np.float32([0.5])})
    assert folder.step("--beta1", "0.5", "--beta2", "0.75").code == 0
    state = folder.results()[1]
    assert (state["w.exp_avg"], state["w.exp_avg_sq"], state["w.step"]) == (1.25, 1.0, 1)


def test_amsgrad_can_be_switched_on_later(folder):
    folder.write({"w": np.float32([1])}, {"w": np.float32([2])}, {"w.exp_avg_sq": np.float32([4]), "w.step": np.int64(9)})
    assert folder.step("--amsgrad").code == 0
    state = folder.results()[1]
    assert state["w.max_exp_avg_sq"] == state["w.exp_avg_sq"] and state["w.step"] == 10


def test_names_with_dots_and_other_scripts(folder):
    names = ["a", "a.exp_avg", "a.step", "größe.重み", ".", "a b\"c", ""]
    params = {name: np.float32([at]) for at, name in enumerate(names)}
    folder.write(params, {name: np.float32([1]) for name in names})
    assert folder.step().code == 0
    new_params, state = folder.results()
    assert list(new_params) == names and len(state) == 3 * len(names)
    os.replace(folder.out_state, folder.state)
    assert folder.step().code == 0
    assert folder.results()[1]["a.exp_avg.step"] == 2


PARAMS = {"w": np.ones((2, 3), np.float32)}
GRADS = {"w": np.ones((2, 3), np.float32)}


@pytest.mark.parametrize(
    "params, grads, state, named",
    [
        (PARAMS, {"v": np.float32([1])}, {}, '"v"'),
        (PARAMS, {"w": np.ones((3, 2), np.float32)}, {}, '"w"'),
        (PARAMS, {"w": np.ones(6, np.float32)}, {}, '"w"'),
        (PARAMS, {"w": np.ones((2, 3), np.float64)}, {}, "F64"),
        (PARAMS, {"w": np.ones((2, 3), np.int64)}, {}, "I64"),
        ({"w": np.ones((2, 3), np.float16)}, GRADS, {}, "F16"),
        (PARAMS, GRADS, {"v.exp_avg": np.float32([1])}, '"v.exp_avg"'),
        (PARAMS, GRADS, {"w": np.float32([1])}, '"w"'),
        (PARAMS, GRADS, {"w.momentum": np.float32([1])}, '"w.momentum"'),
        (PARAMS, GRADS, {"w.exp_avg": np.ones(6, np.float32)}, '"w.exp_avg"'),
        (PARAMS, GRADS, {"w.exp_avg_sq": np.ones((2, 3), np.float16)}, "F16"),
        (PARAMS, GRADS, {"w.max_exp_avg_sq": np.ones((2, 3), np.float32)}, "--amsgrad"),
        (PARAMS, GRADS, {"w.step": np.float32(1)}, "I64 []"),
        (PARAMS, GRADS, {"w.step": np.int64([1])}, "I64 []"),
        (PARAMS, GRADS, {"w.step": np.int64(-1)}, "negative"),
        (PARAMS, GRADS, {"w.step": np.int64(2**63 - 1)}, "w"),
    ],
)
def test_what_does_not_match_is_named(folder, params, grads, state, named):
    folder.write(params, grads, state)
    before = folder.names()
    outcome = folder.step()
    assert outcome.code == 2 and outcome.out == "" and named in outcome.err, outcome
    assert folder.names() == before


def test_the_step_counter_is_64_bits_wide(folder):
    folder.write({"w": np.float32([1])}, {"w": np.float32([1])}, {"w.step": np.int64(2**62)})
    assert folder.step().code == 0
    assert folder.results()[1]["w.step"] == 2**62 + 1


def test_many_tensors(folder):
    params = {f"layer.{at}.w": np.full(at % 7 + 1, at, np.float32) for at in range(3000)}
    grads = {name: np.float16(value * 0 + 1) for name, value in params.items()}
    folder.write(params, grads)
    outcome = folder.step("--max-norm", "1")
    assert_step(folder, outcome, params, grads, {}, {"max_norm": 1.0})
