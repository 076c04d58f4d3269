"""The HIP suite on an NVIDIA GPU: each kernel as it came, what is made of it and the version by hand, timed in turn.

    python benchmarks/hip_pairs.py prepare                 # without a GPU: benchmarks/out/hip-pairs
    python benchmarks/hip_pairs.py time > times.json       # with an NVIDIA GPU; needs nvcc and numpy only
    python benchmarks/hip_pairs.py page times.json

Only where HIP's spelling and CUDA's mean the same: `cuda_spelling/hip/hip_runtime.h` is all that stands between them,
and a version that takes wavefronts of 64 lanes for granted is left out, with the reason. "Ours" is made for gfx950, by
what the emulator counts; no time had a part in that. Every round draws new inputs, runs each version and the baseline
a second time in a random order, flushes the cache before each run and compares all results with the baseline's. Floats
are multiples of 1/128 (weights 1/8) whose sums are exact in any order, so equal means equal.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sandbox.benchmark import is_gain, is_loss, median_ratio_interval, noise_floor  # noqa: E402

SUITE, SPELLING = ROOT / "benchmarks" / "suite_hip", ROOT / "benchmarks" / "cuda_spelling"
ARCH = "gfx950"
VERSIONS = ("baseline", "ours", "expert")
WARM_UP = 2
CASE_TIMEOUT_S = 120
SEED = 1

Rng = np.random.Generator
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Floats:
    """An input of random multiples of 1 / `levels` in [-1, 1], drawn on the device."""

    count: int
    levels: int = 128


@dataclass(frozen=True, slots=True)
class Out:
    """What the kernel writes, one per version: zeros, or `start` where it reads it too."""

    count: int = 0
    start: Array | None = None

    @property
    def nbytes(self) -> int:
        return 4 * self.count if self.start is None else self.start.nbytes


@dataclass(frozen=True, slots=True)
class Workload:
    """Arguments of a case's host function, drawn anew for every round; arrays are inputs."""

    case: str
    inputs: str
    draw: Callable[[Rng], list[Any]]
    relative: float = 0.0
    """How much a float may differ, of the baseline's value."""


def _bounds(rng: Rng, share: float, tables: int = 30, per_table: int = 460_000, rows: int = 1_000_000) -> list[Any]:
    outside = round(rows * share / (1 - share) / 2)
    indices = rng.integers(-outside, rows + outside, tables * per_table)
    return [
        Out(start=indices), np.full(tables, rows), Out(start=np.zeros(1, dtype=np.int32)), per_table, tables
    ]  # fmt: skip


def sorted_zipf(rng: Rng, count: int, rows: int, alpha: float) -> Array:
    """`count` draws of P(row) ~ 1 / (row + 1)^alpha, sorted: sums of exponentials are sorted uniform draws."""
    cumulated = np.cumsum(np.arange(1, rows + 1) ** -alpha)
    uniform = np.cumsum(rng.standard_exponential(count + 1))
    drawn = np.searchsorted(cumulated, uniform[:-1] * (cumulated[-1] / uniform[-1]), side="right")
    return np.minimum(drawn, rows - 1).astype(np.int32)


def _embedding(rng: Rng, alpha: float, bags: int = 65536, per_bag: int = 55, rows: int = 10**6) -> list[Any]:
    lookups, dim = bags * per_bag, 128
    return [
        Floats(bags * dim), sorted_zipf(rng, lookups, rows, alpha), rng.integers(0, bags, lookups, dtype=np.int32),
        Floats(lookups, levels=8), Out(rows * dim), lookups, dim,
    ]  # fmt: skip


def _select_backward(rng: Rng, lookups: int = 2**21, rows: int = 2**20, cols: int = 128) -> list[Any]:
    return [Floats(lookups * cols), sorted_zipf(rng, lookups, rows, 1.0), Out(rows * cols), lookups, cols]


def _select_forward(rng: Rng, lookups: int = 2**20, rows: int = 2**20, cols: int = 128) -> list[Any]:
    return [Floats(rows * cols), rng.integers(0, rows, lookups, dtype=np.int32), Out(lookups * cols), lookups, cols]


WORKLOADS = (
    Workload("bounds_check", "30 tables, 13.8 M indices, 10% outside", lambda rng: _bounds(rng, 0.1)),
    Workload("bounds_check", "30 tables, 13.8 M indices, 20% outside", lambda rng: _bounds(rng, 0.2)),
    Workload(
        "column_reduction", "8192 x 4096", lambda rng: [Floats(2**25), Out(4096), Out(1), 8192, 4096]
    ),
    Workload("embedding_backward", "65536 bags of 55, D 128, Zipf 1.0", lambda rng: _embedding(rng, 1.0)),
    Workload("embedding_backward", "65536 bags of 55, D 128, Zipf 1.15", lambda rng: _embedding(rng, 1.15)),
    Workload("index_select_backward", "2 M rows of 128 into 1 M, Zipf 1.0", _select_backward),
    Workload("index_select_forward", "1 M rows of 128, uniform", _select_forward),
    Workload(
        "register_rows", "4 M threads", lambda rng: [Floats(2**22), Floats(160), Out(2**22), 2**22], relative=1e-4
    ),
    Workload("transpose", "8192 x 8192", lambda rng: [Floats(2**26), Out(2**26), 8192, 8192]),
)  # fmt: skip

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LANES = re.compile(r"\b__(?:shfl|ballot|any|all|activemask|match|lane|builtin_amdgcn)\w*|\basm\b")
_HOST = re.compile(r"^void (\w+)\(([^)]*)\) \{", re.MULTILINE)


def why_not(source: str) -> str | None:
    """Why a HIP source means something else to nvcc; None where it means the same.

    Shuffles whose code takes the width from `warpSize` do; anything else across lanes was written for 64.
    """
    code = _COMMENT.sub(" ", source)
    across = sorted(set(_LANES.findall(code)))
    if not across or (all(name.startswith("__shfl") for name in across) and "warpSize" in code):
        return None
    return f"{', '.join(across)} over wavefronts of 64 lanes"


def write_pair(folder: Path, sources: Mapping[str, str]) -> dict[str, Any]:
    """Write the versions that nvcc may have, and `pair.cu` that makes one library of them and the driver."""
    folder.mkdir(parents=True, exist_ok=True)
    left_out = {version: reason for version, text in sources.items() if (reason := why_not(text))}
    versions = [v for v in VERSIONS if v in sources and v not in left_out]
    hosts = {tuple(" ".join(part.split()) for part in _HOST.findall(sources[v])[-1]) for v in versions}
    [(entry, listed)] = hosts
    arguments = ", ".join(p.split()[-1].lstrip("*") for p in listed.split(","))
    text = '#include "driver.cuh"\n'
    for v in versions:
        (folder / f"{v}.hip").write_text(sources[v])
        text += (
            f'\nnamespace {v} {{\n#include "{v}.hip"\n}}\n'
            f'extern "C" float time_{v}({listed}) {{\n'
            f"  return timed_us([&] {{ {v}::{entry}({arguments}); }});\n}}\n"
        )
    (folder / "pair.cu").write_text(text)
    pointers = ["*" in p for p in listed.split(",")]
    return {"name": folder.name, "versions": versions, "left_out": left_out, "pointers": pointers}


def prepare(out: Path, only: Sequence[str]) -> None:
    """Make "ours" of every case and write what `time` builds."""
    from benchmarks.hip_suite import cases, run_case  # the GPU machine has none of what it needs

    pairs = []
    for case in (c for c in cases() if not only or c["name"] in only):
        name = case["name"]
        sources = {"baseline": (SUITE / name / "kernel.hip").read_text()}
        with tempfile.TemporaryDirectory() as work:
            row = run_case(case, ARCH, Path(work))
            if row.ours is not None:
                sources["ours"] = (Path(work) / f"{name}-{ARCH}" / "patched" / f"{name}.hip").read_text()
        if row.expert is not None:
            sources["expert"] = (SUITE / name / "expert.hip").read_text()
        pair = write_pair(out / name, sources)
        pair["left_out"] |= {v: "not shown right" for v in VERSIONS if v not in sources}
        pairs.append({**pair, "counter": row.counter, "before": row.before, "after": row.ours})
        for version, reason in pair["left_out"].items():
            print(f"{name}: {version} left out: {reason}")
    (out / "pairs.json").write_text(json.dumps(pairs, indent=2) + "\n")


def build(folder: Path, arch: str) -> Path:
    """Compile a pair to a shared library. Raises `CalledProcessError` with what nvcc said."""
    library = folder / "pair.so"
    flags = ["-O3", "-std=c++17", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC", "-I", str(SPELLING)]
    command = ["nvcc", *flags, "-o", str(library), str(folder / "pair.cu")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return library


def load(library: Path, pair: Mapping[str, Any]) -> ctypes.CDLL:
    """The driver's functions and one `time_VERSION` for each version, with their types."""
    lib = ctypes.CDLL(str(library))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    lib.device_name.restype = ctypes.c_char_p
    lib.allocate.restype, lib.allocate.argtypes = pointer, [size]
    lib.copy.argtypes, lib.clear.argtypes = [pointer, pointer, size], [pointer, size]
    lib.fill.argtypes = [pointer, size, ctypes.c_int, ctypes.c_uint64]
    lib.differ.restype = ctypes.c_uint64
    lib.differ.argtypes = [pointer, pointer, size, ctypes.c_int, ctypes.c_float]
    for version in pair["versions"]:
        function = getattr(lib, f"time_{version}")
        function.restype = ctypes.c_float
        function.argtypes = [pointer if p else ctypes.c_int for p in pair["pointers"]]
    return lib


class Bench:
    """The versions of a case on one workload, on memory that is kept between rounds."""

    def __init__(self, lib: Any, versions: Sequence[str], workload: Workload) -> None:
        self.lib, self.workload = lib, workload
        self.slots = {**{v: v for v in versions}, "repeat": "baseline"}
        """What is run in a round, each with results of its own, and the version it runs."""
        self.memory: dict[tuple[str, int], int] = {}

    def _memory(self, slot: str, place: int, nbytes: int) -> int:
        if (slot, place) not in self.memory:
            self.memory[slot, place] = self.lib.allocate(nbytes)
        return self.memory[slot, place]

    def _input(self, place: int, given: Any, rng: Rng) -> Any:
        """A value as the call takes it; contents are put on the device."""
        if isinstance(given, Floats):
            address = self._memory("", place, 4 * given.count)
            self.lib.fill(address, given.count, given.levels, int(rng.integers(2**63)))
            return address
        if isinstance(given, np.ndarray) or (isinstance(given, Out) and given.start is not None):
            contents = np.ascontiguousarray(given.start if isinstance(given, Out) else given)
            address = self._memory("", place, contents.nbytes)
            self.lib.copy(address, contents.ctypes.data, contents.nbytes)
            return address
        return given

    def _time(self, slot: str, given: Sequence[Any], ready: Sequence[Any]) -> float:
        call = list(ready)
        for place, out in enumerate(given):
            if isinstance(out, Out):
                call[place] = self._memory(slot, place, out.nbytes)
                if out.start is None:
                    self.lib.clear(call[place], out.nbytes)
                else:
                    self.lib.copy(call[place], ready[place], out.nbytes)
        return float(getattr(self.lib, f"time_{self.slots[slot]}")(*call))

    def round(self, rng: Rng) -> tuple[dict[str, float], dict[str, int]]:
        """One run of each in a random order: microseconds, and how many words differ from the baseline's."""
        given = self.workload.draw(rng)
        ready = [self._input(place, value, rng) for place, value in enumerate(given)]
        times = {str(slot): self._time(str(slot), given, ready) for slot in rng.permutation(list(self.slots))}
        wrong = dict.fromkeys(self.slots, 0)
        for place, out in enumerate(given):
            if not isinstance(out, Out):
                continue
            for slot in self.slots:
                places = self.memory["baseline", place], self.memory[slot, place]
                floats = out.start is None
                wrong[slot] += self.lib.differ(*places, out.nbytes, floats, self.workload.relative)
        return times, wrong


def measure(lib: Any, pair: Mapping[str, Any], workload: Workload, rounds: int) -> dict[str, Any]:
    """Microseconds of each round by version (`repeat`: the baseline once more), and words that differed in any."""
    rng = np.random.default_rng(SEED)
    bench = Bench(lib, pair["versions"], workload)
    done = [bench.round(rng) for _ in range(WARM_UP + rounds)]
    return {
        "inputs": workload.inputs,
        "times_us": {slot: [times[slot] for times, _ in done[WARM_UP:]] for slot in bench.slots},
        "wrong": {slot: sum(wrong[slot] for _, wrong in done) for slot in bench.slots},
    }


def compared(measured: Mapping[str, Any], over: str, under: str) -> dict[str, Any]:
    """Ratio of medians of two versions with its interval, and what it is: invalid (results differ), gain, loss, noise.

    The noise floor is the baseline against itself.
    """
    times, wrong = measured["times_us"], measured["wrong"]
    interval = median_ratio_interval(times[over], times[under])
    floor = noise_floor(times["baseline"], times["repeat"])
    verdict = "gain" if is_gain(interval, floor) else "loss" if is_loss(interval, floor) else "noise"
    if any(wrong[slot] for slot in ("repeat", over, under)):
        verdict = "invalid"
    return {**asdict(interval), "noise_floor": floor, "verdict": verdict}


def summary(pair: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """One workload: medians, and the ratios of what was timed."""
    times = measured["times_us"]
    row = {**{key: pair[key] for key in ("name", "counter", "before", "after")}, **measured}
    row["median_us"] = {slot: float(np.median(taken)) for slot, taken in times.items()}
    row["ratios"] = {
        f"{over}/ours": compared(measured, over, "ours") for over in ("baseline", "expert") if over in times
    }
    return row


def time_pairs(out: Path, arch: str, rounds: int) -> dict[str, Any]:
    """Build all pairs and time them, each in a process of its own, so that one fault costs one case."""
    pairs = json.loads((out / "pairs.json").read_text())
    left_out = [{"name": p["name"], "version": v, "reason": r} for p in pairs for v, r in p["left_out"].items()]
    pairs = [p for p in pairs if {"baseline", "ours"} <= set(p["versions"])]
    found: dict[str, Any] = {"device": None, "rounds": rounds, "rows": [], "faults": {}, "left_out": left_out}

    def built(pair: Mapping[str, Any]) -> str | None:
        try:
            build(out / pair["name"], arch)
        except subprocess.CalledProcessError as fault:
            return f"nvcc: {fault.stderr.strip()[-600:]}"
        return None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(built, pairs))
    for pair, complaint in zip(pairs, complaints, strict=True):
        fault = complaint or _time_case(out, pair, rounds, found)
        if fault is not None:
            found["faults"][pair["name"]] = fault
        print(f"{pair['name']}: {fault or 'timed'}", file=sys.stderr)
    return found


def _time_case(out: Path, pair: Mapping[str, Any], rounds: int, found: dict[str, Any]) -> str | None:
    """Add a case's rows to what was found; or the reason why there are none."""
    command = [sys.executable, __file__, "case", pair["name"], "--out", str(out), "--rounds", str(rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {CASE_TIMEOUT_S} s"
    if done.returncode != 0:
        return (done.stderr.strip() or f"exit status {done.returncode}")[-600:]
    result = json.loads(done.stdout)
    found["device"] = result["device"]
    found["rows"] += [summary(pair, measured) for measured in result["measured"]]
    return None


def time_case(out: Path, name: str, rounds: int) -> dict[str, Any]:
    """All workloads of one case, in this process."""
    [pair] = (p for p in json.loads((out / "pairs.json").read_text()) if p["name"] == name)
    lib = load(out / name / "pair.so", pair)
    measured = [measure(lib, pair, w, rounds) for w in WORKLOADS if w.case == name]
    return {"device": lib.device_name().decode(), "measured": measured}


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """What was timed as Markdown."""
    yield f"{found['device']}, {found['rounds']} rounds; medians in us, ratios with 95% bootstrap intervals."
    yield ""
    yield "| kernel | inputs | before | ours | by hand | before / ours | by hand / ours | noise | counted on gfx950 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in found["rows"]:
        times = [f"{row['median_us'][v]:.1f}" if v in row["median_us"] else "" for v in VERSIONS]
        ratios = [_ratio(row["ratios"].get(f"{over}/ours")) for over in ("baseline", "expert")]
        noise = f"{row['ratios']['baseline/ours']['noise_floor']:.1%}"
        counts = f"{row['counter']} {row['before']} -> {row['after']}"
        yield "| " + " | ".join([row["name"], row["inputs"], *times, *ratios, noise, counts]) + " |"
    yield ""
    yield from (f"- {left['name']}, {left['version']} left out: {left['reason']}." for left in found["left_out"])
    yield from (f"- {name} was not timed: {fault}" for name, fault in found["faults"].items())


def _ratio(compared: Mapping[str, Any] | None) -> str:
    if compared is None:
        return ""
    if compared["verdict"] == "invalid":
        return "invalid: results differ"
    text = f"{compared['ratio']:.2f}x [{compared['low']:.2f}, {compared['high']:.2f}]"
    return f"{text} (noise)" if compared["verdict"] == "noise" else text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=["prepare", "time", "case", "page"], help="`case` is what `time` starts")
    parser.add_argument("what", nargs="*", help="prepare: names of cases; page: the file that `time` printed")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out" / "hip-pairs")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--rounds", type=int, default=16)
    options = parser.parse_args()
    if options.rounds < 14:
        parser.error("--rounds: at least 14")
    if options.step in ("case", "page") and len(options.what) != 1:
        parser.error(f"{options.step} takes one name")
    if options.step == "prepare":
        prepare(options.out, options.what)
    elif options.step == "time":
        found = time_pairs(options.out, options.arch, options.rounds)
        print(json.dumps(found, indent=2))
        sys.exit(1 if found["faults"] else 0)
    elif options.step == "case":
        print(json.dumps(time_case(options.out, options.what[0], options.rounds)))
    else:
        print("\n".join(page(json.loads(Path(options.what[0]).read_text()))))


if __name__ == "__main__":
    main()
