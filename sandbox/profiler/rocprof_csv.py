"""CSV files of rocprofv3 (ROCm 6.2 to current), `rocpd convert` and rocprof-compute.

Columns are found by name without regard to case, order or unknown neighbours; `_ALIASES` holds the names in use.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sandbox.errors import InputError
from sandbox.profiler.dispatches import Agent, Dispatch, KernelTime, PcSample, ProfilerData, kernel_name

# our name -> the header names in use, in lower case
_ALIASES: dict[str, tuple[str, ...]] = {
    "dispatch_id": ("dispatch_id",),
    "kernel": ("kernel_name",),
    "agent_id": ("agent_id", "gpu_id"),
    "start_ns": ("start_timestamp",),
    "end_ns": ("end_timestamp",),
    "grid_size": ("grid_size",),
    "workgroup_size": ("workgroup_size",),
    "lds_bytes": ("lds_block_size", "lds_per_workgroup", "group_segment_size"),
    "scratch_bytes_per_item": ("scratch_size", "scratch_per_workitem", "private_segment_size"),
    "vgpr_count": ("vgpr_count", "arch_vgpr"),
    "accum_vgpr_count": ("accum_vgpr_count", "accum_vgpr"),
    "sgpr_count": ("sgpr_count", "sgpr"),
}
_INTEGERS = tuple(n for n in _ALIASES if n not in ("kernel", "agent_id"))
_NOT_COUNTERS = frozenset(
    {
        *(
            "queue_id",
            "stream_id",
            "thread_id",
            "process_id",
            "pid",
            "tid",
            "kernel_id",
            "correlation_id",
            "guid",
            "kind",
        ),
        *("wave_size", "xcc_index", "duration", "graph_exec_id", "graph_node_id", "counter_name", "counter_value"),
        *("replay_pass", "obj", "sig"),
        *(f"{d}_size_{a}" for d in ("grid", "workgroup") for a in "xyz"),
        *(a for names in _ALIASES.values() for a in names),
    }
)
_CHANNEL = re.compile(r"^(?P<name>[A-Za-z0-9_]+)\[\d+\]$")
_DUPLICATE = re.compile(r"_\d+$")
_MAX_FIELD = 1 << 24

Row = Mapping[str, str]


def open_text(path: Path) -> io.TextIOBase:
    """A text stream of a plain or gzip-compressed file, undecodable bytes replaced."""
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8", errors="replace", newline="")
    return path.open(encoding="utf-8", errors="replace", newline="")


def read_csv(path: Path) -> ProfilerData:
    """Whatever kind of profiler CSV the header shows it to be; raises `InputError` for one of no known kind."""
    csv.field_size_limit(_MAX_FIELD)
    try:
        with open_text(path) as stream:
            lines = (line.replace("\0", "") for line in stream)
            reader = csv.reader(lines)
            header = [h.strip() for h in next(reader, [])]
            kind = _reader_of({h.lower() for h in header})
            if kind is None:
                raise InputError(
                    f"the header {','.join(header)[:80]!r} is of no known profiler table.",
                    file=path,
                    line=1,
                    remedy="Give the CSV files of rocprofv3, rocpd convert or rocprof-compute unchanged.",
                )
            notes: list[str] = []
            data = kind(_rows(header, reader, path, notes), header, path)
    except (csv.Error, EOFError, gzip.BadGzipFile, OSError) as e:
        raise InputError(f"it cannot be read as CSV: {e}.", file=path, remedy="Copy the file again.") from None
    return ProfilerData(
        data.dispatches, data.agents, data.samples, data.kernel_times, (*notes, *data.notes), (str(path),)
    )


def _rows(header: list[str], reader: Iterator[list[str]], path: Path, notes: list[str]) -> Iterator[Row]:
    """Rows as mappings with lower-case keys. Elided and cut-off rows are left out and noted."""
    keys = [h.lower() for h in header]
    bad = 0
    for cells in reader:
        if not cells or cells[0].strip() in ("...", ""):
            bad += bool(cells) and cells[0].strip() != "..." and len(cells) > 1
            continue
        if len(cells) != len(keys):
            bad += 1
            continue
        yield dict(zip(keys, cells, strict=True))
    if bad:
        notes.append(f"{path.name}: {bad} rows without the header's {len(keys)} fields were left out")


_Reader = Callable[[Iterator[Row], list[str], Path], ProfilerData]


def _reader_of(columns: set[str]) -> _Reader | None:
    if {"instruction", "instruction_comment"} <= columns:
        return _samples
    if {"counter_name", "counter_value", "kernel_name"} <= columns:
        return _long_counters
    if "kernel_name" in columns and ("dispatch_id" in columns or "start_timestamp" in columns):
        return _dispatches
    if {"agent_type", "cu_count"} <= columns:
        return _agents
    if {"gpu_arch", "num_xcd"} <= columns:
        return _sysinfo
    if {"name", "calls", "totaldurationns"} <= columns:
        return _statistics
    if "function" in columns and "start_timestamp" in columns:
        return _api_calls
    if "operation" in columns or "direction" in columns:
        return _nothing_of_kernels
    return None


def integer(text: str | None) -> int | None:
    """A whole number, also from `12.0`; None for text, NaN, infinities and what a spreadsheet shortened (`8.1E+14`)."""
    if text is None or not (text := text.strip()):
        return None
    try:
        return int(text)
    except ValueError:
        value = number(text)
        mangled = "e" in text.lower() and value is not None and abs(value) >= 1e6
        return None if value is None or mangled or value != int(value) else int(value)


def number(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _product(row: Row, base: str) -> int | None:
    parts = [integer(row.get(f"{base}_{axis}")) for axis in "xyz"]
    return None if any(p is None for p in parts) else math.prod(p for p in parts if p is not None)


def _dispatch(row: Row, ordinal: int, counters: Mapping[str, float]) -> Dispatch:
    found: dict[str, str | None] = {
        name: next((row[a] for a in aliases if a in row), None) for name, aliases in _ALIASES.items()
    }
    values = {name: integer(found[name]) for name in _INTEGERS}
    if values["grid_size"] is None:
        values["grid_size"] = _product(row, "grid_size")
    if values["workgroup_size"] is None:
        values["workgroup_size"] = _product(row, "workgroup_size")
    dispatch_id = values.pop("dispatch_id")
    agent = (found["agent_id"] or "").strip() or None
    return Dispatch(
        ordinal if dispatch_id is None else dispatch_id,
        kernel_name(found["kernel"] or ""),
        agent,
        values["start_ns"],
        values["end_ns"],
        values["grid_size"],
        values["workgroup_size"],
        values["lds_bytes"],
        values["scratch_bytes_per_item"],
        values["vgpr_count"],
        values["accum_vgpr_count"],
        values["sgpr_count"],
        counters,
    )


def _long_counters(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    """One row per dispatch and counter; instances of one counter are summed."""
    first: dict[tuple[str, str], Row] = {}
    counters: dict[tuple[str, str], dict[str, float]] = {}
    skipped = 0
    for n, row in enumerate(rows):
        key = (row.get("dispatch_id") or str(n), row["kernel_name"])
        value = number(row["counter_value"])
        name = row["counter_name"].strip()
        first.setdefault(key, row)
        held = counters.setdefault(key, {})
        if value is None or not name:
            skipped += 1
            continue
        held[name] = held.get(name, 0.0) + value
    notes = (f"{path.name}: {skipped} counter values are not numbers and were left out",) if skipped else ()
    found = tuple(_dispatch(row, n, counters[key]) for n, (key, row) in enumerate(first.items()))
    return ProfilerData(found, notes=notes)


def _dispatches(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    """A kernel trace, or a wide table with one column per counter (per channel: summed into `NAME_sum`)."""
    columns: dict[str, str] = {}
    for name in header:
        lower = name.lower()
        channel = _CHANNEL.match(name)
        if channel:
            columns[lower] = f"{channel['name']}_sum"
        elif lower not in _NOT_COUNTERS and _DUPLICATE.sub("", lower) not in _NOT_COUNTERS:
            columns[lower] = name
    has_sum = {c for lower, c in columns.items() if lower == c.lower()}
    found = []
    for n, row in enumerate(rows):
        counters: dict[str, float] = {}
        for lower, name in columns.items():
            if lower != name.lower() and name in has_sum:
                continue
            value = number(row[lower])
            if value is not None:
                counters[name] = counters.get(name, 0.0) + value
        found.append(_dispatch(row, n, counters))
    return ProfilerData(tuple(found))


def _agents(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    agents = []
    for row in rows:
        if row["agent_type"].strip().upper() != "GPU":
            continue
        agents.append(
            Agent(
                f"Agent {row.get('logical_node_id') or row.get('node_id') or '?'}",
                arch=(row.get("name") or "").split(":")[0] or None,
                product=row.get("product_name") or None,
                xcc_count=integer(row.get("num_xcc")),
                cu_count=integer(row["cu_count"]),
                simds_per_cu=integer(row.get("simd_per_cu")),
                max_clock_mhz=integer(row.get("max_engine_clk_fcompute")),
            )
        )
    return ProfilerData(agents=tuple(agents))


def _sysinfo(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    """rocprof-compute's description of the machine. A zero clock means it was not read, so it stays unknown."""
    agents = [
        Agent(
            row.get("gpu_id") or "sysinfo",
            arch=row["gpu_arch"],
            product=row.get("gpu_model"),
            xcc_count=integer(row["num_xcd"]),
            cu_count=integer(row.get("cu_per_gpu")),
            simds_per_cu=integer(row.get("simd_per_cu")),
            max_clock_mhz=integer(row.get("max_sclk")) or None,
        )
        for row in rows
    ]
    return ProfilerData(agents=tuple(agents[:1]))


def _statistics(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    stem = path.name.split(".")[0]
    domain = "kernel" if "kernel" in stem else "api" if "api" in stem else "domain" if "domain" in stem else "unknown"
    times = []
    for row in rows:
        calls, total = integer(row["calls"]), number(row["totaldurationns"])
        if calls is not None and total is not None:
            times.append(KernelTime(kernel_name(row["name"]), calls, total, domain))
    return ProfilerData(kernel_times=tuple(times))


def _api_calls(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    totals: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        start, end = integer(row["start_timestamp"]), integer(row.get("end_timestamp"))
        if start is not None and end is not None and end >= start:
            totals.setdefault((row.get("domain", "api"), row["function"]), []).append(end - start)
    times = tuple(KernelTime(name, len(spans), sum(spans), domain) for (domain, name), spans in totals.items())
    return ProfilerData(kernel_times=times)


def _nothing_of_kernels(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    count = sum(1 for _ in rows)
    return ProfilerData(notes=(f"{path.name}: {count} rows about memory, which hold no kernel",))


_PREFIX = re.compile(r"^ROCPROFILER_PC_SAMPLING_(INSTRUCTION_TYPE|INSTRUCTION_NOT_ISSUED_REASON)_")


def short_enum(text: str) -> str:
    """`WAITCNT` from the profiler's long spelling of an instruction type or stall reason."""
    return _PREFIX.sub("", text.strip())


def _samples(rows: Iterator[Row], header: list[str], path: Path) -> ProfilerData:
    """Host-trap or stochastic samples. For a wave that issued, the stall column says `OTHER_WAIT` and means nothing."""
    samples = []
    for row in rows:
        flag = integer(row.get("wave_issued_instruction"))
        issued = None if flag is None else flag != 0
        reason = short_enum(row.get("stall_reason", "")) or None
        samples.append(
            PcSample(
                integer(row.get("dispatch_id")) or 0,
                row["instruction"].strip(),
                row["instruction_comment"].strip(),
                issued,
                short_enum(row.get("instruction_type", "")) or None,
                None if issued else reason,
            )
        )
    return ProfilerData(samples=tuple(samples))
