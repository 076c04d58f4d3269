"""From an upload to a queued job: everything is checked before anything is stored."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.hip.program import check_source
from agent.job import parse_requirement
from agent.patch import FileChange
from agent.port.archive import is_archive, unpack
from agent.port.intake import open_project
from agent.port.request import PortRequest
from api.jobs import INPUT_FOLDER, KINDS, job_folder
from api.model_form import ModelForm
from api.problems import ProblemError
from api.settings import Settings
from api.store import Job, Store, new_job_id
from api.upload import safe_name
from sandbox.errors import InputError
from sandbox.kernel import Language, parse_kernel
from sandbox.target import load_target


@dataclass(frozen=True, slots=True)
class Intake:
    """A request as it arrived. `uploads` maps `file`, `harness`, `workload` to (file name, bytes)."""

    kind: str
    target: str
    uploads: Mapping[str, tuple[str | None, bytes]]
    path: str | None
    require: str | None
    allow_approx: bool
    idempotency_key: str | None
    asked: ModelForm = field(default_factory=ModelForm)
    """The model that may propose, and the budget."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that makes the request this one."""
        h = hashlib.sha256()
        fields = [self.kind, self.target, self.path or "", self.require or "", str(self.allow_approx)]
        fields += [f"{name}={value}" for name, value in self.asked.given.items()]
        for part in [*(f.encode() for f in fields), *(d for _, (_, d) in sorted(self.uploads.items()))]:
            h.update(len(part).to_bytes(8, "little") + part)
        return h.hexdigest()


def store_request(settings: Settings, store: Store, intake: Intake) -> Job:
    """Check, write the files and queue. Raises `InputError`, or `ProblemError` for a full queue or a reused key."""
    if intake.kind not in KINDS:
        raise InputError(f"{intake.kind!r} is not a kind of job.", remedy=f"Choose one of {', '.join(KINDS)}.")
    arch = _arch(intake)
    parse_requirement(intake.require)
    intake.asked.check(settings, intake.kind)
    names = {part: safe_name(filename) for part, (filename, _) in intake.uploads.items()}
    if len(set(names.values())) != len(names):
        raise InputError("two of the uploaded files have the same name.", remedy="Rename one of them.")
    path = intake.path or names["file"]
    FileChange(path, None, None)
    _check_contents(intake, names)
    job = Job(
        id=new_job_id(),
        kind=intake.kind,
        arch=arch,
        target=intake.target,
        filename=names["file"],
        path=path,
        options=json.dumps(_options(settings, intake, names)),
        created_at=time.time(),
        idempotency_key=intake.idempotency_key,
        request_digest=intake.digest,
    )
    folder = job_folder(settings, job.id)
    try:
        _write_inputs(intake, names, folder / INPUT_FOLDER)
        queued = store.add_job(job, max_queued=settings.max_queued_jobs)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if queued is None or queued.id != job.id:
        shutil.rmtree(folder, ignore_errors=True)
    if queued is None:
        detail = f"{settings.max_queued_jobs} jobs are waiting."
        raise ProblemError(429, "queue-full", detail, headers={"Retry-After": "30"})
    if queued.request_digest != job.request_digest:
        raise ProblemError(422, "conflict", "This Idempotency-Key was used for another request.")
    return queued


def _arch(intake: Intake) -> str:
    """The architecture a job is for; a port may name several targets."""
    names = intake.target.split(",") if intake.kind == "port" else [intake.target]
    return ",".join(dict.fromkeys(load_target(name).arch for name in names))


def _options(settings: Settings, intake: Intake, names: Mapping[str, str]) -> dict[str, Any]:
    """The job's options as they are stored. Never a key."""
    options: dict[str, Any] = {part: names[part] for part in ("harness", "workload") if part in names}
    if intake.require:
        options["require"] = intake.require
    if intake.allow_approx:
        options["allow_approx"] = True
    options |= intake.asked.given
    if intake.asked.model is not None and settings.model_base_url is not None:
        options["model_base_url"] = settings.model_base_url
    return options


def _check_contents(intake: Intake, names: Mapping[str, str]) -> None:
    """Refuse at the door what no worker could use."""
    data = intake.uploads["file"][1]
    if intake.kind == "port":
        _check_project(data, names["file"])
        return
    kernel = parse_kernel(data, names["file"])
    if kernel.language is not Language.TRITON:
        if {"harness", "workload"} & names.keys():
            raise InputError(
                "a HIP or CUDA file takes no harness and no workload.", file=names["file"], remedy="Send it alone."
            )
        check_source(kernel)
    if "harness" in names:
        harness = parse_kernel(intake.uploads["harness"][1], names["harness"])
        if harness.language is not Language.TRITON:
            raise InputError("a harness is a Python file.", file=names["harness"], remedy="Send a .py file.")


def _check_project(data: bytes, name: str) -> None:
    """Read the upload as the port will, in a scratch folder whose path no message may show."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / name
        file.write_bytes(data)
        try:
            with open_project(PortRequest(file, contained=True)):
                pass
        except InputError as e:
            shown = name if e.file is None or Path(e.file).is_absolute() else e.file
            raise InputError(e.message, file=shown, line=e.line, remedy=e.remedy) from None


def _write_inputs(intake: Intake, names: Mapping[str, str], folder: Path) -> None:
    """Write the uploads. An archive is unpacked once to see that it can be, and stays packed for the worker."""
    folder.mkdir(parents=True)
    for part, (_, data) in intake.uploads.items():
        (folder / names[part]).write_bytes(data)
    archive = folder / names["file"]
    if is_archive(archive):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            unpack(archive, Path(scratch))
