"""rocpd databases (`*_results.db`, the default output of rocprofv3 since ROCm 7.0).

Only the documented views are read: base tables carry a per-run suffix and change between schema versions 3.0 and 4.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox.errors import InputError
from sandbox.profiler.dispatches import Agent, Dispatch, ProfilerData, kernel_name

_DISPATCH_COLUMNS = (
    *("dispatch_id", "name", "agent_abs_index", "start", "end", "lds_size", "scratch_size"),
    *("grid_x", "grid_y", "grid_z", "workgroup_x", "workgroup_y", "workgroup_z"),
    *("vgpr_count", "accum_vgpr_count", "sgpr_count"),
)


def read_rocpd(path: Path) -> ProfilerData:
    """Dispatches, counter sums and agents; raises `InputError` when the file is no rocpd database."""
    uri = f"file:{path.resolve().as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro&immutable=1"
    try:
        with sqlite3.connect(uri, uri=True) as db:
            views = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')")}
            if "kernels" not in views:
                raise InputError(
                    "it has no `kernels` view, so it is not a rocpd database.",
                    file=path,
                    remedy="Give the .db file rocprofv3 wrote, or convert it with `rocpd convert`.",
                )
            agents = tuple(_agents(db)) if "rocpd_info_agent" in views else ()
            counters = _counters(db) if "counters_collection" in views else {}
            dispatches = tuple(_dispatches(db, counters))
    except sqlite3.DatabaseError as e:
        raise InputError(f"SQLite cannot read it: {e}.", file=path, remedy="Copy the database again.") from None
    finally:
        # `with connect()` ends the transaction, not the connection
        if "db" in locals():
            db.close()
    notes = () if dispatches else (f"{path.name}: the database holds no kernel dispatch",)
    return ProfilerData(dispatches, agents, notes=notes, files=(str(path),))


def _columns(db: sqlite3.Connection, view: str) -> set[str]:
    return {row[1] for row in db.execute(f'PRAGMA table_info("{view}")')}


def _dispatches(db: sqlite3.Connection, counters: dict[tuple[int, str], dict[str, float]]) -> Iterator[Dispatch]:
    present = _columns(db, "kernels")
    chosen = ", ".join(f'"{c}"' if c in present else f'NULL AS "{c}"' for c in _DISPATCH_COLUMNS)
    only_gpu = " WHERE agent_type = 'GPU'" if "agent_type" in present else ""
    for row in db.execute(f"SELECT {chosen} FROM kernels{only_gpu}"):
        held: dict[str, Any] = dict(zip(_DISPATCH_COLUMNS, row, strict=True))
        name = kernel_name(held["name"] or "")
        yield Dispatch(
            held["dispatch_id"],
            name,
            None if held["agent_abs_index"] is None else f"Agent {held['agent_abs_index']}",
            held["start"],
            held["end"],
            _volume(held, "grid"),
            _volume(held, "workgroup"),
            held["lds_size"],
            held["scratch_size"],
            held["vgpr_count"],
            held["accum_vgpr_count"],
            held["sgpr_count"],
            counters.get((held["dispatch_id"], name), {}),
        )


def _volume(row: dict[str, Any], name: str) -> int | None:
    x, y, z = (row[f"{name}_{axis}"] for axis in "xyz")
    return None if x is None or y is None or z is None else int(x * y * z)


def _counters(db: sqlite3.Connection) -> dict[tuple[int, str], dict[str, float]]:
    """The view already sums over instances; a counter collected in several passes counts once (the last)."""
    totals: dict[tuple[int, str], dict[str, float]] = {}
    query = "SELECT dispatch_id, kernel_name, counter_name, value FROM counters_collection WHERE value IS NOT NULL"
    for dispatch_id, kernel, counter, value in db.execute(query):
        totals.setdefault((dispatch_id, kernel_name(kernel)), {})[counter] = float(value)
    return totals


def _agents(db: sqlite3.Connection) -> Iterator[Agent]:
    present = _columns(db, "rocpd_info_agent")
    wanted = ("absolute_index", "name", "product_name", "extdata", "type")
    chosen = ", ".join(c if c in present else f"NULL AS {c}" for c in wanted)
    for index, name, product, extdata, kind in db.execute(f"SELECT {chosen} FROM rocpd_info_agent"):
        try:
            extra = json.loads(extdata or "{}")
        except ValueError:
            extra = {}
        if kind not in (None, "GPU") or not (name or "").startswith("gfx"):
            continue
        yield Agent(
            f"Agent {index}", name, product, extra.get("num_xcc"), extra.get("cu_count"), extra.get("simd_per_cu"),
            extra.get("max_engine_clk_fcompute"),
        )  # fmt: skip
