"""The library's side of every comparison, on host memory that it uses where it is."""

import ctypes
import os
import sys

import numpy as np

from regressions.environment import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))

import gradguard_ctypes as gg  # noqa: E402

DTYPES = {"f32": gg.F32, "f16": gg.F16, "bf16": gg.BF16}
ROLES = [gg.PARAMETER, gg.EXP_AVG, gg.EXP_AVG_SQ, gg.MAX_EXP_AVG_SQ]


class Library:
    def __init__(self, path, device):
        self.context = gg.Context(gg.load(path), device)

    def description(self):
        return f"{self.context.library.gg_build_description().decode()}, kernels {self.context.kernel()}"

    def wrap(self, array, dtype="f32"):
        """A tensor over a NumPy array, which must stay until `release`; 16-bit floats are given as uint16."""
        buffer = self.context.wrap(array.ctypes.data, array.nbytes, False)
        return gg.flat_tensor(buffer, DTYPES[dtype], array.size)

    def release(self):
        while self.context.buffers:
            self.context.library.gg_buffer_destroy(ctypes.byref(self.context.buffers.pop()))

    def statistics(self, gradients, scale, dtype="f32"):
        """The report on a list of gradients as one group."""
        tensors = (gg.Tensor * len(gradients))(*[self.wrap(gradient, dtype) for gradient in gradients])
        report = gg.sized(gg.Report)
        self.context.check(self.context.library.gg_gradient_stats(
            self.context.handle, tensors, len(gradients), scale, ctypes.byref(report), None))
        self.release()
        return report

    def states(self, trial):
        """The states after all steps of a trial (oracle_updates.Trial), in place."""
        count = 4 if trial.amsgrad else 3
        states = [[p.copy()] + [np.zeros_like(p) for _ in range(count - 1)] for p in trial.start]
        held = [g.copy() for g in trial.stored[0]]  # one buffer a tensor, refilled before each step
        rows = []
        for state, gradient in zip(states, held):
            row = {role: self.wrap(array) for role, array in zip(ROLES, state)}
            row[gg.GRADIENT] = self.wrap(gradient, trial.dtype)
            rows.append(row)
        group = gg.Group(self.context, rows, trial.amsgrad)
        adamw, guard = gg.sized(gg.AdamWOptions), gg.sized(gg.GuardOptions)
        options = trial.options
        adamw.learning_rate, adamw.beta1, adamw.beta2 = options["lr"], options["beta1"], options["beta2"]
        adamw.epsilon, adamw.weight_decay = options["eps"], options["weight_decay"]
        adamw.gradient_scale, adamw.maximize = trial.scale, trial.maximize
        guard.clip, guard.max_norm, guard.clip_epsilon = True, trial.max_norm, 1e-6
        for step in trial.stored:
            for place, gradient in zip(held, step):
                place[:] = gradient
            group.step(adamw, guard)
        group.close()
        self.release()
        return states
