"""The commands of each suite."""

import itertools
import os

from regressions.environment import ROOT, find_program, python_with, why_no_device
from regressions.results import Command

SUITES = ["oracle", "reference", "host", "build", "opencl", "cuda", "bench"]
COMPILERS = {"nvrtc": ["nvrtc"], "ptx": ["ptx"], "cubin": ["cubin"], "both": ["nvrtc", "ptx"],
             "all": ["cubin", "ptx", "nvrtc"]}

# The Criterion programs, and those with tests for each backend.
HOST_PROGRAMS = ["policy", "port", "context", "validation", "decision", "pending", "faults", "statistics", "cases",
                 "properties", "formula"]
DEVICE_PROGRAMS = ["bits", "cases", "statistics", "decision", "properties", "formula", "pending", "validation",
                   "context", "faults"]


class Suites:
    """Makes the commands from the program's arguments."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.build = arguments.build
        self.tool = os.path.join(ROOT, self.build, "gradguard")

    def commands(self, suite):
        return getattr(self, "build_suite" if suite == "build" else suite)()

    def products(self):
        """The command that builds what the other suites run: nothing where there is no SCons, or offline."""
        if self.arguments.offline or not find_program("scons"):
            return []
        mode, compiler = os.path.basename(self.build).split("-", 1)
        return [["scons", "-Q", f"mode={mode}", f"CC={compiler}", "lib", "tools", "tests"]]

    def oracle(self):
        python = python_with("numpy", "torch")
        library = os.path.join(ROOT, self.build, "libgradguard.so")
        blocked = None
        if not python:
            blocked = "no Python here has both NumPy and PyTorch"
        elif not os.path.exists(library):
            blocked = f"{self.build}/libgradguard.so is not built"
        command = [python or "python3", "tools/regressions/oracle.py", "--library", library]
        return [Command("oracle", "model, PyTorch and library", command + (["--quick"] if self.arguments.quick else []),
                        blocked=blocked)]

    def reference(self):
        compiler = find_program("cc", "gcc", "clang", "clang-14")
        program = os.path.join(self.folder, "reference_alone")
        sources = ["tests/reference_alone.c", "tests/support/reference_values.c", "host/reference.c"]
        build = [compiler or "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I.", *sources, "-lm", "-o", program]
        blocked = None if compiler else "there is no C compiler"
        return [Command("reference", "compile with a C compiler alone", build, blocked=blocked),
                Command("reference", "its own tests", [program], blocked=blocked)]

    def criterion(self, suite, programs, pattern, variables, label="", blocked=None):
        for name in programs:
            path = os.path.join(ROOT, self.build, "tests", f"test_{name}")
            missing = None if os.access(path, os.X_OK) else f"{self.build}/tests/test_{name} is not built"
            command = [path, "-j1", *(["--filter", pattern] if pattern else [])]
            yield Command(suite, f"test_{name}{label}", command, variables, blocked or missing)

    def host(self):
        return list(self.criterion("host", HOST_PROGRAMS[:2], None, {})) + list(
            self.criterion("host", HOST_PROGRAMS[2:], "*/*_cpu", {"GG_TEST_REQUIRE": "cpu"}))

    def opencl(self):
        blocked = why_no_device(self.tool, "opencl")
        programs = DEVICE_PROGRAMS[1:] if self.arguments.quick else DEVICE_PROGRAMS
        return list(self.criterion("opencl", [*programs, "opencl"], "*/*_opencl", {"GG_TEST_REQUIRE": "opencl"},
                                   blocked=blocked))

    def cuda(self):
        commands = []
        for route in COMPILERS[self.arguments.compiler]:
            variables = {"GG_TEST_REQUIRE": "cuda", "GRADGUARD_CUDA_KERNELS": route}
            commands += self.criterion("cuda", [*DEVICE_PROGRAMS, "cuda_interop"], "*/*_cuda", variables, f" {route}",
                                       why_no_device(self.tool, "cuda", route))
        return commands

    def build_options(self):
        """Every combination that makes sense: without backends only guard=host builds."""
        backends = ["cpu", "opencl", "cuda"]
        sets = [c for n in range(1, 4) for c in itertools.combinations(backends, n)]
        if self.arguments.quick:
            sets = [("cpu",), tuple(backends)]
        for guard in ("full", "none"):
            for chosen in sets:
                yield f"backends={','.join(chosen)}", f"guard={guard}"
        yield ("guard=host",)

    def build_suite(self):
        commands = []
        for compiler in ("gcc", "clang"):
            found = find_program(compiler, compiler + "-14")
            for options in self.build_options():
                blocked = None if find_program("scons") else "there is no SCons"
                blocked = blocked or (None if found else f"there is no {compiler}")
                name = " ".join([compiler, *options])
                commands.append(Command("build", name, ["scons", "-Q", f"CC={found or compiler}", *options, "lib"],
                                        blocked=blocked))
        return commands

    def bench(self):
        a = self.arguments
        program = os.path.join(ROOT, self.build, "gradguard-bench")
        missing = None if os.access(program, os.X_OK) else f"{self.build}/gradguard-bench is not built"
        common = ["--shapes", f"{a.tensors}x{a.elements}", "--dtype", a.dtype, "--path", "fused", "--path", "staged",
                  "--batches", str(a.iterations), "--samples", str(a.samples), "--warmup", str(a.warmup)]
        common += ["--amsgrad"] if a.amsgrad else []
        targets = [("cpu", None), ("opencl", None)] + [("cuda", route) for route in COMPILERS[a.compiler]]
        commands = []
        for backend, route in targets:
            device = ["--device", backend] + (["--kernel", route] if route else [])
            name = backend + (f" {route}" if route else "")
            output = ["--json", os.path.join(self.folder, f"bench-{name.replace(' ', '-')}.json")]
            commands.append(Command("bench", name, [program, *device, *common, *output],
                                    blocked=missing or why_no_device(self.tool, backend, route)))
        return commands
