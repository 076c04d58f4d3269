"""The folder a job leaves behind: patch, patched file, report as JSON and Markdown, waterfall, offers."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from agent.conclusion import Conclusion
from agent.job import JobRequest
from agent.patch import unified_diff
from agent.report import MARKDOWN_NAME, PATCH_NAME, PATCHED_FOLDER, REPORT_NAME, WATERFALL_NAME, ArtifactsPart, Report
from agent.report_build import file_changes, offer_name
from agent.report_markdown import report_markdown
from agent.report_svg import waterfall_svg


def write_folder(folder: Path, request: JobRequest, conclusion: Conclusion, report: Report) -> Report:
    """Write every artifact below `folder`, which is created; returns the report with their names filled in.

    What an earlier job left there under the same names is replaced, `report.json` last, so that a report is never
    older than the patch beside it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_old(folder)
    artifacts = ArtifactsPart()
    if conclusion.kernel is not None:
        changes = file_changes(request, conclusion.kernel)
        _write(folder / PATCH_NAME, unified_diff(changes))
        for change in changes:
            _write(folder / PATCHED_FOLDER / PurePosixPath(change.target_path), change.after or b"")
        patched = f"{PATCHED_FOLDER}/{changes[0].target_path}"
        artifacts = ArtifactsPart(patch=PATCH_NAME, patched_file=patched, waterfall=WATERFALL_NAME)
        _write(folder / WATERFALL_NAME, waterfall_svg(report).encode())
    for number, offer in enumerate(conclusion.offers, 1):
        _write(folder / offer_name(number), unified_diff(file_changes(request, offer.kernel)))
    report = report.model_copy(update={"artifacts": artifacts})
    _write(folder / MARKDOWN_NAME, report_markdown(report).encode())
    _write(folder / REPORT_NAME, report.model_dump_json(indent=2).encode() + b"\n")
    return report


def _remove_old(folder: Path) -> None:
    for name in (PATCH_NAME, REPORT_NAME, MARKDOWN_NAME, WATERFALL_NAME):
        (folder / name).unlink(missing_ok=True)
    for path in folder.glob("offer-*.patch"):
        path.unlink()


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    temporary.replace(path)
