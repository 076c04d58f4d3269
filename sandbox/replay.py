"""Repeat a workload's entry calls with the functions of a file in a fresh confined child: `replay`.

The child never holds the recorded outputs, so a candidate cannot copy them; comparing is the caller's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from sandbox.assembly import Assembly
from sandbox.capture import choose_executor, run_child, second_chance
from sandbox.isolation import Ended, Limits
from sandbox.kernel import Kernel
from sandbox.target import Target
from sandbox.tensor_file import TensorFile, sealed
from sandbox.workload import (
    EntryCall,
    Execution,
    Launch,
    StorageRecord,
    StoredWorkload,
    TensorRecord,
    Value,
    Workload,
    launch_place,
)

_VALUE: TypeAdapter[Any] = TypeAdapter(Value)
_LAUNCH: TypeAdapter[Any] = TypeAdapter(Launch)
_ENTRY: TypeAdapter[Any] = TypeAdapter(EntryCall)
_STORAGE: TypeAdapter[Any] = TypeAdapter(StorageRecord)


@dataclass(frozen=True, slots=True)
class InputVariant:
    """Which inputs a replay gets.

    `distribution`: `recorded`, or one of `sandbox.child_random.DISTRIBUTIONS` for every floating-point tensor, drawn
    from `seed`; integers stay as recorded. `cast` recomputes in another float type (`float32`, `float64`): inputs and
    dtype arguments are widened. `poison` names argument tensors (`args.2`, `kwargs.out`) to fill with NaN: buffers that
    are only written. `keep` names ones that stay as recorded.
    """

    distribution: str = "recorded"
    seed: int = 0
    cast: str | None = None
    poison: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What one repeated call did.

    `returned`; `raised` (the file's code raised); `missing` (the file has no such function); `skipped` (an input was
    not kept). `known` is False when a launch below it could not be executed: then values say nothing.
    """

    index: int
    status: Literal["returned", "raised", "missing", "skipped"]
    outputs: Value | None = None
    mutated: Mapping[str, TensorRecord] = field(default_factory=dict)
    """Argument tensors after the call: those the baseline's call changed, and those this one changed."""
    changed: tuple[str, ...] = ()
    """Which of them this call changed."""
    input_grads: Mapping[str, TensorRecord] = field(default_factory=dict)
    inputs: Mapping[str, TensorRecord] = field(default_factory=dict)
    """Argument tensors before the call, where they were asked for."""
    error: str | None = None
    line: int | None = None
    known: bool = False
    launches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """One replay: results in entry order, the launches it made with their compile results, and the bytes."""

    results: tuple[EntryResult, ...]
    launches: tuple[Launch, ...]
    storages: tuple[StorageRecord, ...]
    tensors: TensorFile
    compiled: Mapping[str, Mapping[str, bytes]]
    ended: Ended
    failure: str | None = None
    """Why the child did not come to its end; None when it did."""
    phase: str = "start"
    """How far it came: `start`, `import`, `run`."""
    import_error: str | None = None
    import_error_line: int | None = None
    notes: tuple[str, ...] = ()

    def result(self, index: int) -> EntryResult | None:
        return next((r for r in self.results if r.index == index), None)


def replay(
    stored: StoredWorkload,
    kernel: Kernel,
    target: Target,
    *,
    executor: str = "auto",
    inputs: InputVariant | None = None,
    compile: bool = True,
    entries: Sequence[int] | None = None,
    limits: Limits | None = None,
    want_inputs: bool = False,
    also: Sequence[Target] = (),
) -> Replay:
    """Run the entry calls (all, or those numbered in `entries`) with the functions of `kernel` on `target`.

    Raises `SandboxError` when the child could not run at all; whatever the file's code does is in the result.
    """
    limits = limits or Limits()
    inputs = inputs or InputVariant()
    workload = stored.workload
    wanted = [e for e in workload.entries if entries is None or e.index in entries]
    needed = sorted({s for e in wanted for s in _input_storages(e)})
    by_id = {s.id: s for s in workload.storages}
    options = {
        "entries": [_entry_job(workload, e, inputs) for e in wanted],
        "storages": [_STORAGE.dump_python(by_id[n], mode="json") for n in needed if n in by_id],
        "skip": list(workload.skip_statements),
        "environment": dict(workload.environment),
        "want_inputs": want_inputs,
        "inputs": {"distribution": inputs.distribution, "seed": inputs.seed, "cast": inputs.cast},
    }
    job = {
        "mode": "replay",
        "kernel": kernel.filename,
        "harness": None,
        "targets": [t.board.name for t in (target, *also)],
        "executor": choose_executor(executor),
        "second_chance": second_chance(executor, target),
        "compile": compile,
        "options": options,
    }
    keys = [k for n in needed if n in by_id for k in (by_id[n].key, by_id[n].page_key) if k is not None]
    assembly, ended, failure = run_child(job, kernel, None, limits, tensors=sealed(stored.tensors, keys))
    return _assembled(assembly, ended, failure)


def _entry_job(workload: Workload, entry: EntryCall, inputs: InputVariant) -> dict[str, Any]:
    bare = replace(entry, outputs=None, mutated={})
    data: dict[str, Any] = _ENTRY.dump_python(bare, mode="json")
    tensors = dict(_argument_records(entry))
    by_id = {s.id: s for s in workload.storages}
    kept = {tensors[p].storage for p in inputs.keep if p in tensors}
    for path in entry.mutated:
        if path in tensors and _is_zero(by_id.get(tensors[path].storage)):
            kept.add(tensors[path].storage)
    data["watch"] = sorted(entry.mutated)
    data["kept"] = sorted(kept)
    data["poisoned"] = sorted({tensors[p].storage for p in inputs.poison if p in tensors})
    if entry.kind == "kernel":
        data["launch"] = _LAUNCH.dump_python(workload.launches[entry.launches[0]], mode="json")
        data["launch"]["place"] = launch_place(workload, entry)
    return data


def _is_zero(storage: StorageRecord | None) -> bool:
    return storage is not None and storage.zero


def _input_storages(entry: EntryCall) -> set[int]:
    values = [*entry.args, *entry.kwargs.values(), *entry.grads, *([entry.receiver] if entry.receiver else [])]
    found = {t.storage for v in values for t in v.tensors()}
    return found | ({entry.rng_state} if entry.rng_state is not None else set())


def _argument_records(entry: EntryCall) -> list[tuple[str, TensorRecord]]:
    found: list[tuple[str, TensorRecord]] = []

    def below(path: str, value: Value) -> None:
        if value.tensor is not None:
            found.append((path, value.tensor))
        names = value.keys if value.kind == "dict" and value.keys else range(len(value.items))
        for name, item in zip(names, value.items, strict=False):
            below(f"{path}.{name}", item)

    for i, value in enumerate(entry.args):
        below(f"args.{i}", value)
    for name, value in entry.kwargs.items():
        below(f"kwargs.{name}", value)
    return found


def _assembled(assembly: Assembly, ended: Ended, failure: str | None) -> Replay:
    launches = assembly.replayed_launches()
    results = []
    for data in assembly.results:
        own = tuple(launch.index for launch in launches if launch.entry == data["index"])
        results.append(_RESULT.validate_python({**data, "launches": own}))
    imported = assembly.extra.get("import-error", {})
    return Replay(
        results=tuple(results),
        launches=launches,
        storages=tuple(assembly.storages),
        tensors=assembly.tensors(),
        compiled=assembly.blobs,
        ended=ended,
        failure=failure,
        phase=assembly.phase,
        import_error=imported.get("error"),
        import_error_line=imported.get("line"),
        notes=tuple(dict.fromkeys(assembly.notes)),
    )


_RESULT: TypeAdapter[Any] = TypeAdapter(EntryResult)

__all__ = ["EntryResult", "Execution", "InputVariant", "Replay", "replay"]
