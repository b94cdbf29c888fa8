"""The part of the C library that the Python benchmarks need, through ctypes.

Structs mirror api/gradguard.h; `load` checks the version of the library against that header.
"""

import ctypes
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
F32, F16, BF16 = 1, 2, 3
PARAMETER, GRADIENT, EXP_AVG, EXP_AVG_SQ, MAX_EXP_AVG_SQ, MODEL_COPY = range(6)
OUT_OF_PLACE, IN_PLACE = 0, 1
MAX_RANK = 8


class Error(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("status", ctypes.c_int),
        ("native_code", ctypes.c_int64),
        ("native_name", ctypes.c_char * 64),
        ("function", ctypes.c_char * 64),
        ("message", ctypes.c_char * 1024),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("buffer", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]


class Entry(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("tensors", Tensor * 6),
        ("step", ctypes.c_uint64),
    ]


class GroupOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("mode", ctypes.c_int), ("amsgrad", ctypes.c_bool)]


class AdamWOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("learning_rate", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
        ("gradient_scale", ctypes.c_double),
        ("maximize", ctypes.c_bool),
        ("skip_update", ctypes.c_bool),
    ]


class GuardOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("clip", ctypes.c_bool),
        ("max_norm", ctypes.c_double),
        ("clip_epsilon", ctypes.c_double),
        ("on_nonfinite", ctypes.c_int),
        ("reserved", ctypes.c_uint32),
        ("on_moment_overflow", ctypes.c_int),
    ]


class Report(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("action", ctypes.c_int),
        ("reason", ctypes.c_int),
        ("measured", ctypes.c_bool),
        ("norm", ctypes.c_double),
        ("max_abs", ctypes.c_double),
        ("clip_coefficient", ctypes.c_double),
        ("gradient_scale", ctypes.c_double),
        ("nonfinite", ctypes.c_uint32),
        ("reduction_launches", ctypes.c_uint32),
        ("update_launches", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("elements", ctypes.c_uint64),
        ("tensors", ctypes.c_uint64),
        ("readback_bytes", ctypes.c_uint64),
        ("scratch_bytes", ctypes.c_uint64),
        ("per_tensor", ctypes.c_void_p),
    ]


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_int),
        ("available", ctypes.c_bool),
        ("exact", ctypes.c_bool),
        ("compute_units", ctypes.c_uint32),
        ("memory_bytes", ctypes.c_uint64),
        ("backend", ctypes.c_char * 16),
        ("id", ctypes.c_char * 32),
        ("name", ctypes.c_char * 128),
        ("driver", ctypes.c_char * 128),
        ("kernels", ctypes.c_char * 64),
        ("reason", ctypes.c_char * 512),
    ]


def sized(struct):
    """A struct with its size filled in."""
    value = struct()
    value.size = ctypes.sizeof(struct)
    return value


class GradguardError(RuntimeError):
    """A call of the library failed."""


def load(path=None):
    """The shared library, by default that of build/release-gcc."""
    library = ctypes.CDLL(path or os.path.join(ROOT, "build/release-gcc/libgradguard.so"))
    with open(os.path.join(ROOT, "api/version.h"), encoding="utf-8") as file:
        major, minor, patch = (int(n) for n in re.findall(r"#define GG_VERSION_\w+ (\d+)", file.read()))
    if library.gg_version() != major * 10000 + minor * 100 + patch:
        raise GradguardError(f"the library is of version {library.gg_version()}, the header of {major}.{minor}.{patch}")
    pointer, u64 = ctypes.c_void_p, ctypes.c_uint64
    out = ctypes.POINTER(pointer)
    signatures = {
        "gg_context_create": [ctypes.c_char_p, pointer, out, ctypes.POINTER(Error)],
        "gg_cuda_context_create": [pointer, pointer, out, ctypes.POINTER(Error)],
        "gg_context_destroy": [out],
        "gg_context_device": [pointer, ctypes.POINTER(DeviceInfo)],
        "gg_buffer_wrap_host": [pointer, pointer, u64, out],
        "gg_cuda_buffer_wrap": [pointer, u64, u64, out],
        "gg_buffer_destroy": [out],
        "gg_group_create": [pointer, ctypes.POINTER(Entry), ctypes.c_size_t, ctypes.POINTER(GroupOptions), out],
        "gg_group_destroy": [out],
        "gg_guarded_adamw_step": [pointer, ctypes.POINTER(AdamWOptions), ctypes.POINTER(GuardOptions), out],
        "gg_adamw_step": [pointer, ctypes.POINTER(AdamWOptions), out],
        "gg_pending_commit": [out],
        "gg_group_report": [pointer, ctypes.POINTER(Report)],
        "gg_gradient_stats": [
            pointer, ctypes.POINTER(Tensor), ctypes.c_size_t, ctypes.c_double, ctypes.POINTER(Report), pointer,
        ],
    }
    for name, arguments in signatures.items():
        getattr(library, name).argtypes = arguments
    for name in ("gg_context_destroy", "gg_buffer_destroy", "gg_group_destroy"):
        getattr(library, name).restype = None
    library.gg_context_error.restype = ctypes.POINTER(Error)
    library.gg_context_error.argtypes = [pointer]
    library.gg_context_kernel.restype = ctypes.c_char_p
    library.gg_context_kernel.argtypes = [pointer]
    library.gg_build_description.restype = ctypes.c_char_p
    return library


def revision():
    """The checkout's commit, with "-dirty" behind it where files differ from it; None outside of one."""
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    except OSError:
        return None


class Context:
    """A context on a named device, or on the device of a CUDA stream (an address)."""

    def __init__(self, library, device=None, stream=None):
        self.library, self.handle, self.buffers = library, ctypes.c_void_p(), []
        error = sized(Error)
        if stream is not None:
            status = library.gg_cuda_context_create(stream, None, ctypes.byref(self.handle), ctypes.byref(error))
        else:
            status = library.gg_context_create(device.encode(), None, ctypes.byref(self.handle), ctypes.byref(error))
        if status:
            raise GradguardError(error.message.decode())

    def check(self, status):
        if status:
            raise GradguardError(self.library.gg_context_error(self.handle).contents.message.decode())

    def kernel(self):
        return self.library.gg_context_kernel(self.handle).decode()

    def device(self):
        info = sized(DeviceInfo)
        self.check(self.library.gg_context_device(self.handle, ctypes.byref(info)))
        return info

    def wrap(self, address, size, cuda):
        """A buffer over memory of the caller's, which must outlive the context."""
        buffer = ctypes.c_void_p()
        wrap = self.library.gg_cuda_buffer_wrap if cuda else self.library.gg_buffer_wrap_host
        self.check(wrap(self.handle, address, size, ctypes.byref(buffer)))
        self.buffers.append(buffer)
        return buffer

    def close(self):
        for buffer in self.buffers:
            self.library.gg_buffer_destroy(ctypes.byref(buffer))
        self.library.gg_context_destroy(ctypes.byref(self.handle))


def flat_tensor(buffer, dtype, elements):
    """A vector that fills a buffer."""
    tensor = Tensor()
    tensor.buffer, tensor.dtype, tensor.rank = buffer, dtype, 1
    tensor.shape[0], tensor.strides[0] = elements, 1
    return tensor


class Group:
    """Entries in place: a list of dictionaries role -> tensor."""

    def __init__(self, context, tensors, amsgrad=False):
        self.context, self.handle = context, ctypes.c_void_p()
        entries = (Entry * len(tensors))()
        for entry, roles in zip(entries, tensors):
            entry.size = ctypes.sizeof(Entry)
            for role, tensor in roles.items():
                entry.tensors[role] = tensor
        options = sized(GroupOptions)
        options.mode, options.amsgrad = IN_PLACE, amsgrad
        library = context.library
        context.check(
            library.gg_group_create(
                context.handle, entries, len(tensors), ctypes.byref(options), ctypes.byref(self.handle)
            )
        )

    def step(self, adamw, guard):
        """One guarded step, committed."""
        pending = ctypes.c_void_p()
        library = self.context.library
        self.context.check(
            library.gg_guarded_adamw_step(self.handle, ctypes.byref(adamw), ctypes.byref(guard), ctypes.byref(pending))
        )
        self.context.check(library.gg_pending_commit(ctypes.byref(pending)))

    def report(self):
        report = sized(Report)
        self.context.check(self.context.library.gg_group_report(self.handle, ctypes.byref(report)))
        return report

    def close(self):
        self.context.library.gg_group_destroy(ctypes.byref(self.handle))
