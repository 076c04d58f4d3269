"""What a port hands out: the ported files, the shims, the patch, the folder with all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.patch import FileChange, restore_bytes, unified_diff
from agent.port.assemble import Assembled, new_path
from agent.port.inplace import guarded
from agent.port.report import markdown
from agent.port.request import PortRequest, Project
from agent.port.result import PortedFile, PortResult
from agent.port.rule_drafts import DRAFTS_FILE
from sandbox.errors import InputError


@dataclass(frozen=True)
class OutputFiles:
    files: tuple[PortedFile, ...]
    patch: str


def ported_files(project: Project, assembled: Assembled, request: PortRequest) -> OutputFiles:
    """The changed files in the wanted style, and the patch that makes them from the originals."""
    files: list[PortedFile] = []
    changes: list[FileChange] = []
    for path, after in assembled.files.items():
        original = project.sources[path]
        name = path if request.style == "inplace" else new_path(path)
        text = guarded(original.text, after) if request.style == "inplace" else after
        files.append(PortedFile(path, name, original.text, text))
        if original.embedded:
            continue
        if text != original.text or name != path:
            data = restore_bytes(original.data, text)
            if original.foreign:
                changes.append(FileChange(name, None, data))
                continue
            changes.append(FileChange(path, original.data, data, new_path=name if name != path else None))
    changes += [FileChange(path, None, text.encode()) for path, text in sorted(assembled.shims.items())]
    return OutputFiles(tuple(files), unified_diff(changes).decode("utf-8", "replace"))


def write_output(result: PortResult, project: Project, request: PortRequest) -> None:
    """Write everything below `request.out`; raises `InputError` when it cannot be written, never leaves the folder."""
    out = request.out
    assert out is not None
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file in result.files:
            _write(out, file.new_path, restore_bytes(project.sources[file.path].data, file.after))
        for path, text in result.shims.items():
            _write(out, path, text.encode())
        _write(out, "patch.diff", result.patch.encode("utf-8", "replace"))
        if result.proposed_rules:
            _write(out, DRAFTS_FILE, result.proposed_rules.encode())
        _write(out, "report.json", (json.dumps(result.to_json(), indent=1) + "\n").encode())
        _write(out, "report.md", markdown(result).encode())
    except OSError as e:
        raise InputError(f"it cannot be written ({e.strerror}).", file=out, remedy="Choose another --out.") from None


def _write(out: Path, name: str, data: bytes) -> None:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise InputError("the path leaves the output folder.", file=name, remedy="Use relative paths.")
    path = out / pure
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
