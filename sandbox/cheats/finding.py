"""What the static scan reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    REJECT = "reject"
    """No honest kernel edit needs this: the candidate is rejected without being run."""
    NOTE = "note"
    """Can be honest: the dynamic checks must cover it, and the evidence says where they could not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicious construct that the candidate adds to the baseline. `check` is the stable name of the rule."""

    check: str
    line: int
    message: str
    severity: Severity = Severity.REJECT
    filename: str = ""

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}: {self.message} [{self.check}]"
