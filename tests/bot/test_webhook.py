"""The webhook's door: signatures, replays, every official example payload, and a thousand mangled ones."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from bot_service import SECRET
from github_server import new_key, pem
from octokit import EXAMPLES, from_npm
from serving import PATIENCE_S, run_app

from api.app import create_app
from api.github.events import Asked, Closed, Ignored, Wanted, decide, find_command, parse_command
from api.github.signature import is_signed, sign
from api.settings import Settings
from sandbox.errors import InputError

PULL = {
    "action": "opened",
    "pull_request": {"number": 3, "head": {"sha": "a" * 40, "repo": None}, "base": {"sha": "b" * 40}},
    "repository": {"full_name": "o/r"},
    "installation": {"id": 5},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service set up as an App, with a token of its own; no delivery here is one that its runner could finish."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "key.pem").write_bytes(pem(new_key()))
    settings = Settings(
        data_dir=folder,
        token="0123456789abcdef",  # type: ignore[arg-type]
        github_webhook_secret=SECRET,  # type: ignore[arg-type]
        github_app_id="1",
        github_private_key_file=folder / "key.pem",
        github_api_url="http://127.0.0.1:9",
        poll_s=60,
    )
    with run_app(create_app(settings)) as address:
        yield address


class Sender:
    """Deliveries over one connection, each with an id of its own."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=PATIENCE_S)
        self.count = 0

    def send(self, event: str, body: bytes, **headers: str | None) -> httpx.Response:
        self.count += 1
        given: dict[str, str | None] = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": f"{self.count:08d}-{id(self):x}",
            "X-Hub-Signature-256": sign(body, SECRET),
            "Content-Type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        sent = {k: v for k, v in given.items() if v is not None}
        return self.client.post("/v1/github/webhook", content=body, headers=sent)


@pytest.fixture(scope="module")
def sender(url: str) -> Iterator[Sender]:
    made = Sender(url)
    yield made
    made.client.close()


def test_signatures_are_checked_before_anything_is_read(sender: Sender) -> None:
    body = json.dumps(PULL).encode()
    sha1 = "sha1=" + hmac.new(SECRET.encode(), body, hashlib.sha1).hexdigest()
    wrong = [
        None, "", "sha256=", "sha256=" + "0" * 64, sign(body, "another secret, as long"), sign(body + b" ", SECRET),
        sha1, sign(body, SECRET).removeprefix("sha256="), sign(body, SECRET) + "\t0",
    ]  # fmt: skip
    for header in wrong:
        response = sender.send("pull_request", body, X_Hub_Signature_256=header)
        assert response.status_code == 401 and response.json()["type"] == "/problems/unauthorized", header
    for broken in (b"", b"not json", b"\xff\xfe", b"[" * 100_000):
        assert sender.send("pull_request", broken, X_Hub_Signature_256="sha256=" + "0" * 64).status_code == 401
        assert sender.send("pull_request", broken).status_code == 400


def test_the_published_example_of_a_signature() -> None:
    """From GitHub's page on validating webhook deliveries."""
    header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_signed(b"Hello, World!", header, "It's a Secret to Everybody")
    assert not is_signed(b"Hello, World", header, "It's a Secret to Everybody")


def test_a_replay_is_refused_and_a_refused_delivery_is_not_remembered(sender: Sender) -> None:
    body = json.dumps(PULL).encode()
    assert sender.send("pull_request", body, X_GitHub_Delivery="replayed-1").status_code == 202
    again = sender.send("pull_request", body, X_GitHub_Delivery="replayed-1")
    assert again.status_code == 409 and again.json()["type"] == "/problems/conflict"
    assert sender.send("ping", b"{}", X_GitHub_Delivery="replayed-1").status_code == 409
    bad = json.dumps({**PULL, "repository": {"full_name": "../x"}}).encode()
    assert sender.send("pull_request", bad, X_GitHub_Delivery="mended-01").status_code == 422
    assert sender.send("pull_request", body, X_GitHub_Delivery="mended-01").status_code == 202
    for missing in ({"X_GitHub_Delivery": None}, {"X_GitHub_Event": None}, {"X_GitHub_Delivery": "x y\u00e9"}):
        try:
            assert sender.send("pull_request", body, **missing).status_code == 400
        except UnicodeEncodeError:
            continue


def test_the_webhook_needs_no_bearer_token_and_everything_else_does(sender: Sender) -> None:
    assert sender.send("ping", b"{}").status_code == 202
    assert sender.client.get("/v1/jobs").status_code == 401
    assert sender.client.get("/v1/github/webhook").status_code in (401, 405)


def test_without_a_secret_there_is_no_webhook(tmp_path: Path) -> None:
    with run_app(create_app(Settings(data_dir=tmp_path))) as url:
        made = Sender(url)
        assert made.send("ping", b"{}").status_code == 404
        made.client.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"github_webhook_secret": SECRET}, "set up in part"),
        ({"github_webhook_secret": SECRET, "github_app_id": "1", "github_private_key_file": "nowhere"}, "no such key"),
    ],
)
def test_half_a_setup_is_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Settings(data_dir=tmp_path, **given).check()


def test_every_official_example_is_handled_or_ignored_on_purpose(sender: Sender) -> None:
    outcomes: Counter[str] = Counter()
    for event in from_npm(*EXAMPLES):
        for example in event["examples"]:
            response = sender.send(event["name"], json.dumps(example).encode())
            assert response.status_code == 202, (event["name"], response.text)
            outcomes[response.json()["status"]] += 1
            decision = decide(event["name"], example)
            assert isinstance(decision, Wanted | Asked | Closed) or decision.reason
    assert sum(outcomes.values()) == 329 and outcomes["queued"] >= 3 and outcomes["closed"] >= 1, outcomes


def test_a_thousand_mangled_payloads_never_break_the_service(sender: Sender) -> None:
    """Official payloads with values replaced, removed and nested at random: any answer but a 5xx."""
    rng = random.Random(8)
    examples = {e["name"]: e["examples"] for e in from_npm(*EXAMPLES)}
    handled = ("pull_request", "issue_comment", "check_run", "check_suite")
    statuses: Counter[int] = Counter()
    for n in range(1000):
        event = rng.choice(handled) if n % 4 else rng.choice(sorted(examples))
        payload = json.loads(json.dumps(rng.choice(examples[event])))
        if event in handled and rng.random() < 0.7:
            actions = ["opened", "synchronize", "closed", "created", "rerequested"]
            payload = {**payload, "action": rng.choice(actions)}
        body = json.dumps(mangled(payload, rng)).encode()
        if n % 50 == 0:
            body = body[: rng.randrange(len(body))]
        statuses[sender.send(event, body).status_code] += 1
    assert set(statuses) <= {202, 400, 422}, statuses
    assert statuses[422] > 20 and statuses[202] > 200, statuses


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1e400, "", "\u0000", "x" * 5000, "../../etc", "\ud800", [], {}, [[[]]], {"sha": {}},
    "/wavesmith ignore " + "y" * 300, "0" * 40, "a/b",
)  # fmt: skip


def mangled(node: Any, rng: random.Random) -> Any:
    """A copy in which some values are something else."""
    if rng.random() < 0.02:
        return rng.choice(ODD)
    if isinstance(node, dict):
        return {k: mangled(v, rng) for k, v in node.items() if rng.random() > 0.01}
    if isinstance(node, list):
        return [mangled(v, rng) for v in node]
    return node


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/wavesmith rerun", "rerun"),
        ("Thanks!\r\n\r\n/wavesmith  ignore   spills\r\n", "ignore spills"),
        ("> /wavesmith rerun", ""),
        ("see `/wavesmith rerun`", ""),
        ("/wavesmithy rerun", ""),
        ("/wavesmith", ""),
    ],
)
def test_commands_are_lines_of_their_own(body: str, command: str) -> None:
    assert find_command(body) == command


def test_only_known_commands_are_understood() -> None:
    assert parse_command("rerun") is not None and parse_command("target gfx942, MI350X").names == ("gfx942", "gfx950")  # type: ignore[union-attr]
    assert parse_command("ignore spills 0123456789abcdef") is not None
    for text in ("rerun now", "target", "target sm_90", "target ; rm", "ignore", "ignore everything", "delete", "-"):
        assert parse_command(text) is None, text


def test_bots_forks_and_drafts() -> None:
    comment = {"id": 1, "body": "/wavesmith rerun", "user": {"login": "x[bot]", "type": "Bot"}}
    on_pull = {"number": 3, "pull_request": {}}
    event = {"action": "created", "issue": on_pull, "comment": comment, "repository": {"full_name": "o/r"}}
    assert isinstance(decide("issue_comment", event), Ignored)
    assert isinstance(decide("issue_comment", {**event, "issue": {"number": 3}}), Ignored)
    fork = decide("pull_request", PULL)
    assert isinstance(fork, Wanted) and fork.from_fork
    draft = {**PULL, "pull_request": {**PULL["pull_request"], "draft": True}}  # type: ignore[dict-item]
    assert decide("pull_request", draft) == Ignored("the pull request is a draft")
