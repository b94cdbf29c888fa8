"""Safetensors files, read and written independently of the tool."""

import json
import struct

import numpy as np

NUMPY = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "U8": np.uint8, "BF16": np.uint16, "F64": np.float64}


class Bf16:
    """BF16 values; numpy has no such type, so they are kept as their 16 bits."""

    def __init__(self, values):
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        nan = (bits & 0x7FFFFFFF) > 0x7F800000
        self.bits = np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)
        self.shape = self.bits.shape


def described(value):
    """dtype name, shape and bytes."""
    if isinstance(value, Bf16):
        return "BF16", value.shape, value.bits.tobytes()
    value = np.asarray(value)
    name = next(name for name, kind in NUMPY.items() if kind == value.dtype and name != "BF16")
    return name, value.shape, value.tobytes()


def widened(value):
    """The values as FP64."""
    if isinstance(value, Bf16):
        return (value.bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.asarray(value).astype(np.float64)


def encoded(header, data=b""):
    """A file's bytes from its header (an object, or bytes as they are) and its data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write(path, tensors, metadata=None):
    """Writes {name: array}; the data lies in the order of the dictionary."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, value in tensors.items():
        dtype, shape, raw = described(value)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    with open(path, "wb") as file:
        file.write(encoded(header, data))
    return str(path)


def read_header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), length


def read(path):
    """{name: array}, checking on the way what the format promises."""
    header, length = read_header(path)
    with open(path, "rb") as file:
        data = file.read()[8 + length :]
    header.pop("__metadata__", None)
    tensors, covered = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert begin == covered and end <= len(data), name
        covered = end
        tensors[name] = np.frombuffer(data[begin:end], NUMPY[entry["dtype"]]).reshape(entry["shape"])
    assert covered == len(data)
    return tensors
