"""What is asked of a port, and the project it works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent.port.includes import PathIndex, includes_of
from agent.port.rule_table import DiagnosticRule

Style = Literal["hip", "inplace"]


class Proposer(Protocol):
    """A model that may rewrite a file whose diagnostics no rule knows. Its answer is checked, compiled and recorded."""

    def propose(self, path: str, text: str, diagnostics: tuple[str, ...]) -> str | None:
        """The whole new text of the file, or None."""

    @property
    def name(self) -> str:
        """Of the model."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says of it: what it cost, why it was asked no further."""


@dataclass(frozen=True)
class PortRequest:
    """`path`: a .cu/.cuh file, a folder, a .zip/.tar.gz, Python with `load_inline`, or a git repository's URL."""

    path: str | Path
    targets: tuple[str, ...] = ("gfx942", "gfx950")
    style: Style = "hip"
    out: Path | None = None
    """Folder to write to; nothing is written when None."""
    log: str | None = None
    """Text of a failed build the user already has."""
    include: tuple[str, ...] = ()
    """Globs of the files to port; all CUDA files when empty."""
    exclude: tuple[str, ...] = ()
    include_folders: tuple[Path, ...] = ()
    """The build's `-I` folders."""
    defines: tuple[str, ...] = ()
    """The build's `-D` definitions, without the `-D`."""
    contained: bool = False
    """Follow no include of a single file out of its folder: what was uploaded is all there is."""
    execute: bool = True
    """Run the port against the original in emulation where a driver can be generated."""
    execute_seconds: float = 600.0
    """Wall time that the execution of all kernels may take; those it does not reach are reported so."""
    max_rounds: int = 8
    seed: int = 0
    proposer: Proposer | None = None
    rules: tuple[DiagnosticRule, ...] = ()
    """Accepted rules of one's own, asked after the table's."""


@dataclass(frozen=True)
class ProjectFile:
    """One text file of the project. `embedded` names the Python variable its text was taken from; a `foreign` file was
    found in a folder of `-I`, so that its port is a new file of the output."""

    path: str
    text: str
    data: bytes
    embedded: str = ""
    foreign: bool = False


@dataclass(frozen=True)
class Project:
    """The files that are ported (`sources`) and those they may include (`others`), by relative POSIX path."""

    name: str
    sources: Mapping[str, ProjectFile]
    others: Mapping[str, str]
    skipped: tuple[str, ...] = ()
    """Files left out, each with its reason."""
    commit: str | None = None
    asked: frozenset[str] = frozenset()
    """The files that were named, when not all are ported for their own sake; the others are what these include."""

    @property
    def units(self) -> list[str]:
        """What is compiled on its own: every .cu and embedded text that no other includes, of the files that were
        asked for; the headers when there is nothing else."""
        asked = [p for p in self.sources if p in self.asked] or list(self.sources)
        index = PathIndex.of(self.sources)
        included = {index.find(i, p) for p, f in self.sources.items() for i in includes_of(f.text)}
        main = [p for p in asked if p.endswith((".cu", ".cpp", ".cc", ".cxx", ".hip"))]
        return [p for p in main if p not in included] or main or asked

    @property
    def uses_torch(self) -> bool:
        return any("torch/" in f.text or "ATen/" in f.text or "c10/" in f.text for f in self.sources.values())
