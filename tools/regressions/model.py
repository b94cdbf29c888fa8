"""docs/numerics.md in NumPy: the reduction of one tensor to its triple, and the update of its elements, to the bit."""

import numpy as np

F32 = np.float32
LANES, TILE, MOST_BLOCKS = 256, 8, 1024
NAN, INF, OVERFLOW = 1, 2, 4
BIG, MIDDLE, SMALL = range(3)
INFINITY_BITS = np.uint32(0x7F800000)


def fma(a, b, c):
    """a * b + c of FP32 numbers, rounded once. The product is exact in FP64; the sum is rounded to odd there, and a
    second rounding, to FP32, then gives what one would (Boldo and Melquiond 2008)."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = np.broadcast_to(np.asarray(c, F32), product.shape).astype(np.float64)
    total = product + addend
    part = total - product
    with np.errstate(invalid="ignore"):
        error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    move = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    outward = (error > 0) == (total > 0)
    bits = bits + np.where(move, np.where(outward, 1, -1), 0)
    return bits.view(np.float64).astype(F32)


def two_sum(a, b):
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def power_of_two(exponents):
    """2^k as FP32, 0 below 2^-126."""
    return np.where(exponents < -126, 0.0, np.ldexp(1.0, np.clip(exponents, -126, 127))).astype(F32)


def exponent_of(magnitudes):
    """Of the largest power of two <= a positive FP32 number, subnormals included."""
    return np.frexp(magnitudes.astype(np.float64))[1] - 1


def tiles_per_lane(elements):
    tiles = -(-elements // TILE)
    return max(-(-tiles // (LANES * MOST_BLOCKS)), 4 if elements > 65536 else 1)


def unscale(raw, inverse):
    """Unscaled values with the non-finite ones replaced by 0, and which kinds there were."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        x = raw * F32(inverse)
    bad = ~np.isfinite(x)
    kinds = 0
    if bad.any():
        kinds |= NAN if np.isnan(x[bad]).any() else 0
        infinite = bad & np.isinf(x)
        kinds |= INF if np.isinf(raw[infinite]).any() else 0
        kinds |= OVERFLOW if np.isfinite(raw[infinite]).any() else 0
        x = np.where(bad, F32(0), x)
    return x, kinds


def tile_sums(x):
    """Of tiles, x[..., 8]."""
    q = fma(x[..., :4], x[..., :4], x[..., 4:] * x[..., 4:])
    return (q[..., 0] + q[..., 2]) + (q[..., 1] + q[..., 3])


def tree(high, low):
    """The sum of 256 lanes, in the last axis: strides 16 to 1 within 32 lanes, then 128 to 32 between their first."""

    def combine(h, l, half):
        total, error = two_sum(h[..., :half], h[..., half : 2 * half])
        return total, (l[..., :half] + l[..., half : 2 * half]) + error

    shape = high.shape[:-1] + (8, 32)
    high, low = high.reshape(shape), low.reshape(shape)
    for half in (16, 8, 4, 2, 1):
        high, low = combine(high, low, half)
    high, low = high[..., 0], low[..., 0]
    for half in (4, 2, 1):
        high, low = combine(high, low, half)
    return high[..., 0] + low[..., 0]


def reduce_blocks(x, per_lane):
    """The largest magnitude and the sum of squares of every block."""
    tiles = -(-len(x) // TILE)
    block = LANES * per_lane
    blocks = max(-(-tiles // block), 1)
    padded = np.zeros(blocks * block * TILE, F32)
    padded[: len(x)] = x
    shaped = padded.reshape(blocks, per_lane, LANES, TILE)
    most = np.abs(shaped).max(axis=3)
    bins = np.where(most > F32(2.0**40), BIG, np.where((most > 0) & (most < F32(2.0**-40)), SMALL, MIDDLE))
    scale = np.array([2.0**-84, 1.0, 2.0**84], F32)[bins]
    sums = tile_sums(shaped * scale[..., None])
    high, low = np.zeros((3, blocks, LANES), F32), np.zeros((3, blocks, LANES), F32)
    for k in range(per_lane):
        for which in range(3):
            high[which], error = two_sum(high[which], np.where(bins[:, k] == which, sums[:, k], F32(0)))
            low[which] = low[which] + error
    largest = most.max(axis=(1, 2))
    return largest, join(high, low, largest)


def join(high, low, largest):
    exponent = np.where(largest > 0, exponent_of(np.where(largest > 0, largest, F32(1))), 0)[:, None]
    total = rest = None
    for which, shift in ((BIG, 84), (MIDDLE, 0), (SMALL, -84)):
        present = exponent >= {BIG: 40, MIDDLE: -40, SMALL: -149}[which]
        factor = np.where(present, power_of_two(np.where(present, shift - exponent, 0)), F32(0)).astype(F32)
        h, l = (high[which] * factor) * factor, (low[which] * factor) * factor
        if total is None:
            total, rest = h, l
        else:
            total, error = two_sum(total, h)
            rest = rest + (l + error)
    return np.where(largest > 0, tree(total, rest), F32(0)).astype(F32)


def finalize(largest, sums):
    """Merges the partial triples of a tensor."""
    if len(largest) == 1:
        return largest[0], sums[0]
    most = largest.max()
    if most == 0:
        return F32(0), F32(0)
    rows = -(-len(largest) // LANES)
    exponents = exponent_of(np.where(largest > 0, largest, F32(1)))
    factor = np.where(largest > 0, power_of_two(exponents - exponent_of(most)), F32(0))
    scaled = np.zeros(rows * LANES, F32)
    scaled[: len(sums)] = (sums * factor) * factor
    high, low = np.zeros(LANES, F32), np.zeros(LANES, F32)
    for row in scaled.reshape(rows, LANES):
        high, error = two_sum(high, row)
        low = low + error
    return most, tree(high, low)


def triple(raw, inverse):
    """(largest magnitude, normalised sum of squares, kinds) of one gradient, given as FP32 values."""
    x, kinds = unscale(raw, inverse)
    if len(x) == 0:
        return F32(0), F32(0), 0
    with np.errstate(under="ignore"):
        most, sums = finalize(*reduce_blocks(x, tiles_per_lane(len(x))))
    return most, sums, kinds


def sum_of(most, ssq):
    """The sum of squares that a triple stands for, in FP64, where its range is no concern."""
    return float(ssq) * 4.0 ** float(exponent_of(np.array(most))) if most else 0.0


def constants(options, step):
    """One step's constants: FP64, then rounded once."""
    lr, beta1, beta2 = options["lr"], options["beta1"], options["beta2"]

    def complement(beta):
        result, squared, left = 0.0, 1.0 - beta, step
        while left:
            if left & 1:
                result = result + squared * (1.0 - result)
            squared = squared + squared * (1.0 - squared)
            left >>= 1
        return result

    return {
        "decay": F32(1.0 - lr * options["weight_decay"]),
        "beta1": F32(beta1), "ob1": F32(1.0 - beta1), "beta2": F32(beta2), "ob2": F32(1.0 - beta2),
        "epsilon": F32(options["eps"]),
        "step_size": F32(lr / complement(beta1)), "inverse_bias_correction2_sqrt": F32(1.0 / np.sqrt(complement(beta2))),
    }


def kept(beta, moment):
    """What stays of an old moment, which a beta of zero does not look at."""
    return beta * moment if beta else np.zeros_like(moment)


def update(raw, inverse, factor, options, step, p, m, v, vmax=None, maximize=False):
    """New (p, m, v, vmax) of a tensor; `factor` is the clip coefficient as FP32."""
    k = constants(options, step)
    g = (raw * F32(inverse)) * F32(factor)
    g = -g if maximize else g
    m = fma(np.broadcast_to(k["ob1"], g.shape), g, kept(k["beta1"], m))
    v = fma(k["ob2"] * g, g, kept(k["beta2"], v))
    w = v
    if vmax is not None:
        w = vmax = np.where(v > vmax, v, vmax)
    denominator = fma(np.sqrt(w), np.broadcast_to(k["inverse_bias_correction2_sqrt"], w.shape), k["epsilon"])
    p = fma(np.broadcast_to(-k["step_size"], m.shape), m / denominator, p * k["decay"])
    return p, m, v, vmax
