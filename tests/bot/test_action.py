"""The bot in a workflow: the command as the Action runs it, with the runner's environment, against the same GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from branches import KERNEL, LIBDEVICE
from github_server import FULL_NAME, NUMBER, OWNER, GitHub, git_root

from agent.review.config import parse_config
from agent.review.finding import RULES
from api.github.action import print_annotations, read_review
from api.jobs import wavesmith_command

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

    def run(
        self, event: str, payload: dict[str, Any], *words: str, token: str = "ghs_writes", checkout: bool = True
    ) -> subprocess.CompletedProcess[str]:
        file = self.folder / "event.json"
        file.write_text(json.dumps(payload))
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        workflow = {
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_REPOSITORY": FULL_NAME,
            "GITHUB_TOKEN": token,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": self.git_url,
            "GITHUB_WORKSPACE": str(self.github.branches.folder if checkout else empty),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        command = wavesmith_command("review", "--github", *words)
        return subprocess.run(command, env=os.environ | workflow, capture_output=True, text=True, timeout=150)

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


def test_a_fork_is_posted_by_a_second_workflow(workflow: Workflow, tmp_path: Path) -> None:
    """The first has a token that may only read; the second runs none of the pull request's code."""
    github, review = workflow.github, tmp_path / "review.json"
    done = workflow.run("pull_request", workflow.pull_event(), "--out", str(review), token="ghs_reads")
    assert done.returncode == 0 and "may only read" in done.stderr
    assert done.stdout.startswith("::error file=ops/k.py,line=") and github.checks == []
    done = workflow.run("workflow_run", workflow.run_event(), "--post", str(review), checkout=False)
    assert done.returncode == 0, done.stderr
    assert len(github.checks) == len(github.comments) == len(github.review_comments) == 1

    forged = json.loads(review.read_text())
    for change, words in (
        ({"head": "0" * 40}, "about another commit"),
        ({"findings": [{"rule": "x"}]}, "it is no review"),
        ({"more": 1}, "it is no review"),
        ({"max_suggestions": 500}, "it is no review"),
    ):
        review.write_text(json.dumps({**forged, **change}))
        done = workflow.run("workflow_run", workflow.run_event(), "--post", str(review), checkout=False)
        assert done.returncode == 2 and words in done.stderr, done.stderr
    assert len(github.checks) == 1


def test_commands_need_write_access_and_are_remembered_in_the_conversation(workflow: Workflow) -> None:
    github = workflow.github
    done = workflow.run("issue_comment", workflow.comment_event("reader", "/wavesmith ignore cuda-only"))
    assert "no write access" in done.stderr and github.checks == []
    done = workflow.run("issue_comment", workflow.comment_event("writer", "/wavesmith rerun"), checkout=False)
    assert done.returncode == 0 and github.checks[-1]["conclusion"] == "neutral", done.stderr
    done = workflow.run("issue_comment", workflow.comment_event("writer", "/wavesmith ignore cuda-only"))
    assert github.checks[-1]["conclusion"] == "success", done.stderr
    done = workflow.run("pull_request", workflow.pull_event())
    assert github.checks[-1]["conclusion"] == "success" and len(github.review_comments) == 1


def test_other_events_and_no_workflow_at_all(workflow: Workflow) -> None:
    done = workflow.run("push", {"ref": "refs/heads/main"})
    assert done.returncode == 0 and "Nothing to do" in done.stderr
    done = workflow.run("pull_request", workflow.pull_event(), token="")
    assert done.returncode == 2 and "GITHUB_TOKEN is not set" in done.stderr
    done = workflow.run("pull_request", workflow.pull_event(), token="ghs_unknown")
    assert done.returncode == 1 and "GitHub could not be used" in done.stderr


def test_annotations_of_the_log_cannot_be_forged(workflow: Workflow, tmp_path: Path, capsys: Any) -> None:
    review = tmp_path / "review.json"
    workflow.run("pull_request", workflow.pull_event(), "--out", str(review), token="ghs_reads")
    result = read_review(review)
    finding = result.findings[0].model_copy(update={"path": "a,line=1::b\n::set-x::y", "message": "100%\n::error::z"})
    print_annotations(result.model_copy(update={"findings": (finding,)}))
    (line,) = capsys.readouterr().out.splitlines()
    assert "file=a%2Cline=1%3A%3Ab%0A%3A%3Aset-x%3A%3Ay,line=" in line and "100%25%0A::error::z" in line


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
