#!/usr/bin/env python3
"""Makes the files in examples/data/: real gradients of a network really trained on handwritten digits.

    python3 examples/make_dumps.py            writes them again, from examples/data/digits.bin
    python3 examples/make_dumps.py --check    writes nothing; exits 1 if a file would change
    python3 examples/make_dumps.py --digits   also writes digits.bin, from scikit-learn's copy of the data set

Needs numpy; --digits needs scikit-learn as well. Products are added one by one and in a fixed order, not by a BLAS
library, so that every machine makes the same bytes.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent / "data"
WIDTHS = (64, 64, 32, 10)  # input pixels, two hidden layers (ReLU), classes
TRAINING = 1500  # the digits before this one train, the others test
BATCH = 125
STEPS = 48  # four passes over the training digits
SEED = 20240229
LEARNING_RATE, BETA1, BETA2, EPSILON, WEIGHT_DECAY = 3e-3, 0.9, 0.999, 1e-8, 1e-2

SCALE_OK = 2.0**16  # the largest gradient times this still fits FP16
SCALE_OVERFLOW = 2.0**23  # the gradients of some digits leave FP16 (largest value 65504) on the way back

f16, f32 = np.float16, np.float32


def to_half(values):
    """Rounds to FP16, to nearest even; what is too large becomes infinite, as on any device."""
    with np.errstate(over="ignore"):
        return values.astype(f16)


def product(a, b):
    """a @ b in FP32, added in the order of the shared dimension."""
    total = np.zeros((a.shape[0], b.shape[1]), f32)
    with np.errstate(invalid="ignore", over="ignore"):
        for k in range(a.shape[1]):
            total += a[:, k, None] * b[None, k, :]
    return total


def forward(parameters, images):
    """The activations of every layer; the last one holds the class probabilities."""
    layers = [images]
    last = len(WIDTHS) - 1
    for layer in range(1, last + 1):
        z = product(layers[-1], parameters[f"layer{layer}.weight"].T) + parameters[f"layer{layer}.bias"]
        if layer < last:
            layers.append(np.maximum(z, f32(0)))
        else:
            e = np.exp((z - z.max(axis=1, keepdims=True)).astype(np.float64))
            layers.append((e / e.sum(axis=1, keepdims=True)).astype(f32))
    return layers


def loss_of(probabilities, labels):
    return float(-np.log(probabilities[np.arange(len(labels)), labels].astype(np.float64) + 1e-30).mean())


def backward(parameters, layers, labels, scale):
    """FP16 gradients of scale * (mean cross entropy). The gradient that flows from layer to layer is FP16 too."""
    error = layers[-1].copy()
    error[np.arange(len(labels)), labels] -= f32(1)
    delta = to_half(error * f32(scale / len(labels)))
    gradients = {}
    for layer in range(len(WIDTHS) - 1, 0, -1):
        wide = delta.astype(f32)
        gradients[f"layer{layer}.weight"] = to_half(product(wide.T, layers[layer - 1]))
        gradients[f"layer{layer}.bias"] = to_half(product(np.ones((1, len(labels)), f32), wide)[0])
        if layer > 1:
            flow = product(wide, parameters[f"layer{layer}.weight"])
            delta = to_half(np.where(layers[layer - 1] > 0, flow, f32(0)))
    return gradients


def adamw(parameters, state, gradients, scale):
    for name, parameter in parameters.items():
        t = int(state[f"{name}.step"]) + 1
        g = gradients[name].astype(f32) * f32(1.0 / scale)
        m = f32(BETA1) * state[f"{name}.exp_avg"] + f32(1 - BETA1) * g
        v = f32(BETA2) * state[f"{name}.exp_avg_sq"] + f32(1 - BETA2) * g * g
        root = np.sqrt(v) * f32(1 / np.sqrt(1 - BETA2**t)) + f32(EPSILON)
        decayed = parameter * f32(1 - LEARNING_RATE * WEIGHT_DECAY)
        parameters[name] = decayed - f32(LEARNING_RATE / (1 - BETA1**t)) * (m / root)
        state[f"{name}.exp_avg"], state[f"{name}.exp_avg_sq"] = m, v
        state[f"{name}.step"] = np.array(t, np.int64)


def first_parameters():
    random = np.random.Generator(np.random.PCG64(SEED))
    parameters = {}
    for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:]), start=1):
        reach = np.sqrt(6.0 / inputs)  # He et al. 2015, uniform
        parameters[f"layer{layer}.weight"] = (reach * (2 * random.random((outputs, inputs)) - 1)).astype(f32)
        parameters[f"layer{layer}.bias"] = np.zeros(outputs, f32)
    return parameters


def first_state(parameters):
    state = {}
    for name, parameter in parameters.items():
        state[f"{name}.exp_avg"] = np.zeros_like(parameter)
        state[f"{name}.exp_avg_sq"] = np.zeros_like(parameter)
        state[f"{name}.step"] = np.array(0, np.int64)
    return state


def batch_rows(step):
    """The digits of one batch: 7 has no factor in common with 1500, so a pass meets every digit once."""
    return (np.arange(BATCH) + step * BATCH) * 7 % TRAINING


def safetensors(tensors, metadata):
    """The bytes of a safetensors file: widest dtype first, then by name, so that every tensor is aligned."""
    names = {np.dtype(np.int64): "I64", np.dtype(f32): "F32", np.dtype(f16): "F16"}
    header, body = {"__metadata__": metadata}, b""
    for name in sorted(tensors, key=lambda key: (-tensors[key].dtype.itemsize, key)):
        array = tensors[name]
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        body += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def digits_from_scikit_learn():
    from sklearn.datasets import load_digits

    digits = load_digits()
    return np.hstack([digits.data, digits.target[:, None]]).astype(np.uint8).tobytes()


def read_digits(raw):
    """Records of 65 bytes: 64 pixels, 0 to 16, row by row, and the label, 0 to 9."""
    table = np.frombuffer(raw, np.uint8).reshape(-1, WIDTHS[0] + 1)
    return table[:, :-1].astype(f32) / f32(16), table[:, -1].astype(np.int64)


def describe(name, gradients, scale):
    flat = np.concatenate([g.astype(np.float64).ravel() for g in gradients.values()]) / scale
    norm = np.sqrt((flat**2).sum()) if np.isfinite(flat).all() else np.inf
    print(f"{name}: loss scale {scale:.0f}, norm {norm:.6g}")
    for key, gradient in sorted(gradients.items()):
        nans, infinities = int(np.isnan(gradient).sum()), int(np.isinf(gradient).sum())
        if nans or infinities:
            print(f"  {key}: {nans} NaN, {infinities} Inf of {gradient.size}")


def make(raw):
    images, labels = read_digits(raw)
    parameters = first_parameters()
    state = first_state(parameters)
    for step in range(STEPS):
        rows = batch_rows(step)
        layers = forward(parameters, images[rows])
        adamw(parameters, state, backward(parameters, layers, labels[rows], SCALE_OK), SCALE_OK)
        print(f"step {step + 1}: loss {loss_of(layers[-1], labels[rows]):.4f}")
    guess = forward(parameters, images[TRAINING:])[-1].argmax(axis=1)
    print(f"test accuracy {(guess == labels[TRAINING:]).mean():.3f}")

    rows = batch_rows(STEPS)
    layers = forward(parameters, images[rows])
    source = {"made_by": "examples/make_dumps.py", "data": "UCI Optical Recognition of Handwritten Digits, CC BY 4.0"}
    files = {
        "params.safetensors": safetensors(parameters, source),
        "state.safetensors": safetensors(state, source),
    }
    for name, scale in (("grads_ok", SCALE_OK), ("grads_overflow", SCALE_OVERFLOW)):
        gradients = backward(parameters, layers, labels[rows], scale)
        describe(name, gradients, scale)
        files[f"{name}.safetensors"] = safetensors(gradients, {**source, "loss_scale": f"{scale:.0f}"})
    return files


def main():
    parser = argparse.ArgumentParser(description="Makes the files in examples/data/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    parser.add_argument("--digits", action="store_true", help="also write digits.bin, from scikit-learn")
    options = parser.parse_args()

    files = {}
    if options.digits:
        files["digits.bin"] = digits_from_scikit_learn()
    files.update(make(files.get("digits.bin") or (DATA / "digits.bin").read_bytes()))

    changed = [name for name, raw in files.items() if not (DATA / name).is_file() or (DATA / name).read_bytes() != raw]
    if options.check:
        for name in changed:
            print(f"{name} would change", file=sys.stderr)
        return 1 if changed else 0
    DATA.mkdir(exist_ok=True)
    for name, raw in files.items():
        (DATA / name).write_bytes(raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
