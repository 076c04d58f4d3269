"""A job as it is stored beside its report, so that it can be done again without a network: `replay/` below the folder.

`job.json` holds the options and the seed of the inputs that candidates saw. It is written when the job has ended: until
then the seed is a secret. No key is in it, and no address of a model's server.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from agent.job import Budget, JobRequest, ModelChoice, Options, Requirement
from agent.spend import Price
from sandbox.errors import InputError
from sandbox.kernel import Kernel, parse_kernel
from sandbox.target import load_target
from sandbox.verdict import Correctness, Speed

REPLAY_FOLDER = "replay"
RECORD_NAME = "job.json"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredFile(_Stored):
    """A source file and the names of the files beside it."""

    filename: str
    companions: tuple[str, ...] = ()

    @field_validator("filename", "companions")
    @classmethod
    def _stay_below(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for name in (value,) if isinstance(value, str) else value:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{name!r} leads out of the folder")
        return value


class StoredModel(_Stored):
    provider: str
    name: str
    price: Price | None = None
    usd: Decimal | None = None
    tokens: int | None = None


class JobRecord(_Stored):
    """`job.json`, version 1."""

    schema_version: Literal[1] = 1
    wavesmith_version: str
    target: str
    path: str
    kernel: StoredFile
    harness: StoredFile | None = None
    workload: str | None = None
    """`workload.yaml` beside this file, or the place of a captured workload."""
    require_correctness: Correctness
    require_speed: Speed
    allow_approx: bool
    executor: str
    seed: int
    evaluations: int
    stop_after: int | None = None
    """Evaluations it had made when its time was used up; null when it was not."""
    model: StoredModel | None = None
    patch_sha256: str | None
    """Of the patch the job ended with; null when there was none."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of a job once it has ended."""

    evaluations: int
    out_of_time: bool
    patch: bytes | None
    version: str
    price: Price | None = None


def store_inputs(folder: Path, request: JobRequest) -> None:
    """Write the files a job works on below `folder/replay`, replacing those of an earlier job."""
    root = folder / REPLAY_FOLDER
    for name in ("kernel", "harness"):
        shutil.rmtree(root / name, ignore_errors=True)
    for name in (RECORD_NAME, "workload.yaml", "transcript.jsonl", "remembered.json"):
        (root / name).unlink(missing_ok=True)
    _write_kernel(root / "kernel", request.kernel)
    (root / "kernel" / request.kernel.filename).write_bytes(request.original)
    if request.harness is not None:
        _write_kernel(root / "harness", request.harness)
    if request.workload is not None and request.workload.is_file():
        shutil.copyfile(request.workload, root / "workload.yaml")


def _write_kernel(folder: Path, kernel: Kernel) -> None:
    folder.mkdir(parents=True)
    kernel.write_to(folder)


def store_record(folder: Path, request: JobRequest, ending: Ending) -> None:
    """Write `job.json`. `request` must carry the seed that was used."""
    options = request.options
    assert options.seed is not None
    chosen, budget = options.model, options.budget
    workload = request.workload
    record = JobRecord(
        wavesmith_version=ending.version,
        target=request.target.board.name,
        path=request.path,
        kernel=_stored(request.kernel),
        harness=_stored(request.harness) if request.harness else None,
        workload=None if workload is None else "workload.yaml" if workload.is_file() else str(workload.resolve()),
        require_correctness=options.require.correctness,
        require_speed=options.require.speed,
        allow_approx=options.allow_approx,
        executor=options.executor,
        seed=options.seed,
        evaluations=budget.evaluations,
        stop_after=ending.evaluations if ending.out_of_time else None,
        model=StoredModel(
            provider=chosen.provider, name=chosen.name, price=ending.price, usd=budget.usd, tokens=budget.tokens
        )
        if chosen
        else None,
        patch_sha256=digest_of(ending.patch),
    )
    text = record.model_dump_json(indent=2) + "\n"
    (folder / REPLAY_FOLDER / RECORD_NAME).write_text(text, encoding="utf-8")


def digest_of(patch: bytes | None) -> str | None:
    return None if patch is None else hashlib.sha256(patch).hexdigest()


def _stored(kernel: Kernel) -> StoredFile:
    return StoredFile(filename=kernel.filename, companions=tuple(sorted(kernel.companions)))


def load_record(folder: Path) -> JobRecord:
    """The record of the job that left `folder`; raises `InputError` when there is none that this version reads."""
    path = folder / REPLAY_FOLDER / RECORD_NAME
    try:
        return JobRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(
            "it holds no finished job.", file=folder, remedy="Give the --out folder of `wavesmith optimize`."
        ) from None
    except (ValidationError, UnicodeDecodeError):
        raise InputError("it is no job record of this version.", file=path) from None


def load_job(folder: Path) -> tuple[JobRequest, JobRecord]:
    """The request of a stored job, ready to be done again: without a limit in time, with the seed it had."""
    record = load_record(folder)
    root = folder / REPLAY_FOLDER
    stored = record.model
    budget = Budget(
        wall_s=float("inf"),
        evaluations=record.evaluations,
        usd=stored.usd if stored else None,
        tokens=stored.tokens if stored else None,
    )
    options = Options(
        require=Requirement(record.require_correctness, record.require_speed),
        allow_approx=record.allow_approx,
        executor=record.executor,
        seed=record.seed,
        budget=budget,
        model=ModelChoice(stored.provider, stored.name) if stored else None,
    )
    kernel, original = _read_kernel(root / "kernel", record.kernel)
    request = JobRequest(
        kernel=kernel,
        target=load_target(record.target),
        path=record.path,
        original=original,
        harness=_read_kernel(root / "harness", record.harness)[0] if record.harness else None,
        workload=root / record.workload if record.workload else None,
        options=options,
    )
    return request, record


def _read_kernel(folder: Path, stored: StoredFile) -> tuple[Kernel, bytes]:
    try:
        companions: Mapping[str, str] = {
            name: (folder / PurePosixPath(name)).read_text(encoding="utf-8") for name in stored.companions
        }
        data = (folder / stored.filename).read_bytes()
    except OSError as e:
        raise InputError(f"a stored file is missing ({e.strerror}).", file=e.filename) from None
    return replace(parse_kernel(data, stored.filename), companions=companions), data
