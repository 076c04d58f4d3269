"""The bot in a workflow: the command as the Action runs it, with the runner's environment, against the same GitHub."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from branches import KERNEL, LIBDEVICE
from gidgethub import HTTPException
from github_server import FULL_NAME, NUMBER, OWNER, GitHub, git_root
from serving import PATIENCE_S

from agent.review.config import parse_config
from agent.review.finding import RULES
from api.github.action import Ended, answer, post_review, print_annotations, read_review, read_workflow
from api.jobs import wavesmith_command
from sandbox.errors import InputError

ROOT = Path(__file__).parents[2]
BOT = "github-actions[bot]"


class Workflow:
    """Runs `wavesmith review --github` as a step of a workflow."""

    def __init__(self, github: GitHub, folder: Path) -> None:
        self.github, self.folder = github, folder
        github.branches.commit({".wavesmith.yml": "targets: [gfx942]\nevidence: source\n", "ops/k.py": KERNEL})
        github.branches.branch("pr")
        github.branches.commit({"ops/k.py": LIBDEVICE})
        github.tokens |= {"ghs_writes": BOT, "ghs_reads": ""}
        self.git_url = git_root(github, folder / "git")
        self.summary = folder / "summary.md"

    def environment(self, event: str, payload: dict[str, Any], token: str, checkout: bool) -> dict[str, str]:
        """What GitHub's runner sets."""
        file = self.folder / "event.json"
        file.write_text(json.dumps(payload))
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        return {
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_REPOSITORY": FULL_NAME,
            "GITHUB_TOKEN": token,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": self.git_url,
            "GITHUB_WORKSPACE": str(self.github.branches.folder if checkout else empty),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, event: str, payload: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
        """As a step: the command in a process of its own."""
        workflow = self.environment(event, payload, "ghs_writes", True)
        command = wavesmith_command("review", "--github", *words)
        return subprocess.run(
            command, env=os.environ | workflow, capture_output=True, text=True, timeout=2 * PATIENCE_S
        )

    def answer(
        self,
        event: str,
        payload: dict[str, Any],
        *,
        token: str = "ghs_writes",
        checkout: bool = True,
        out: Path | None = None,
        post: Path | None = None,
    ) -> Ended:
        """What the command does, in this process."""
        workflow = read_workflow(self.environment(event, payload, token, checkout))
        if post is not None:
            return asyncio.run(post_review(workflow, post))
        return asyncio.run(answer(workflow, (), 2 * PATIENCE_S, out))

    def pull_event(self) -> dict[str, Any]:
        sides = {"head": {"sha": self.github.head}, "base": {"sha": self.github.base}}
        return {"action": "opened", "pull_request": {"number": NUMBER, **sides}, "repository": {"full_name": FULL_NAME}}

    def comment_event(self, login: str, body: str) -> dict[str, Any]:
        comment = {"id": self.github.say(login, body), "body": body, "user": {"login": login, "type": "User"}}
        issue = {"number": NUMBER, "pull_request": {}}
        return {"action": "created", "issue": issue, "comment": comment, "repository": {"full_name": FULL_NAME}}

    def run_event(self) -> dict[str, Any]:
        run = {
            "event": "pull_request",
            "head_sha": self.github.head,
            "head_branch": "pr",
            "head_repository": {"owner": {"login": OWNER}},
        }
        return {"action": "completed", "workflow_run": run, "repository": {"full_name": FULL_NAME}}


@pytest.fixture
def workflow(github: GitHub, tmp_path: Path) -> Workflow:
    return Workflow(github, tmp_path)


def test_a_pull_request_is_reviewed_and_answered(workflow: Workflow, tmp_path: Path) -> None:
    sarif = tmp_path / "out.sarif"
    done = workflow.run("pull_request", workflow.pull_event(), "--fail-on", "error", "--sarif", str(sarif))
    assert done.returncode == 4, done.stderr
    github = workflow.github
    assert github.checks[0]["conclusion"] == "failure" and len(github.review_comments) == 1
    assert github.comments[0]["user"]["login"] == BOT
    assert json.loads(sarif.read_text())["runs"][0]["results"]
    assert "1 error introduced" in workflow.summary.read_text()


def test_a_fork_is_posted_by_a_second_workflow(workflow: Workflow, tmp_path: Path, capsys: Any) -> None:
    """The first has a token that may only read; the second runs none of the pull request's code."""
    github, review = workflow.github, tmp_path / "review.json"
    ended = workflow.answer("pull_request", workflow.pull_event(), token="ghs_reads", out=review)
    assert not ended.posted and "may only read" in ended.message and github.checks == []
    assert capsys.readouterr().out.startswith("::error file=ops/k.py,line=")
    ended = workflow.answer("workflow_run", workflow.run_event(), post=review, checkout=False)
    assert ended.posted and len(github.checks) == len(github.comments) == len(github.review_comments) == 1

    honest = json.loads(review.read_text())
    for change, words in (
        ({"head": "0" * 40}, "about another commit"),
        ({"findings": [{"rule": "x"}]}, "it is no review"),
        ({"more": 1}, "it is no review"),
        ({"max_suggestions": 500}, "it is no review"),
    ):
        review.write_text(json.dumps({**honest, **change}))
        with pytest.raises(InputError, match=words):
            workflow.answer("workflow_run", workflow.run_event(), post=review, checkout=False)
    assert len(github.checks) == 1
    review.write_text(json.dumps(honest))
    github.state = "closed"
    assert "no open pull request" in workflow.answer("workflow_run", workflow.run_event(), post=review).message

    finding = read_review(review).findings[0]
    forged = finding.model_copy(update={"path": "a,line=1::b\n::set-x::y", "message": "100%\n::error::z"})
    print_annotations(read_review(review).model_copy(update={"findings": (forged,)}))
    (line,) = capsys.readouterr().out.splitlines()
    assert "file=a%2Cline=1%3A%3Ab%0A%3A%3Aset-x%3A%3Ay,line=" in line and "100%25%0A::error::z" in line


def test_commands_need_write_access_and_are_remembered_in_the_conversation(workflow: Workflow) -> None:
    github = workflow.github
    ended = workflow.answer("issue_comment", workflow.comment_event("reader", "/wavesmith ignore cuda-only"))
    assert "no write access" in ended.message and github.checks == []
    ended = workflow.answer("issue_comment", workflow.comment_event("writer", "/wavesmith rerun"), checkout=False)
    assert ended.posted and github.checks[-1]["conclusion"] == "neutral"
    workflow.answer("issue_comment", workflow.comment_event("writer", "/wavesmith ignore cuda-only"))
    assert github.checks[-1]["conclusion"] == "success" and len(github.review_comments) == 1


def test_other_events_and_no_workflow_at_all(workflow: Workflow) -> None:
    assert "Nothing to do" in workflow.answer("push", {"ref": "refs/heads/main"}).message
    with pytest.raises(InputError, match="GITHUB_TOKEN is not set"):
        workflow.answer("pull_request", workflow.pull_event(), token="")
    with pytest.raises(HTTPException, match="Bad credentials"):
        workflow.answer("pull_request", workflow.pull_event(), token="ghs_unknown")


def test_the_documentation_names_every_rule_and_its_configuration_is_valid() -> None:
    text = (ROOT / "docs/ci.md").read_text()
    for rule in RULES.values():
        assert f"| `{rule.id}` | {rule.level} |" in text
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert parse_config(blocks[0].encode()).harnesses == {"ops/*.py": "bench/run_ops.py"}
    for block in blocks[1:]:
        steps = [s for job in yaml.safe_load(block)["jobs"].values() for s in job["steps"]]
        assert any(str(s.get("uses", "")).startswith("wavesmith/") for s in steps)


def test_the_action_hands_its_inputs_over_without_pasting_them_into_a_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"], "an expression inside a script can be broken out of"
    given = " ".join(str(s.get("env", {})) for s in action["runs"]["steps"])
    assert all(f"inputs.{name} " in given for name in action["inputs"])
