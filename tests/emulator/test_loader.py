"""Code objects: what a good one says, one clear error for each bad one, and no crash on any mutation."""

from __future__ import annotations

import os
import random
import struct

import numpy as np
import pytest

from sandbox.emulator import Memory, emulate, load_code_object
from sandbox.emulator.decoder import decode
from sandbox.emulator.instruction import DecodeError, Unsupported
from sandbox.emulator.launch import pack_arguments
from sandbox.emulator.loader import CodeObject
from sandbox.emulator.msgpack import MsgpackError, unpack
from sandbox.errors import InputError

MUTATIONS = int(os.environ.get("WAVESMITH_FUZZ_OBJECTS", "250"))
"""Mutated objects per run; 100000 by hand."""


@pytest.fixture(scope="module")
def add(corpus_code: dict[str, dict[str, bytes]]) -> bytes:
    return corpus_code["gfx942"]["add_float32"]


@pytest.fixture(scope="module")
def hip(corpus_code: dict[str, dict[str, bytes]]) -> bytes:
    return corpus_code["gfx942"].get("hip_block_reduce") or pytest.skip("needs clang")


def note_offset(data: bytes) -> int:
    return data.index(b"AMDGPU\0")


def test_a_triton_object(add: bytes) -> None:
    code = load_code_object(add)
    kernel = code.kernel("add_kernel")
    assert code.arch == "gfx942"
    assert [a.kind for a in kernel.arguments][:3] == ["global_buffer"] * 3
    assert kernel.descriptor.preload_length == 12
    assert kernel.entry == kernel.descriptor_address + kernel.descriptor.entry_offset + 256
    assert kernel.descriptor.workgroup_ids == (True, False, False)


def test_a_hip_object_holds_several_kernels(hip: bytes) -> None:
    code = load_code_object(hip)
    assert len(code.kernels) > 5
    kernel = code.kernel("block_reduce")
    assert kernel.descriptor.group_segment_bytes > 0
    assert any(a.kind == "hidden_group_size_x" for a in kernel.arguments)
    with pytest.raises(InputError, match="no kernel 'absent'"):
        code.kernel("absent")


def test_hidden_arguments_are_filled_in(hip: bytes) -> None:
    kernel = load_code_object(hip).kernel("block_reduce")
    values = [0] * len(kernel.explicit_arguments)
    data = pack_arguments(kernel, values, (3, 2, 1), (128, 1, 1), 64)
    at = {a.kind: a.offset for a in kernel.arguments}
    assert struct.unpack_from("<III", data, at["hidden_block_count_x"]) == (3, 2, 1)
    assert struct.unpack_from("<HHH", data, at["hidden_group_size_x"]) == (128, 1, 1)
    assert struct.unpack_from("<H", data, at["hidden_grid_dims"]) == (2,)


def changed(data: bytes, offset: int, value: bytes) -> bytes:
    return data[:offset] + value + data[offset + len(value) :]


def test_every_kind_of_bad_object_has_one_clear_error(add: bytes, hip: bytes) -> None:
    descriptor = load_code_object(add).kernel("add_kernel").descriptor_address
    in_file = next(
        i
        for i in range(0, len(add), 64)
        if add[i : i + 64] == load_code_object(add).elf.image[descriptor : descriptor + 64]
    )
    cases = {
        "not an ELF file": b"hello",
        "ends inside the ELF header": add[:40],
        "cannot be read: it ends inside": add[: len(add) // 2],
        "is not for an AMD GPU": changed(add, 18, struct.pack("<H", 62)),
        "is for gfx90a": changed(add, 48, b"\x3f"),
        "is for gfx1100": changed(add, 48, b"\x41"),
        "is for machine 0xfe": changed(add, 48, b"\xfe"),
        "offload bundle": b"__CLANG_OFFLOAD_BUNDLE__" + bytes(64),
        "has no kernel metadata": add.replace(b"AMDGPU\0", b"AMDGPX\0"),
        "metadata cannot be read": changed(add, note_offset(add) + 8, b"\xc1"),
        "reserved bits set": changed(add, in_file + 12, b"\x01"),
        "waves of 32 lanes": changed(add, in_file + 57, b"\x04"),
        "not in its code": changed(add, in_file + 16, struct.pack("<q", 1 << 40)),
    }
    for message, data in cases.items():
        with pytest.raises(InputError) as raised:
            load_code_object(data)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)


def launch(code: CodeObject, arguments: object, **change: object) -> None:
    options: dict[str, object] = {"grid": (1,), "block": (256,)} | change
    emulate(code, "add_kernel", arguments=arguments, memory=Memory(), **options)  # type: ignore[arg-type]


def test_a_launch_that_hardware_would_refuse(add: bytes) -> None:
    code = load_code_object(add)
    with pytest.raises(InputError, match="kernarg data of add_kernel has 16 bytes; its arguments take 48"):
        launch(code, bytes(16))
    with pytest.raises(InputError, match="takes 6 arguments; 1 were given"):
        launch(code, [0])
    with pytest.raises(InputError, match="cannot run with 1024 threads"):
        launch(code, [0] * 6, block=(1024,))
    with pytest.raises(InputError, match=r"2\^32 threads"):
        launch(code, [0] * 6, grid=(1 << 30,))
    with pytest.raises(InputError, match="positive numbers"):
        launch(code, [0] * 6, grid=(0,))
    with pytest.raises(InputError, match="bytes of LDS; gfx942 has 65536"):
        launch(code, [0] * 6, dynamic_lds_bytes=70_000)
    with pytest.raises(InputError, match="no schedule 'sideways'"):
        launch(code, [0] * 6, schedule="sideways")
    with pytest.raises(InputError, match="workgroups 0 to 0"):
        launch(code, [0] * 6, workgroups=[3])
    with pytest.raises(InputError, match="0 workgroups were asked for"):
        launch(code, [0] * 6, workgroups=0)
    with pytest.raises(InputError, match="no core 'quick'"):
        launch(code, [0] * 6, core="quick")
    with pytest.raises(InputError, match="-5 bytes of dynamic LDS"):
        launch(code, [0] * 6, dynamic_lds_bytes=-5)
    with pytest.raises(InputError, match="1099511627776 does not fit arg3, which has 4 bytes"):
        launch(code, [0, 0, 0, 1 << 40])
    for grid in ((), (1.5,), (1, 1, 1, 1), (-1,)):
        with pytest.raises(InputError, match="one to three positive numbers"):
            launch(code, [0] * 6, grid=grid)


@pytest.mark.parametrize("value", [None, "a", np.zeros(3), [1]])
def test_what_is_no_argument(value: object, add: bytes) -> None:
    with pytest.raises(InputError, match=f"cannot be a {type(value).__name__}"):
        launch(load_code_object(add), [value, 0, 0, 0])


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x92\x01", b"\xdd\xff\xff\xff\xff", b"\xa5abc", b"\x81\x90\x01", b"\x91" * 40]
)
def test_bad_metadata_encodings(data: bytes) -> None:
    with pytest.raises(MsgpackError):
        unpack(data)


def test_metadata_encodings() -> None:
    assert unpack(b"\x83\xa1a\x01\xa1b\x93\xc0\xc2\xc3\xa1c\xcd\x01\x00") == {
        "a": 1,
        "b": [None, False, True],
        "c": 256,
    }
    assert unpack(b"\x94\xff\xd1\xff\x00\xd9\x02hi\xcb?\xf0\0\0\0\0\0\0") == [-1, -256, "hi", 1.0]


def test_mutated_objects_raise_input_errors_only(add: bytes, hip: bytes) -> None:
    draw = random.Random(11)
    for k in range(MUTATIONS):
        data = bytearray(hip if k % 4 == 0 else add)
        for _ in range(draw.choice([1, 1, 2, 8, 64])):
            where = draw.choice([draw.randrange(min(1024, len(data))), draw.randrange(len(data))])
            data[where] = draw.choice([0, 0xFF, data[where] ^ 1 << draw.randrange(8), draw.randrange(256)])
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        try:
            code = load_code_object(bytes(data))
        except InputError:
            continue
        for kernel in code.kernels.values():
            walk(code, kernel.entry)


def walk(code: CodeObject, at: int) -> None:
    """Decode from an entry point to the first byte sequence that is no instruction."""
    for _ in range(200):
        try:
            at += decode(code.elf.image, at, code.arch).size
        except (DecodeError, Unsupported):
            return
