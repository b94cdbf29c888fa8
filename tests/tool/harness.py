"""Runs the tool."""

import json
import os
import subprocess

import numpy as np
import pytest

import tensor_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.abspath(os.environ.get("GRADGUARD_TOOL", os.path.join(ROOT, "build/release-gcc/gradguard")))
REQUIRED = [name for name in os.environ.get("GG_TEST_REQUIRE", "").split(",") if name]


# What needs the tool as users have it: LD_PRELOAD and AddressSanitizer do not go together, Python cannot open a library
# that was built with it, and only libgomp ends the program where there is no room for a thread.
LINKED = subprocess.run(["ldd", TOOL], capture_output=True, text=True, check=False).stdout
PLAIN_BUILD = "libasan" not in LINKED and "libgomp" in LINKED


class Outcome:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self):
        return json.loads(self.out, parse_constant=lambda name: 1 / 0)  # NaN and Infinity are no JSON

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run(*arguments, environment=None, **options):
    """Runs the tool with words of any kind as arguments."""
    words = [TOOL, *[word if isinstance(word, bytes) else str(word) for word in arguments]]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GRADGUARD_")}
    variables.setdefault("OMP_NUM_THREADS", "2")
    variables.update(environment or {})
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(
        words, stderr=subprocess.PIPE, text=True, errors="replace", env=variables, timeout=60, check=False, **options
    )
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {done.stderr}"
    return Outcome(done)


def need(backend):
    """Skips the test if no device of the backend is there; fails it if the backend is required."""
    if not any(d["backend"] == backend and d["available"] for d in run("devices", "--report", "json").json["devices"]):
        assert backend not in REQUIRED, f"no {backend} device here"
        pytest.skip(f"no {backend} device here")


class Folder:
    """A step's files in one folder."""

    def __init__(self, path):
        self.path = path
        self.params = path / "params.safetensors"
        self.grads = path / "grads.safetensors"
        self.state = path / "state.safetensors"
        self.out_params = path / "out-params.safetensors"
        self.out_state = path / "out-state.safetensors"

    def write(self, params, grads, state=None):
        tensor_files.write(self.params, params)
        tensor_files.write(self.grads, grads)
        if state is not None:
            tensor_files.write(self.state, state)
        return self

    def arguments(self, *more, device="cpu"):
        """A whole command line; `more` comes last and wins."""
        words = ["step", "--params", self.params, "--grads", self.grads]
        if self.state.exists():
            words += ["--state", self.state]
        words += ["--out-params", self.out_params, "--out-state", self.out_state, "--report", "json"]
        if device:
            words += ["--device", device]
        return [*words, *more]

    def step(self, *more, device="cpu", **options):
        return run(*self.arguments(*more, device=device), **options)

    def inspect(self, *more, device="cpu"):
        return run("inspect", "--grads", self.grads, "--report", "json", "--device", device, *more)

    def results(self):
        return tensor_files.read(self.out_params), tensor_files.read(self.out_state)

    def result_bytes(self):
        return self.out_params.read_bytes(), self.out_state.read_bytes()

    def names(self):
        """All files, also hidden ones: what a failed run must not add to."""
        return sorted(os.listdir(self.path))


def small(folder):
    """Two tensors, no state: for tests in which the values do not matter."""
    return folder.write(
        {"a": np.float32([1, 2, 3]), "b": np.float32([[4, 5]])},
        {"a": np.float32([0.5, -1, 2]), "b": np.float16([[3, -4]])},
    )
