"""What a finished job left in its folder, whatever its kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.report import REPORT_NAME, Report, load_report

PORT_PATCH_NAME = "patch.diff"


@dataclass(frozen=True, slots=True)
class Result:
    """`patch` is a file name in the folder, None when there is none; `report` only for optimize jobs."""

    outcome: str
    exit_code: int
    summary: str
    patch: str | None
    report: Report | None = None


def read_result(folder: Path, kind: str) -> Result | None:
    """The result in a job's output folder; None when there is none that this version reads."""
    try:
        text = (folder / REPORT_NAME).read_text(encoding="utf-8")
        if kind == "optimize":
            report = load_report(text)
            return Result(report.outcome, report.exit_code, report.summary, report.artifacts.patch, report)
        data: dict[str, Any] = json.loads(text)
        patch = PORT_PATCH_NAME if data["exit_code"] == 0 else None
        return Result(str(data["outcome"]), int(data["exit_code"]), str(data["summary"]), patch)
    except (OSError, ValidationError, ValueError, KeyError):
        return None
