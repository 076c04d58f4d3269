"""Faults. An outcome of a kernel (it failed, is wrong, is slow) is a value of `sandbox.verdict`, never one of these."""

from __future__ import annotations

from pathlib import Path


class WavesmithError(Exception):
    """A fault of ours or of the machine. The command line exits with 1, the API answers 500."""

    exit_code = 1


class InputError(WavesmithError):
    """Something the user gave cannot be used. One sentence naming the place, and what to do about it.

    The command line prints `FILE:LINE: sentence Remedy.` and exits with 2, the API answers 4xx problem+json.
    """

    exit_code = 2

    def __init__(
        self, message: str, *, file: str | Path | None = None, line: int | None = None, remedy: str = ""
    ) -> None:
        self.message = message
        self.file = str(file) if file is not None else None
        self.line = line
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        return f"{place}{self.message}{' ' + self.remedy if self.remedy else ''}"


class SandboxError(WavesmithError):
    """The sandbox itself did not work: no statement about the kernel can be made."""


class ToolMissing(WavesmithError):  # noqa: N818 - reads as the statement it makes
    """A compiler, profiler or library this step needs is not on the machine. The message says how to get it."""
