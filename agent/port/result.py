"""What a port says about itself: files, rounds, diagnostics, refusals, and per kernel how far it was shown right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from agent.shims.generate import ShimUse
from sandbox.hip_diagnostics import Diagnostic
from sandbox.verdict import Correctness

Outcome = Literal["builds-now", "nothing", "refused", "inconclusive"]
Status = Literal["equal", "different", "failed", "skipped"]
EXIT_CODES: Mapping[Outcome, int] = {"builds-now": 0, "nothing": 3, "refused": 4, "inconclusive": 5}


@dataclass(frozen=True, slots=True)
class PortedFile:
    """`path` is the input's, `new_path` the output's; `before` and `after` are whole texts."""

    path: str
    new_path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Applied:
    """One edit of a round: which rule changed which file, and how many places."""

    file: str
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of the loop. `errors` counts distinct complaints per pass after the edits."""

    number: int
    applied: tuple[Applied, ...]
    errors: Mapping[str, int]
    keys: tuple[str, ...]
    """Diagnostic keys met, most frequent first."""
    rejected: tuple[str, ...] = ()
    """Edits that were proposed and not taken, with the reason."""


@dataclass(frozen=True, slots=True)
class PortRefusal:
    """A construct that has no counterpart: what, where, for which targets, and what to do instead."""

    file: str
    line: int
    reason: str
    route: str
    rule: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the static lint or a detector saw. A `blocker` keeps the port from being called done."""

    kind: str
    file: str
    line: int
    message: str
    blocker: bool
    kernel: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of a kernel's port with the original: a launch, a seed, a target."""

    target: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    size: int
    seed: int
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class KernelVerdict:
    """How far one kernel was shown right. `evidence` is `emulated` only when trials on every target were equal."""

    kernel: str
    file: str
    line: int
    evidence: Correctness
    reason: str
    """Why the evidence is not stronger; of an `emulated` one what it rests on beside the arguments, mostly nothing."""
    trials: tuple[Trial, ...] = ()

    @property
    def wrong(self) -> bool:
        return any(t.status == "different" for t in self.trials)


@dataclass(frozen=True, slots=True)
class ProgramVerdict:
    """How far a file's host code was shown right by running it as a program: natively, with its kernels emulated."""

    file: str
    what: str
    """`main()`, or the functions that were called with made-up arguments."""
    evidence: Correctness
    """`interpreted` where nothing was launched: its own code ran, and no code object did."""
    reason: str
    """Why the evidence is not stronger; of a validated one what it rests on beside what the program printed."""
    launched: Mapping[str, int] = field(default_factory=dict)
    """How many kernels were launched, per target."""
    kernels: tuple[str, ...] = ()
    """Kernels whose effect its output shows: without their launches it is another."""
    wrong: bool = False


@dataclass(frozen=True)
class PortResult:
    """The whole answer; `to_json()` is what the command line, the API and the report show."""

    name: str
    targets: tuple[str, ...]
    outcome: Outcome
    summary: str
    files: tuple[PortedFile, ...]
    shims: Mapping[str, str]
    """Path below the output folder -> text."""
    shim_uses: tuple[ShimUse, ...]
    patch: str
    rounds: tuple[Round, ...]
    diagnostics: tuple[Diagnostic, ...]
    """What is left after the last round."""
    refusals: tuple[PortRefusal, ...]
    findings: tuple[Finding, ...]
    kernels: tuple[KernelVerdict, ...]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()
    programs: tuple[ProgramVerdict, ...] = ()
    seconds: float = 0.0
    build_commands: Mapping[str, str] = field(default_factory=dict)
    proposed_rules: str = ""
    """YAML rows that a model's repair suggests for the rule table, for a person to accept."""

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    @property
    def builds(self) -> bool:
        """Clean on every target and the host."""
        return not any(d.severity == "error" for d in self.diagnostics)

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data = asdict(self)
        data["exit_code"] = self.exit_code
        data["builds"] = self.builds
        data["kernels"] = [{**asdict(k), "evidence": str(k.evidence), "wrong": k.wrong} for k in self.kernels]
        data["programs"] = [{**asdict(p), "evidence": str(p.evidence)} for p in self.programs]
        data["files"] = [{"path": f.path, "new_path": f.new_path, "after": f.after} for f in self.files]
        return data
