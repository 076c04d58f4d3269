"""The cases of a skill folder as data: golden pairs, kernels that must not change, and constructs that must be
refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.errors import InputError
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import Target, load_target
from skills.facts import Facts
from skills.match import Matches, match
from skills.skill import Library, Skill
from skills.source_facts import collect_facts


class CompileSpec(BaseModel):
    """How `after` is compiled: types by parameter, values of constexprs, options."""

    model_config = ConfigDict(extra="forbid")
    kernel: str
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    options: dict[str, Any] = {}
    targets: list[str] | None = None
    """Architectures it is compiled for; the skill's own and sm_90 when left out."""


class CaseSpec(BaseModel):
    """The schema of `case.yaml`; every key may be left out."""

    model_config = ConfigDict(extra="forbid")
    target: str = "gfx950"
    facts: dict[str, bool | int | float | str | list[str]] = {}
    """Facts of every jit kernel and of the file."""
    allow_approx: bool = False
    site: str | None = None
    """Label of the site whose edit is the golden one; the first when left out."""
    sites: list[str] | None = None
    """Labels of all sites, in order."""
    refuses: str | None = None
    """A part of the refusal's reason."""
    compile: list[CompileSpec] = []


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `after` is None where the kernel must not change."""

    name: str
    skill: Skill
    spec: CaseSpec
    before: Kernel
    after: Kernel | None

    @property
    def target(self) -> Target:
        return load_target(self.spec.target)

    def facts(self, kernel: Kernel) -> Facts:
        """The case's facts, with those of the given source."""
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in self.spec.facts.items()}
        bare = collect_facts(kernel, self.target)
        return collect_facts(
            kernel,
            self.target,
            observed={name: [given] for name in bare.kernels},
            file_values=given,
            allow_approx=self.spec.allow_approx,
        )

    def matches(self, kernel: Kernel) -> Matches:
        """What this case's skill alone finds in a kernel."""
        return match(kernel, self.facts(kernel), self.target, Library({self.skill.id: self.skill}))


def cases_of(skill: Skill) -> Iterator[Case]:
    """Every folder below `cases/`; raises `InputError` for a folder without `before` or a bad `case.yaml`."""
    for folder in sorted((skill.folder / "cases").glob("*/")):
        before = next(iter(sorted(folder.glob("before.*"))), None)
        if before is None:
            raise InputError("there is no before file.", file=folder, remedy="Add before.py, before.cu or before.hip.")
        after = folder / f"after{before.suffix}"
        kernel = load_kernel(before)
        golden = kernel.with_source(load_kernel(after).source) if after.is_file() else None
        yield Case(folder.name, skill, _spec(folder / "case.yaml"), kernel, golden)


def _spec(file: Path) -> CaseSpec:
    if not file.is_file():
        return CaseSpec()
    try:
        return CaseSpec.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except (yaml.YAMLError, ValidationError) as e:
        raise InputError(f"it is not a case: {e}.", file=file, remedy="See skills/cases.py.") from None
