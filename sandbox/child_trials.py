"""Child side: one program called many times, in an order it cannot know, with everything about each call reported.

Inputs exist before the program is imported. Memory the program allocates without a value is filled with a pattern, so
that what no kernel wrote shows. Each launch is checked to come from the program's own file. Results are read when a
call returns and again when all calls are done: a program that hands out the same buffer twice is seen.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import random
import time
import types
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from sandbox import child_cuda, child_hooks, child_torch, device_lock
from sandbox.assembly import statement_digest
from sandbox.child_driver import StandInDriver, run_once
from sandbox.child_entries import EntryTracker
from sandbox.child_executors import Stopwatch, executor
from sandbox.child_inputs import CannotBuild, InputBuilder, Inputs, flatten
from sandbox.child_modules import import_file
from sandbox.child_orderings import Orderings
from sandbox.child_spelled import is_module_launch, repeated_launch
from sandbox.child_trial_launches import TrialRecorder, choose_config
from sandbox.child_values import Encoder, SnapshotStore, raw, read_memory, storage_of, tensors_in
from sandbox.compile_cache import CompileCache
from sandbox.frames import FrameWriter
from sandbox.harness import Job
from sandbox.target import load_target
from sandbox.tensor_file import TensorFile
from sandbox.workload import EntryCall, StoredWorkload, launch_place, load_workload, parse

POISON_BYTE = 0xFF
"""Every byte of memory allocated without a value: a NaN in each floating type, an unlikely number in each integer."""
_EMPTY = {
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}  # fmt: skip
_tobytes = torch.Tensor.contiguous
_is_cuda = torch.Tensor.is_cuda.__get__
_clone, _equal = torch.Tensor.clone, torch.equal


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """Names every torch function the program calls, and poisons memory it allocates without a value."""

    def __init__(self, is_host: Callable[[Any], bool]) -> None:
        super().__init__()
        self.names: dict[str, int] = {}
        self.storages: set[int] = set()
        """Addresses of storages that the call was given, or that torch made while it was watched."""
        self.orderings = Orderings(is_host)
        self.on = False

    def start(self, given: Collection[Any], shuffle: Any = None) -> None:
        """Forget the call before; `given` are the tensors of the next one."""
        self.names, self.storages = {}, {storage_of(t)[0] for t in given}
        self.orderings.start(given, shuffle)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.on:
            name, result = self.orderings.seen(str(getattr(func, "__name__", func)), args, kwargs or {}, result)
            if name is not None:
                self.names[name] = self.names.get(name, 0) + 1
            if func in _EMPTY and isinstance(result, torch.Tensor):
                with raw(), torch.no_grad():
                    poison_(result)
            self._note_storages(result, [args, kwargs])
        return result

    def _note_storages(self, result: Any, given: Any) -> None:
        """Memory torch made belongs to the call; a view belongs to what it views."""
        plain = [t for t in tensors_in(result) if type(t) in (torch.Tensor, torch.nn.Parameter)]
        if plain:
            with raw():
                viewed = {storage_of(t)[0] for t in tensors_in(given) if type(t) in (torch.Tensor, torch.nn.Parameter)}
                self.storages.update({storage_of(t)[0] for t in plain if t.layout is torch.strided} - viewed)


def _seed(seed: int, secret: int) -> None:
    """What host code draws in a call is an input too: every version of a program draws the same."""
    torch.manual_seed(seed)
    random.seed(seed + secret)
    np.random.seed((seed + secret) % 2**32)


def poison_(tensor: Any) -> None:
    """Fill the whole storage, gaps between strides included."""
    if tensor.numel() and tensor.layout is torch.strided:
        _memory_of(tensor).fill_(POISON_BYTE)


class TrialRun:
    """The whole of one child's work."""

    def __init__(self, job: Job, channel: FrameWriter) -> None:
        self.job = job
        self.channel = channel
        options = dict(job.options or {})
        self.steps: list[dict[str, Any]] = list(options["steps"])
        self.seed = int(options["seed"])
        self.gpu = job.executor == "gpu"
        self.files = {str(p): p.read_text(encoding="utf-8") for p in job.folder.rglob("*.py")}
        self.stored = _given(job.folder.parent, options.get("tensors"))
        self.watch = Watch(child_torch.lies_in_host_memory if self.gpu else child_torch.is_host)
        self.mode = child_torch.DeviceMode()
        self.recorder = self._install()
        self.kept: list[tuple[int, Any, Any]] = []
        self.held: dict[int, Inputs] = {}

    def _install(self) -> TrialRecorder:
        job = self.job
        targets = tuple(load_target(name) for name in job.targets)
        store = SnapshotStore(self.channel, job.limits)
        encoder = Encoder(store, {})
        tracker = EntryTracker({}, encoder, self.channel)
        stopwatch = Stopwatch(time.monotonic() + 0.8 * job.limits.wall_s)
        cache = CompileCache(Path(job.cache)) if job.cache else None
        recorder = TrialRecorder(
            targets, encoder, tracker, self.channel, executor(job.executor), job.limits, stopwatch, cache, {},
            compile=True,
        )  # fmt: skip
        recorder.notes, recorder.sources = [], self.files
        recorder.compile_now, recorder.order, recorder.wide, recorder.execute_now = False, "lockstep", False, True
        recorder.forced_config, recorder.config_count, recorder.call_storages = 0, 1, set()
        recorder.lived_before = None
        recorder.schedule = "lockstep"
        if not self.gpu:
            from triton.runtime.driver import driver

            store.is_host = child_torch.is_host
            driver.set_active(StandInDriver(targets[0], run_once))
            child_cuda.install(targets[0], self.mode, self._note, self.seed)
        child_hooks.install(recorder, self._note, self.gpu)
        if self.gpu:
            # Backward functions in this thread, where `Watch` sees what they call.
            torch.autograd.set_multithreading_enabled(False)
        else:
            choose_config(recorder)
            child_torch.install(self.mode)
        return recorder

    def _note(self, text: str) -> None:
        self.channel.send("note", {"text": text})

    def run(self) -> None:
        """Build inputs, import the program, make the calls, look at the results once more."""
        builder = InputBuilder(
            self.stored.workload, self.stored.tensors, "cuda" if self.gpu else "cpu", self.gpu and bool(self.steps)
        )
        prepared: list[Inputs | None] = []
        for number, step in enumerate(self.steps):
            try:
                prepared.append(builder.build(self.stored.workload.entries[int(step["entry"])], step["variant"]))
            except (CannotBuild, RuntimeError, ValueError, IndexError) as e:
                prepared.append(None)
                self._send(number, {"skipped": f"{type(e).__name__}: {e}"})
        module = self._import()
        for number, inputs in enumerate(prepared):
            prepared[number] = None  # large ones do not stay for the whole run
            if inputs is not None and module is not None:
                step = self.steps[number]
                device_lock.breathe()
                if step.get("reuse"):
                    inputs = builder.refill(self.held.get(int(step["entry"]), inputs), inputs)
                self.held[int(step["entry"])] = inputs
                self._call(builder, module, number, step, inputs)
                if step.get("shuffle") and self.watch.orderings.found:
                    again = builder.build(inputs.entry, inputs.variant)
                    self._call(builder, module, number, step, again, shuffle=True)
                for config in range(1, self.recorder.config_count if step.get("all_configs") else 1):
                    self._call(builder, module, number, step, builder.build(inputs.entry, inputs.variant), config)
        for number, tensor, known in self.kept:
            if not same_contents(tensor, known):
                self.channel.send("trial-changed", {"step": number})

    def _import(self) -> types.ModuleType | None:
        """The program's module without the statements that are its harness; None when importing it fails."""
        path = self.job.folder / self.job.kernel
        skipped = set(self.stored.workload.skip_statements)
        launched = any(e.kind == "kernel" for e in self.stored.workload.entries)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.channel.send("trial-source", {"sha256": digest, **(_device() if self.gpu else {})})
        os.environ.update(self.stored.workload.environment)
        left_out = lambda s: statement_digest(s) in skipped or (launched and is_module_launch(s))  # noqa: E731
        module, error = import_file(path, self.job.kernel, left_out)
        if error is not None:
            self.channel.send("trial-import", {"error": _describe(error, self.files)})
            return None
        return module

    # --- one call ---------------------------------------------------------------------------------------------------

    def _call(
        self, builder: InputBuilder, module: types.ModuleType, number: int, step: Mapping[str, Any], inputs: Inputs,
        config: int = 0, *, shuffle: bool = False,
    ) -> None:  # fmt: skip
        recorder = self.recorder
        recorder.notes, recorder.forced_config, recorder.config_count = [], config, 1
        recorder.compile_now = bool(step.get("compile")) and config == 0 and not shuffle
        recorder.order, recorder.wide = (
            "reversed" if step.get("order") == "reversed" else "lockstep",
            bool(step.get("wide")),
        )
        recorder.execute_now = bool(step.get("execute", True))
        seen = inputs.tensors if recorder.execute_now else {}
        recorder.schedule = str(step.get("schedule") or "lockstep")
        drawn = torch.Generator().manual_seed(int(step["variant"]["seed"]) + 2) if shuffle else None
        self.watch.start(inputs.tensors.values(), drawn)
        recorder.lived_before = child_torch.living_memory() if self.gpu else None
        recorder.call_storages, recorder.orderings = self.watch.storages, self.watch.orderings
        report: dict[str, Any] = {"shuffled": shuffle}
        results: list[tuple[str, Any]] = []
        with raw():
            before = contents_of(seen)
            named = seen if step.get("name_inputs") else {}
            given = {p: _named(_flat(t)) for p, t in named.items()}
        _seed(int(step["variant"]["seed"]) + 1, self.seed)
        try:
            value = self._enter(builder, module, inputs)
        except CannotBuild as e:
            self._send(number, {"skipped": str(e)})
            return
        except Exception as e:  # noqa: BLE001 - the program's own code: what it raises is an outcome
            report["error"] = _describe(e, self.files)
        else:
            results = list(flatten("output", value)) if recorder.execute_now else []
        finally:
            self.watch.on = False
        with raw():
            changed = changed_since(seen, before)
            wanted = {*changed, *map(str, step.get("watch", ()))}
            results += [(p, t) for p, t in seen.items() if p in wanted and not p.startswith("grads.")]
            results += [(f"{p}.grad", t.grad) for p, t in seen.items() if t.is_leaf and t.grad is not None]
            self._report(number, report, results, changed, given, inputs)

    def _enter(self, builder: InputBuilder, module: types.ModuleType, inputs: Inputs) -> Any:
        """Make the call, and its backward where gradients were recorded."""
        entry = inputs.entry
        receiver, args, kwargs, grads = builder.assemble(inputs, module)
        function = callable_of(entry, module, receiver, self.stored)
        with nullcontext() if entry.grads else torch.no_grad(), self.watch:
            self.watch.on = True
            value = function(*args, **kwargs)
            if any(g is not None for g in grads):
                outputs = [t for _, t in flatten("output", value) if isinstance(t, torch.Tensor)]
                pairs = [(t, g) for t, g in zip(outputs, grads, strict=False) if g is not None and t.requires_grad]
                torch.autograd.backward([t for t, _ in pairs], [_fitting(g, t) for t, g in pairs])
            if self.gpu:
                torch.cuda.synchronize()
        return value

    def _report(
        self, number: int, report: dict[str, Any], results: list[tuple[str, Any]], changed: list[str],
        digests: Mapping[str, str], inputs: Inputs,
    ) -> None:  # fmt: skip
        listing: list[dict[str, Any]] = []
        blobs: list[memoryview] = []
        given = {t.untyped_storage().data_ptr() for t in inputs.tensors.values()}
        for place, value in results:
            if isinstance(value, torch.Tensor):
                exact = type(value) in (torch.Tensor, torch.nn.Parameter)
                data = memoryview(_flat(value) if exact else b"")
                dtype = str(value.dtype).removeprefix("torch.") if exact else f"subclass {type(value).__name__}"
                listing.append(
                    {
                        "place": place,
                        "dtype": dtype,
                        "shape": list(value.shape),
                        "stride": list(value.stride()),
                        "nbytes": data.nbytes,
                    }
                )
                blobs.append(data)
                self.watch.orderings.returned(value)
                if place.startswith("output") and exact and value.untyped_storage().data_ptr() not in given:
                    self.kept.append((number, value, contents(value)))
            elif value is None or isinstance(value, bool | int | float | str):
                listing.append({"place": place, "value": repr(value), "type": type(value).__name__})
            else:
                listing.append({"place": place, "value": type(value).__qualname__, "type": "object"})
        report |= {
            "results": listing,
            "changed": changed,
            "inputs": _joined(digests),
            "launches": [dataclasses.asdict(n) for n in self.recorder.notes],
            "torch": self.watch.names,
            "orderings": self.watch.orderings.found,
            "misordered": self.watch.orderings.wrong,
            "fed": self.watch.orderings.fed,
            "broken_guards": inputs.broken_guards(),
            "config": self.recorder.forced_config,
        }
        self._send(number, report, *blobs)

    def _send(self, number: int, report: Mapping[str, Any], *blobs: memoryview) -> None:
        with device_lock.away(sum(b.nbytes for b in blobs)):
            self.channel.send("trial", {"step": number, "report": dict(report)}, *blobs)


def _named(data: Any) -> str:
    with device_lock.away(data.nbytes):
        return hashlib.sha256(data).hexdigest()


def _joined(digests: Mapping[str, str]) -> str:
    """One digest of many; empty where there are none."""
    text = "".join(sorted(f"{k}={v}" for k, v in digests.items()))
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _given(folder: Path, descriptor: int | None) -> StoredWorkload:
    """The workload: all of it in the folder, or its bytes in what `tensor_file.sealed` made."""
    if descriptor is None:
        return load_workload(folder)
    return StoredWorkload(parse((folder / "workload.json").read_bytes()), TensorFile.of_descriptor(descriptor))


def _device() -> dict[str, str]:
    """Name and architecture of the GPU, as the runtime reports them."""
    properties = torch.cuda.get_device_properties(0)
    major, minor = torch.cuda.get_device_capability(0)
    arch = str(getattr(properties, "gcnArchName", "")).split(":")[0] or f"sm_{major}{minor}"
    return {"device": torch.cuda.get_device_name(0), "arch": arch}


def callable_of(entry: EntryCall, module: types.ModuleType, receiver: Any, stored: StoredWorkload) -> Any:
    if entry.kind == "method" and receiver is not None:
        name = entry.qualname.rpartition(".")[2]
        return receiver if name == "forward" and isinstance(receiver, torch.nn.Module) else getattr(receiver, name)
    found: Any = module
    for part in entry.qualname.split("."):
        found = getattr(found, part)
    if entry.kind != "kernel":
        return found
    launch = stored.workload.launches[entry.launches[0]]
    tuned = set(launch.autotune.configs[launch.autotune.index].kwargs) if launch.autotune is not None else set()
    options = {k: v.value for k, v in launch.options.items() if launch.autotune is None}
    place = launch_place(stored.workload, entry)
    own = tuned | set(launch.heuristics)
    return repeated_launch(module, found, launch.kernel, place, own, options, launch.grid)


def _fitting(gradient: Any, output: Any) -> Any:
    """The recorded gradient, or one of the output's size where a variant changed that."""
    if gradient.shape == output.shape:
        return gradient
    generator = torch.Generator("cpu").manual_seed(gradient.numel())
    return torch.randn(output.shape, generator=generator).to(output.dtype).to(output.device)


def _flat(tensor: Any) -> Any:
    """The elements in order of their indices, as an array of bytes on the host."""
    plain = _tobytes(tensor.detach().cpu()).reshape(-1)
    return (plain.to(torch.uint8) if plain.dtype == torch.bool else plain).view(torch.uint8).numpy()


def contents(tensor: Any) -> Any:
    """What the tensor's memory holds now, for `same_contents`: a copy on a GPU that has room, else a digest."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not _is_cuda(tensor):
        return _digest(tensor)
    memory = _memory_of(tensor)
    return _clone(memory) if memory.nbytes < _free_bytes(tensor.device) // 8 else _digest(tensor)


def _free_bytes(device: Any) -> int:
    return int(torch.cuda.mem_get_info(device)[0])


def same_contents(tensor: Any, known: Any) -> bool:
    """Whether the memory still holds what `contents` found, bit by bit."""
    if isinstance(known, str):
        return _digest(tensor) == known
    now = _memory_of(tensor)
    return bool(now.numel() == known.numel() and _equal(now, known))


def contents_of(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """`contents` by path; memory that several tensors lie in is looked at once."""
    known: dict[Any, Any] = {}
    found = {}
    for path, tensor in tensors.items():
        place = type(tensor), storage_of(tensor)
        if place not in known:
            known[place] = contents(tensor)
        found[path] = known[place]
    return found


def changed_since(tensors: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Paths of the tensors whose memory no longer holds what `contents_of` found."""
    same: dict[Any, bool] = {}
    found = []
    for path, tensor in tensors.items():
        place = type(tensor), storage_of(tensor), id(before[path])
        if place not in same:
            same[place] = same_contents(tensor, before[path])
        if not same[place]:
            found.append(path)
    return found


def _memory_of(tensor: Any) -> Any:
    """The bytes of the whole storage, as they lie there."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _digest(tensor: Any) -> str:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return "?"
    memory = read_memory(tensor, 1 << 40)
    return memory.digest or ""


def _describe(error: BaseException, files: Mapping[str, str]) -> dict[str, Any]:
    """Type, message, and the innermost line of the program."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in files:
            line = trace.tb_lineno
        trace = trace.tb_next
    return {"type": type(error).__name__, "message": str(error)[:2000], "line": line}


def run_trials(job: Job, channel: FrameWriter) -> None:
    """Entry of the mode `trials`."""
    TrialRun(job, channel).run()
