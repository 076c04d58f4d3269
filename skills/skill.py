"""A skill: one tuning or porting principle as data (`skill.yaml`) and a pure transformation (`transform.py`) beside
it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Protocol, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sandbox.errors import InputError, WavesmithError
from sandbox.kernel import Kernel, Language
from sandbox.target import Target, known_archs
from sandbox.yaml_text import FAST_LOADER, line_of, unique_key_loader
from skills.condition import Condition, ConditionError, parse_condition
from skills.facts import VOCABULARY, Facts

LIBRARY_FOLDER = Path(__file__).parent / "library"
Text = Annotated[str, Field(min_length=1)]
CLOCK_METRICS = frozenset({"time_us", "median_us"})
"""The time itself: an edit that promises nothing else is a guess that only a clock can rank, so it needs one."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expectation(_Data):
    """A metric that must move, checked after the fact. A gain whose metric did not move is reported as unexplained."""

    metric: Text
    """Name of a fact or profile metric, for example `vgpr_spill_count`, or `builds` for a repair."""
    direction: Literal["down", "halved", "up", "zero", "true"]
    """`halved` of a count that has to fall by half, where less would not be worth what the edit costs."""


class Proof(_Data):
    """One trial that showed the skill effective; numbers of others are references, never proofs."""

    target: Text
    workload: Text
    metric: Text
    before: float
    after: float
    unit: Text
    level: Literal["static", "counted", "measured-elsewhere", "measured"]
    versions: Text
    note: str = ""


class SkillData(_Data):
    """The schema of `skill.yaml`."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
    title: Text
    kind: Literal["repair", "tune"]
    """A repair makes a file build or launch; a tune makes it faster."""
    scope: Literal["file", "kernel"] = "file"
    """Whether conditions are checked, and sites looked for, once per file or for each jit kernel."""
    languages: Annotated[list[Language], Field(min_length=1)]
    targets: Annotated[list[str], Field(min_length=1)]
    applies_when: list[Text]
    bottlenecks: list[Text]
    why: Text
    expects: Annotated[list[Expectation], Field(min_length=1)]
    """At least one of these must have moved, and none the other way."""
    numerics: Literal["exact", "rounding", "approximate"] = "exact"
    """Whether results stay bit-identical, may round differently, or may differ beyond that (needs --allow-approx)."""
    invisible_to_interpreter: bool = False
    """The edit changes only what the Triton interpreter ignores, so `interpreted` says nothing about it."""
    requires: list[str] = []
    """Skills that must have been applied, or not be applicable, before this one."""
    after: list[str] = []
    """Skills that are tried before this one where they apply, because what they leave decides what this one gains."""
    conflicts: list[str] = []
    proven_on: list[Proof] = []
    references: Annotated[list[Text], Field(min_length=1)]

    @field_validator("targets")
    @classmethod
    def _known_targets(cls, value: list[str]) -> list[str]:
        unknown = [v for v in value if v not in known_archs()]
        if unknown:
            raise ValueError(f"unknown target {', '.join(unknown)}; known are {', '.join(known_archs())}")
        return value

    @field_validator("applies_when")
    @classmethod
    def _known_conditions(cls, value: list[str]) -> list[str]:
        for line in value:
            try:
                parse_condition(line, VOCABULARY)
            except ConditionError as e:
                raise ValueError(str(e)) from None
        return value

    @model_validator(mode="after")
    def _approximate_is_asked_for(self) -> SkillData:
        if self.numerics == "approximate" and not any("request.allow_approx" in c for c in self.applies_when):
            raise ValueError("an approximate skill needs the condition `request.allow_approx == true`")
        return self


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a skill can be applied, and which variant of the edit. `line` is 1-based in the matched source."""

    line: int
    label: str
    """Short and stable: what a report calls this variant, for example `num_stages=2`."""
    kernel: str | None = None
    """The jit kernel concerned, where it is one."""
    variant: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    approximate: bool = False
    """This variant needs --allow-approx although the skill as a whole does not."""
    needs_timing: bool = False
    """A static gain of this variant says nothing about its run time here, so only a clock may keep it."""
    invisible_to_interpreter: bool = False
    """This variant changes only what the interpreter ignores, whatever the skill says of itself."""
    latent: str = ""
    """What would fail on the target although every recorded launch builds, with its line; for repairs of such files."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A construct that has no counterpart on the target. The command ends with exit code 4 and this reason."""

    reason: str
    line: int
    route: str
    """What the user can do instead."""
    skill_id: str = ""


class TransformModule(Protocol):
    """What a skill's `transform.py` provides."""

    def find(self, kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
        """Sites best first, and refusals."""

    def transform(self, kernel: Kernel, site: Site, target: Target) -> Kernel | None:
        """The edited kernel, or None when the edit cannot be made after all. Pure."""


@dataclass(frozen=True, slots=True)
class TransformFile:
    """A `transform.py` that is imported when it is first used: most commands use few of the library's."""

    folder: str
    """Name of the skill's folder in the library."""

    def load(self) -> TransformModule:
        """The module; raises `WavesmithError` when it lacks a function."""
        module = importlib.import_module(f"skills.library.{self.folder}.transform")
        for name in ("find", "transform"):
            if not callable(getattr(module, name, None)):
                raise WavesmithError(f"{self.folder}/transform.py has no function {name}.")
        return cast("TransformModule", module)

    def find(self, kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
        """As the file's own function."""
        return self.load().find(kernel, facts, target)

    def transform(self, kernel: Kernel, site: Site, target: Target) -> Kernel | None:
        """As the file's own function."""
        return self.load().transform(kernel, site, target)


@dataclass(frozen=True, slots=True)
class Skill:
    """A loaded skill. Two skills are the same when their ids are."""

    data: SkillData
    conditions: tuple[Condition, ...]
    folder: Path
    module: TransformModule = field(compare=False, repr=False)

    @property
    def needs_clock(self) -> bool:
        """Whether the edit promises nothing but time, so that only a clock can rank it."""
        return all(e.metric in CLOCK_METRICS for e in self.data.expects)

    @property
    def id(self) -> str:
        return self.data.id

    @property
    def proven(self) -> bool:
        """Whether someone timed it; static and counted evidence leave a skill unproven."""
        return any(p.level.startswith("measured") for p in self.data.proven_on)

    def __hash__(self) -> int:
        return hash(self.data.id)


@dataclass(frozen=True, slots=True)
class Library:
    """Every skill by id, in the order of their ids."""

    skills: Mapping[str, Skill]

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills.values())

    def __len__(self) -> int:
        return len(self.skills)

    def __getitem__(self, skill_id: str) -> Skill:
        return self.skills[skill_id]


_UniqueKeyLoader = unique_key_loader(FAST_LOADER)
"""In C where that is installed: the library is read by every command."""


def parse_skill_data(text: str, file: str | Path) -> SkillData:
    """`skill.yaml` as data; raises `InputError` naming file, line and what is wrong."""
    try:
        raw = yaml.load(text, _UniqueKeyLoader)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        problem = getattr(e, "problem", None) or "it is not YAML"
        raise InputError(
            f"{problem}.", file=file, line=mark.line + 1 if mark else None, remedy="Correct the YAML."
        ) from None
    if not isinstance(raw, dict):
        raise InputError("it holds no mapping.", file=file, line=1, remedy="Start from another skill's file.")
    try:
        return SkillData.model_validate(raw)
    except ValidationError as e:
        first = e.errors()[0]
        place = ".".join(str(p) for p in first["loc"]) or "the file"
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(
            f"{place}: {message}.",
            file=file,
            line=line_of(yaml.compose(text, _UniqueKeyLoader), first["loc"]),
            remedy="See skills/skill.py for the schema.",
        ) from None


def load_skill(folder: Path) -> Skill:
    """One skill folder of the library; raises `InputError` for a bad `skill.yaml` or a missing `transform.py`."""
    file = folder / "skill.yaml"
    if not file.is_file():
        raise InputError("there is no skill.yaml.", file=folder, remedy="Every folder of the library is a skill.")
    data = parse_skill_data(file.read_text(encoding="utf-8"), file)
    if data.id != folder.name.replace("_", "-"):
        raise InputError(
            f"id: {data.id} does not match the folder.",
            file=file,
            line=1,
            remedy="Use the folder's name in kebab case.",
        )
    if not (folder / "transform.py").is_file():
        raise InputError("there is no transform.py.", file=folder, remedy="Every skill says how it edits.")
    conditions = tuple(parse_condition(line, VOCABULARY) for line in data.applies_when)
    return Skill(data, conditions, folder, TransformFile(folder.name))


@cache
def load_library() -> Library:
    """Every skill folder of the library, checked; raises as `load_skill`, and `InputError` for unknown ids in
    relations."""
    folders = sorted(p for p in LIBRARY_FOLDER.iterdir() if p.is_dir() and not p.name.startswith(("_", ".")))
    skills = {skill.id: skill for skill in map(load_skill, folders)}
    for skill in skills.values():
        for other in (*skill.data.requires, *skill.data.after, *skill.data.conflicts):
            if other not in skills:
                raise InputError(
                    f"{skill.id} names the skill {other}, which does not exist.",
                    file=skill.folder / "skill.yaml",
                    remedy="Name an existing skill.",
                )
    return Library(skills)
