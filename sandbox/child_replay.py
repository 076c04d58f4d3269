"""Child side: the entry calls of a workload repeated with the functions of a file, the baseline or a candidate.

Inputs are made before the file is imported. Importing leaves out the module-level statements that ran the harness of
the baseline, and `__main__` blocks do not run, as the file goes by its own name. What the calls return is reported,
never judged here.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from sandbox import jit_graph
from sandbox.assembly import statement_digest
from sandbox.child_decode import CannotDecode, Decoder, Redraw
from sandbox.child_entries import _paths as argument_tensors
from sandbox.child_modules import import_file
from sandbox.child_spelled import is_module_launch, repeated_launch
from sandbox.child_values import raw, tensors_in
from sandbox.tensor_file import TensorFile

if TYPE_CHECKING:
    from sandbox.child_session import Session


def replay(session: Session) -> None:
    """Report one `result` per entry asked for."""
    options = session.job.options or {}
    file = TensorFile.of_descriptor(int(options["tensors"]))
    storages = {int(s["id"]): s for s in options["storages"]}
    calls = []
    for entry in options["entries"]:
        decoder = Decoder(file, storages, _redraw(options["inputs"], entry), session.gpu)
        failure = None
        try:
            parts = [*entry["args"], *entry["kwargs"].values(), *entry["grads"]]
            decoder.prepare([*parts, *([entry["receiver"]] if entry["receiver"] else [])])
        except CannotDecode as e:
            failure = str(e)
        calls.append((entry, decoder, failure))
    session.channel.send("phase", {"name": "import"})
    os.environ.update(options["environment"])
    module = _import(session, frozenset(options["skip"]))
    session.channel.send("phase", {"name": "run"})
    for entry, decoder, failure in calls:
        decoder.module = module
        result = {"index": entry["index"], "status": "skipped", "error": failure}
        if failure is None:
            result = _call(session, entry, decoder, bool(options["want_inputs"]))
        session.channel.send("result", result)
        decoder.made.clear()


def _redraw(inputs: Mapping[str, Any], entry: Mapping[str, Any]) -> Redraw:
    cast = getattr(torch, inputs["cast"]) if inputs["cast"] else None
    seed = int(inputs["seed"]) * 1_000_003 + int(entry["index"])
    return Redraw(inputs["distribution"], seed, cast, frozenset(entry["poisoned"]), frozenset(entry["kept"]))


def _import(session: Session, skip: frozenset[str]) -> Any:
    """The file as a module under its own name. An exception after the definitions is reported and survived."""
    path = session.kernel_path
    sys.argv = [str(path)]
    left_out = lambda s: statement_digest(s) in skip or (bool(skip) and is_module_launch(s))  # noqa: E731
    module, error = import_file(path, session.job.kernel, left_out)
    if error is not None:
        session.channel.send("import-error", _error(session, error))
    return module


def _error(session: Session, error: BaseException) -> dict[str, Any]:
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in session.files:
            line = number
    return {"error": f"{type(error).__name__}: {error}"[:4000], "line": line, "kind": type(error).__name__}


def _call(session: Session, entry: Mapping[str, Any], decoder: Decoder, want_inputs: bool) -> dict[str, Any]:
    base = {"index": entry["index"]}
    try:
        args = [decoder.value(a) for a in entry["args"]]
        kwargs = {k: decoder.value(v) for k, v in entry["kwargs"].items()}
        function = _function(entry, decoder, args, kwargs)
        grads = [decoder.value(g) for g in entry["grads"]]
    except CannotDecode as e:
        return {**base, "status": "missing", "error": str(e)}
    except Exception as e:  # noqa: BLE001 - rebuilding objects runs the user's constructors
        return {**base, "status": "raised", **_error(session, e)}
    store = session.store
    tensors = dict(argument_tensors(tuple(args), kwargs))
    with raw():
        before = {path: store.digest(t) for path, t in tensors.items()}
        inputs = {path: store.record(t) for path, t in tensors.items()} if want_inputs else {}
        if entry["rng_state"] is not None:
            torch.set_rng_state(decoder.tensor(_rng_record(decoder, int(entry["rng_state"]))))
    session.recorder.entry = int(entry["index"])
    session.tracker.tainted = False
    try:
        output = function(*args, **kwargs)
        input_grads = _backward(session, output, grads, args, kwargs) if grads else {}
    except (Exception, SystemExit) as e:  # noqa: BLE001 - the function is the user's: whatever it raises is its outcome
        return {**base, "status": "raised", "known": not session.tracker.tainted, **_error(session, e)}
    finally:
        session.recorder.entry = None
    with raw():
        outputs = session.encoder.encode(output)
        after = {p: store.record(t) for p, t in tensors.items() if p in entry["watch"] or store.digest(t) != before[p]}
        changed = [path for path in after if store.digest(tensors[path]) != before[path]]
    return {
        **base, "status": "returned", "outputs": outputs, "mutated": after, "changed": changed, "inputs": inputs,
        "input_grads": input_grads, "known": not session.tracker.tainted,
    }  # fmt: skip


def _rng_record(decoder: Decoder, storage: int) -> dict[str, Any]:
    nbytes = int(decoder.storages[storage]["nbytes"])
    return {
        "dtype": "uint8", "shape": [nbytes], "stride": [1], "offset": 0, "storage": storage, "requires_grad": False,
        "device": "cpu",
    }  # fmt: skip


def _function(entry: Mapping[str, Any], decoder: Decoder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    qualname = str(entry["qualname"])
    if entry["kind"] == "kernel":
        return _kernel(entry["launch"], decoder)
    if entry["kind"] == "method":
        receiver = decoder.value(entry["receiver"])
        name = qualname.rpartition(".")[2]
        if name == "forward" and isinstance(receiver, torch.nn.Module):
            return receiver
        try:
            return getattr(receiver, name)
        except AttributeError:
            raise CannotDecode(f"{qualname} does not exist in this file") from None
    return decoder.named(f":{qualname}")


def _kernel(launch: Mapping[str, Any], decoder: Decoder) -> Any:
    """A call that repeats the launch itself. Values an autotuner or heuristic sets are left to it."""
    from triton.runtime.autotuner import Autotuner, Heuristics

    kernel = decoder.named(f":{launch['kernel']}")
    own: set[str] = set()
    tuned = False
    for layer in jit_graph.layers(kernel):
        if isinstance(layer, Autotuner):
            tuned = True
            own |= {k for config in layer.configs for k in config.all_kwargs()}
        elif isinstance(layer, Heuristics):
            own |= set(layer.values)
    options = {k: decoder.value(v) for k, v in launch["options"].items() if k not in own}
    grid = _grids(launch) if tuned else tuple(launch["grid"])
    place = (int(launch["place"][0]), int(launch["place"][1]))
    return repeated_launch(decoder.module, kernel, str(launch["kernel"]), place, own, options, grid)


def _grids(launch: Mapping[str, Any]) -> Any:
    """The grid function as the table that was recorded: one grid per config."""
    table = []
    for config in (launch["autotune"] or {"configs": []})["configs"]:
        if config["grid"] is not None:
            table.append(({k: v.get("value") for k, v in config["kwargs"].items()}, tuple(config["grid"])))

    def grid(meta: Mapping[str, Any]) -> tuple[int, ...]:
        for values, shape in table:
            if all(meta.get(k) == v for k, v in values.items()):
                return shape
        raise CannotDecode("the grid for this config is not known: the launch was recorded without a host function")

    return grid


def _backward(
    session: Session, output: Any, grads: list[Any], args: list[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Run `backward` with the recorded gradients; answers the gradients of the arguments."""
    pairs = [
        (tensor, gradient.to(tensor.dtype))
        for tensor, gradient in zip(tensors_in(output), grads, strict=False)
        if gradient is not None and tensor.requires_grad
    ]
    if pairs:
        session.recorder.phase = "backward"
        try:
            torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])
        finally:
            session.recorder.phase = "forward"
    with raw():
        return {
            path: session.store.record(tensor.grad)
            for path, tensor in argument_tensors(tuple(args), kwargs)
            if tensor.is_leaf and tensor.grad is not None
        }
