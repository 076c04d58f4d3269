"""Child side of timing: the inputs of one recorded call, drawn anew for every seed. Given to `sandbox/child_timing.py`.

The folder comes in an environment variable, the number of the entry is a case: the timing child itself knows no
workloads.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from sandbox.assembly import statement_digest
from sandbox.child_inputs import InputBuilder
from sandbox.child_modules import import_file
from sandbox.child_trials import callable_of
from sandbox.variants import InputVariant
from sandbox.workload import load_workload

FOLDER = "WAVESMITH_WORKLOAD"
_stored = load_workload(Path(os.environ[FOLDER]))
_entry = _stored.workload.entries[0]
_module = types.ModuleType("program")
_builders: dict[str, InputBuilder] = {}


def select(case: int) -> None:
    """The recorded call of this number is made from here on; what another one held on the device is given up."""
    global _entry
    entry = _stored.workload.entries[case]
    if entry is not _entry:
        _builders.clear()
    _entry = entry


def load(source: Path) -> Any:
    """Import the program without its harness; returns the recorded call as a function of its receiver and arguments."""
    global _module
    skipped = set(_stored.workload.skip_statements)
    os.environ.update(_stored.workload.environment)
    _module, error = import_file(source, _stored.workload.filename, lambda s: statement_digest(s) in skipped)
    if error is not None:
        raise error

    def call(receiver: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return callable_of(_entry, _module, receiver, _stored)(*args, **kwargs)

    return call


def make(seed: int, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Receiver, arguments and keyword arguments as the three arguments of `call`."""
    if device not in _builders:
        _builders[device] = InputBuilder(_stored.workload, _stored.tensors, device, guarded=False, resident=True)
    builder = _builders[device]
    variant = InputVariant("timing", "seed", seed or 1, "normal").to_json()
    receiver, args, kwargs, _ = builder.assemble(builder.build(_entry, variant), _module)
    return (receiver, args, kwargs), {}
