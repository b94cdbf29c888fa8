#!/usr/bin/env python3
"""Judges the formulas and the library: a NumPy model of the reduction against exact sums, the model's update against
PyTorch's clip_grad_norm_ and AdamW on the CPU, and the library against the model, to the bit.

    oracle.py [--library libgradguard.so] [--device cpu] [--quick] [--seed N]

The last lines say the largest errors. Exit status 0 if norms are within 2e-7 (relative) of the exact ones, parameters
and moments within 2e-6 of PyTorch's (relative to the tensor's largest magnitude), and the library has the model's bits.
"""

import argparse
import ctypes
import math
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

import gradguard_ctypes as gg  # noqa: E402
from regressions import model  # noqa: E402

NORM_LIMIT, STATE_LIMIT = 2e-7, 2e-6
SIZES = [0, 1, 2, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 16384, 65535, 65536, 65537, 1048577, 2100123]
MAGNITUDES = [1e-44, 1e-41, 1e-38, 1e-30, 1e-19, 1e-13, 1e-6, 1.0, 1e6, 1e13, 1e19, 1e30, 1e38, None]
SCALES = [1.0, 1024.0, 98304.0]
DTYPES = {"f32": (torch.float32, gg.F32), "f16": (torch.float16, gg.F16), "bf16": (torch.bfloat16, gg.BF16)}
OPTIONS = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-2}
MAX_NORM = 1.0


class Findings:
    """The largest error of each kind, and what is wrong."""

    def __init__(self):
        self.largest, self.wrong = {}, []

    def error(self, kind, value, limit, what):
        self.largest[kind] = max(self.largest.get(kind, 0.0), value)
        if not value <= limit:
            self.wrong.append(f"{kind}: {value:.3g} is more than {limit:g} ({what})")

    def same(self, kind, good, what):
        self.largest[kind] = max(self.largest.get(kind, 0.0), 0.0 if good else 1.0)
        if not good:
            self.wrong.append(f"{kind}: {what}")


def gradient(random, elements, magnitude):
    """Values of one magnitude; None: of every magnitude that FP32 has."""
    values = random.uniform(0.1, 1.0, elements) * random.choice([-1.0, 1.0], elements)
    if magnitude is None:
        return (values * 10.0 ** random.uniform(-44, 38, elements)).astype(np.float32)
    return (values * magnitude).astype(np.float32)


def exact_norm(x):
    """Squares of FP32 numbers are exact in FP64, and fsum adds without error but the last rounding."""
    wide = x.astype(np.float64)
    return math.sqrt(math.fsum((wide * wide).tolist()))


class Library:
    """The library's side of every comparison."""

    def __init__(self, path, device):
        self.context = gg.Context(gg.load(path), device)

    def wrap(self, array, dtype=gg.F32):
        buffer = self.context.wrap(array.ctypes.data, array.nbytes, False)
        return gg.flat_tensor(buffer, dtype, array.size)

    def release(self):
        while self.context.buffers:
            self.context.library.gg_buffer_destroy(ctypes.byref(self.context.buffers.pop()))

    def statistics(self, raw, scale):
        tensor, report = self.wrap(raw), gg.sized(gg.Report)
        self.context.check(self.context.library.gg_gradient_stats(
            self.context.handle, ctypes.byref(tensor), 1, scale, ctypes.byref(report), None))
        self.release()
        return report


def check_norms(findings, library, sizes, random):
    for elements in sizes:
        # All magnitudes and scales for the small sizes; the large ones take turns.
        pairs = [(m, s) for m in MAGNITUDES for s in SCALES]
        for magnitude, scale in pairs if elements < 20000 else pairs[elements % 3 :: 7]:
            raw = gradient(random, elements, magnitude)
            inverse = np.float32(1.0 / scale)
            most, ssq, kinds = model.triple(raw, inverse)
            x, _ = model.unscale(raw, inverse)
            norm, exact, what = model.norm_of(most, ssq), exact_norm(x), f"{elements} of {magnitude}, scale {scale:g}"
            if exact:
                findings.error("norm of the model against exact sums", abs(norm - exact) / exact, NORM_LIMIT, what)
            else:
                findings.same("norm of the model where it is 0", norm == 0, what)
            if library:
                report = library.statistics(raw, scale)
                good = report.norm == norm and report.max_abs == float(most) and report.nonfinite == kinds
                findings.same("statistics of the library have the model's bits", good,
                              f"{what}: norm {report.norm!r}, the model's {norm!r}")


def check_nonfinite(findings, library):
    for value, scale, kinds in ((math.nan, 1.0, 1), (math.inf, 1.0, 2), (-math.inf, 8.0, 2), (3e38, 1e-3, 4)):
        for place in (0, 7, 300, 70000):
            raw = np.full(70001, 0.5, np.float32)
            raw[place] = value
            found = model.triple(raw, np.float32(1.0 / scale))[2]
            findings.same("kinds of non-finite values", found == kinds, f"{value} at {place}: {found}")
            if library:
                found = library.statistics(raw, scale).nonfinite
                findings.same("kinds of non-finite values in the library", found == kinds, f"{value} at {place}: {found}")


def relative(a, b):
    largest = float(np.abs(b).max())
    return float(np.abs(a - b).max()) / largest if largest else float(np.abs(a).max())


class Trial:
    """Three tensors stepped five times by PyTorch, by the model and by the library."""

    SHAPES = (1000, 37, 4099)

    def __init__(self, random, dtype, amsgrad, maximize, scale):
        self.dtype, self.amsgrad, self.maximize, self.scale = dtype, amsgrad, maximize, scale
        self.start = [random.standard_normal(n).astype(np.float32) for n in self.SHAPES]
        self.gradients = [[(random.standard_normal(n) * 0.3 * scale).astype(np.float32) for n in self.SHAPES]
                          for _ in range(5)]
        # What is stored is rounded to the dtype once; everybody starts from the stored values.
        self.stored = [[torch.from_numpy(g).to(DTYPES[dtype][0]) for g in step] for step in self.gradients]
        self.raw = [[g.float().numpy() for g in step] for step in self.stored]

    def torch_states(self):
        parameters = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in self.start]
        optimizer = torch.optim.AdamW(parameters, lr=OPTIONS["lr"], betas=(OPTIONS["beta1"], OPTIONS["beta2"]),
                                      eps=OPTIONS["eps"], weight_decay=OPTIONS["weight_decay"], amsgrad=self.amsgrad,
                                      maximize=self.maximize)
        for step in self.raw:
            for parameter, gradient_ in zip(parameters, step):
                parameter.grad = torch.from_numpy(gradient_) * (1.0 / self.scale)
            torch.nn.utils.clip_grad_norm_(parameters, MAX_NORM)
            optimizer.step()
        names = ["exp_avg", "exp_avg_sq"] + (["max_exp_avg_sq"] if self.amsgrad else [])
        return [[p.detach().numpy()] + [optimizer.state[p][name].numpy() for name in names] for p in parameters]

    def model_states(self):
        zeros = [np.zeros_like(p) for p in self.start]
        states = [[p.copy(), z, z.copy(), z.copy() if self.amsgrad else None] for p, z in zip(self.start, zeros)]
        inverse = np.float32(1.0 / self.scale)
        for number, step in enumerate(self.raw):
            total = 0.0
            for raw in step:
                most, ssq, _ = model.triple(raw, inverse)
                total += model.norm_of(most, 1.0) ** 2 * float(ssq)
            coefficient = min(1.0, MAX_NORM / (math.sqrt(total) + 1e-6))
            for i, raw in enumerate(step):
                states[i] = list(model.update(raw, inverse, np.float32(coefficient), OPTIONS, number + 1, *states[i],
                                              maximize=self.maximize))
        return [state[: 4 if self.amsgrad else 3] for state in states]

    def library_states(self, library):
        roles = [gg.PARAMETER, gg.EXP_AVG, gg.EXP_AVG_SQ] + ([gg.MAX_EXP_AVG_SQ] if self.amsgrad else [])
        states = [[p.copy()] + [np.zeros_like(p) for _ in roles[1:]] for p in self.start]
        # One buffer a tensor, refilled before each step.
        held = [g.clone() for g in self.stored[0]]
        rows = []
        for state, gradient_ in zip(states, held):
            row = {role: library.wrap(array) for role, array in zip(roles, state)}
            buffer = library.context.wrap(gradient_.data_ptr(), gradient_.numel() * gradient_.element_size(), False)
            row[gg.GRADIENT] = gg.flat_tensor(buffer, DTYPES[self.dtype][1], gradient_.numel())
            rows.append(row)
        group = gg.Group(library.context, rows, self.amsgrad)
        adamw, guard = gg.sized(gg.AdamWOptions), gg.sized(gg.GuardOptions)
        adamw.learning_rate, adamw.beta1, adamw.beta2 = OPTIONS["lr"], OPTIONS["beta1"], OPTIONS["beta2"]
        adamw.epsilon, adamw.weight_decay = OPTIONS["eps"], OPTIONS["weight_decay"]
        adamw.gradient_scale, adamw.maximize = self.scale, self.maximize
        guard.clip, guard.max_norm, guard.clip_epsilon = True, MAX_NORM, 1e-6
        for step in self.stored:
            for place, gradient_ in zip(held, step):
                place.copy_(gradient_)
            group.step(adamw, guard)
        group.close()
        library.release()
        return states


def check_updates(findings, library, random):
    for dtype in DTYPES:
        for amsgrad in (False, True):
            for maximize in (False, True):
                what = f"{dtype}, amsgrad {amsgrad}, maximize {maximize}"
                trial = Trial(random, dtype, amsgrad, maximize, 1024.0)
                theirs, ours = trial.torch_states(), trial.model_states()
                for a, b in zip(ours, theirs):
                    for mine, other in zip(a, b):
                        findings.error("state of the model against PyTorch", relative(mine, other), STATE_LIMIT, what)
                if library:
                    for a, b in zip(trial.library_states(library), ours):
                        good = all(np.array_equal(x.view(np.uint32), y.view(np.uint32)) for x, y in zip(a, b))
                        findings.same("state of the library has the model's bits", good, what)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libgradguard.so; without it only the formulas are judged")
    parser.add_argument("--device", default="cpu", help="a cpu device: memory is wrapped where it is")
    parser.add_argument("--quick", action="store_true", help="without the two largest sizes")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}, NumPy {np.__version__}, PyTorch {torch.__version__}", flush=True)
    random = np.random.default_rng(seed)
    findings = Findings()
    library = Library(arguments.library, arguments.device) if arguments.library else None
    check_norms(findings, library, SIZES[:-2] if arguments.quick else SIZES, random)
    check_nonfinite(findings, library)
    check_updates(findings, library, random)
    for wrong in findings.wrong[:20]:
        print("WRONG", wrong)
    for kind, value in findings.largest.items():
        print(f"{kind}: " + (f"{value:.3g}" if "against" in kind else "yes" if value == 0 else "NO"))
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
