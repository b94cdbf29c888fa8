"""The reasons for which a test may be skipped: what a machine cannot have. Any other skip is a failure.

A reason counts only where it is true: a test that says "no GPU" on a machine with one has failed to find it.
"""

import os
import re


def has_gpu():
    """Whether NVIDIA's kernel driver has a device, which is known without asking the driver's libraries."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def has_instructions(kernel):
    """Whether the processor has the instructions of a kernel of the cpu backend."""
    needed = {"avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "avx2": {"avx2", "fma", "f16c"}}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return True
    return needed[kernel] <= flags


# What is missing, the reason that tests give for it, and whether that can be.
ALLOWED = [
    ("no NVIDIA GPU", r"no cuda device here\b", lambda match: not has_gpu()),
    ("no OpenCL GPU", r"no opencl GPU here\b", lambda match: not has_gpu()),
    ("no {} instructions", r"no cpu device here offers the kernel variant (avx512|avx2)$",
     lambda match: not has_instructions(match[1])),
    ("not enough memory", r"\S+ has \S+ GB of memory, the tensors need \S+ GB$", lambda match: True),
]


def what_is_missing(reason):
    """What this machine lacks if `reason` is allowed, or None."""
    for missing, pattern, true in ALLOWED:
        match = re.match(pattern, reason)
        if match and true(match):
            return missing.format(*match.groups())
    return None
