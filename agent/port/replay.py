"""A stored port done again without a network: same files, the model's stored replies, so the same files come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.port.loop import port
from agent.port.model_repair import ModelRepairer, repair_knowledge
from agent.port.record import TRANSCRIPT_NAME, changed_files, digests, load_port
from agent.port.request import PortRequest
from agent.port.result import PortResult
from agent.spend import Ledger, Limits
from agent.transcript import ReplayModel
from sandbox.errors import InputError


@dataclass(frozen=True, slots=True)
class ReplayedPort:
    """What came out, and whether every file is that of the stored port byte for byte."""

    result: PortResult
    same_files: bool
    difference: str = ""
    """One sentence when it is not: what else changed."""


def replay_port(stored: Path, folder: Path, say: Callable[[str], None]) -> ReplayedPort:
    """Do the port that left `stored` again and write its result to `folder`. No model is asked.

    Raises `InputError` when `stored` holds no port that a model took part in or `folder` is the same one.
    """
    if folder.resolve() == stored.resolve():
        raise InputError("a replay does not overwrite the job it replays.", file=folder, remedy="Give another --out.")
    record = load_port(stored)
    model = ReplayModel(stored / TRANSCRIPT_NAME, record.model.name)
    ledger = Ledger(Limits(record.model.usd, record.model.tokens), record.model.name, record.model.price)
    repairer = ModelRepairer(model, ledger, record.targets, say, repair_knowledge(record.targets))
    request = PortRequest(
        path=record.path,
        targets=record.targets,
        style=record.style,
        out=folder,
        log=record.log,
        include=record.include,
        exclude=record.exclude,
        include_folders=tuple(map(Path, record.include_folders)),
        defines=record.defines,
        execute=record.execute,
        max_rounds=record.max_rounds,
        seed=record.seed,
        proposer=repairer,
    )
    result = port(request, say, record.project.project())
    changed = changed_files(record.files_sha256, digests(folder, result))
    if not changed:
        return ReplayedPort(result, True)
    tools = [f"{n} {v} -> {result.versions.get(n, 'missing')}" for n, v in record.versions.items()
             if result.versions.get(n) != v]  # fmt: skip
    why = f"The tools changed: {', '.join(tools)}." if tools else _said(repairer)
    return ReplayedPort(result, False, f"{', '.join(changed[:3])} became another. {why}".rstrip())


def _said(repairer: ModelRepairer) -> str:
    return f"The stored conversation does not fit: {repairer.ended.rstrip('.')}." if repairer.ended else ""
