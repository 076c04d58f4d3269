"""Child side of timing: import torch, load one program, then prepare and time one call per request.

Everything this file needs from torch is bound before the program is imported, so that patching `torch.cuda.Event` or
`time.perf_counter` afterwards changes nothing here. Stands alone: it imports nothing of the package.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import json
import os
import statistics
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_MIN_FLUSH_BYTES = 512 * 1024 * 1024
_CPU_FLUSH_BYTES = 8 * 1024 * 1024
_SPIN_MS = (1.0, 5.0)
_SPIN_CALLS = 4.0
"""How long the device spins while the host queues a timed call: so many times as long as the host was seen to take, at
least and at most so many milliseconds. Half a millisecond was too short for a forward and a backward under autograd: on
an H200's machine the same layer norm came out at 0.2 to 0.8 ms."""
_SPIN_TRIAL_CYCLES = 1_000_000


class CpuClock:
    """The host's clock around the call. For machines without a GPU."""

    name = "CPU"

    def __init__(self, flush_bytes: int | None) -> None:
        import torch

        self.flush_bytes = flush_bytes or _CPU_FLUSH_BYTES
        self._flush = torch.zeros(self.flush_bytes, dtype=torch.uint8)
        self._fill = torch.Tensor.fill_
        self._now = time.perf_counter_ns

    def flush(self, value: int) -> None:
        self._fill(self._flush, value % 256)

    def wait(self) -> None:
        pass

    def rest(self) -> None:
        pass

    def queued_in(self, host_ms: float) -> None:
        pass

    def measure(self, call: Callable[[], object]) -> tuple[float, float]:
        start = self._now()
        call()
        return (self._now() - start) / 1e3, 0.0


class DeviceClock:
    """Timestamps of the device around the call, on the stream the program was given.

    The whole device is idle before. After the call it is waited for and stamped once more: work that another stream
    still did behind the last timestamp shows as `late_us`.
    """

    def __init__(self, flush_bytes: int | None) -> None:
        import torch

        properties = torch.cuda.get_device_properties(0)
        self.name = torch.cuda.get_device_name(0)
        cache = int(getattr(properties, "L2_cache_size", 0))
        # AMD reports its L2 only; the Infinity Cache behind it holds 256 MiB on MI300 and MI350.
        self.flush_bytes = flush_bytes or max(_MIN_FLUSH_BYTES, 4 * cache)
        self._flush = torch.zeros(self.flush_bytes, dtype=torch.uint8, device="cuda")
        self._fill = torch.Tensor.fill_
        self._event_type = torch.cuda.Event
        event = torch.cuda.Event(enable_timing=True)
        self._record, self._elapsed = type(event).record, type(event).elapsed_time
        self._synchronize = torch.cuda.synchronize
        self._empty_cache = torch.cuda.empty_cache
        self._stream = torch.cuda.current_stream()
        self._use_stream = torch.cuda.set_stream
        self._sleep = torch.cuda._sleep
        self._cycles_per_ms = self._measure_spin()
        self._spin_ms = _SPIN_MS[0]

    def _measure_spin(self) -> float:
        """How many cycles of the device's spin take a millisecond: the unit differs between vendors."""
        self._sleep(_SPIN_TRIAL_CYCLES)
        start, end = (self._event_type(enable_timing=True) for _ in range(2))
        self._record(start, self._stream)
        self._sleep(_SPIN_TRIAL_CYCLES)
        self._record(end, self._stream)
        self._synchronize()
        return _SPIN_TRIAL_CYCLES / float(self._elapsed(start, end))

    def queued_in(self, host_ms: float) -> None:
        """The host takes so long to queue a call."""
        self._spin_ms = min(max(_SPIN_MS[0], _SPIN_CALLS * host_ms), _SPIN_MS[1])

    def flush(self, value: int) -> None:
        self._fill(self._flush, value % 256)

    def wait(self) -> None:
        self._synchronize()

    def rest(self) -> None:
        self._empty_cache()

    def measure(self, call: Callable[[], object]) -> tuple[float, float]:
        start, end, idle = (self._event_type(enable_timing=True) for _ in range(3))
        self._use_stream(self._stream)
        # The device spins while the host queues the call, so that gaps between launches are not counted as kernel time.
        self._sleep(int(self._cycles_per_ms * self._spin_ms))
        self._record(start, self._stream)
        call()
        self._record(end, self._stream)
        self._synchronize()
        self._record(idle, self._stream)
        self._synchronize()
        return float(self._elapsed(start, end)) * 1e3, float(self._elapsed(end, idle)) * 1e3


class Session:
    """One loaded program and the call that is prepared or was timed last."""

    def __init__(self, request: dict[str, Any], files: Sequence[int]) -> None:
        self._bytes_of = _byte_reader()
        self._seed = _seeder()
        self._device = str(request["device"])
        os.environ.update(request["environment"])
        inputs = _load(Path(request["inputs"]), "wavesmith_inputs")
        self._make, self._select = inputs.make, getattr(inputs, "select", None)
        self._use = _use_of(files) if files else None
        self._clock = (CpuClock if self._device == "cpu" else DeviceClock)(request["flush_bytes"])
        source = Path(request["source"])
        self._digest = hashlib.sha256(source.read_bytes()).hexdigest()
        self._entry: Any = inputs.load(source) if hasattr(inputs, "load") else _load_beside(source)
        for part in [p for p in str(request["entry"]).split(".") if p]:
            self._entry = getattr(self._entry, part)
        self._arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._variant = 0
        self._results: tuple[object, tuple[Any, ...], dict[str, Any]] | None = None

    def hello(self) -> dict[str, Any]:
        return {"device": self._clock.name, "flush_bytes": self._clock.flush_bytes, "source_digest": self._digest}

    def select(self, case: int) -> dict[str, Any]:
        """Calls are of this case from here on, where the inputs know several."""
        self.rest()
        if self._select is not None:
            self._select(case)
        return {}

    def rest(self) -> dict[str, Any]:
        """Give up what was prepared and returned, and the memory it took."""
        self._results = self._arguments = None
        self._clock.rest()
        return {}

    def prepare(self, variant: int) -> dict[str, Any]:
        self._results = None
        self._arguments, self._variant = self._make(variant, self._device), variant
        self._seed(variant)  # what the program draws itself is an input, too
        self._clock.wait()
        return {}

    def flush(self) -> dict[str, Any]:
        self._clock.flush(self._variant)
        self._clock.wait()
        return {}

    def warm_up(self, calls: int, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        done = 0
        host_ms: list[float] = []
        while done < calls or (time.monotonic() < end and done < 10_000):
            if done % 16 == 0:
                self.prepare(done)
            assert self._arguments is not None
            args, kwargs = self._arguments
            began = time.perf_counter()
            self._entry(*args, **kwargs)
            host_ms.append((time.perf_counter() - began) * 1e3)
            done += 1
        self._clock.wait()
        return {"calls": done, "host_ms": statistics.median(host_ms[-16:]) if host_ms else 0.0}

    def queued_in(self, host_ms: float) -> dict[str, Any]:
        """As the parent decides for all programs of one comparison: who spins longer takes longer outside the times."""
        self._clock.queued_in(host_ms)
        return {}

    def leave_device(self) -> dict[str, Any]:
        if self._use is not None:
            self._use.leave()
        return {}

    def time(self) -> dict[str, Any]:
        if self._arguments is None:
            raise RuntimeError("nothing was prepared")
        args, kwargs = self._arguments
        self._arguments = None
        kept: list[object] = []
        device_us, late_us = self._clock.measure(lambda: kept.append(self._entry(*args, **kwargs)))
        self._results = (kept[0], args, kwargs)
        return {"device_us": device_us, "late_us": late_us}

    def listing(self) -> dict[str, Any]:
        """Every tensor that the last timed call returned, and its arguments as it left them."""
        return {
            "tensors": [
                {
                    "place": place,
                    "dtype": str(tensor.dtype).removeprefix("torch."),
                    "shape": list(tensor.shape),
                    "stride": list(tensor.stride()),
                }
                for place, tensor in _tensors("", self._results)
            ]
        }

    def results(self, path: Path, parts: list[dict[str, Any] | None]) -> dict[str, Any]:
        """Write those tensors as one file of raw bytes, whole or the asked spans of rows; answers their lengths."""
        lengths = []
        with path.open("wb") as out:
            for (_, tensor), part in zip(_tensors("", self._results), parts, strict=True):
                data = self._bytes_of(tensor, part)
                lengths.append(len(data))
                out.write(data)
        return {"nbytes": lengths}


def _use_of(files: Sequence[int]) -> Any:
    """A `sandbox.device_use.DeviceUse`; its file is loaded, for this one imports nothing of the package."""
    use = _load(Path(__file__).with_name("device_use.py"), "wavesmith_device_use").DeviceUse(*files)
    use.hook_triton()
    return use


def _import_torch() -> Any:
    """torch, kept out of the collector's sight: `sandbox.harness.kept_imports`, which this file may not import."""
    gc.disable()
    import torch

    gc.freeze()
    gc.enable()
    return torch


def _seeder() -> Callable[[int], None]:
    """Seeds torch, numpy and Python's `random`; bound before the program can patch anything."""
    import random

    import numpy

    seeds = (_import_torch().manual_seed, numpy.random.seed, random.seed)

    def seed(number: int) -> None:
        for each in seeds:
            each(number)

    return seed


def _byte_reader() -> Callable[[Any, dict[str, Any] | None], bytes]:
    """Reads a tensor's elements in order of its indices; bound before the program can patch anything.

    A part is `{"width": elements of a row, "spans": [[first row, rows], ...]}`.
    """
    torch = _import_torch()
    contiguous, to_cpu, view, numpy = (getattr(torch.Tensor, n) for n in ("contiguous", "cpu", "view", "numpy"))
    flat, detach, narrow, byte = torch.Tensor.reshape, torch.Tensor.detach, torch.Tensor.narrow, torch.uint8

    def read(tensor: Any, part: dict[str, Any] | None) -> bytes:
        whole = contiguous(detach(tensor))
        if part is None:
            pieces = [whole]
        else:
            rows = flat(whole, (-1, int(part["width"])))
            pieces = [narrow(rows, 0, int(first), int(count)) for first, count in part["spans"]]
        return b"".join(numpy(view(flat(to_cpu(p), (-1,)), byte)).tobytes() for p in pieces)

    return read


def _tensors(place: str, value: object) -> Iterator[tuple[str, Any]]:
    """Every tensor of a tree of tuples, lists and dicts with its place, depth first."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors(f"{place}.{key}", item)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _tensors(f"{place}.{i}", item)
    elif hasattr(value, "untyped_storage"):
        yield place, value


def _load_beside(source: Path) -> types.ModuleType:
    """The program, which may import what lies beside it."""
    sys.path.insert(0, str(source.parent))
    return _load(source, source.stem)


def _load(path: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _answer(
    session: Session | None, request: dict[str, Any], files: Sequence[int]
) -> tuple[Session | None, dict[str, Any]]:
    match request["op"]:
        case "load":
            session = Session(request, files)
            return session, session.hello()
        case "select" if session is not None:
            return session, session.select(int(request["case"]))
        case "rest" if session is not None:
            return session, session.rest()
        case "leave-device" if session is not None:
            return session, session.leave_device()
        case "warm-up" if session is not None:
            return session, session.warm_up(int(request["calls"]), float(request["seconds"]))
        case "queued-in" if session is not None:
            return session, session.queued_in(float(request["host_ms"]))
        case "prepare" if session is not None:
            return session, session.prepare(int(request["variant"]))
        case "flush" if session is not None:
            return session, session.flush()
        case "time" if session is not None:
            return session, session.time()
        case "results" if session is not None:
            return session, session.results(Path(request["path"]), request["parts"])
        case "listing" if session is not None:
            return session, session.listing()
        case other:
            raise ValueError(f"unknown request {other}")


def _end_with_parent(parent: int) -> None:
    """A program that never returns would outlive a parent that was killed, and keep its GPU."""
    while os.getppid() == parent:
        time.sleep(2.0)
    os._exit(1)


def main() -> None:
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    requests, answers, *files = (int(word) for word in sys.argv[1:])
    write = os.write
    dumps = json.dumps
    _import_torch()  # before there is a program to load: that takes seconds, in which another one may be timed
    session: Session | None = None
    with os.fdopen(requests, "rb") as incoming:
        for line in incoming:
            try:
                session, answer = _answer(session, json.loads(line), files)
            except Exception as e:  # noqa: BLE001 - the top of a worker: whatever the program raised is the answer
                answer = {"fault": f"{type(e).__name__}: {e}"}
            write(answers, dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
