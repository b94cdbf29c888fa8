"""Whole steps, clipping included: the model and the library against PyTorch's clip_grad_norm_ and AdamW on the CPU."""

import math

import numpy as np
import torch

from regressions import model

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
NAMES = ["parameters", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
CLIP_EPSILON = 1e-6  # PyTorch's


class Trial:
    """Three tensors stepped five times. The norm is above max_norm in some of the steps and below it in others."""

    SHAPES = (1000, 37, 4099)
    SPREADS = (0.3, 0.002, 1.0, 0.01, 0.1)
    options = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-2}
    max_norm = 1.0

    def __init__(self, random, dtype, amsgrad, maximize, scale):
        self.dtype, self.amsgrad, self.maximize, self.scale = dtype, amsgrad, maximize, scale
        self.start = [random.standard_normal(n).astype(np.float32) for n in self.SHAPES]
        # What is stored is rounded to the dtype once; everybody starts from the stored values.
        self.raw, self.stored = [], []
        for spread in self.SPREADS:
            values = [(random.standard_normal(n) * spread * scale).astype(np.float32) for n in self.SHAPES]
            values = [torch.from_numpy(value).to(DTYPES[dtype]) for value in values]
            self.raw.append([value.float().numpy() for value in values])
            self.stored.append([(value if dtype == "f32" else value.view(torch.int16)).numpy() for value in values])
        self.sizes = None

    def torch_states(self):
        """PyTorch on the FP32 gradients, unscaled."""
        options = self.options
        parameters = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in self.start]
        optimizer = torch.optim.AdamW(parameters, lr=options["lr"], betas=(options["beta1"], options["beta2"]),
                                      eps=options["eps"], weight_decay=options["weight_decay"], amsgrad=self.amsgrad,
                                      maximize=self.maximize)
        for step in self.raw:
            for parameter, gradient in zip(parameters, step):
                parameter.grad = torch.from_numpy(gradient) * (1.0 / self.scale)
            torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
            optimizer.step()
        names = NAMES[1 : 4 if self.amsgrad else 3]
        return [[p.detach().numpy()] + [optimizer.state[p][name].numpy() for name in names] for p in parameters]

    def coefficient(self, step, inverse):
        total = sum(model.sum_of(*model.triple(raw, inverse)[:2]) for raw in step)
        return np.float32(min(1.0, self.max_norm / (math.sqrt(total) + CLIP_EPSILON)))

    def model_states(self):
        """The model's states. `sizes` becomes, for each, the sum of the magnitudes of its terms."""
        states = [[p.copy(), np.zeros_like(p), np.zeros_like(p), np.zeros_like(p) if self.amsgrad else None]
                  for p in self.start]
        moved = [np.abs(p).astype(np.float64) for p in self.start]
        averaged = [np.zeros(p.shape) for p in self.start]
        inverse, beta1 = np.float32(1.0 / self.scale), self.options["beta1"]
        for number, step in enumerate(self.raw):
            factor = self.coefficient(step, inverse)
            for i, raw in enumerate(step):
                before = states[i][0]
                states[i] = list(model.update(raw, inverse, factor, self.options, number + 1, *states[i],
                                              maximize=self.maximize))
                moved[i] += np.abs(states[i][0] - before)
                averaged[i] = beta1 * averaged[i] + (1 - beta1) * np.abs(raw.astype(np.float64) * inverse * factor)
        kept = [state[: 4 if self.amsgrad else 3] for state in states]
        self.sizes = [[p, m, *[np.abs(v) for v in state[2:]]] for p, m, state in zip(moved, averaged, kept)]
        return kept


def relative(found, other, size):
    """The largest error of an element, relative to its size. Where that is 0 both must be."""
    error = np.abs(found.astype(np.float64) - other)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where((error == 0) & (size == 0), 0.0, error / size).max())


def same_bits(a, b):
    return all(np.array_equal(x.view(np.uint32), y.view(np.uint32)) for x, y in zip(a, b))


def check_updates(findings, library, random):
    print(f"PyTorch {torch.__version__}", flush=True)
    for dtype in DTYPES:
        for amsgrad in (False, True):
            for maximize in (False, True):
                what = f"{dtype}{', amsgrad' if amsgrad else ''}{', maximize' if maximize else ''}"
                trial = Trial(random, dtype, amsgrad, maximize, 1024.0)
                ours, theirs = trial.model_states(), trial.torch_states()
                judged = {"model": ours}
                if library:
                    judged["library"] = library.states(trial)
                    for found, expected in zip(judged["library"], ours):
                        findings.same("states of the library with the model's bits", same_bits(found, expected), what)
                for of, states in judged.items():
                    for state, other, size in zip(states, theirs, trial.sizes):
                        for name, a, b, s in zip(NAMES, state, other, size):
                            findings.state(name, of, relative(a, b, s), what)
