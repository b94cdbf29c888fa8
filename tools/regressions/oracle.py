#!/usr/bin/env python3
"""Judges the formulas and the library. What is judged is one of

  exact     a NumPy model of the reduction (model.py) against exact sums
  pytorch   the model's whole step against PyTorch's clip_grad_norm_ and AdamW on the CPU
  library   the library against the model, to the bit, and against exact sums and PyTorch, by the same limits

    oracle.py --judge exact|pytorch|library [--library libgradguard.so] [--device cpu] [--quick] [--seed N]

The last lines say the largest errors. Exit status 0 if all are within their limits:
  norms    2e-7, relative to the exact norm
  states   2e-6, each element of the parameters and moments relative to the sum of the magnitudes of the terms that make
           it up: where terms of either sign cancel, FP32 cannot do better, whoever computes
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))

import numpy as np  # noqa: E402

from regressions import oracle_norms  # noqa: E402

NORM_LIMIT, STATE_LIMIT = 2e-7, 2e-6


class Findings:
    """The largest error of each kind, and what is wrong."""

    def __init__(self):
        self.largest, self.same_count, self.wrong = {}, {}, []

    def error(self, kind, value, limit, what):
        before = self.largest.get(kind, (0.0, limit, ""))
        # A NaN compares with nothing; it is to be seen, not passed over.
        if not value <= before[0] or not before[2]:
            self.largest[kind] = (value, limit, what)
        if not value <= limit:
            self.wrong.append(f"{kind}: {value:.3g} is more than {limit:g} ({what})")

    def norm(self, of, found, exact, what):
        """An exact norm of 0 must be found as 0."""
        error = abs(found - exact) / exact if exact else (0.0 if found == 0 else float("inf"))
        self.error(f"norm of the {of} against exact sums", error, NORM_LIMIT, what)

    def state(self, name, of, error, what):
        self.error(f"{name} of the {of} against PyTorch", error, STATE_LIMIT, what)

    def same(self, kind, good, what):
        alike, all_ = self.same_count.get(kind, (0, 0))
        self.same_count[kind] = (alike + bool(good), all_ + 1)
        if not good:
            self.wrong.append(f"{kind}: {what}")

    def tell(self):
        for wrong in self.wrong[:20]:
            print("WRONG", wrong)
        if len(self.wrong) > 20:
            print(f"WRONG and {len(self.wrong) - 20} more")
        for kind, (alike, all_) in self.same_count.items():
            print(f"{kind}: {alike} of {all_}")
        for kind, (value, limit, what) in self.largest.items():
            print(f"largest error, {kind}: {value:.3g}, limit {limit:g} ({what})")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", required=True, choices=["exact", "pytorch", "library"])
    parser.add_argument("--library", help="libgradguard.so, for --judge library")
    parser.add_argument("--device", default="cpu", help="a cpu device: memory is wrapped where it is")
    parser.add_argument("--quick", action="store_true", help="without the two largest sizes")
    parser.add_argument("--seed", type=int, help="of the random values; it is printed")
    arguments = parser.parse_args()
    if arguments.judge == "library" and not arguments.library:
        parser.error("--judge library needs --library")
    return arguments


def main():
    arguments = parse_arguments()
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}, NumPy {np.__version__}", flush=True)
    random = np.random.default_rng(seed)
    findings, library = Findings(), None
    if arguments.judge == "library":
        from regressions.library import Library

        library = Library(arguments.library, arguments.device)
        print(library.description())
    if arguments.judge in ("exact", "library"):
        oracle_norms.check_norms(findings, library, random, arguments.quick)
        oracle_norms.check_half_precision(findings, library, random)
        oracle_norms.check_groups(findings, library, random)
        oracle_norms.check_nonfinite(findings, library)
    if arguments.judge in ("pytorch", "library"):
        from regressions import oracle_updates

        oracle_updates.check_updates(findings, library, random)
    findings.tell()
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
