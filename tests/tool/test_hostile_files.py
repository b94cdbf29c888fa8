"""Files that are wrong, by accident or on purpose: always exit 2 with a message, never a crash."""

import json
import os
import random
import struct

import numpy as np
import pytest

import harness
import tensor_files
from harness import run
from tensor_files import encoded

F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def changed(**changes):
    return {"w": {**F32, **changes}}


def deep(levels):
    return b'{"w":' + b"[" * levels + b"]" * levels + b"}"


MALFORMED = {
    "empty file": b"",
    "only a few bytes": b"\x10\0\0",
    "no header": struct.pack("<Q", 0),
    "header beyond the file": struct.pack("<Q", 1000) + b"{}",
    "header of 2^63 bytes": struct.pack("<Q", 1 << 63) + b"{}",
    "header of 2^64-1 bytes": struct.pack("<Q", (1 << 64) - 1) + b"{}",
    "header above the limit": struct.pack("<Q", 100000001) + b"{}",
    "not JSON": encoded(b"{nonsense}"),
    "an array": encoded(b"[]"),
    "leading space": encoded(b" {}"),
    "JSON with a tail": encoded(b"{}{}"),
    "unfinished JSON": encoded(b'{"w":'),
    "not UTF-8": encoded(b'{"\xff":1}'),
    "overlong UTF-8": encoded(b'{"\xc0\x80":1}'),
    "lone surrogate": encoded(b'{"\\ud800":1}'),
    "NUL in a name": encoded(b'{"a\\u0000b":' + json.dumps(F32).encode() + b"}", b"\0" * 4),
    "raw NUL in the header": encoded(b'{"a\0b":1}'),
    "nesting 3000 deep": encoded(deep(3000)),
    "nesting a million deep": encoded(deep(1000000)),
    "duplicate name": encoded(b'{"w":%s,"w":%s}' % ((json.dumps(F32).encode(),) * 2), b"\0" * 4),
    "duplicate key in a tensor": encoded(b'{"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
    "duplicate metadata": encoded(b'{"__metadata__":{},"__metadata__":{}}'),
    "metadata is a list": encoded({"__metadata__": []}),
    "metadata holds a number": encoded({"__metadata__": {"a": 1}}),
    "tensor is a string": encoded({"w": "F32"}),
    "tensor is null": encoded({"w": None}),
    "no dtype": encoded({"w": {"shape": [1], "data_offsets": [0, 4]}}, b"\0" * 4),
    "no shape": encoded({"w": {"dtype": "F32", "data_offsets": [0, 4]}}, b"\0" * 4),
    "no offsets": encoded({"w": {"dtype": "F32", "shape": [1]}}, b"\0" * 4),
    "extra key": encoded(changed(strides=[1]), b"\0" * 4),
    "dtype is a number": encoded(changed(dtype=32), b"\0" * 4),
    "unknown dtype": encoded(changed(dtype="F31"), b"\0" * 4),
    "dtype in small letters": encoded(changed(dtype="f32"), b"\0" * 4),
    "shape is a number": encoded(changed(shape=1), b"\0" * 4),
    "negative size": encoded(changed(shape=[-1]), b"\0" * 4),
    "two negative sizes": encoded(changed(shape=[-1, -1]), b"\0" * 4),
    "fractional size": encoded(changed(shape=[1.0]), b"\0" * 4),
    "size as a string": encoded(changed(shape=["1"]), b"\0" * 4),
    "size true": encoded(changed(shape=[True]), b"\0" * 4),
    "size of 2^63": encoded(changed(shape=[1 << 63]), b"\0" * 4),
    "product of 2^64": encoded(changed(shape=[1 << 32, 1 << 32]), b"\0" * 4),
    "product of 2^64 + 1 elements": encoded(changed(shape=[274177, 67280421310721]), b"\0" * 4),
    "product of 2^63": encoded(changed(shape=[1 << 62, 2]), b"\0" * 4),
    "bytes overflow": encoded(changed(shape=[1 << 62]), b"\0" * 4),
    "huge sizes beside a zero": encoded(changed(shape=[0, 1 << 62, 1 << 62], data_offsets=[0, 0])),
    "too short for the shape": encoded(changed(data_offsets=[0, 3]), b"\0" * 3),
    "too long for the shape": encoded(changed(data_offsets=[0, 5]), b"\0" * 5),
    "half a byte": encoded({"w": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, b"\0"),
    "offsets reversed": encoded(changed(data_offsets=[4, 0]), b"\0" * 4),
    "negative offset": encoded(changed(data_offsets=[-4, 0]), b"\0" * 4),
    "one offset": encoded(changed(data_offsets=[4]), b"\0" * 4),
    "three offsets": encoded(changed(data_offsets=[0, 4, 4]), b"\0" * 4),
    "fractional offsets": encoded(changed(data_offsets=[0.0, 4.0]), b"\0" * 4),
    "offset beyond the file": encoded(changed(data_offsets=[4, 8]), b"\0" * 4),
    "offsets near 2^63": encoded(changed(data_offsets=[(1 << 63) - 5, (1 << 63) - 1]), b"\0" * 4),
    "offsets of 2^64": encoded(changed(data_offsets=[0, 1 << 64]), b"\0" * 4),
    "truncated data": encoded(changed(), b"\0" * 3),
    "trailing data": encoded(changed(), b"\0" * 5),
    "trailing data without a tensor": encoded({}, b"\0"),
    "a hole at the start": encoded(changed(data_offsets=[4, 8]), b"\0" * 8),
    "a hole between": encoded({"a": F32, "b": {**F32, "data_offsets": [8, 12]}}, b"\0" * 12),
    "the same bytes twice": encoded({"a": F32, "b": F32}, b"\0" * 4),
    "partly overlapping": encoded({"a": F32, "b": {**F32, "data_offsets": [2, 6]}}, b"\0" * 6),
    "one inside another": encoded({"a": {**F32, "shape": [3], "data_offsets": [0, 12]}, "b": {**F32, "data_offsets": [4, 8]}}, b"\0" * 12),
    "an empty one inside another": encoded({"a": F32, "b": {**F32, "shape": [0], "data_offsets": [2, 2]}}, b"\0" * 4),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(tmp_path, name):
    """As each of the three inputs; no device is needed to say so."""
    folder = harness.small(harness.Folder(tmp_path))
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(MALFORMED[name])
    before = folder.names()
    outcomes = [run("inspect", "--grads", bad)]
    outcomes += [folder.step(option, bad) for option in ("--params", "--grads", "--state")]
    for outcome in outcomes:
        assert outcome.code == 2 and outcome.out == "" and str(bad) in outcome.err, outcome
    assert folder.names() == before


def test_a_file_cut_anywhere_is_refused(tmp_path):
    whole = encoded({"__metadata__": {"k": "v"}, "w": {**F32, "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8)
    path = tmp_path / "cut.safetensors"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        outcome = run("inspect", "--grads", path)
        assert outcome.code == 2 and outcome.out == "" and str(path) in outcome.err, (length, outcome)
    path.write_bytes(whole)
    assert run("inspect", "--grads", path, "--device", "cpu").code == 0


def test_damaged_bytes_never_crash(tmp_path):
    """Any exit code is right for a file that happens to stay valid; a signal is not (harness.run checks)."""
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    source = random.Random(seed)
    whole = encoded({"w": {**F32, "shape": [2, 1], "data_offsets": [0, 8]}, "v": {**F32, "data_offsets": [8, 12]}}, b"\0" * 12)
    path = tmp_path / "damaged.safetensors"
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(source.randint(1, 3)):
            damaged[source.randrange(len(damaged))] = source.choice([0, 0x22, 0x2C, 0x39, 0x5B, 0x7B, 0xFF, source.randrange(256)])
        path.write_bytes(damaged)
        assert run("inspect", "--grads", path, "--device", "cpu").code in (0, 2)


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "device", "unreadable"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "input"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "unreadable":
        path.write_bytes(MALFORMED["empty file"])
        path.chmod(0)
    outcome = run("inspect", "--grads", path)
    assert outcome.code == 2 and outcome.out == "" and str(path) in outcome.err, outcome


def test_a_name_cannot_control_the_terminal(tmp_path):
    path = tmp_path / "evil.safetensors"
    tensor_files.write(path, {"evil\x1b[2J\x9b31m\r\x7f": np.float32([np.nan]), "\x1b]0;x\x07": np.float32([1])})
    outcome = run("inspect", "--grads", path, "--device", "cpu")
    assert outcome.code == 0 and "evil\\x1b[2J\\x9b31m\\x0d\\x7f" in outcome.out, outcome
    assert not set(outcome.out) & {"\x1b", "\x9b", "\r", "\x7f", "\x07"}
    folder = harness.small(harness.Folder(tmp_path))
    outcome = folder.step("--grads", path)
    assert outcome.code == 2 and "\x1b" not in outcome.err


def test_valid_oddities_are_accepted(tmp_path):
    """Unordered data, spaces after the header, no tensor at all, names in any script, unaligned data."""
    path = tmp_path / "odd.safetensors"
    header = json.dumps({"zweite": {**F32, "data_offsets": [6, 10]}, "första": {"dtype": "F16", "shape": [1, 3], "data_offsets": [0, 6]}}).encode()
    header += b" " * (15 - len(header) % 8)  # the data begins at an odd address
    path.write_bytes(encoded(header, np.float16([1, 2, 2]).tobytes() + np.float32([4]).tobytes()))
    outcome = run("inspect", "--grads", path, "--report", "json", "--device", "cpu")
    assert outcome.code == 0 and [t["name"] for t in outcome.json["tensors"]] == ["första", "zweite"], outcome
    assert [t["norm"] for t in outcome.json["tensors"]] == [3.0, 4.0] and outcome.json["norm"] == 5.0


def test_a_gradient_of_another_dtype_is_named(tmp_path):
    path = tensor_files.write(tmp_path / "grads.safetensors", {"fine": np.float32([1]), "wide": np.float64([1])})
    outcome = run("inspect", "--grads", path)
    assert outcome.code == 2 and '"wide"' in outcome.err and "F64" in outcome.err


def test_too_many_dimensions_are_named(tmp_path):
    path = tensor_files.write(tmp_path / "grads.safetensors", {"deep": np.ones((1,) * 9, np.float32)})
    outcome = run("inspect", "--grads", path)
    assert outcome.code == 2 and '"deep"' in outcome.err and "dimensions" in outcome.err
