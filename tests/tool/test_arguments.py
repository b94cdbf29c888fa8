"""Options, help and exit codes that need no file."""

import os
import re

import pytest

import harness
from harness import run

COMMANDS = ["devices", "inspect", "step"]


@pytest.fixture
def folder(tmp_path):
    return harness.small(harness.Folder(tmp_path))


def test_version_names_the_build():
    outcome = run("--version")
    header = open(os.path.join(harness.ROOT, "api/version.h"), encoding="utf-8").read()
    version = ".".join(re.search(rf"GG_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    assert outcome.code == 0 and outcome.out.startswith(f"gradguard {version}\n"), outcome


def test_help_lists_the_commands():
    outcome = run("--help")
    assert outcome.code == 0 and outcome.err == ""
    for name in [*COMMANDS, "bench"]:
        assert re.search(rf"^  {name}\b", outcome.out, re.M), name


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command):
    outcome = run(command, "--help")
    assert outcome.code == 0 and outcome.err == "" and outcome.out.startswith(f"usage: gradguard {command}"), outcome
    assert max(map(len, outcome.out.splitlines())) <= 120


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_help_and_man_page_exists(command):
    """Each option that the help names is understood, and the man page has it too."""
    manual = open(os.path.join(harness.ROOT, "docs/gradguard.1"), encoding="utf-8").read()
    described = re.findall(r"^  (--.*?)(?:  |$)", run(command, "--help").out, re.M)
    for option in re.findall(r"--[a-z][a-z0-9-]+", " ".join(described)):
        outcome = run(command, option, "x") if option != "--help" else run(command, option)
        assert "unrecognized" not in outcome.err, option
        assert re.search(rf"\bFl {option[1:]}\b", manual), option


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["--nonsense"],
        ["step", "--nonsense"],
        ["step", "extra"],
        ["step"],
        ["inspect"],
        ["inspect", "--grads"],
        ["devices", "extra"],
        ["devices", "--report", "xml"],
        ["step", "--on-nonfinite", "ignore"],
        ["step", "--amsgrad=yes"],
    ],
)
def test_wrong_usage_is_exit_2(words):
    outcome = run(*words)
    assert outcome.code == 2 and outcome.out == "" and "--help" in outcome.err, outcome


@pytest.mark.parametrize("missing", ["--params", "--grads", "--out-params", "--out-state"])
def test_a_missing_required_option_is_named(folder, missing):
    words = folder.arguments()
    at = words.index(missing)
    outcome = run(*words[:at], *words[at + 2 :])
    assert outcome.code == 2 and f"{missing} is required" in outcome.err, outcome


@pytest.mark.parametrize("option", ["--lr", "--beta1", "--beta2", "--eps", "--weight-decay", "--grad-scale",
                                    "--max-norm", "--clip-epsilon"])
@pytest.mark.parametrize("text", ["", " 1", "1 ", "0x", "1e", "one", "0,5", "1.0f", "--", "nan", "inf", "-inf", "1e999",
                                  "1e-999", "nan(1)", "1\n"])
def test_numbers_parse_strictly(folder, option, text):
    before = folder.names()
    outcome = folder.step(f"{option}={text}")
    assert outcome.code == 2 and outcome.out == "" and option in outcome.err, outcome
    assert folder.names() == before


@pytest.mark.parametrize(
    "option, value",
    [
        ("--lr", "-1e-3"),
        ("--beta1", "1"),
        ("--beta1", "-0.1"),
        ("--beta2", "1.5"),
        ("--eps", "0"),
        ("--eps", "1e-60"),
        ("--weight-decay", "-1"),
        ("--grad-scale", "0"),
        ("--grad-scale", "-1"),
        ("--grad-scale", "1e-40"),
        ("--grad-scale", "1e60"),
        ("--max-norm", "-1"),
        ("--clip-epsilon", "-1e-6"),
    ],
)
def test_values_out_of_range_are_exit_2(folder, option, value):
    before = folder.names()
    for more in ([], ["--skip-update"]):
        outcome = folder.step(option, value, *more)
        assert outcome.code == 2 and outcome.out == "" and outcome.err, outcome
        assert folder.names() == before


def test_other_spellings_of_numbers(folder):
    for text in ("1", "1.0", "1e0", "+1", "0x1p0", ".1e1"):
        assert folder.step("--grad-scale", text).code == 0
        assert folder.step("--grad-scale", text).json["grad_scale"] == 1.0


def test_the_last_of_repeated_options_wins(folder):
    assert folder.step("--grad-scale", "4", "--grad-scale", "2").json["grad_scale"] == 2.0


@pytest.mark.parametrize("command", ["inspect", "step"])
@pytest.mark.parametrize("device", ["cpu:99", "opencl:99.99", "cuda:99", "opencl:name=no such device"])
def test_no_such_device_is_exit_5(folder, command, device):
    before = folder.names()
    outcome = folder.step(device=device) if command == "step" else folder.inspect(device=device)
    assert outcome.code == 5 and outcome.out == "" and outcome.err, outcome
    assert folder.names() == before


def test_an_unknown_kernel_variant_is_refused(folder):
    before = folder.names()
    for outcome in (folder.step("--kernel", "nonsense"), folder.inspect("--kernel", "nonsense"),
                    folder.inspect("--kernel", "nonsense", device="auto")):
        assert outcome.code == 2 and outcome.out == "" and "nonsense" in outcome.err, outcome
    assert folder.names() == before


def test_device_comes_from_the_environment(folder):
    outcome = folder.step(device=None, environment={"GRADGUARD_DEVICE": "cpu"})
    assert outcome.code == 0 and outcome.json["backend"] == "cpu"
    assert folder.step(device=None, environment={"GRADGUARD_DEVICE": "cuda:99"}).code == 5


def test_every_kernel_variant_gives_the_same_bytes(folder):
    devices = run("devices", "--report", "json").json["devices"]
    expected = None
    for device in devices:
        if not device["available"] or not device["exact"]:
            continue
        for kernel in device["kernels"]:
            outcome = folder.step("--kernel", kernel, "--max-norm", "1", device=device["id"])
            assert outcome.code == 0 and outcome.json["kernel"] == kernel, outcome
            expected = expected or folder.result_bytes()
            assert folder.result_bytes() == expected, (device["id"], kernel)
    assert expected


def test_bench_starts_its_own_program():
    outcome = run("bench", "--help")
    if os.path.exists(os.path.join(os.path.dirname(harness.TOOL), "gradguard-bench")):
        assert outcome.code == 0 and outcome.out
    else:
        assert outcome.code == 1 and "gradguard-bench" in outcome.err
