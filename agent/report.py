"""The report of a job: a versioned, documented schema. `report.json` is this model; `report.md` is written from it.

Version 1. Fields are only added within a version; a field that is unknown is null, never a made-up number.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PATCH_NAME = "wavesmith.patch"
REPORT_NAME = "report.json"
MARKDOWN_NAME = "report.md"
WATERFALL_NAME = "waterfall.svg"
PATCHED_FOLDER = "patched"
"""Below it the patched files lie under their own paths."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolVersion(_Part):
    name: str
    version: str


class TargetPart(_Part):
    arch: str
    board: str
    title: str


class FilePart(_Part):
    path: str = Field(description="From the root of the repository.")
    language: str
    sha256: str = Field(description="Of the file as given, lower-case hex.")


class CheckPart(_Part):
    name: str
    passed: bool
    detail: str = ""


class MetricChange(_Part):
    name: str
    before: float | None
    after: float | None


class CorrectnessPart(_Part):
    level: str = Field(description="none, compiled, interpreted, executed-elsewhere, emulated or executed.")
    validated: bool = Field(description="True from `interpreted` upwards; below it no result was compared.")
    checks: tuple[CheckPart, ...] = ()


class SpeedPart(_Part):
    level: str = Field(description="none, modelled, static, counted, measured-elsewhere or measured.")
    statement: str = Field(description="What may be said at this level, and no more.")
    ratio: float | None = Field(
        default=None, description="Baseline time / candidate time; only for the measured levels."
    )
    low: float | None = Field(default=None, description="Lower end of the 95% bootstrap interval of `ratio`.")
    high: float | None = None
    pairs: int | None = Field(default=None, description="Interleaved A/B pairs behind the interval.")
    device: str | None = None
    metrics: tuple[MetricChange, ...] = ()


class FailurePart(_Part):
    kernel: str
    message: str
    line: int | None = None
    source_line: str | None = None


class KernelMetrics(_Part):
    kernel: str
    metrics: dict[str, float]


class BaselinePart(_Part):
    builds: bool
    launches: int = Field(description="Kernel launches recorded from the harness.")
    executor: str = Field(description="What ran them for reference results: interpreter, emulator, gpu or none.")
    failures: tuple[FailurePart, ...] = ()
    kernels: tuple[KernelMetrics, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    suggested_harness: str | None = Field(
        default=None, description="For a file without a harness: the smallest one that lets results be compared."
    )


class AttemptPart(_Part):
    number: int
    id: str
    origin: str = Field(description="The skill, or the model, that proposed it.")
    title: str
    why: str
    line: int | None
    fate: str = Field(description="kept, step, dropped or unshown.")
    reason: str
    verdict: str | None = Field(description="Class of the validator's verdict; null when it was never judged.")
    correctness: str
    speed: str
    metrics: tuple[MetricChange, ...] = ()
    seconds: float
    diff: str = Field(description="Unified diff from the candidate it started from.")


class SkippedPart(_Part):
    origin: str
    title: str
    reason: str


class RefusalPart(_Part):
    origin: str
    line: int
    reason: str
    route: str = Field(description="What the user can do instead.")


class OfferPart(_Part):
    """A candidate that was not shown good enough to be the result. It is not part of the patch."""

    title: str
    reason: str
    correctness: str
    speed: str
    patch: str = Field(description="File name of its own patch inside the report's folder.")


class ModelPart(_Part):
    """What a language model took part with. It proposes; every verdict is the validator's."""

    provider: str
    name: str
    calls: int
    input_tokens: int = Field(description="Without cached ones.")
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Cost in US dollars; null when the price is not known.")
    prices_as_of: str | None = Field(description="Date of the shipped price table; null for a price that was given.")
    budget_usd: float | None
    budget_tokens: int | None
    evaluations: int = Field(description="Evaluations the model asked for; they count against the job's.")
    proposals: int = Field(description="Its proposals among the attempts.")
    kept: int = Field(description="How many of them were kept.")
    ended: str = Field(description="Why it was asked no further; empty when it simply had its turns.")
    failed: bool = Field(description="Whether it ended because the provider failed.")
    confirmation: str = Field(
        default="",
        description="What came of judging its result once more on inputs nobody saw; empty when it had no part in one.",
    )
    transcript: str = Field(description="File with everything it was asked and answered, relative to the report.")


class WaterfallStep(_Part):
    label: str
    speed: str
    statement: str
    ratio: float | None = Field(default=None, description="Of this step over the one before; only when measured.")
    metrics: tuple[MetricChange, ...] = ()


class ArtifactsPart(_Part):
    """File names relative to the report."""

    patch: str | None = None
    patched_file: str | None = None
    markdown: str = "report.md"
    waterfall: str | None = None


class Report(_Part):
    schema_version: Literal[1] = 1
    wavesmith_version: str
    created_at: str = Field(description="ISO 8601, UTC.")
    kind: Literal["optimize"] = "optimize"
    outcome: str = Field(description="improved, builds-now, nothing, refused or inconclusive.")
    exit_code: int
    summary: str
    target: TargetPart
    file: FilePart
    requirement: str
    correctness: CorrectnessPart
    speed: SpeedPart
    statements: tuple[str, ...] = ()
    baseline: BaselinePart
    result: tuple[KernelMetrics, ...] = Field(
        default=(), description="Metrics of the patched kernels, as `baseline.kernels`."
    )
    attempts: tuple[AttemptPart, ...] = ()
    skipped: tuple[SkippedPart, ...] = Field(
        default=(), description="Skills that were not tried, and the condition unmet."
    )
    refusals: tuple[RefusalPart, ...] = ()
    offers: tuple[OfferPart, ...] = ()
    waterfall: tuple[WaterfallStep, ...] = ()
    toolchain: tuple[ToolVersion, ...] = ()
    model: ModelPart | None = Field(default=None, description="Null when no language model took part.")
    artifacts: ArtifactsPart = ArtifactsPart()
    reproduce: str = ""
    stopped: str = Field(default="", description="Why the search ended before it ran out of ideas, if it did.")
    seconds: float = 0.0


def load_report(text: str) -> Report:
    """Read a `report.json`; raises `pydantic.ValidationError` when it is not one of this version."""
    return Report.model_validate_json(text)
