"""Messages, tensor files, workload folders and workload.yaml: what crosses a border is checked there."""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent.profiling import dropped_configs
from sandbox.errors import InputError
from sandbox.frames import FrameReader, FrameWriter
from sandbox.tensor_file import TensorFile, sealed, write_tensor_file
from sandbox.workload import (
    Autotune,
    CompileRecord,
    EntryCall,
    HarnessOutcome,
    Launch,
    StorageRecord,
    StoredWorkload,
    TensorRecord,
    TuningConfig,
    Value,
    Workload,
    load_workload,
    save,
)
from sandbox.workload_file import load_workload_file


def reader(frames: list, limit: int = 1 << 20) -> FrameReader:
    return FrameReader(lambda kind, data, blob: frames.append((kind, data, blob)), limit)


@given(st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=300)), max_size=8), st.integers(1, 64))
def test_frames_survive_any_cut(messages, step):
    read_fd, write_fd = os.pipe()
    writer = FrameWriter(write_fd)
    for text, blob in messages:
        writer.send("m", {"text": text}, blob)
    os.close(write_fd)
    data = bytearray()
    while part := os.read(read_fd, 65536):
        data += part
    os.close(read_fd)
    frames: list = []
    target = reader(frames)
    for start in range(0, len(data), step):
        target.feed(bytes(data[start : start + step]))
    assert target.broken is None
    assert [(d["text"], b) for _, d, b in frames] == messages


def test_a_block_of_bytes_may_come_in_parts():
    read_fd, write_fd = os.pipe()
    parts = (b"ab", b"", memoryview(bytearray(range(8))).cast("I"))
    FrameWriter(write_fd).send("m", {"n": 1}, *parts)
    os.close(write_fd)
    frames: list = []
    target = reader(frames)
    target.feed(os.read(read_fd, 65536))
    os.close(read_fd)
    assert frames == [("m", {"n": 1}, b"ab" + bytes(range(8)))]


@given(st.binary(min_size=12, max_size=400))
def test_garbage_on_the_pipe_is_no_fault(data):
    frames: list = []
    target = reader(frames, 1000)
    target.feed(data)
    target.feed(data)
    assert all(isinstance(kind, str) for kind, _, _ in frames)


def test_a_message_longer_than_allowed_ends_the_reading():
    target = reader([], 1000)
    target.feed((2).to_bytes(4, "little") + (1 << 60).to_bytes(8, "little") + b"{}")
    assert target.broken == "a message is longer than allowed"


def test_what_children_are_given_is_written_once_and_never_again():
    data = {"odd": memoryview(b"abc"), "wide": memoryview(bytes(range(16))), "other": memoryview(b"secret")}
    tensors = TensorFile(data, {"odd": "U8", "wide": "F64", "other": "U8"})
    descriptor = sealed(tensors, ["odd", "wide"])
    assert sealed(tensors, ["wide", "odd", "odd"]) == descriptor
    given = TensorFile.of_descriptor(descriptor)
    assert {name: bytes(view) for name, view in given.items()} == {"odd": b"abc", "wide": bytes(range(16))}
    address = ctypes.addressof(ctypes.c_char.from_buffer(given["wide"]))
    assert address % 8 == 0, "a kernel may load whole elements"
    for write in (
        lambda: os.pwrite(descriptor, b"x", 20),
        lambda: os.ftruncate(descriptor, 0),
        lambda: os.pwrite(os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR), b"x", 20),
        lambda: mmap.mmap(descriptor, 0, access=mmap.ACCESS_WRITE),
        lambda: fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, 0),
    ):
        with pytest.raises(OSError, match="not permitted"):
            write()
    given["odd"][0] = 0
    assert bytes(TensorFile.of_descriptor(descriptor)["odd"]) == b"abc", "what a process writes stays with it"
    del tensors
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_tensor_file_is_safetensors(tmp_path):
    tensors = {"a": torch.arange(5, dtype=torch.float32), "b": torch.randn(3).to(torch.bfloat16)}
    data = {k: memoryview(v.view(torch.uint8).numpy().tobytes()) for k, v in tensors.items()}
    path = tmp_path / "t.safetensors"
    write_tensor_file(path, TensorFile(data, {"a": "F32", "b": "BF16"}))
    loaded = safetensors.torch.load_file(path)
    assert all(torch.equal(loaded[k], tensors[k]) for k in tensors)
    again = TensorFile.open(path)
    assert {k: bytes(v) for k, v in again.items()} == {k: bytes(v) for k, v in data.items()}
    assert again.dtypes == {"a": "F32", "b": "BF16"}


@pytest.mark.parametrize(
    "content", [b"", b"123", b"\xff" * 64, (8).to_bytes(8, "little") + b'{"a": 1}', b"\2" + b"\0" * 7 + b"{}x"]
)
def test_damaged_tensor_files_are_refused_or_empty(tmp_path, content):
    path = tmp_path / "t.safetensors"
    path.write_bytes(content)
    try:
        assert len(TensorFile.open(path)) == 0
    except InputError as e:
        assert "safetensors" in str(e)


def stored() -> StoredWorkload:
    x = Value("tensor", tensor=TensorRecord("float32", (2, 3), (3, 1), 0, 0))
    odd = Value("list", items=(x, Value("float", "nan"), Value("float", 1.0), Value("int", 1), Value("bool", True)))
    workload = Workload(
        filename="k.py", kernel_digest="d", target="gfx950", board="MI350X", launches=(),
        entries=(EntryCall(0, "function", "run", (odd,), {"y": Value("none")}),),
        storages=(StorageRecord(0, 24, "float32", "s0"),), outcome=HarnessOutcome("main", "passed"), versions={},
    )  # fmt: skip
    return StoredWorkload(workload, TensorFile({"s0": memoryview(bytes(range(24)))}, {"s0": "F32"}))


def test_workload_folder_round_trip(tmp_path):
    save(stored(), tmp_path / "w")
    again = load_workload(tmp_path / "w")
    assert again.workload == stored().workload
    assert [type(v.value) for v in again.workload.entries[0].args[0].items[1:]] == [str, float, int, bool]
    assert bytes(again.tensors["s0"]) == bytes(range(24))


def test_the_kind_of_a_limit_is_kept_and_unknown_in_older_recordings(tmp_path):
    wide = TuningConfig({}, {"num_warps": 32}, fits=False, reason="words", limit_kind="threads_per_workgroup")
    record = CompileRecord("gfx950", True, "b", limit="words", limit_kind="lds")
    launch = Launch(0, "k", "k.py", 1, (), (1, 1, 1), {}, autotune=Autotune((wide,), 0), compiles=(record,))
    plain = stored()
    save(replace(plain, workload=replace(plain.workload, launches=(launch,))), tmp_path)
    assert load_workload(tmp_path).workload.launches == (launch,)
    assert [b.name for b in dropped_configs(launch)] == ["launch-limit"]
    path = tmp_path / "workload.json"
    written = json.loads(path.read_text())
    (old,) = written["launches"]
    del old["compiles"][0]["limit_kind"], old["autotune"]["configs"][0]["limit_kind"]
    path.write_text(json.dumps(written))
    (old,) = load_workload(tmp_path).workload.launches
    assert not old.compiles[0].launches and old.compiles[0].limit_kind is None
    (named,) = dropped_configs(old)
    assert named.name == "dropped-configs" and named.statement.endswith("because of words")


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="no workload"):
        load_workload(tmp_path)
    save(stored(), tmp_path)
    path = tmp_path / "workload.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(InputError, match="format 99"):
        load_workload(tmp_path)
    path.write_text("{}")
    with pytest.raises(InputError, match="not a workload"):
        load_workload(tmp_path)


YAML = """\
calls:
  - entry: run
    arguments:
      x: {shape: [8, 8], dtype: float16}
      eps: 1.0e-6
"""


def test_workload_yaml(tmp_path):
    path = tmp_path / "workload.yaml"
    path.write_text(YAML)
    call = load_workload_file(path).calls[0]
    assert call.entry == "run" and call.arguments["eps"] == 1e-6


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("float16", "float17", 4, "dtype"),
        ("[8, 8]", "[8, -8]", 4, "shape"),
        ("entry: run", "entrance: run", 2, "entrance"),
        ("entry: run", "kernel: run", 2, "grid"),
        ("calls:\n  - ", "calls: [\n  - ", 2, "YAML"),
        ("eps: 1.0e-6", "eps: {a: 1}", 5, "eps"),
    ],
)
def test_workload_yaml_errors_name_the_line(tmp_path, old, new, line, what):
    path = Path(tmp_path / "workload.yaml")
    path.write_text(YAML.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_workload_file(path)
    assert caught.value.line == line, str(caught.value)
    assert what in str(caught.value)
