"""The commands of each suite."""

import itertools
import os
import re

from regressions.environment import ROOT, find_program, python_with, why_no_device
from regressions.results import Command

SUITES = ["oracle", "reference", "host", "build", "opencl", "cuda", "bench"]
COMPILERS = {"nvrtc": ["nvrtc"], "ptx": ["ptx"], "cubin": ["cubin"], "both": ["nvrtc", "ptx"],
             "all": ["cubin", "ptx", "nvrtc"]}
NEED_PRODUCTS = {"oracle", "host", "opencl", "cuda", "bench"}
PYTHON_MODULES = ("numpy", "torch")

# The Criterion programs: those with tests that need no device, those with the same tests on every backend, and those of
# one backend. test_large is in none: it asks for 60 GB and has tests/gpu.sh. --quick leaves out the slow ones;
# `./dev test` runs them apart from this.
DEVICELESS = ["policy", "port", "opencl_interop", "opencl_symbols", "opencl_calls", "opencl_machine", "cuda_interop",
              "cuda_symbols", "cuda_calls", "cuda_machine"]
EVERY_BACKEND = ["context", "validation", "decision", "pending", "faults", "statistics", "cases", "properties",
                 "formula", "moment", "contract", "scarcity", "bits", "endurance"]
ONE_BACKEND = {"opencl": ["opencl_interop", "opencl_host"], "cuda": ["cuda_interop"]}
SLOW = {"bits", "endurance", "cuda_symbols"}
SLOW_ON_A_DEVICE = SLOW | {"faults", "formula", "validation", "opencl_host"}

BENCH_BLOCKED = {5: "gradguard-bench found no such device: see its log"}


class Suites:
    """Makes the commands from the program's arguments. A dry run looks at files alone: it asks no device, and a driver
    that is opened may write to its cache."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.build = arguments.build
        self.tool = os.path.join(ROOT, self.build, "gradguard")

    def commands(self, suite):
        return list(getattr(self, "build_suite" if suite == "build" else suite)())

    def missing(self, name):
        """Why a built program cannot be run, or None. Before the products are built nothing is missing."""
        if os.access(os.path.join(ROOT, self.build, name), os.X_OK) or (self.arguments.dry_run and self.products()):
            return None
        return f"{self.build}/{name} is not built"

    def no_device(self, backend, variant=None):
        return None if self.arguments.dry_run else why_no_device(self.tool, backend, variant)

    def products(self):
        """The command that builds what the suites run, so that they test these sources: none where there is no SCons,
        offline, or for a folder that SCons does not make."""
        match = re.fullmatch(r"build/(release|debug|sanitize)-((?:gcc|clang)(?:-\d+)?)", self.build.rstrip("/"))
        if self.arguments.offline or not match or not find_program("scons") or not find_program(match[2]):
            return []
        command = ["scons", "-Q", f"mode={match[1]}", f"CC={match[2]}", "lib", "tools", "tests"]
        return [Command("products", self.build, command)]

    def oracle(self):
        library = os.path.join(ROOT, self.build, "libgradguard.so")
        quick = ["--quick"] if self.arguments.quick else []
        for name, judge, modules in (("model against exact sums", "exact", PYTHON_MODULES[:1]),
                                     ("model against PyTorch", "pytorch", PYTHON_MODULES),
                                     ("library against the model, exact sums and PyTorch", "library", PYTHON_MODULES)):
            python = python_with(*modules)
            blocked = None if python else f"no Python here has {' and '.join(modules)}"
            command = [python or "python3", "tools/regressions/oracle.py", "--judge", judge, *quick]
            if judge == "library":
                command += ["--library", library]
                blocked = blocked or self.missing("libgradguard.so")
            yield Command("oracle", name, command, blocked=blocked)

    def reference(self):
        compiler = find_program("cc", "gcc", "clang", "clang-14")
        program = os.path.join(self.folder, "reference_alone")
        sources = ["tests/reference_alone.c", "tests/support/reference_values.c", "host/reference.c"]
        build = [compiler or "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I.", *sources, "-lm", "-o", program]
        blocked = None if compiler else "there is no C compiler"
        yield Command("reference", "compile with a C compiler alone", build, blocked=blocked)
        yield Command("reference", "its own tests", [program], blocked=blocked)

    def criterion(self, suite, programs, pattern, variables, label="", blocked=None):
        slow = SLOW if suite == "host" else SLOW_ON_A_DEVICE
        for name in programs:
            if self.arguments.quick and name in slow:
                continue
            tap = os.path.join(self.folder, f"{suite}-{name}{label.replace(' ', '-')}.tap")
            program = os.path.join(ROOT, self.build, "tests", f"test_{name}")
            # With CUDA one test at a time: each opens a context of its own.
            jobs = 1 if suite == "cuda" else min(os.cpu_count() or 1, 4)
            yield Command(suite, f"test_{name}{label}", [program, f"-j{jobs}", "--filter", pattern, f"--tap={tap}"],
                          variables, blocked or self.missing(f"tests/test_{name}"), tap=tap)

    def host(self):
        programs = [*DEVICELESS, *EVERY_BACKEND]
        return self.criterion("host", programs, "*/!(*_opencl|*_cuda)", {"GG_TEST_REQUIRE": "cpu"})

    def opencl(self):
        return self.criterion("opencl", [*EVERY_BACKEND, *ONE_BACKEND["opencl"]], "*/*_opencl",
                              {"GG_TEST_REQUIRE": "opencl"}, blocked=self.no_device("opencl"))

    def cuda(self):
        for variant in COMPILERS[self.arguments.compiler]:
            # A few tests name their variant themselves: those of the other variants have their turn there.
            others = "|".join(f"*_{other}" for other in COMPILERS["all"] if other != variant)
            yield from self.criterion("cuda", [*EVERY_BACKEND, *ONE_BACKEND["cuda"]], f"*/!({others})_cuda",
                                      {"GG_TEST_REQUIRE": "cuda", "GRADGUARD_CUDA_KERNELS": variant}, f" {variant}",
                                      self.no_device("cuda", variant))

    def build_options(self):
        """Every set of backends with and without the guard; guard=host has no backends, so it is one build."""
        backends = ["cpu", "opencl", "cuda"]
        sets = [c for n in range(1, 4) for c in itertools.combinations(backends, n)]
        combinations = [(chosen, guard) for guard in ("full", "none") for chosen in sets]
        if self.arguments.quick:
            combinations = [(backends, "full"), (["cpu"], "none")]
        for chosen, guard in combinations:
            yield f"backends={','.join(chosen)}", f"guard={guard}"
        yield "backends=none", "guard=host"

    def build_suite(self):
        for compiler in ("gcc", "clang"):
            found = find_program(compiler, compiler + "-14")
            blocked = None if find_program("scons") else "there is no SCons"
            blocked = blocked or (None if found else f"there is no {compiler}")
            for options in self.build_options():
                yield Command("build", " ".join([compiler, *options]),
                              ["scons", "-Q", f"CC={found or compiler}", *options, "lib"], blocked=blocked)

    def bench(self):
        a = self.arguments
        program = os.path.join(ROOT, self.build, "gradguard-bench")
        common = ["--shapes", f"{a.tensors}x{a.elements}", "--dtype", a.dtype, "--path", "fused", "--path", "staged",
                  "--batches", str(a.iterations), "--samples", str(a.samples), "--warmup", str(a.warmup)]
        common += ["--amsgrad"] if a.amsgrad else []
        targets = [("cpu", None), ("opencl", None)] + [("cuda", variant) for variant in COMPILERS[a.compiler]]
        for backend, variant in targets:
            blocked = self.missing("gradguard-bench") or self.no_device(backend, variant)
            device = ["--device", backend] + (["--kernel", variant] if variant else [])
            for mode in ("out-of-place", "in-place"):
                name = " ".join(filter(None, [backend, variant, mode]))
                output = ["--json", os.path.join(self.folder, f"bench-{name.replace(' ', '-')}.json")]
                yield Command("bench", name, [program, *device, "--mode", mode, *common, *output], blocked=blocked,
                              blocked_exits=BENCH_BLOCKED)
