"""The HIP suite for nvcc: what is left out, what is built, and how times and results become a table.

No GPU: a device on the host stands for the driver, and nvcc, where it is installed, builds what it would time.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hip_pairs import (
    SUITE,
    WORKLOADS,
    Floats,
    Out,
    Workload,
    _bounds,
    build,
    load,
    measure,
    page,
    sorted_zipf,
    summary,
    why_not,
    write_pair,
)

NAMES = sorted(p.name for p in SUITE.iterdir() if p.is_dir())


def sources(name: str) -> dict[str, str]:
    """A case without what `wavesmith optimize` would make of it."""
    kernel = (SUITE / name / "kernel.hip").read_text()
    return {"baseline": kernel, "ours": kernel, "expert": (SUITE / name / "expert.hip").read_text()}


def view(address: int, count: int, dtype: type) -> np.ndarray:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype)


class HostDevice:
    """The driver's functions on the host, and versions given as Python functions of addresses."""

    def __init__(self, **versions: Callable[..., None]) -> None:
        self.memory: list[np.ndarray] = []
        self.order: list[str] = []
        for name, function in versions.items():
            setattr(self, f"time_{name}", lambda *call, n=name, f=function: self._time(n, f, call))

    def _time(self, name: str, function: Callable[..., None], call: tuple[Any, ...]) -> float:
        self.order.append(name)
        function(*call)
        return 20.0 if name == "baseline" else 10.0

    def allocate(self, nbytes: int) -> int:
        self.memory.append(np.full(nbytes, 0xCC, dtype=np.uint8))
        return int(self.memory[-1].ctypes.data)

    def copy(self, to: int, start: int, nbytes: int) -> None:
        ctypes.memmove(to, start, nbytes)

    def clear(self, to: int, nbytes: int) -> None:
        ctypes.memset(to, 0, nbytes)

    def fill(self, to: int, count: int, levels: int, seed: int) -> None:
        view(to, count, np.float32)[:] = np.random.default_rng(seed).integers(-levels, levels + 1, count) / levels

    def differ(self, expected: int, found: int, nbytes: int, floats: bool, relative: float) -> int:
        words = view(expected, nbytes // 4, np.uint32) != view(found, nbytes // 4, np.uint32)
        a, b = (view(x, nbytes // 4, np.float32) for x in (expected, found))
        return int(np.sum(words & ~(floats & (np.abs(a - b) <= relative * np.abs(a)))))


def transpose(x: int, y: int, rows: int, cols: int) -> None:
    view(y, rows * cols, np.float32)[:] = view(x, rows * cols, np.float32).reshape(rows, cols).T.ravel()


def bounds_check(indices: int, rows: int, warnings: int, per_table: int, tables: int) -> None:
    found = view(indices, per_table * tables, np.int64).reshape(tables, per_table)
    outside = (found < 0) | (found >= view(rows, tables, np.int64)[:, None])
    found[outside] = 0
    view(warnings, 1, np.int32)[0] += outside.sum()


TRANSPOSE = Workload("transpose", "4 x 3", lambda rng: [Floats(12), Out(12), 4, 3])
BOUNDS = Workload("bounds_check", "small", lambda rng: _bounds(rng, 0.2, tables=3, per_table=50, rows=100))
PAIR = {"name": "x", "versions": ["baseline", "ours"], "counter": "lane_atomics", "before": 8, "after": 2}


def test_only_what_takes_64_lanes_for_granted_is_left_out() -> None:
    left = {(name, version) for name in NAMES for version, text in sources(name).items() if why_not(text)}
    assert left == {("bounds_check", "expert"), ("column_reduction", "expert")}
    sized = "for (unsigned o = warpSize / 2; o > 0; o /= 2) v += __shfl_down(v, o);"
    assert why_not(sized) is None
    assert why_not(sized.replace("warpSize", "64")) == "__shfl_down over wavefronts of 64 lanes"
    assert why_not("// by warpSize\nv += __shfl_xor(v, 32);") is not None
    assert why_not(f"{sized} n = __popcll(__ballot(bad));") == "__ballot, __shfl_down over wavefronts of 64 lanes"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("name", NAMES)
def test_nvcc_builds_every_version_that_is_not_left_out(name: str, tmp_path: Path) -> None:
    pair = write_pair(tmp_path / name, sources(name))
    try:
        library = build(tmp_path / name, "sm_90")
    except subprocess.CalledProcessError as fault:
        pytest.fail(fault.stderr)
    lib = load(library, pair)
    assert [v for v in ("baseline", "ours", "expert") if hasattr(lib, f"time_{v}")] == pair["versions"]


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_gives_what_the_host_function_takes(name: str, tmp_path: Path) -> None:
    pair = write_pair(tmp_path / name, sources(name))
    json.dumps(pair)
    given = [w.draw(np.random.default_rng(0)) for w in WORKLOADS if w.case == name]
    assert given
    for arguments in given:
        assert [not isinstance(a, int) for a in arguments] == pair["pointers"]
        assert all(a.count < 2**31 for a in arguments if isinstance(a, Floats | Out))


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_the_share_of_indices_outside_is_as_named(share: float) -> None:
    indices, rows = _bounds(np.random.default_rng(0), share, tables=2, per_table=50_000)[:2]
    outside = (indices.start < 0) | (indices.start >= rows[0])
    assert np.mean(outside) == pytest.approx(share, abs=0.01)
    assert (indices.start < 0).any() and (indices.start >= rows[0]).any()


def test_zipf_draws_are_sorted_and_as_frequent_as_they_should_be() -> None:
    drawn = sorted_zipf(np.random.default_rng(0), 200_000, 1000, 1.0)
    assert (np.diff(drawn) >= 0).all() and drawn.max() < 1000
    share = np.bincount(drawn, minlength=1000) / drawn.size
    expected = 1 / np.arange(1, 1001) / np.sum(1 / np.arange(1, 1001))
    assert share[:5] == pytest.approx(expected[:5], rel=0.05)


@pytest.mark.parametrize(("workload", "version"), [(TRANSPOSE, transpose), (BOUNDS, bounds_check)])
def test_versions_take_turns_on_the_same_new_inputs(workload: Workload, version: Callable[..., None]) -> None:
    device = HostDevice(baseline=version, ours=version)
    measured = measure(device, PAIR, workload, rounds=14)
    assert {slot: len(taken) for slot, taken in measured["times_us"].items()} == {
        "baseline": 14,
        "ours": 14,
        "repeat": 14,
    }
    assert not any(measured["wrong"].values())
    firsts = device.order[::3]
    assert set(firsts) == {"baseline", "ours"}, "the order changes"
    ratio = summary(PAIR, measured)["ratios"]["baseline/ours"]
    assert (ratio["ratio"], ratio["verdict"], ratio["noise_floor"]) == (2.0, "gain", 0.01)


def test_a_version_with_other_results_has_no_ratio() -> None:
    def careless(indices: int, rows: int, warnings: int, per_table: int, tables: int) -> None:
        bounds_check(indices, rows, warnings, per_table, tables)
        view(warnings, 1, np.int32)[0] -= 1

    measured = measure(HostDevice(baseline=bounds_check, ours=careless), PAIR, BOUNDS, rounds=14)
    assert measured["wrong"] == {"baseline": 0, "ours": 16, "repeat": 0}, "one word in each round, warm-up included"
    row = summary(PAIR, measured)
    assert row["ratios"]["baseline/ours"]["verdict"] == "invalid"
    left_out = [{"name": "x", "version": "expert", "reason": "__ballot over wavefronts of 64 lanes"}]
    found = {"device": "d", "rounds": 14, "rows": [row], "faults": {"y": "nvcc: no"}, "left_out": left_out}
    text = "\n".join(page(json.loads(json.dumps(found))))
    assert "| x | small | 20.0 | 10.0 |  | invalid: results differ |  | 1.0% | lane_atomics 8 -> 2 |" in text
    assert (
        "- x, expert left out: __ballot over wavefronts of 64 lanes." in text and "- y was not timed: nvcc: no" in text
    )


def test_a_difference_within_the_noise_is_called_so() -> None:
    rng = np.random.default_rng(3)
    times = {slot: list(100 + rng.standard_normal(16)) for slot in ("baseline", "ours", "expert", "repeat")}
    row = summary(PAIR, {"inputs": "i", "times_us": times, "wrong": dict.fromkeys(times, 0)})
    assert {r["verdict"] for r in row["ratios"].values()} == {"noise"}
    text = "\n".join(page({"device": "d", "rounds": 16, "rows": [row], "faults": {}, "left_out": []}))
    assert text.count("(noise)") == 2 and "1.00x [" in text


def test_a_version_that_writes_nothing_does_not_find_the_baselines_results_in_its_memory() -> None:
    def forgetful(x: int, y: int, rows: int, cols: int) -> None:
        pass

    measured = measure(HostDevice(baseline=transpose, ours=forgetful), PAIR, TRANSPOSE, rounds=14)
    assert measured["wrong"]["ours"] > 100 and measured["wrong"]["repeat"] == 0
