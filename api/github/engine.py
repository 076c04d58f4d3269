"""Runs a review as a process of its own, which gets the repository and no secret."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agent.review.finding import ReviewResult
from api.jobs import child_environment, wavesmith_command
from sandbox.isolation import isolation_level

_MAX_RESULT_BYTES = 64 * 2**20
_GRACE_S = 5.0
_LOOK_S = 2.0


READ_ONLY = ("--evidence", "source")
"""Options of a review that runs no code of the change."""


def confined_options() -> tuple[str, ...]:
    """What a review of strangers' code may do here: only read it where this machine cannot confine what it runs."""
    return () if isolation_level() == "bubblewrap" else READ_ONLY


@dataclass(frozen=True, slots=True)
class Unreviewed:
    """Why there is no review. `ours` tells a fault from input that cannot be used."""

    reason: str
    ours: bool


def run_review(
    repository: Path,
    base: str,
    head: str,
    timeout_s: float,
    options: Sequence[str] = (),
    is_wanted: Callable[[], bool] = lambda: True,
) -> ReviewResult | Unreviewed:
    """`wavesmith review` on two commits of a repository; whatever goes wrong is in the answer.

    It is ended early once `is_wanted`, asked every few seconds, says no.
    """
    words = ["review", "--repo", str(repository), "--base", base, "--head", head, "--json", "--progress", "none"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            wavesmith_command(*words, *options),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            env=child_environment(),
            start_new_session=True,
        )
        try:
            code = _wait(process, timeout_s, is_wanted)
        finally:
            _stop(process)
        if isinstance(code, Unreviewed):
            return code
        out.seek(0)
        log.seek(0)
        data, said = out.read(_MAX_RESULT_BYTES), log.read()[-4000:].decode(errors="replace").strip()
    if code in (0, 4):
        try:
            return ReviewResult.model_validate_json(data)
        except ValidationError:
            return Unreviewed("The review left no result that can be read.", ours=True)
    last = said.splitlines()[-1] if said else f"The review ended with code {code}."
    return Unreviewed(last[:1000], ours=code != 2)


def _wait(process: subprocess.Popen[bytes], timeout_s: float, is_wanted: Callable[[], bool]) -> int | Unreviewed:
    """The exit code, or why it was not waited for any longer."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            return process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if not is_wanted():
                return Unreviewed("Nobody wants this review any more.", ours=False)
    return Unreviewed(f"The review did not end within {timeout_s:g} s.", ours=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(_GRACE_S)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


class FetchError(Exception):
    """The commits of a pull request could not be fetched."""


def fetch_commits(url: str, token: str, commits: Sequence[tuple[str, str]], folder: Path, timeout_s: float) -> None:
    """Fetch single commits into a new repository in `folder`. Each is (id, reference to try when the id is refused).

    The token travels in git's environment, never on a command line and never into the repository.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    if token:
        header = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: basic {header}",
        }

    def git(*words: str) -> str | None:
        """What went wrong, None when nothing did."""
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return f"git did not end within {timeout_s:g} s"
        return None if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[-300:] or "git failed"

    if (problem := git("init", "--quiet")) is not None:
        raise FetchError(problem)
    for commit, reference in commits:
        options = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--end-of-options", url)
        problem = git(*options, commit)
        if problem is not None and reference:
            problem = git(*options, reference)
        if problem is not None or git("cat-file", "-e", f"{commit}^{{commit}}") is not None:
            raise FetchError(f"{commit[:12]} cannot be fetched: {problem or 'it is not there any more'}")


def has_commit(folder: Path, commit: str) -> bool:
    """Whether a repository holds a commit."""
    words = ["git", "-C", str(folder), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
