"""`wavesmith review`: what a change does to kernels on AMD, for people, for CI and for GitHub."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.terminal import ProgressStyle, err, make_progress, show_json
from sandbox.errors import InputError, ToolMissing, WavesmithError

if TYPE_CHECKING:
    from agent.review.finding import ReviewResult

EXIT_FINDINGS = 4
_TIMEOUT_S = 6 * 3600.0
"""Longest job of a GitHub workflow."""


def add_commands(app: typer.Typer) -> None:
    app.command()(review)


def review(
    base: Annotated[str | None, typer.Option(help="Branch, tag or commit that the change starts from.")] = None,
    head: Annotated[str, typer.Option(help="Commit with the change.")] = "HEAD",
    repo: Annotated[Path, typer.Option(help="A folder of the git repository.")] = Path(),
    target: Annotated[list[str] | None, typer.Option("--target", "-t", help="One or more, with commas.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Also write the findings as SARIF 2.1.0.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the review as JSON.")] = None,
    fail_on: Annotated[str | None, typer.Option(help="never, note, warning or error.")] = None,
    budget: Annotated[float | None, typer.Option(help="Minutes the review may take.")] = None,
    evidence: Annotated[str | None, typer.Option(help="At most: source, compiled or verified.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help="In a GitHub workflow: review its event, and answer.")
    ] = False,
    post: Annotated[Path | None, typer.Option(help="With --github: only post a review that --out wrote.")] = None,
    direct: Annotated[bool, typer.Option("--direct", hidden=True, help="Compare with the base itself.")] = False,
    progress: Annotated[ProgressStyle, typer.Option(help="How progress is shown.")] = ProgressStyle.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the review as JSON on stdout.")] = False,
) -> None:
    """Review a change: what it introduces that fails or runs badly on AMD. Exit code 4: findings at --fail-on or above.

    Settings come from `.wavesmith.yml` of the base; options win. Without --github, the comment that would be posted is
    printed.
    """
    from agent.review.review import ReviewRequest  # the engine is loaded when it is needed
    from agent.review.review import review as run_review

    targets = _targets(target)
    _check(fail_on, budget, evidence)
    if github:
        raise typer.Exit(_in_workflow(_passed_on(targets, fail_on, budget, evidence), post, sarif, out))
    if post is not None:
        raise InputError("--post needs --github.", remedy="Give both, in a GitHub workflow.")
    if base is None:
        raise InputError("no base was given.", remedy="Give --base, for example --base origin/main.")
    request = ReviewRequest(repo, base, head, targets, budget, fail_on, evidence, direct)
    result = run_review(request, make_progress(progress))
    write_outputs(result, sarif, out)
    if as_json:
        show_json(result.model_dump(mode="json"))
    else:
        show_review(result)
    raise typer.Exit(EXIT_FINDINGS if result.fails() else 0)


def _targets(given: list[str] | None) -> tuple[str, ...] | None:
    from agent.review.config import review_targets

    if not given:
        return None
    try:
        return review_targets(tuple(t for word in given for t in word.split(",") if t))
    except ValueError as e:
        raise InputError(f"--target: {e}.", remedy="Choose for example gfx942 or gfx950.") from None


def _check(fail_on: str | None, budget: float | None, evidence: str | None) -> None:
    if evidence not in (None, "source", "compiled", "verified"):
        raise InputError(f"--evidence: {evidence!r} is none.", remedy="Choose source, compiled or verified.")
    if fail_on not in (None, "never", "note", "warning", "error"):
        raise InputError(f"--fail-on: {fail_on!r} is no level.", remedy="Choose never, note, warning or error.")
    if budget is not None and not 0 < budget <= 360:
        raise InputError("--budget is not between 0 and 360 minutes.", remedy="Give minutes, for example 10.")


def _passed_on(
    targets: tuple[str, ...] | None, fail_on: str | None, budget: float | None, evidence: str | None
) -> tuple[str, ...]:
    """The options of this command that a review in a process of its own gets too."""
    words: list[str] = []
    given = {"target": ",".join(targets or ()), "fail-on": fail_on, "budget": budget, "evidence": evidence}
    for name, value in given.items():
        if value:
            words += [f"--{name}", str(value)]
    return tuple(words)


def _in_workflow(options: tuple[str, ...], post: Path | None, sarif: Path | None, out: Path | None) -> int:
    """Answer the event of a GitHub workflow; returns the exit code."""
    try:
        from api.github.action import answer, post_review, workflow_of_process
        from api.github.client import Fault
    except ImportError as e:
        raise ToolMissing(f"--github needs {e.name}. Install wavesmith[github].") from None
    workflow = workflow_of_process()
    try:
        if post is not None:
            ended = asyncio.run(post_review(workflow, post))
        else:
            ended = asyncio.run(answer(workflow, options, _TIMEOUT_S, out))
    except Fault as e:
        raise WavesmithError(f"GitHub could not be used: {e}") from None
    err.print(ended.message, markup=False)
    if ended.result is not None:
        write_outputs(ended.result, sarif, None)
    return EXIT_FINDINGS if ended.result is not None and ended.result.fails() else 0


def write_outputs(result: ReviewResult, sarif: Path | None, out: Path | None) -> None:
    """The files that were asked for."""
    from api.sarif import sarif_text

    for path, text in ((sarif, sarif_text), (out, lambda r: r.model_dump_json(indent=2))):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(result) + "\n", encoding="utf-8")


def show_review(result: ReviewResult) -> None:
    """One line per finding on stderr, the comment that would be posted on stdout."""
    from api.github.render import comment_text, headline, suggestion_comments

    err.print(headline(result), markup=False)
    for f in result.findings:
        where = f"{f.path}:{f.line}"
        err.print(f"  {f.level} {f.rule} {where} {f.message} [{f.origin}, {f.evidence}]", markup=False)
    for s in result.skipped:
        err.print(f"  skipped: {s.what}: {s.reason}", markup=False)
    suggestions = suggestion_comments(result)
    text = comment_text(result, frozenset(f.fingerprint for f, _ in suggestions))
    if text:
        sys.stdout.write(text + "\n")
    for _, comment in suggestions:
        sys.stdout.write(f"\n{comment['path']}:{comment['line']}\n{comment['body']}\n")
