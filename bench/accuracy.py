#!/usr/bin/env python3
"""The error of the norm against exact arithmetic: the library's beside PyTorch's FP32 norm.

    bench/accuracy.py --json FILE [--device cpu] [--largest 1000000000] [--library PATH]

Magnitudes 1e-44 to 3e38 with 100003 elements each, then sizes 1 to 1e9 of ordinary magnitude. The data repeat a block
of random FP32 values, so that the exact norm is known: squares of FP32 numbers, scaled by a power of two into FP64's
range, are exact there, math.fsum adds a block's with one rounding to FP64, and repetitions are counted with fractions.
An error of null in the file: the result was Inf, NaN or 0.
"""

import argparse
import ctypes
import fractions
import json
import math
import os
import sys

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "tools")]

import torch  # noqa: E402

import gradguard_ctypes as gg  # noqa: E402
from regressions.arguments import at_least, output_file  # noqa: E402

BLOCK = 1 << 20


def exact_norm(block, elements):
    """The norm of `elements` values that repeat `block` (FP32), as (mantissa, exponent): mantissa * 2**exponent."""
    largest = float(block.abs().max())
    exponent = math.frexp(largest)[1]
    scaled = (block.double() * 2.0**-exponent).tolist()

    def squares(values):
        return fractions.Fraction(math.fsum(value * value for value in values))

    whole, rest = divmod(elements, len(scaled))
    total = squares(scaled) * whole + squares(scaled[:rest])
    # The square root of a fraction, to far more digits than FP64 has.
    shift = 200
    root = math.isqrt(int(total * (1 << (2 * shift))))
    return fractions.Fraction(root, 1 << shift), exponent


def relative_error(value, exact):
    """None for what is no norm at all."""
    mantissa, exponent = exact
    if not math.isfinite(value) or value == 0:
        return None
    scaled = fractions.Fraction(value) / fractions.Fraction(2) ** exponent
    return float(abs(scaled - mantissa) / mantissa)


def our_norm(context, values):
    buffer = context.wrap(values.data_ptr(), values.numel() * 4, False)
    tensor = gg.flat_tensor(buffer, gg.F32, values.numel())
    report = gg.sized(gg.Report)
    context.check(
        context.library.gg_gradient_stats(context.handle, ctypes.byref(tensor), 1, 1.0, ctypes.byref(report), None)
    )
    context.library.gg_buffer_destroy(ctypes.byref(context.buffers.pop()))
    return report.norm


def repeat(block, elements):
    values = torch.empty(elements)
    for at in range(0, elements, len(block)):
        values[at : at + len(block)] = block[: elements - at]
    return values


def compare(context, block, elements, x, torch_device):
    values = repeat(block, elements)
    exact = exact_norm(block, elements)
    ours = relative_error(our_norm(context, values), exact)
    theirs = relative_error(float(torch.linalg.vector_norm(values.to(torch_device))), exact)
    print(f"{x:>12g}  ours {ours}  PyTorch {theirs}", flush=True)
    return {"x": x, "ours": ours, "torch": theirs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="a cpu device: the data are wrapped where they are")
    parser.add_argument("--torch-device", default="cpu", help="where PyTorch measures: cpu or cuda")
    parser.add_argument("--largest", type=at_least(1), default=10**9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library")
    parser.add_argument("--json", type=output_file, required=True)
    arguments = parser.parse_args()
    context = gg.Context(gg.load(arguments.library), arguments.device)
    generator = torch.Generator().manual_seed(arguments.seed)
    unit = torch.rand(BLOCK, generator=generator) * 0.9 + 0.1
    unit *= torch.sign(torch.rand(BLOCK, generator=generator) - 0.5)
    magnitudes = []
    for power in [-44, *range(-42, 38, 4), 38]:
        size = 3e38 if power == 38 else 10.0**power
        block = (unit.double() * size).float()
        magnitudes.append(compare(context, block, 100003, size, arguments.torch_device))
    sizes = []
    for power in range(0, 10):
        elements = min(10**power, arguments.largest)
        sizes.append(compare(context, unit * 0.02, elements, elements, arguments.torch_device))
        if elements == arguments.largest:
            break
    worst = max(row["ours"] if row["ours"] is not None else math.inf for row in magnitudes + sizes)
    document = {"program": "accuracy.py", "torch": torch.__version__,
                "torch_device": arguments.torch_device, "seed": arguments.seed,
                "kernel": context.kernel(), "revision": gg.revision(), "build": context.library.gg_build_description().decode(),
                "magnitudes": magnitudes, "sizes": sizes, "largest_error": worst}
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    context.close()
    print(f"largest error of ours: {worst:.3g} (promised: 2e-7)")
    return 0 if worst <= 2e-7 else 1


if __name__ == "__main__":
    sys.exit(main())
