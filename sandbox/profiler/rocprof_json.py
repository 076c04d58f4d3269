"""`*_results.json` of rocprofv3 (rocprofiler-sdk 0.5 and later)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sandbox.errors import InputError
from sandbox.profiler.dispatches import Agent, Dispatch, PcSample, ProfilerData, kernel_name
from sandbox.profiler.rocprof_csv import short_enum

_ROOT = "rocprofiler-sdk-tool"


def load_json(path: Path) -> Any:
    """The document of a plain or gzip-compressed JSON file; raises `InputError` naming the line of a fault."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return json.loads(raw.decode("utf-8", errors="replace"))
    except json.JSONDecodeError as e:
        raise InputError(
            f"it is not complete JSON: {e.msg}.", file=path, line=e.lineno, remedy="Copy it again."
        ) from None
    except (OSError, EOFError, RecursionError, ValueError) as e:
        raise InputError(f"it cannot be read as JSON: {e}.", file=path, remedy="Copy it again.") from None


def read_json(path: Path, document: Any = None) -> ProfilerData:
    """Dispatches, counters, agents and samples; raises `InputError` for JSON of another tool."""
    document = load_json(path) if document is None else document
    runs = document.get(_ROOT) if isinstance(document, dict) else None
    if not isinstance(runs, list):
        raise InputError(
            "it is not a rocprofv3 results file.", file=path, remedy=f"A results file has {_ROOT!r} at its top."
        )
    notes: list[str] = []
    dispatches: list[Dispatch] = []
    agents: list[Agent] = []
    samples: list[PcSample] = []
    for run in runs:
        try:
            dispatches += _dispatches(run)
            agents += _agents(run)
            samples += _samples(run)
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            notes.append(f"{path.name}: one process's record is not of a known form ({type(e).__name__}: {e})")
    return ProfilerData(tuple(dispatches), tuple(agents), tuple(samples), notes=tuple(notes), files=(str(path),))


def is_results(document: Any) -> bool:
    return isinstance(document, dict) and _ROOT in document


def _dispatches(run: Mapping[str, Any]) -> list[Dispatch]:
    symbols = {s["kernel_id"]: s for s in run.get("kernel_symbols", [])}
    counters = _counters(run)
    found: list[Dispatch] = []
    seen: set[int] = set()
    for record in run.get("buffer_records", {}).get("kernel_dispatch", []):
        info = record["dispatch_info"]
        seen.add(info["dispatch_id"])
        found.append(_dispatch(info, record, symbols, counters.get(info["dispatch_id"], {})))
    for record in run.get("callback_records", {}).get("counter_collection", []):
        data = record["dispatch_data"]
        info = data["dispatch_info"]
        if info["dispatch_id"] not in seen:
            seen.add(info["dispatch_id"])
            found.append(_dispatch(info, data, symbols, counters.get(info["dispatch_id"], {})))
    return found


def _dispatch(
    info: Mapping[str, Any], times: Mapping[str, Any], symbols: Mapping[int, Any], counters: Mapping[str, float]
) -> Dispatch:
    symbol = symbols.get(info["kernel_id"], {})
    name = symbol.get("formatted_kernel_name") or symbol.get("kernel_name") or f"kernel {info['kernel_id']}"
    return Dispatch(
        info["dispatch_id"],
        kernel_name(name),
        str(info["agent_id"]["handle"]),
        times.get("start_timestamp"),
        times.get("end_timestamp"),
        _volume(info.get("grid_size")),
        _volume(info.get("workgroup_size")),
        info.get("group_segment_size"),
        info.get("private_segment_size"),
        symbol.get("arch_vgpr_count"),
        symbol.get("accum_vgpr_count"),
        symbol.get("sgpr_count"),
        counters,
    )


def _volume(size: Mapping[str, int] | None) -> int | None:
    return None if size is None else size["x"] * size["y"] * size["z"]


def _counters(run: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """Dispatch id to counter sums; records come one per hardware instance."""
    names = {c["id"]["handle"]: c["name"] for c in run.get("counters", [])}
    totals: dict[int, dict[str, float]] = {}
    for record in run.get("callback_records", {}).get("counter_collection", []):
        held = totals.setdefault(record["dispatch_data"]["dispatch_info"]["dispatch_id"], {})
        for value in record.get("records", []):
            name = names.get(value["counter_id"]["handle"])
            if name is not None:
                held[name] = held.get(name, 0.0) + float(value["value"])
    return totals


def _agents(run: Mapping[str, Any]) -> Iterator[Agent]:
    for agent in run.get("agents", []):
        # 2 is HSA's GPU; the field has been a number and a word
        if agent.get("type") in (2, "GPU", "AGENT_TYPE_GPU") and agent.get("cu_count"):
            simds = agent.get("simd_count")
            yield Agent(
                str(agent["id"]["handle"]),
                agent.get("name"),
                agent.get("product_name"),
                agent.get("num_xcc"),
                agent["cu_count"],
                agent.get("simd_per_cu") or (simds // agent["cu_count"] if simds else None),
                agent.get("max_engine_clk_fcompute"),
            )


def _samples(run: Mapping[str, Any]) -> Iterator[PcSample]:
    strings = run.get("strings", {})
    instructions, comments = strings.get("pc_sample_instructions", []), strings.get("pc_sample_comments", [])
    records = run.get("buffer_records", {})
    for kind in ("pc_sample_host_trap", "pc_sample_stochastic"):
        for entry in records.get(kind, []):
            record, index = entry["record"], entry.get("inst_index", -1)
            known = 0 <= index < len(instructions)
            issued = bool(record["wave_issued"]) if "wave_issued" in record else None
            reason = record.get("snapshot", {}).get("stall_reason")
            yield PcSample(
                record["dispatch_id"],
                instructions[index] if known else "",
                comments[index] if known and index < len(comments) else "",
                issued,
                short_enum(record["inst_type"]) if "inst_type" in record else None,
                None if issued or reason is None else short_enum(reason),
                record.get("hw_id", {}).get("chiplet"),
            )
