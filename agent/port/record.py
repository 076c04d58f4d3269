"""A port that a model took part in as it is stored beside its report, so that it can be done again without a network.

`replay/port.json` holds the options, the files as they were read, and digests of what was written; the model's replies
are in `replay/transcript.jsonl`. No key is in either, and no address of a model's server.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.port.model_repair import ModelRepairer
from agent.port.request import PortRequest, Project, ProjectFile, Style
from agent.port.result import PortResult
from agent.spend import Price
from sandbox.errors import InputError

RECORD_NAME = "replay/port.json"
TRANSCRIPT_NAME = "replay/transcript.jsonl"
PATCH_NAME = "patch.diff"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredSource(_Stored):
    text: str
    data_base64: str
    embedded: str = ""
    foreign: bool = False


class StoredProject(_Stored):
    """`agent.port.request.Project` as data."""

    name: str
    sources: dict[str, StoredSource]
    others: dict[str, str]
    skipped: tuple[str, ...] = ()
    commit: str | None = None
    asked: tuple[str, ...] = ()

    @classmethod
    def of(cls, project: Project) -> StoredProject:
        sources = {
            path: StoredSource(
                text=f.text,
                data_base64=base64.b64encode(f.data).decode(),
                embedded=f.embedded,
                foreign=f.foreign,
            )
            for path, f in project.sources.items()
        }
        return cls(
            name=project.name,
            sources=sources,
            others=dict(project.others),
            skipped=project.skipped,
            commit=project.commit,
            asked=tuple(sorted(project.asked)),
        )

    def project(self) -> Project:
        sources = {
            path: ProjectFile(path, f.text, base64.b64decode(f.data_base64), f.embedded, f.foreign)
            for path, f in self.sources.items()
        }
        return Project(self.name, sources, self.others, self.skipped, self.commit, frozenset(self.asked))


class StoredRepairer(_Stored):
    """The model and what it was allowed."""

    name: str
    price: Price | None = None
    usd: Decimal | None = None
    tokens: int | None = None


class PortRecord(_Stored):
    """`port.json`, version 1."""

    schema_version: Literal[1] = 1
    path: str
    targets: tuple[str, ...]
    style: Style
    log: str | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    include_folders: tuple[str, ...]
    """Absolute: headers of `-I` folders that hold no CUDA are read where they lie."""
    defines: tuple[str, ...]
    execute: bool
    max_rounds: int
    seed: int
    project: StoredProject
    model: StoredRepairer
    versions: dict[str, str]
    files_sha256: dict[str, str]
    """Every file that was written and the patch, by path below the folder."""


def store_port(request: PortRequest, project: Project, result: PortResult) -> None:
    """Write `replay/port.json` below `request.out` when a model took part, else leave none of an earlier port there.

    Raises `InputError` when it cannot be written.
    """
    repairer = request.proposer
    if request.out is None:
        return
    if not isinstance(repairer, ModelRepairer):
        (request.out / RECORD_NAME).unlink(missing_ok=True)
        return
    limits = repairer.ledger.limits
    record = PortRecord(
        path=str(request.path),
        targets=request.targets,
        style=request.style,
        log=request.log,
        include=request.include,
        exclude=request.exclude,
        include_folders=tuple(str(folder.resolve()) for folder in request.include_folders),
        defines=request.defines,
        execute=request.execute,
        max_rounds=request.max_rounds,
        seed=request.seed,
        project=StoredProject.of(project),
        model=StoredRepairer(
            name=repairer.model.name, price=repairer.ledger.price, usd=limits.usd, tokens=limits.tokens
        ),
        versions=dict(result.versions),
        files_sha256=digests(request.out, result),
    )
    target = request.out / RECORD_NAME
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as e:
        raise InputError(f"it cannot be written ({e.strerror}).", file=target, remedy="Choose another --out.") from None


def digests(folder: Path, result: PortResult) -> dict[str, str]:
    """SHA-256 of every file that the result left in `folder`, and of its patch."""
    names = [*(f.new_path for f in result.files), *result.shims, PATCH_NAME]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def has_port(folder: Path) -> bool:
    """Whether `folder` holds a port that can be done again."""
    return (folder / RECORD_NAME).is_file()


def load_port(folder: Path) -> PortRecord:
    """The record of the port that left `folder`; raises `InputError` when this version cannot read it."""
    path = folder / RECORD_NAME
    try:
        return PortRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise InputError(f"the record cannot be read ({e.strerror}).", file=path) from None
    except (ValidationError, ValueError):
        raise InputError("it is no record of a port of this version.", file=path) from None


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Paths whose contents differ, or that only one side has."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
