"""What is timed: the kernels of the suite, and those of other projects that `benchmarks/external.py` fetched.

Standard library only. A case of the suite holds its inputs in the kernel's own file; an external one in a harness of
ours (`benchmarks/external/`), which imports the kernel's file by its name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "benchmarks" / "suite"
HARNESSES = ROOT / "benchmarks" / "external"

SUITE_INPUTS = """
import importlib.util, torch
spec = importlib.util.spec_from_file_location("trusted_baseline", {kernel!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
made = {{}}

def make(seed, device):
    if seed % 3 not in made:
        torch.manual_seed(seed)
        made[seed % 3] = {call}
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in made[seed % 3]), {{}}
"""
EXTERNAL_INPUTS = """
import importlib, importlib.util, sys, torch

sys.modules.update(peft=None, transformers=None)  # Looked for by some, used by none of what is timed.
made = {{}}

def read(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def load(source):
    sys.path.insert(0, str(source.parent))
    sys.path.append({folder!r})
    if str(source.parent) == {harnesses!r}:
        return read(source.stem, source)
    read({kernel!r}, source)
    return read("harness", {harness!r})

def make(seed, device):
    if seed % 3 not in made:
        harness = sys.modules.get("harness") or read("harness", {harness!r})
        torch.manual_seed(seed)
        made[seed % 3] = harness.make_large()
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in made[seed % 3]), {{}}
"""


@dataclass(frozen=True)
class Case:
    """One kernel to time. `entry` is looked up in the kernel's file, or in the harness where there is one."""

    name: str
    kernel: Path
    entry: str
    bottleneck: str
    large: dict[str, Any] | None
    expert: Path | None
    harness: Path | None = None
    """Makes inputs and calls the kernel; None: the kernel's own file does."""
    origin: str = ""
    """Repository and commit of an external kernel; empty for the suite."""

    @property
    def inputs(self) -> str:
        """The source of the trusted file that makes the large inputs (see `sandbox.timing_session.ProgramSpec`)."""
        if self.harness is None:
            call = "module.make_large()" if self.large is None else f"module.make_inputs(**{self.large!r})"
            return SUITE_INPUTS.format(kernel=str(self.kernel), call=call)
        return EXTERNAL_INPUTS.format(
            folder=str(self.kernel.parent),
            kernel=self.kernel.stem,
            harness=str(self.harness),
            harnesses=str(HARNESSES),
        )


def load_cases(external: Path | None = None, only: Sequence[str] | None = None) -> list[Case]:
    """The cases of the suite, and those in the folder `external` after them.

    `only` names the wanted ones; `suite` and `external` stand for all of their kind. Raises `ValueError` for others.
    """
    known = {"suite": load_suite(), "external": load_external(external.resolve()) if external is not None else []}
    cases = [*known["suite"], *known["external"]]
    unknown = set(only or ()) - {c.name for c in cases} - known.keys()
    if unknown:
        raise ValueError(f"no case {', '.join(sorted(unknown))}")
    return [c for c in cases if not only or c.name in only or ("external" if c.harness else "suite") in only]


def load_suite() -> list[Case]:
    cases = []
    for c in json.loads((SUITE / "cases.json").read_text()):
        kernel = ROOT / c["kernel"] if "kernel" in c else SUITE / c["name"] / "kernel.py"
        expert = SUITE / c["name"] / "expert.py"
        known = expert if expert.exists() else None
        cases.append(Case(c["name"], kernel, c.get("entry", "run"), c["bottleneck"], c.get("large"), known))
    return cases


def load_external(folder: Path) -> list[Case]:
    """What `benchmarks/external.py fetch` put into `folder`."""
    cases = []
    for c in json.loads((folder / "cases.json").read_text()):
        expert = HARNESSES / c["expert"] if "expert" in c else None
        origin = f"{c['github']}@{c['commit'][:12]}"
        kernel, harness = folder / c["name"] / c["kernel"], HARNESSES / c["harness"]
        cases.append(Case(c["name"], kernel, "run", c["bottleneck"], None, expert, harness, origin))
    return cases
