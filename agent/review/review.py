"""The main path of a review: read the change, look at source, compile, then search for a verified gain.

Cheapest evidence first, for every file, before the next kind is gathered for any. What the minutes do not reach is
named.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from agent.events import Phase, Progress
from agent.review.affected import affected_kernels, language_of_change, why_unread
from agent.review.changes import Change, ChangedFile, check_out, open_repository, read_change, read_file, with_lines
from agent.review.compare import compare
from agent.review.compiled import Side, compiled_sightings, ported_sightings
from agent.review.config import CONFIG_NAME, EVIDENCE, ReviewConfig, parse_config
from agent.review.finding import Finding, ReviewResult, Skipped
from agent.review.gains import find_gain
from agent.review.source import Sighting, source_sightings
from agent.versions import toolchain_versions
from sandbox.errors import InputError, WavesmithError
from sandbox.kernel import Kernel, Language, parse_kernel
from sandbox.target import Target, load_target

_LEAST_S = 20.0
"""With less time left than this, no search for a gain is begun."""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What to review. None means: as `.wavesmith.yml` of the base says."""

    repository: Path
    base: str
    head: str
    targets: tuple[str, ...] | None = None
    minutes: float | None = None
    fail_on: str | None = None
    evidence: str | None = None
    """At most this far: `source`, `compiled` or `verified`; the configuration may ask for less, never for more."""
    direct: bool = False
    """Compare with `base` itself, which is the merge base already, rather than look for one."""


@dataclass
class _Work:
    """One changed kernel file and what was seen of it so far."""

    file: ChangedFile
    language: Language
    kernels: tuple[str, ...]
    before: Side | None
    after: Side
    base: list[Sighting] = field(default_factory=list)
    head: list[Sighting] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass
class _Clock:
    """The minutes of a review, and what they did not reach."""

    ends_at: float
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        return self.ends_at - time.monotonic()

    def skip(self, what: str, reason: str) -> None:
        self.skipped.append(Skipped(what=what[:1000], reason=reason[:4000]))


def review(request: ReviewRequest, progress: Progress) -> ReviewResult:
    """Review what `request.head` adds to `request.base`. Raises `InputError` for input that cannot be used."""
    began = time.monotonic()
    change = read_change(open_repository(request.repository), request.base, request.head, direct=request.direct)
    config, notes = _config(change, request)
    clock = _Clock(began + config.minutes * 60)
    for path, reason in change.skipped:
        if config.wants(path):
            clock.skip(path, reason)
    targets = [load_target(t) for t in config.targets]
    with tempfile.TemporaryDirectory(prefix="wavesmith-review-") as scratch:
        works = _works(change, config, Path(scratch), clock)
        progress.step(f"{change.total} files changed, {len(works)} of them with kernels that the change affects")
        with progress.phase(Phase.MATCH):
            _each(works, clock, "reading", lambda w: _read_source(w, targets))
        if config.evidence != "source":
            with progress.phase(Phase.BENCHMARK):
                _each(works, clock, "compiling", lambda w: _compile(w, targets, config, progress))
        for work in works:
            work.findings = compare(work.file, work.kernels, work.base, work.head, config)
        if config.evidence == "verified":
            with progress.phase(Phase.VALIDATE):
                _gains(works, targets, config, clock, progress)
    return _result(change, config, works, clock, tuple(notes), time.monotonic() - began)


def _config(change: Change, request: ReviewRequest) -> tuple[ReviewConfig, list[str]]:
    """The base's configuration, so that a change cannot loosen its own review; the head's is only checked."""
    notes = list(change.notes)
    before, after = read_file(change.base, CONFIG_NAME), read_file(change.head, CONFIG_NAME)
    if after is not None and after != before:
        parse_config(after)
        notes.append(f"The change edits {CONFIG_NAME}; it takes effect once merged.")
    config = parse_config(before, f"{change.base.hexsha[:12]}:{CONFIG_NAME}") if before is not None else ReviewConfig()
    given = {"targets": request.targets, "minutes": request.minutes, "fail_on": request.fail_on}
    merged = {**config.model_dump(), **{k: v for k, v in given.items() if v is not None}}
    if request.evidence is not None:
        merged["evidence"] = min(request.evidence, config.evidence, key=EVIDENCE.index)
    return ReviewConfig.model_validate(merged), notes


def _works(change: Change, config: ReviewConfig, scratch: Path, clock: _Clock) -> list[_Work]:
    """The files with affected kernels, both versions written below `scratch`."""
    works: list[_Work] = []
    sides = {"base": (change.base, scratch / "base"), "head": (change.head, scratch / "head")}
    for file in change.files:
        language = language_of_change(file) if config.wants(file.path) else None
        if language is None:
            continue
        if reason := why_unread(file, language):
            clock.skip(file.path, reason)
        kernels = affected_kernels(file, language)
        if not kernels:
            continue
        harness = config.harness_of(file.path) if language is Language.TRITON else None
        for commit, folder in sides.values():
            wanted = [p for p in (file.path, file.old_path, harness) if p] + [f"{d}/_" for d in config.include_folders]
            folders = dict.fromkeys("" if (d := str(PurePosixPath(p).parent)) == "." else d for p in wanted)
            for left_out in check_out(commit, folders, folder):
                clock.skip(file.path, f"{left_out}; what it includes may be missing")
        before = _side(sides["base"][1], file.old_path, harness) if file.before is not None else None
        works.append(
            _Work(with_lines(change, file), language, kernels, before, _side(sides["head"][1], file.path, harness))
        )
    return works


def _side(folder: Path, path: str, harness: str | None) -> Side:
    return Side(folder, path, harness if harness and (folder / harness).is_file() else None)


def _each(works: list[_Work], clock: _Clock, what: str, act: Callable[[_Work], None]) -> None:
    """Do one step for every file, in order, while there is time. A file that cannot be used is named, with why."""
    for work in works:
        if clock.left_s <= 0:
            clock.skip(f"{what} {work.file.path}", "the minutes of the review were used up")
            continue
        try:
            act(work)
        except InputError as e:
            clock.skip(f"{what} {work.file.path}", e.message + (f" {e.remedy}" if e.remedy else ""))
        except WavesmithError as e:
            clock.skip(f"{what} {work.file.path}", f"it did not work here: {e}")
        except (RecursionError, MemoryError):
            clock.skip(f"{what} {work.file.path}", "it is nested too deeply")


def _read_source(work: _Work, targets: list[Target]) -> None:
    for target in targets:
        work.head += source_sightings(_kernel(work.file.after, work), work.file.path, target)
        if work.file.before is not None:
            work.base += source_sightings(_kernel(work.file.before, work), work.file.path, target)


def _kernel(data: bytes, work: _Work) -> Kernel:
    name = PurePosixPath(work.file.path).name
    if work.language is Language.TRITON or name.endswith((".cu", ".cuh", ".hip")):
        return parse_kernel(data, name)
    return replace(parse_kernel(data, "header.cuh"), filename=name)


def _compile(work: _Work, targets: list[Target], config: ReviewConfig, progress: Progress) -> None:
    """Both versions for every target; the base only when the head shows something to compare with it."""
    for target in targets:
        progress.step(f"compiling {work.file.path} for {target.arch}")
        seen = _compiled(work, work.after, target, config, progress, repair=True)
        work.head += seen
        if seen and work.before is not None:
            progress.step(f"compiling its base for {target.arch}")
            work.base += _compiled(work, work.before, target, config, progress, repair=False)


def _compiled(
    work: _Work, side: Side, target: Target, config: ReviewConfig, progress: Progress, *, repair: bool
) -> list[Sighting]:
    if work.language is Language.TRITON:
        return compiled_sightings(side, target, progress, repair=repair)
    return ported_sightings(side, target, config.include_folders, progress)


def _gains(works: list[_Work], targets: list[Target], config: ReviewConfig, clock: _Clock, progress: Progress) -> None:
    """In the minutes that are left: a verified better version of each Triton file, for the first target."""
    wanted = [w for w in works if w.language is Language.TRITON and config.level_of("gain") is not None]
    for n, work in enumerate(wanted):
        if clock.left_s < _LEAST_S:
            clock.skip(f"optimizing {work.file.path}", "the minutes of the review were used up")
            continue
        share = clock.left_s / (len(wanted) - n)
        progress.step(f"optimizing {work.file.path} for {targets[0].arch}, at most {share:.0f} s")
        try:
            work.findings = find_gain(work.file, work.kernels, work.after, targets[0], share, work.findings, config)
        except InputError as e:
            clock.skip(f"optimizing {work.file.path}", e.message + (f" {e.remedy}" if e.remedy else ""))
        except WavesmithError as e:
            clock.skip(f"optimizing {work.file.path}", f"it did not work here: {e}")


def _result(
    change: Change, config: ReviewConfig, works: list[_Work], clock: _Clock, notes: tuple[str, ...], seconds: float
) -> ReviewResult:
    findings = [f for w in works for f in w.findings]
    findings.sort(key=lambda f: (f.origin != "introduced", -f.level.rank, f.path, f.line))
    result = ReviewResult(
        wavesmith_version=toolchain_versions().get("wavesmith", "0"),
        base=change.base.hexsha,
        head=change.head.hexsha,
        targets=config.targets,
        files_changed=change.total,
        files_reviewed=tuple(w.file.path for w in works),
        kernels=tuple(dict.fromkeys(k[:300] for w in works for k in w.kernels)),
        findings=tuple(findings),
        skipped=tuple(clock.skipped),
        notes=notes,
        comment=config.comment,
        max_suggestions=config.max_suggestions,
        fail_on=config.fail_on,
        seconds=round(seconds, 1),
        budget_minutes=config.minutes,
    )
    return result.without(frozenset(config.ignore))
