"""From a webhook to what stands on the pull request, against a server that speaks GitHub's REST and keeps its state."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from pathlib import Path

import pytest
from bot_service import Service
from branches import KERNEL, LIBDEVICE, Branches
from gidgethub import BadRequest
from github_server import Fault, problem
from octokit import description
from seeding import review_result
from serving import processes_of, wait_for

from api.github.render import MARKER, RESOLVED, annotation_batches, comment_text
from api.github.runner import delay_s
from api.github.threads import graphql_url

pytestmark = pytest.mark.timeout(900)
CONFIG = "targets: [gfx942]\nevidence: source\n"
CLEAN = KERNEL.replace("* 2.0", "* 3.0")


def open_pull(branches: Branches, after: str = LIBDEVICE, config: str = CONFIG) -> None:
    branches.commit({".wavesmith.yml": config, "ops/k.py": KERNEL})
    branches.branch("pr")
    branches.commit({"ops/k.py": after})


@pytest.mark.slow
def test_a_webhook_becomes_a_check_run_a_comment_and_a_suggestion(branches: Branches, service: Service) -> None:
    """With the compiler: what is said of the fix was shown."""
    open_pull(branches, config="targets: [gfx942]\nevidence: compiled\n")
    github = service.github
    assert service.send("pull_request", service.pull_event("opened")).json() == {"status": "queued"}
    row = service.finished(1)
    assert row.state == "done" and row.introduced == 1, row
    (check,) = github.checks
    assert check["details_url"] == f"https://wavesmith.example/pulls/{row.id}"
    assert (check["status"], check["conclusion"], check["head_sha"]) == ("completed", "neutral", github.head)
    (annotation,) = github.annotations
    assert annotation["path"] == "ops/k.py" and annotation["annotation_level"] == "failure"
    (comment,) = github.comments
    assert MARKER in comment["body"] and "compiled, not executed" in comment["body"] and len(comment["body"]) < 2500
    (suggested,) = github.review_comments
    assert "```suggestion\n" in suggested["body"] and "results were not compared" in suggested["body"]
    assert "git apply" not in comment["body"]


def test_a_second_push_edits_the_same_comment(branches: Branches, service: Service) -> None:
    open_pull(branches)
    github = service.github
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).introduced == 1
    first = github.comments[0]["body"]
    branches.commit({"ops/k.py": LIBDEVICE.replace("mask = i < n", "mask = (i < n) & (i >= 0)"), "ops/j.py": LIBDEVICE})
    service.send("pull_request", service.pull_event())
    assert service.finished(2).introduced == 2
    assert len(github.comments) == 1 and "ops/j.py" in github.comments[0]["body"]
    assert [c["path"] for c in github.review_comments] == ["ops/k.py", "ops/j.py"], "no suggestion is repeated"
    assert description().checked > 20
    assert github.comments[0]["body"] != first


def test_a_dismissed_finding_stays_quiet_and_a_clean_push_resolves(branches: Branches, service: Service) -> None:
    open_pull(branches)
    github = service.github
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).introduced == 1
    (asked,) = [service.comment_event("reader", "/wavesmith ignore cuda-only")]
    service.send("issue_comment", asked)
    assert service.finished(2).state == "refused" and "no write access" in service.finished(2).summary
    assert RESOLVED not in github.comments[0]["body"]
    service.send("issue_comment", service.comment_event("writer", "Known.\n\n/wavesmith ignore cuda-only\n"))
    assert service.finished(3).introduced == 0
    assert RESOLVED in github.comments[0]["body"] and github.checks[-1]["conclusion"] == "success"
    assert github.reactions == [(github.comments[2]["id"], "+1")]
    branches.commit({"ops/j.py": LIBDEVICE})
    service.send("pull_request", service.pull_event())
    assert service.finished(4).introduced == 0, "the dismissed rule speaks again"
    assert len(github.review_comments) == 1


def test_a_resolved_conversation_dismisses_its_finding_and_no_other(branches: Branches, service: Service) -> None:
    open_pull(branches)
    files: dict[str, str | bytes | None] = {f"ops/{name}.py": LIBDEVICE for name in "abc"}
    branches.commit(files)
    github = service.github
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).introduced == 4
    of_file = {c["path"]: c["id"] for c in github.review_comments}
    github.resolved = {of_file["ops/c.py"]: "writer", of_file["ops/b.py"]: "reader"}
    copied = github.review_comments[0]
    copied["user"] = {**copied["user"], "login": "someone"}
    github.resolved[copied["id"]] = "writer"
    branches.commit({"notes.txt": "x"})
    service.send("pull_request", service.pull_event())
    assert service.finished(2).introduced == 3, "only write access dismisses, and only what is ours"
    assert "ops/c.py" not in github.comments[0]["body"] and "ops/b.py" in github.comments[0]["body"]
    assert "ops/c.py" not in json.dumps(github.annotations[4:])
    github.resolved = {}
    service.send("issue_comment", service.comment_event("writer", "/wavesmith rerun"))
    assert service.finished(3).introduced == 4 and "ops/c.py" in github.comments[0]["body"]


@pytest.mark.parametrize("status", [200, 403, 404])
def test_conversations_that_cannot_be_read_dismiss_nothing(branches: Branches, service: Service, status: int) -> None:
    open_pull(branches)
    refused = {"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}], "data": None}
    service.github.faults = [Fault("POST", "/graphql$", status, refused if status == 200 else problem("no"))]
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).introduced == 1 and service.github.faults[0].times == 0
    assert len(service.github.comments) == 1


def test_a_limit_is_waited_out_between_tries() -> None:
    """Longer than one request waits: as GitHub says, and never at once."""
    limited = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 3000)}
    fault = BadRequest(HTTPStatus.FORBIDDEN, "API rate limit exceeded", headers=limited)
    assert 2900 < delay_s(fault, 1) <= 3000
    assert delay_s(BadRequest(HTTPStatus.TOO_MANY_REQUESTS, "x", headers={"retry-after": "1800"}), 1) == 1800
    assert 0 < delay_s(OSError("gone"), 1) < delay_s(OSError("gone"), 2)


def test_a_long_comment_stays_short_and_the_check_run_has_all() -> None:
    result = review_result()
    (first, *_) = result.findings
    many = tuple(first.model_copy(update={"line": n + 1, "fingerprint": f"{n:016x}"}) for n in range(90))
    text = comment_text(result.model_copy(update={"findings": many}))
    assert text.count("<details>") == 20 and "70 more findings in the check run." in text and len(text) < 20_000
    assert sum(map(len, annotation_batches(result.model_copy(update={"findings": many})))) == 90


def test_graphql_lies_beside_rest() -> None:
    assert graphql_url("https://api.github.com") == "https://api.github.com/graphql"
    assert graphql_url("https://ghe.example/api/v3/") == "https://ghe.example/api/graphql"


def test_nothing_to_say_is_a_check_run_and_no_comment(branches: Branches, service: Service) -> None:
    open_pull(branches, CLEAN)
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).state == "done"
    assert service.github.comments == [] and service.github.checks[0]["conclusion"] == "success"
    assert service.github.checks[0]["output"]["title"] == "Nothing found in 1 affected kernel."


def test_rerun_and_target_commands(branches: Branches, service: Service) -> None:
    open_pull(branches)
    service.send("issue_comment", service.comment_event("writer", "/wavesmith target MI350X"))
    assert service.finished(1).targets == "gfx950"
    service.send("issue_comment", service.comment_event("writer", "/wavesmith rerun"))
    assert service.finished(2).targets == "gfx942"
    service.send("issue_comment", service.comment_event("writer", "/wavesmith target sm_90"))
    assert service.finished(3).state == "refused" and service.github.reactions[-1][1] == "confused"
    service.send("issue_comment", service.comment_event("stranger", "/wavesmith rerun"))
    assert service.finished(4).state == "refused"


def test_a_head_that_moves_while_it_is_reviewed_drops_the_result(branches: Branches, service: Service) -> None:
    open_pull(branches)
    github = service.github

    def force_push(line: str) -> None:
        if line.startswith("GET") and "/compare/" in line:
            github.on_request = lambda _: None
            branches.repo.git.commit("--amend", "-qm", "forced", "--date", "2001-01-01T00:00:00")

    github.on_request = force_push
    first = service.pull_event("opened")
    service.send("pull_request", first)
    assert service.finished(1).state == "superseded"
    assert github.comments == [] and github.review_comments == []
    assert github.checks[0]["conclusion"] == "cancelled"
    service.send("pull_request", first)
    assert service.finished(2).state == "superseded" and len(github.checks) == 1, "an old head is reviewed"


def test_a_newer_push_ends_the_review_that_runs(branches: Branches, service: Service) -> None:
    """The older one is not waited for: its kernel file would run for minutes."""
    slow = KERNEL.replace("* 2.0", "* 3.0") + "\nimport time\ntime.sleep(3000)\n"
    open_pull(branches, slow, config="targets: [gfx942]\nevidence: compiled\n")
    service.send("pull_request", service.pull_event("opened"))
    old = service.github.head
    wait_for(lambda: processes_of(f"--head\0{old}"))
    branches.commit({"ops/k.py": KERNEL + "# nothing\n"})
    service.send("pull_request", service.pull_event())
    assert service.finished(1).state == "superseded" and service.finished(2).state == "done"
    wait_for(lambda: not processes_of(f"--head\0{old}"))
    assert [c["conclusion"] for c in service.github.checks] == ["cancelled", "success"]


@pytest.mark.parametrize("how", ["gone", "closed", "force"])
def test_pulls_that_are_gone_or_closed(branches: Branches, service: Service, how: str) -> None:
    open_pull(branches)
    event = service.pull_event("opened")
    service.github.exists = how != "gone"
    service.github.state = "closed" if how == "closed" else "open"
    if how == "force":
        event["pull_request"]["head"]["sha"] = "0" * 40
    service.send("pull_request", event)
    assert service.finished(1).state == "superseded" and service.github.checks == []


def test_a_bad_configuration_is_said_in_the_check_run(branches: Branches, service: Service) -> None:
    open_pull(branches, config="minutes: soon\n")
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).state == "failed"
    output = service.github.checks[0]["output"]
    assert output["title"] == "The review needs a correction" and ".wavesmith.yml:1: minutes:" in output["summary"]


def test_rate_limits_are_waited_out(branches: Branches, service: Service) -> None:
    open_pull(branches)
    limited = problem("You have exceeded a secondary rate limit.")
    service.github.faults = [
        Fault("POST", "/check-runs$", 403, limited, {"retry-after": "1"}),
        Fault("PATCH", "/check-runs/", 429, limited, {"retry-after": "1"}, times=2),
        Fault("GET", "/comments$", 502, problem("Bad Gateway")),
        Fault("POST", "/reviews$", 403, problem("API rate limit exceeded"), {"x-ratelimit-remaining": "0",
              "x-ratelimit-limit": "5000", "x-ratelimit-reset": "1"}),
    ]  # fmt: skip
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).state == "done"
    assert len(service.github.checks) == 1 and len(service.github.comments) == 1
    assert len(service.github.review_comments) == 1 and all(f.times == 0 for f in service.github.faults)


def test_refusals_of_single_writes_lose_nothing_else(branches: Branches, service: Service) -> None:
    open_pull(branches)
    invalid = {**problem("Validation Failed"), "errors": [{"code": "invalid"}]}
    service.github.faults = [
        Fault("POST", "/reviews$", 422, invalid),
        Fault("POST", "/pulls/7/comments$", 422, invalid),
        Fault("PATCH", "/check-runs/", 422, invalid),
    ]
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).state == "done"
    assert service.github.review_comments == [] and "git apply" in service.github.comments[0]["body"]
    assert service.github.checks[0]["status"] == "completed" and service.github.annotations == []


def test_a_locked_conversation_and_a_token_that_may_not_write(branches: Branches, service: Service) -> None:
    open_pull(branches)
    service.github.locked = True
    service.send("pull_request", service.pull_event("opened"))
    row = service.finished(1)
    assert row.state == "done" and "comment could not be posted" in row.summary
    refused = problem("Resource not accessible by integration")
    service.github.faults = [Fault("POST", "/check-runs$", 403, refused)]
    branches.commit({"x.txt": "x"})
    service.send("pull_request", service.pull_event())
    assert service.finished(2).state == "failed" and "needs write access to checks" in service.finished(2).summary


def test_comments_of_others_are_never_edited(branches: Branches, service: Service) -> None:
    open_pull(branches)
    service.github.say("someone", f"{MARKER} I copied this marker.")
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).state == "done"
    assert len(service.github.comments) == 2 and service.github.comments[0]["body"].endswith("this marker.")


def test_what_others_wrote_is_inert_in_what_is_posted(branches: Branches, service: Service) -> None:
    name = "ops/a `b` @team #1 <img src=x>.py"
    open_pull(branches)
    branches.commit({name: LIBDEVICE.replace("def scale", "def scale_it").replace("scale[", "scale_it[")})
    service.send("pull_request", service.pull_event("opened"))
    assert service.finished(1).introduced == 2
    body = service.github.comments[0]["body"]
    assert "<img" not in body and "<code>ops/a `b` @team #1 &lt;img src=x&gt;.py:4</code>" in body


def test_without_a_sandbox_strangers_code_is_only_read(
    branches: Branches, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WAVESMITH_ISOLATION", "process")
    proof = tmp_path / "it-ran"
    open_pull(branches, f"open({str(proof)!r}, 'w')\n{LIBDEVICE}", config="targets: [gfx942]\n")
    service.send("pull_request", service.pull_event("opened"))
    row = service.finished(1)
    assert row.state == "done" and row.introduced == 1 and not proof.exists()
    assert "read in the source, not built" in service.github.comments[0]["body"]


def test_the_token_reaches_neither_the_review_nor_the_disk(
    branches: Branches, service: Service, tmp_path: Path
) -> None:
    """A kernel file that prints its environment finds nothing of the bot's in it."""
    spy = KERNEL + "\nimport os\nraise SystemExit('ENV ' + ' '.join(f'{k}={v}' for k, v in os.environ.items()))\n"
    open_pull(branches, spy, config="targets: [gfx942]\nevidence: compiled\n")
    service.send("pull_request", service.pull_event("opened"))
    row = service.finished(1)
    told = json.dumps([row.result, row.summary, service.github.checks, service.github.comments])
    assert row.state == "done" and not any(token in told for token in service.github.tokens)
    assert "WAVESMITH_GITHUB" not in told and str(tmp_path) not in told
    stored = service.settings.database.read_bytes()
    assert not any(token.encode() in stored for token in service.github.tokens)
