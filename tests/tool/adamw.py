"""The guarded step in FP64, written from the formulas alone: the judge of the tool's results."""

import math

import numpy as np

DEFAULTS = {
    "lr": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 1e-2,
    "grad_scale": 1.0,
    "max_norm": None,
    "clip_epsilon": 1e-6,
    "amsgrad": False,
    "maximize": False,
}


def words(options):
    """The options as command-line words."""
    result = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            result.append(option)
        elif value is not None and value is not False:
            result += [option, repr(value)]
    return result


def group_norm(gradients, scale):
    squares = [math.fsum(((g.ravel() / scale) ** 2).tolist()) for g in gradients]
    return math.sqrt(math.fsum(squares))


def coefficient(norm, o):
    if o["max_norm"] is None:
        return 1.0
    if o["max_norm"] == 0:
        return 0.0
    return min(1.0, o["max_norm"] / (norm + o["clip_epsilon"])) if norm > 0 else 1.0


def update(p, g, m, v, vmax, step, c, o):
    """One tensor after its step number `step` (completed ones before it: step - 1)."""
    g = g / o["grad_scale"] * c * (-1 if o["maximize"] else 1)
    m = o["beta1"] * m + (1 - o["beta1"]) * g
    v = o["beta2"] * v + (1 - o["beta2"]) * g * g
    vmax = np.maximum(vmax, v)
    second = vmax if o["amsgrad"] else v
    denominator = np.sqrt(second / -math.expm1(step * math.log(o["beta2"]))) + o["eps"]
    p = p * (1 - o["lr"] * o["weight_decay"]) - o["lr"] / (1 - o["beta1"] ** step) * m / denominator
    return p, m, v, vmax
