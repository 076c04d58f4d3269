"""Parent side: a child's messages become a workload. Nothing the child says is believed beyond its own record."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from sandbox.tensor_file import DTYPE_BYTES, DTYPE_NAMES, TensorFile, subset
from sandbox.workload import (
    CompileRecord,
    EntryCall,
    EntryKind,
    Execution,
    HarnessCheck,
    HarnessOutcome,
    Launch,
    StorageRecord,
    StoredWorkload,
    TensorRecord,
    Value,
    Workload,
)

_HARNESS_NAME = re.compile(
    r"^_?(tests?|bench(mark)?|check|verify|validate|main|perf|profile|demo|example)(_|\d|$)", re.I
)
_VALUE: TypeAdapter[Value] = TypeAdapter(Value)
_TENSOR: TypeAdapter[TensorRecord] = TypeAdapter(TensorRecord)
_LAUNCH: TypeAdapter[Launch] = TypeAdapter(Launch)
_COMPILE: TypeAdapter[CompileRecord] = TypeAdapter(CompileRecord)
_CHECK: TypeAdapter[HarnessCheck] = TypeAdapter(HarnessCheck)
_STORAGE: TypeAdapter[StorageRecord] = TypeAdapter(StorageRecord)
_EXECUTION: TypeAdapter[Execution] = TypeAdapter(Execution)
_OUTCOME: TypeAdapter[HarnessOutcome] = TypeAdapter(HarnessOutcome)
_KIND: TypeAdapter[EntryKind] = TypeAdapter(EntryKind)


@dataclass(slots=True)
class CallDraft:
    """A host call as the child reported it; whether it becomes an entry is decided here."""

    number: int
    start: dict[str, Any]
    end: dict[str, Any] | None = None
    grads: dict[int, Any] = field(default_factory=dict)
    launches: list[int] = field(default_factory=list)

    @property
    def qualname(self) -> str:
        return str(self.start["qualname"])

    @property
    def is_harness(self) -> bool:
        return bool(_HARNESS_NAME.match(self.qualname.rpartition(".")[2]))

    @property
    def has_effect(self) -> bool:
        if self.end is None:
            return False
        return bool(self.end["mutated"]) or bool(_VALUE.validate_python(self.end["outputs"]).tensors())

    @property
    def rank(self) -> int | None:
        """0: takes and gives tensors; 1: makes its own inputs; 2: a test function; None: cannot be an entry."""
        if not self.has_effect or not self.start["replayable"] or "<" in self.qualname:
            return None
        if self.is_harness:
            return 2
        return 0 if self.start["tensors"] else 1


@dataclass(slots=True)
class Assembly:
    """Collects messages; `on_frame` is the reader's callback."""

    storages: list[StorageRecord] = field(default_factory=list)
    data: dict[str, memoryview] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    launches: dict[int, dict[str, Any]] = field(default_factory=dict)
    compiles: dict[int, list[CompileRecord]] = field(default_factory=dict)
    executed: dict[int, dict[str, Any]] = field(default_factory=dict)
    blobs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    calls: dict[int, CallDraft] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    outcome: dict[str, Any] | None = None
    results: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, dict[str, Any]] = field(default_factory=dict)
    trial: list[tuple[str, dict[str, Any], bytes]] = field(default_factory=list)
    """Messages of a trial, for `sandbox.trials`."""
    complete: bool = False
    phase: str = "start"
    main_file: str | None = None
    """The file whose functions can be entries; None: any."""

    def on_frame(self, kind: str, data: dict[str, Any], blob: bytes) -> None:
        match kind:
            case "hello":
                self.versions = {str(k): str(v) for k, v in data.items()}
            case "pages":
                self._keep(str(data["key"]), "I64", blob)
            case "storage":
                self._storage(data, blob)
            case "launch":
                self._launch(data)
            case "compile":
                record = dict(data)
                self.compiles.setdefault(int(record.pop("index")), []).append(_COMPILE.validate_python(record))
            case "blob":
                self.blobs.setdefault(str(data["blob"]), {})[str(data["name"])] = blob
            case "drop":
                self._drop(int(data["from"]))
            case "executed":
                self.executed[int(data["index"])] = data
            case "entry":
                self.calls[int(data["call"])] = CallDraft(int(data["call"]), data)
            case "entry-end":
                self.calls[int(data["call"])].end = data
            case "grad":
                self.calls[int(data["call"])].grads[int(data["output"])] = data["value"]
            case "check":
                self.checks.append(data)
            case "note":
                self.notes.append(str(data["text"])[:2000])
            case "phase":
                self.phase = str(data["name"])[:100]
            case "outcome":
                self.outcome = data
            case "result":
                self.results.append(data)
            case "end":
                self.complete = True
            case _ if kind.startswith("trial"):
                self.trial.append((kind, data, blob))
            case _:
                self.extra[kind] = data

    def _keep(self, key: str, dtype: str, blob: bytes) -> None:
        self.data[key] = memoryview(blob)
        self.dtypes[key] = dtype if len(blob) % DTYPE_BYTES[dtype] == 0 else "U8"

    def _storage(self, data: Mapping[str, Any], blob: bytes) -> None:
        record = _STORAGE.validate_python(data)
        if record.id != len(self.storages):
            raise ValueError("storages out of order")
        self.storages.append(record)
        if record.key in self.data and not blob:
            return  # contents that are kept already
        if record.key is not None:
            if record.page_key is None and len(blob) != record.nbytes:
                raise ValueError("storage of another size")
            self._keep(record.key, DTYPE_NAMES.get(record.dtype, "U8") if record.page_key is None else "U8", blob)

    def _launch(self, data: dict[str, Any]) -> None:
        index = int(data["index"])
        if index != len(self.launches):
            raise ValueError("launches out of order")
        self.launches[index] = data
        for candidate in data["calls"]:
            call = self.calls.get(int(candidate["call"]))
            if call is not None:
                call.launches.append(index)

    def _drop(self, first: int) -> None:
        """Forget the launches from `first` on: an attempt of the static mode that came to nothing."""
        for index in [i for i in self.launches if i >= first]:
            for kept in (self.launches, self.compiles, self.executed):
                kept.pop(index, None)
        for call in self.calls.values():
            call.launches = [i for i in call.launches if i < first]

    def only_file(self, file: str) -> Assembly:
        """The part of a program's recording that belongs to one kernel file, launches renumbered from 0."""
        part = replace(self, main_file=file)
        part._choose([index for index, data in self.launches.items() if data["file"] == file])
        return part

    def keep_own(self, file: str) -> tuple[str, ...]:
        """Leave out launches of other files' kernels that no function of `file` made: it can neither repeat nor change
        them. Returns what was left out, a sentence for each kernel."""
        self.main_file = file
        others: dict[tuple[str, str], int] = {}
        foreign: set[int] = set()
        for index, data in self.launches.items():
            if data["file"] != file and self._best(data["calls"]) is None:
                others[data["kernel"], data["file"]] = others.get((data["kernel"], data["file"]), 0) + 1
                foreign.add(index)
        self._choose([index for index in self.launches if index not in foreign])
        return tuple(
            f"left out: {count} launch{'es' if count > 1 else ''} of {kernel} in {place}, which nothing in {file} made"
            for (kernel, place), count in others.items()
        )

    def _choose(self, wanted: Sequence[int]) -> None:
        """Keep these launches only, renumbered from 0."""
        numbers = {old: new for new, old in enumerate(wanted)}
        self.launches = {numbers[i]: {**self.launches[i], "index": numbers[i]} for i in wanted}
        self.compiles = {numbers[i]: c for i, c in self.compiles.items() if i in numbers}
        self.executed = {numbers[i]: e for i, e in self.executed.items() if i in numbers}

    # --- results ----------------------------------------------------------------------------------------------------

    def tensors(self) -> TensorFile:
        return TensorFile(self.data, self.dtypes)

    def finish(self) -> tuple[tuple[Launch, ...], tuple[EntryCall, ...], dict[int, int]]:
        """Launches and entries, and which entry each call became."""
        chosen: dict[int, int] = {}
        order: list[int] = []
        for index, data in self.launches.items():
            best = self._best(data["calls"])
            if best is None:
                continue
            chosen[index] = best
            if best not in order:
                order.append(best)
        numbers = {call: i for i, call in enumerate(order)}
        launches = [self._finished(i, numbers.get(chosen.get(i, -1))) for i in self.launches]
        entries = [self._entry(numbers[c], self.calls[c], [i for i in chosen if chosen[i] == c]) for c in order]
        for position, launch in enumerate(launches):
            if launch.entry is None:
                entries.append(_kernel_entry(len(entries), launch))
                launches[position] = replace(launch, entry=len(entries) - 1)
        return tuple(launches), tuple(entries), numbers

    def replayed_launches(self) -> tuple[Launch, ...]:
        """The launches of a replay, which know their entry themselves."""
        return tuple(self._finished(index, None) for index in self.launches)

    def _best(self, candidates: Iterable[Mapping[str, Any]]) -> int | None:
        """The outermost call of the best rank."""
        ranked: list[tuple[int, int, int]] = []
        for candidate in candidates:
            call = self.calls.get(int(candidate["call"]))
            if call is not None and call.rank is not None and self.main_file in (None, call.start["file"]):
                ranked.append((call.rank, len(ranked), call.number))
        return min(ranked)[2] if ranked else None

    def _finished(self, index: int, entry: int | None) -> Launch:
        data = dict(self.launches[index])
        calls = data.pop("calls")
        data.pop("module_line", None)
        best = self._best(calls)
        phase = next((c["phase"] for c in calls if int(c["call"]) == best), data["phase"])
        ran = self.executed.get(index)
        launch = _LAUNCH.validate_python({**data, "phase": phase})
        number = entry if entry is not None else launch.entry
        launch = replace(launch, entry=number, compiles=tuple(self.compiles.get(index, ())))
        if ran is None:
            return launch
        args = []
        for argument in launch.args:
            after = ran["after"].get(argument.name)
            record = _TENSOR.validate_python(after) if after is not None else None
            args.append(replace(argument, written=ran["written"].get(argument.name), after=record))
        return replace(launch, args=tuple(args), execution=_EXECUTION.validate_python(ran["execution"]))

    def _entry(self, index: int, call: CallDraft, launches: list[int]) -> EntryCall:
        start, end = call.start, call.end or {"outputs": {"kind": "none"}, "mutated": {}, "known": False}
        outputs = _VALUE.validate_python(end["outputs"])
        grads: tuple[Value, ...] = ()
        if call.grads:
            none = Value("none")
            count = len(outputs.tensors())
            grads = tuple(_VALUE.validate_python(call.grads[i]) if i in call.grads else none for i in range(count))
        kind = start["kind"] if start["tensors"] or start["kind"] != "function" else "program"
        return EntryCall(
            index=index,
            kind=_KIND.validate_python(kind),
            qualname=call.qualname,
            args=tuple(_VALUE.validate_python(a) for a in start["args"]),
            kwargs={k: _VALUE.validate_python(v) for k, v in start["kwargs"].items()},
            parameters=tuple(map(str, start["parameters"])),
            receiver=_VALUE.validate_python(start["receiver"]) if start["receiver"] is not None else None,
            outputs=outputs,
            mutated={k: _TENSOR.validate_python(v) for k, v in end["mutated"].items()},
            grads=grads,
            rng_state=start["rng_state"],
            launches=tuple(launches),
            known=bool(end["known"]) and all(self._ran(i) for i in launches),
            exact=bool(start["exact"]),
        )

    def _ran(self, index: int) -> bool:
        return index in self.executed and self.executed[index]["execution"]["status"] == "executed"

    def finished_checks(self, numbers: Mapping[int, int]) -> tuple[HarnessCheck, ...]:
        found = []
        for data in self.checks:
            check = _CHECK.validate_python({**data, "entry": None})
            call = data["entry"]
            found.append(replace(check, entry=numbers.get(int(call)) if call is not None else None))
        return tuple(found)

    def harness_outcome(self, numbers: Mapping[int, int], failure: str | None) -> HarnessOutcome:
        checks = self.finished_checks(numbers)
        if self.outcome is None:
            return HarnessOutcome(
                "main", "unknown", exception=failure or "the run did not come to its end", checks=checks
            )
        return replace(_OUTCOME.validate_python(self.outcome), checks=checks)


def _kernel_entry(index: int, launch: Launch) -> EntryCall:
    """A launch that no host function of the file can stand for, as its own entry."""
    return EntryCall(
        index=index,
        kind="kernel",
        qualname=launch.kernel,
        args=(),
        kwargs={a.name: a.value for a in launch.args},
        outputs=Value("none"),
        mutated={f"kwargs.{a.name}": a.after for a in launch.args if a.after is not None},
        launches=(launch.index,),
        known=launch.execution.status == "executed",
    )


def stored_with(workload: Workload, assembly: Assembly) -> StoredWorkload:
    """The workload with its bytes, without the contents that only calls needed which became no entry."""
    needed: set[int] = set()
    for launch in workload.launches:
        needed |= {t.storage for a in launch.args for t in (*a.value.tensors(), *([a.after] if a.after else []))}
    for entry in workload.entries:
        parts = [*entry.args, *entry.kwargs.values(), *entry.grads]
        parts += [v for v in (entry.receiver, entry.outputs) if v is not None]
        needed |= {t.storage for v in parts for t in v.tensors()} | {t.storage for t in entry.mutated.values()}
        needed |= {entry.rng_state} if entry.rng_state is not None else set()
    needed |= {c.expected.storage for c in workload.outcome.checks if c.expected is not None}
    kept = tuple(s if s.id in needed else _without_contents(s) for s in workload.storages)
    keys = [k for s in kept for k in (s.key, s.page_key) if k is not None]
    used = {c.blob for launch in workload.launches for c in launch.compiles}
    blobs = {name: parts for name, parts in assembly.blobs.items() if name in used}
    return StoredWorkload(replace(workload, storages=kept), subset(assembly.tensors(), keys), blobs)


def _without_contents(storage: StorageRecord) -> StorageRecord:
    return replace(storage, key=None, page_key=None, reason="nothing in this workload refers to it")


def statement_digest(statement: ast.stmt) -> str:
    """Identifies a module-level statement whatever its position and formatting."""
    return hashlib.sha256(ast.dump(statement).encode()).hexdigest()[:24]


def harness_statements(source: str, launch_lines: Iterable[int | None]) -> tuple[str, ...]:
    """Digests of the module-level statements that launched something and define nothing a function uses, and of those
    after the first of them that define nothing either: they look at its results."""
    tree = ast.parse(source)
    lines = {line for line in launch_lines if line is not None}
    used = {
        node.id
        for top in tree.body
        if isinstance(top, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    found: list[str] = []
    for top in tree.body:
        if isinstance(top, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom)):
            continue
        stored = {n.id for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        launches = any(top.lineno <= line <= (top.end_lineno or top.lineno) for line in lines)
        if not stored & used and (launches or found):
            found.append(statement_digest(top))
    return tuple(found)
