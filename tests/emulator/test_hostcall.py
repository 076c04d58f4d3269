"""Calls of the host: what kernels print is kept, in any order of waves, and a failed assertion says what failed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from compile_corpus import build
from corpus.case import Case, TritonSource

from sandbox.emulator import EmulationResult, Memory, emulate, fast, load_code_object
from sandbox.emulator.hostcall import PACKETS, formatted, host_calls
from sandbox.emulator.reference import SCHEDULES

triton_prints = pytest.importorskip("corpus.triton_prints")
CORES = ["fast", "reference"]
ARCHS = ["gfx942", "gfx950"]
BLOCK = 128


def run(source: TritonSource, arch: str, core: str, grid: int, schedule: str, *data: np.ndarray) -> EmulationResult:
    if core == "fast" and not fast.available():
        pytest.skip("no C compiler")
    names = source.function.arg_names
    tensors = {name: torch.from_numpy(a) for name, a in zip(names, data, strict=False)}
    built = build(Case("", source, (grid, 1, 1), lambda _: tensors, lambda a, b: None), arch)
    memory = Memory()
    arguments = [memory.allocate(name, a) for name, a in zip(names, data, strict=False)]
    return emulate(load_code_object(built.code), built.kernel, (grid,), built.block, arguments, memory, core=core,
                   schedule=schedule, dynamic_lds_bytes=built.shared_bytes)  # fmt: skip


@pytest.mark.parametrize(("core", "schedule"), [("reference", "lockstep"), *(("fast", s) for s in SCHEDULES)])
@pytest.mark.parametrize("arch", ARCHS)
def test_what_a_kernel_prints(arch: str, core: str, schedule: str) -> None:
    source = TritonSource(triton_prints.printing_kernel, {"BLOCK": BLOCK}, num_warps=2)
    x, y = np.arange(-5, 2 * BLOCK - 5, dtype=np.int32), np.arange(2 * BLOCK, dtype=np.float32) / 4
    before = x.copy()
    result = run(source, arch, core, 2, schedule, x, y)
    assert result.clean and np.array_equal(x, before + 1)
    found = re.findall(r"pid \((\d), 0, 0\) idx \( *(\d+)\) (\w+): (\S+)\n", "".join(result.printed))
    values = {(int(p), int(i)): float(v) for p, i, what, v in found if what == "value"}
    reals = {(int(p), int(i)): float(v) for p, i, what, v in found if what == "real"}
    places = [divmod(k, BLOCK) for k in range(2 * BLOCK)]
    assert values == dict(zip(places, before.tolist(), strict=True))
    assert reals == dict(zip(places, y.tolist(), strict=True))
    assert len(result.printed) == len(found) == 4 * BLOCK


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("arch", ARCHS)
def test_an_assertion(arch: str, core: str) -> None:
    source = TritonSource(triton_prints.asserting_kernel, {"BLOCK": BLOCK}, 2, {"debug": True})
    x = np.arange(-50, BLOCK - 50, dtype=np.int32)
    result = run(source, arch, core, 1, "lockstep", x)
    assert result.clean and result.printed == () and x[0] == -49
    x[70] = 100
    result = run(source, arch, core, 1, "lockstep", x)
    assert result.status == "trapped" and result.trap is not None and result.trap.kind == "trap_instruction"
    assert len(result.printed) == 1 and "too large" in result.printed[0]
    assert "s_trap 2" in result.reason and "too large" in result.reason


def test_a_service_that_is_not_there() -> None:
    calls = host_calls(Memory())
    headers, block = calls.headers.data.view(np.uint64).reshape(-1, 3), calls.block.data.view(np.uint64)
    headers[3], block[4] = (0, 1, 3 | 1 << 32), 3  # lane 0 asks for memory
    assert calls.answer() == calls.refused == 3


def test_a_list_that_goes_round_ends() -> None:
    calls = host_calls(Memory())
    headers, block = calls.headers.data.view(np.uint64).reshape(-1, 3), calls.block.data.view(np.uint64)
    headers[3], block[4] = (3, 1, 2 | 1 << 32), 3
    assert calls.answer() == 0 and headers[3, 2] == 2, "answered"


def test_all_packets_are_free_at_first() -> None:
    calls = host_calls(Memory())
    headers, packet, seen = (
        calls.headers.data.view(np.uint64).reshape(-1, 3),
        int(calls.block.data.view(np.uint64)[3]),
        [],
    )
    while packet:
        seen.append(packet % PACKETS)
        packet = int(headers[packet % PACKETS, 0])
    assert sorted(seen) == list(range(PACKETS))


def words(text: str) -> list[int]:
    raw = text.encode() + b"\0"
    raw += bytes(-len(raw) % 8)
    return [int.from_bytes(raw[k : k + 8], "little") for k in range(0, len(raw), 8)]


@pytest.mark.parametrize(
    ("form", "arguments", "expected"),
    [
        ("plain, 100%%\n", [], "plain, 100%\n"),
        ("%d %u %i", [0xFFFFFFFF, 0xFFFFFFFF, 7], "-1 4294967295 7"),
        ("%lld %llu %hhd %hx", [2**64 - 2, 2**64 - 2, 0x1FF, 0x12345], "-2 18446744073709551614 -1 2345"),
        ("%5.2f|%-6d|%e", [0x400921FB54442D18, 42, 0x3FF8000000000000], " 3.14|42    |1.500000e+00"),
        ("<%s> %4s %c", [*words("eight chars"), *words("ab"), 65], "<eight chars>   ab A"),
        ("%p", [0xDEADBEEF], "0xdeadbeef"),
        ("%d %s", [], "0 "),
        ("%c%99999d %*d", [0x12345678, 1], "x%99999d %*d"),
    ],
)
def test_formats(form: str, arguments: list[int], expected: str) -> None:
    assert formatted([0, *words(form), *arguments]) == expected
