"""A finite gradient that the second moment has no room for: what the tool says and does."""

import numpy as np
import pytest

import harness

PARAMS = {"fine": np.float32([1, 2]), "large": np.float32([[3, 4]]), "larger": np.float32([5])}
GRADS = {"fine": np.float32([0.5, -1]), "large": np.float32([[1e-3, -1e21]]), "larger": np.float32([1e30])}


@pytest.fixture
def folder(tmp_path):
    return harness.Folder(tmp_path).write(PARAMS, GRADS)


def kinds(report):
    return {tensor["name"]: tensor["nonfinite"] for tensor in report["tensors"]}


def test_the_step_is_applied_and_every_tensor_told(folder):
    outcome = folder.step()
    report = outcome.json
    assert outcome.code == 0 and (report["action"], report["reason"]) == ("applied", None), outcome
    assert report["nonfinite"] == ["moment"]
    assert kinds(report) == {"fine": [], "large": ["moment"], "larger": ["moment"]}
    assert report["norm"] == pytest.approx(1e30) and report["tensors"][1]["norm"] == pytest.approx(1e21)
    _, state = folder.results()
    assert np.isinf(state["large.exp_avg_sq"]).tolist() == [[False, True]]


def test_the_text_says_what_it_means_and_what_cures_it(folder):
    outcome = folder.step("--report", "text")
    assert outcome.code == 0 and outcome.out.startswith("applied"), outcome
    assert "2 of 3 tensors hold gradients too large for the second moment" in outcome.out
    assert '"large"  F32 [1, 2]: moment' in outcome.out
    for words in ("never moves again", "--grad-scale", "--max-norm", "--on-moment-overflow skip"):
        assert words in outcome.out, words
    assert "gradguard inspect" not in outcome.out and "of the finite values" not in outcome.out


@pytest.mark.parametrize("cure", [["--max-norm", "1"], ["--grad-scale", "1e20"], ["--beta2", "0.9", "--max-norm", "1e19"]])
def test_a_cured_step_tells_nothing(folder, cure):
    outcome = folder.step("--on-moment-overflow", "error", *cure)
    assert outcome.code == 0 and outcome.json["nonfinite"] == [], outcome
    assert all(np.isfinite(value).all() for value in folder.results()[1].values())


def test_skip_leaves_every_bit_alone(folder):
    outcome = folder.step("--on-moment-overflow", "skip")
    report = outcome.json
    assert outcome.code == 3 and outcome.err == "", outcome
    assert (report["action"], report["reason"], report["clip_coefficient"]) == ("skipped", "moment_overflow", 1)
    assert report["nonfinite"] == ["moment"] and report["update_launches"] == 0
    assert folder.out_params.read_bytes() == folder.params.read_bytes()
    assert all(not np.any(value) for value in folder.results()[1].values())
    text = folder.step("--on-moment-overflow", "skip", "--report", "text")
    assert text.code == 3 and text.out.startswith("skipped       a second moment would become infinite")


def test_error_writes_nothing(folder):
    before = folder.names()
    outcome = folder.step("--on-moment-overflow", "error")
    assert outcome.code == 4 and "second moment" in outcome.err and "--on-moment-overflow" in outcome.err, outcome
    assert (outcome.json["action"], outcome.json["reason"]) == ("error", "moment_overflow")
    assert folder.names() == before
    text = folder.step("--on-moment-overflow", "error", "--report", "text")
    assert text.code == 4 and text.out.startswith("error         a second moment"), text


def test_values_that_are_not_finite_come_first(folder):
    folder.write(PARAMS, {**GRADS, "fine": np.float32([np.nan, 1])})
    outcome = folder.step("--on-moment-overflow", "error")
    assert outcome.code == 3 and outcome.json["reason"] == "nonfinite" and outcome.json["nonfinite"] == ["nan"], outcome
    assert kinds(outcome.json) == {"fine": ["nan"], "large": [], "larger": []}


def test_inspect_knows_values_only(folder):
    outcome = folder.inspect()
    assert outcome.code == 0 and outcome.json["nonfinite"] == [], outcome
    assert list(outcome.json["tensors"][0]["nonfinite_count"]) == ["inf", "nan", "overflow"]


def test_beta2_of_zero_gives_no_nan_in_the_second_step(folder):
    arguments = ["--beta2", "0", "--amsgrad"]
    assert folder.step(*arguments).code == 0
    params, state = folder.results()
    assert np.isinf(state["larger.exp_avg_sq"]).all()
    folder.write(params, GRADS, state)
    assert folder.step(*arguments).code == 0
    for tensors in folder.results():
        assert not any(np.isnan(value).any() for value in tensors.values())
    params, state = folder.results()
    folder.write(params, {name: np.zeros_like(value) for name, value in GRADS.items()}, state)
    assert folder.step("--beta2", "0", "--amsgrad").code == 0
    assert not np.any(folder.results()[1]["larger.exp_avg_sq"])
