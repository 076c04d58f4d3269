"""`.wavesmith.yml`: what a repository wants reviewed, read strictly."""

from __future__ import annotations

import fnmatch
import re
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent.review.finding import RULES, Level
from sandbox.errors import InputError
from sandbox.target import load_target
from sandbox.yaml_text import line_of, unique_key_loader

CONFIG_NAME = ".wavesmith.yml"
MAX_CONFIG_BYTES = 64 * 1024
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
EVIDENCE = ("source", "compiled", "verified")
"""How far a review goes, least first."""
Glob = Annotated[str, Field(min_length=1, max_length=300)]
LevelOrOff = Literal["off", "note", "warning", "error"]


class ReviewConfig(BaseModel):
    """The schema of `.wavesmith.yml`; every key may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    targets: Annotated[tuple[str, ...], Field(min_length=1, max_length=4)] = ("gfx942", "gfx950")
    include: Annotated[tuple[Glob, ...], Field(min_length=1)] = ("**",)
    exclude: tuple[Glob, ...] = ()
    harnesses: dict[Glob, Glob] = {}
    """Glob of kernel files to the Python file that calls them."""
    include_folders: tuple[Glob, ...] = ()
    """Folders for `#include`, from the root of the repository."""
    severity: dict[str, LevelOrOff] = {}
    ignore: tuple[str, ...] = ()
    """Rules or fingerprints that are never reported."""
    evidence: Literal["source", "compiled", "verified"] = "verified"
    """How far to go: only read, also compile, or also search for verified gains."""
    minutes: Annotated[float, Field(gt=0, le=360)] = 10.0
    comment: Literal["never", "findings"] = "findings"
    max_suggestions: Annotated[int, Field(ge=0, le=10)] = 10
    fail_on: Literal["never", "note", "warning", "error"] = "never"

    @field_validator("targets")
    @classmethod
    def _amd_targets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return review_targets(value)

    @field_validator("severity", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: Any) -> Any:
        """YAML 1.1 reads a bare `off` as false."""
        return {k: "off" if v is False else v for k, v in value.items()} if isinstance(value, dict) else value

    @field_validator("severity")
    @classmethod
    def _known_rules(cls, value: dict[str, LevelOrOff]) -> dict[str, LevelOrOff]:
        for rule in value:
            if rule not in RULES:
                raise ValueError(f"{rule} is not a rule; rules are {', '.join(RULES)}")
        return value

    @field_validator("ignore")
    @classmethod
    def _rules_or_fingerprints(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not is_ignorable(name):
                raise ValueError(f"{name} is neither a rule nor a fingerprint; rules are {', '.join(RULES)}")
        return value

    def wants(self, path: str) -> bool:
        """Whether a file is reviewed at all."""
        return _matches(path, self.include) and not _matches(path, self.exclude)

    def harness_of(self, path: str) -> str | None:
        """The harness of a kernel file: that of the first glob that matches."""
        return next((h for glob, h in self.harnesses.items() if _matches(path, (glob,))), None)

    def level_of(self, rule: str) -> Level | None:
        """The level at which a rule is reported; None when it is switched off."""
        chosen = self.severity.get(rule)
        if chosen == "off":
            return None
        return Level(chosen) if chosen else RULES[rule].level


def review_targets(names: tuple[str, ...]) -> tuple[str, ...]:
    """Architectures of the named targets or boards; raises ValueError for one that is not an AMD target."""
    archs: dict[str, None] = {}
    for name in names:
        try:
            target = load_target(name)
        except InputError as e:
            raise ValueError(f"{e.message.rstrip('.')}") from None
        if not target.is_amd:
            raise ValueError(f"{name} is not an AMD target")
        archs[target.arch] = None
    return tuple(archs)


def is_ignorable(name: str) -> bool:
    """Whether `name` can be ignored: a rule, or a finding's fingerprint."""
    return name in RULES or _FINGERPRINT.fullmatch(name) is not None


def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, g) or fnmatch.fnmatchcase(path, g.replace("**/", "")) for g in globs)


_Loader = unique_key_loader(yaml.SafeLoader)


def parse_config(data: bytes, file: str = CONFIG_NAME) -> ReviewConfig:
    """The configuration in `data`; raises `InputError` with file, line and what to do."""
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(f"it is larger than {MAX_CONFIG_BYTES // 1024} KiB.", file=file, remedy="Shorten it.")
    try:
        text = data.decode("utf-8-sig")
        node, raw = yaml.compose(text, _Loader), yaml.load(text, _Loader)
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text.", file=file, line=1, remedy="Save it as UTF-8.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        mark = getattr(e, "problem_mark", None)
        problem = getattr(e, "problem", None) or "it is not YAML"
        line = mark.line + 1 if mark else 1
        raise InputError(f"{problem}.", file=file, line=line, remedy="Correct the YAML.") from None
    if raw is None:
        return ReviewConfig()
    if not isinstance(raw, dict):
        raise InputError("it is not a mapping.", file=file, line=1, remedy="Write `key: value` lines; see docs/ci.md.")
    try:
        return ReviewConfig.model_validate(raw)
    except ValidationError as e:
        first = e.errors()[0]
        raise _refused(first["loc"], first["type"], str(first["msg"]), file, node) from None


def _refused(loc: tuple[int | str, ...], kind: str, message: str, file: str, node: Any) -> InputError:
    place = ".".join(str(p) for p in loc) or "the file"
    line = line_of(node, loc)
    if kind == "extra_forbidden":
        keys = ", ".join(ReviewConfig.model_fields)
        return InputError(f"{place} is not a key.", file=file, line=line, remedy=f"Keys are {keys}.")
    said = message.removeprefix("Value error, ")
    return InputError(f"{place}: {said}.", file=file, line=line, remedy="Correct the value; see docs/ci.md.")
