"""Norms and kinds of non-finite values: the model and the library against exact sums."""

import math

import numpy as np

from regressions import model

SIZES = [0, 1, 2, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 16384, 65535, 65536, 65537, 1048577, 2100123]
QUICK_SIZES = SIZES[:-2]
# From the smallest subnormal to the largest number; None: of every magnitude in one tensor.
SMALLEST, LARGEST = 2.0**-149, float(np.finfo(np.float32).max)
MAGNITUDES = [SMALLEST, 1e-44, 1e-41, 1e-38, 1e-30, 1e-19, 1e-13, 1e-6, 1.0, 1e6, 1e13, 1e19, 1e30, 1e38, LARGEST, None]
SCALES = [1.0, 1024.0, 98304.0]


def gradient(random, elements, magnitude):
    """Values of one magnitude, or of all."""
    values = random.uniform(0.1, 1.0, elements) * random.choice([-1.0, 1.0], elements)
    if magnitude is None:
        return (values * 10.0 ** random.uniform(-44, 38, elements)).astype(np.float32)
    if magnitude == SMALLEST:
        return (np.sign(values) * SMALLEST).astype(np.float32)
    return (values * magnitude).astype(np.float32)


def exact_norm(tensors):
    """Squares of FP32 numbers are exact in FP64, whose range holds the sum too; fsum rounds once, at the end."""
    squares = [np.square(x.astype(np.float64)) for x in tensors]
    return math.sqrt(math.fsum(np.concatenate(squares).tolist())) if squares else 0.0


def model_group(raws, scale):
    """Norm, largest magnitude and kinds of a group, and the unscaled tensors, by the model."""
    inverse = np.float32(1.0 / scale)
    triples = [model.triple(raw, inverse) for raw in raws]
    total = 0.0
    for most, ssq, _ in triples:
        total += model.sum_of(most, ssq)
    kinds = 0
    for _, _, kind in triples:
        kinds |= kind
    unscaled = [model.unscale(raw, inverse)[0] for raw in raws]
    return math.sqrt(total), max(float(most) for most, _, _ in triples), kinds, unscaled


def compare(findings, library, raws, scale, what, stored=None, dtype="f32"):
    """`raws` as FP32; `stored`, the same in the dtype's own bits, is what the library gets."""
    norm, most, kinds, unscaled = model_group(raws, scale)
    exact = exact_norm(unscaled)
    findings.norm("model", norm, exact, what)
    if not library:
        return
    report = library.statistics(stored or raws, scale, dtype)
    # A norm is the square root, in FP64, of a sum that has an FP32 number's bits: equal norms are equal triples.
    findings.same("statistics of the library with the model's bits",
                  (report.norm, report.max_abs, report.nonfinite) == (norm, most, kinds),
                  f"{what}: norm {report.norm!r}, the model's {norm!r}")
    findings.norm("library", report.norm, exact, what)


def check_norms(findings, library, random, quick):
    pairs = [(magnitude, scale) for magnitude in MAGNITUDES for scale in SCALES]
    for elements in QUICK_SIZES if quick else SIZES:
        # Every magnitude under every scale for the small sizes; the large ones take turns.
        for magnitude, scale in pairs if elements < 20000 else pairs[elements % 3 :: 7]:
            name = "every magnitude" if magnitude is None else f"about {magnitude:.2g}"
            compare(findings, library, [gradient(random, elements, magnitude)], scale,
                    f"{elements} elements of {name}, scale {scale:g}")


def as_bfloat16(values):
    """The bits of FP32 numbers cut to BF16: any BF16 will do."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def check_half_precision(findings, library, random):
    """FP16 and BF16 gradients, subnormals of theirs included."""
    for elements in (1, 9, 2049, 70001):
        for magnitude in (6e-8, 1e-4, 1.0, 6e4):
            half = gradient(random, elements, magnitude).astype(np.float16)
            compare(findings, library, [half.astype(np.float32)], 1024.0, f"{elements} f16 of about {magnitude:g}",
                    [half.view(np.uint16)], "f16")
        for magnitude in (1e-40, 1e-20, 1.0, 1e30):
            bits = as_bfloat16(gradient(random, elements, magnitude))
            raw = (bits.astype(np.uint32) << 16).view(np.float32)
            compare(findings, library, [raw], 1024.0, f"{elements} bf16 of about {magnitude:g}", [bits], "bf16")


def check_groups(findings, library, random):
    """Several tensors as if they were one vector, of magnitudes far apart."""
    for magnitudes in ((1.0, 1.0, 1.0), (1e-30, 1.0, 1e-3), (1e30, 1e30, 1e-44), (None, None, None)):
        raws = [gradient(random, n, magnitude) for n, magnitude in zip((1, 3000, 70001), magnitudes)]
        for scale in SCALES:
            compare(findings, library, raws, scale, f"a group of three of about {magnitudes}, scale {scale:g}")


def check_nonfinite(findings, library):
    for value, scale, kinds in ((math.nan, 1.0, model.NAN), (math.inf, 1.0, model.INF), (-math.inf, 8.0, model.INF),
                                (3e38, 1e-3, model.OVERFLOW)):
        for place in (0, 7, 300, 70000):
            raw = np.full(70001, 0.5, np.float32)
            raw[place] = value
            found = model.triple(raw, np.float32(1.0 / scale))[2]
            findings.same("kinds of non-finite values in the model", found == kinds, f"{value} at {place}: {found}")
            if library:
                report = library.statistics([raw], scale)
                findings.same("kinds of non-finite values in the library",
                              report.nonfinite == kinds and report.norm == math.inf,
                              f"{value} at {place}: {report.nonfinite}, norm {report.norm}")
