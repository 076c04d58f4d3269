"""A model in a whole job, through both doors: what is checked first, what is stored, and that it can be replayed."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from provider import Provider, Step, gpt, gpt_error, provider

from agent.job import Budget, ModelChoice, Options
from agent.memory import Memory
from agent.model_access import KEY_VARIABLES, PRICE_VARIABLE, fill_budget, model_price, open_model, parse_model
from agent.report import Report, load_report
from api.app import create_app
from api.cli import _run
from api.jobs import child_environment, command_of
from api.model_options import AskedModel, with_model
from api.settings import Settings
from sandbox.errors import InputError

KEY = "sk-canary-2718281828"
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * 2.0 + 1.0, mask=i < n)


def run(x):
    y = torch.empty_like(x)
    BLOCK = 32768
    scale_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y


if __name__ == "__main__":
    x = torch.randn(5000, device="cuda")
    torch.testing.assert_close(run(x), x * 2.0 + 1.0)
"""


OLD = {"block": "BLOCK = 32768", "result": "    return y\n"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("WAVESMITH_MEMORY", str(tmp_path / "memory.db"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv(PRICE_VARIABLE, raising=False)
    with provider() as running:
        yield running


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return path


def submit(**edits: str) -> Step:
    found = [{"search": OLD[name], "replace": text} for name, text in edits.items()]
    arguments = {"title": "Smaller blocks", "why": "Registers", "edits": found}
    return Step(events=gpt(None, [("c1", "submit_candidate", json.dumps(arguments))], "tool_calls"))


def optimize(kernel: Path, server: Provider, out: Path, *words: str) -> tuple[int, Report]:
    model = ["--model", "openai:tester", "--model-base-url", f"{server.url}/v1", "--executor", "interpreter"]
    code = _run(["optimize", str(kernel), "--target", "gfx950", "--out", str(out), *model, *words])
    return code, load_report((out / "report.json").read_text())


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_models_proposal_wins_and_the_job_replays_byte_for_byte_without_a_network(
    kernel: Path, server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PRICE_VARIABLE, "3/15")
    cheat = submit(block="BLOCK = 1024", result="    return x * 2.0 + 1.0\n")
    good = submit(block="BLOCK = 512")
    end = Step(events=gpt("Nothing further."))
    server.script[:] = [cheat, good, *[end] * 20]
    out = tmp_path / "out"
    code, report = optimize(kernel, server, out, "--budget-usd", "0.5", "--progress", "json")
    said = capfd.readouterr().err
    assert (code, report.outcome) == (0, "improved"), report.summary
    assert "BLOCK = 512" in (out / "patched" / report.file.path).read_text()
    fates = {a.fate: a for a in report.attempts if a.origin == "tester"}
    assert "library-call" in fates["dropped"].reason and fates["kept"].title == "Smaller blocks"
    part = report.model
    assert part is not None and not part.failed
    calls = len(server.requests)
    assert (part.calls, part.proposals, part.kept) == (calls, 2, 1)
    # by hand: 100 input tokens at 3 and 20 output tokens at 15 dollars per million, for each call
    assert "judged once more on inputs that nobody saw during the search, it held" in part.confirmation
    assert part.usd == pytest.approx(calls * (100 * 3 + 20 * 15) / 1e6)
    assert "of $0.50" in said, "the account is shown while the job runs"
    stored = b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    assert KEY.encode() not in stored and KEY not in said
    assert server.url.encode() not in (out / "report.json").read_bytes()
    assert f"Bearer {KEY}" in server.headers[0]["authorization"]
    assert "## Language model" in (out / "report.md").read_text()
    memory = Memory(tmp_path / "memory.db")
    (win,) = memory.wins(stale=False)
    assert win.title == "Smaller blocks" and "BLOCK = 512" in win.program.after
    assert "library-call" in memory.failures()[0][3]
    replay_offline(out, tmp_path / "again", monkeypatch, server)


def replay_offline(
    out: Path,
    again: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: Provider,
    name: str | None = None,
    code: int = 0,
    same: Callable[[], bool] | None = None,
) -> None:
    """Without SDKs, keys and network the job `name`, or the one in `out`, gives the same: its patch, if not said."""

    def refuse(self: socket.socket, address: object) -> None:
        assert self.family == socket.AF_UNIX, f"the replay connects to {address}"

    asked = len(server.requests)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for package in ("openai", "anthropic"):
        monkeypatch.setitem(sys.modules, package, None)
    for variable in KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert _run(["replay", name or str(out), "--out", str(again)]) == code
    if same is not None:
        assert same()
    else:
        assert (again / "wavesmith.patch").read_bytes() == (out / "wavesmith.patch").read_bytes()
    assert len(server.requests) == asked


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_model_that_fails_in_mid_job_leaves_the_deterministic_result(
    kernel: Path, server: Provider, tmp_path: Path
) -> None:
    server.script[:] = [Step(401, gpt_error("the key was withdrawn"))]
    code, report = optimize(kernel, server, tmp_path / "out")
    assert code == 3
    assert "The model failed during the job" in report.summary and "401" in report.summary
    assert report.model is not None and report.model.failed and report.model.usd is None


MISSING = [
    (["--model", "tester"], "'tester' names no model. Write PROVIDER:NAME; providers are anthropic, openai."),
    (["--model", "acme:x"], "'acme:x' names no model."),
    (["--model", "anthropic:claude-opus-5"], "there is no key for anthropic:claude-opus-5. Set ANTHROPIC_API_KEY"),
    (["--model", "openai:x", "--budget-usd", "1"], "the price of openai:x is not known"),
    (["--model", "openai:gpt-5", "--budget-usd", "none"], "'none' is no budget in dollars"),
    (["--model", "openai:x", "--model-base-url", "ftp://h/v1"], "the model's base URL is not a web address"),
    (["--model", "openai:x", "--model-base-url", "http://u:p@h/v1"], "holds more than an address"),
    (["--model", "openai:x", "--model-base-url", "http://127.0.0.1:9/v1"], "its server could not be reached"),
    (["--budget-usd", "1"], "but no model"),
]


@pytest.mark.parametrize(("words", "sentence"), MISSING, ids=range(len(MISSING)))
def test_what_is_missing_is_said_before_any_work(
    words: list[str], sentence: str, kernel: Path, server: Provider, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert _run(["optimize", str(kernel), "--target", "gfx950", "--out", str(out), *words]) == 2
    said = capfd.readouterr().err
    assert sentence in said and said.count("\n") <= 2
    assert not out.exists() and KEY not in said


def test_a_refused_key_is_said_before_any_work(
    kernel: Path, server: Provider, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.listing = Step(401, gpt_error("bad key"))
    words = ["--model", "openai:tester", "--model-base-url", f"{server.url}/v1"]
    assert _run(["optimize", str(kernel), "--target", "gfx950", "--out", str(tmp_path / "out"), *words]) == 2
    assert "refused the key (401). Check OPENAI_API_KEY." in capfd.readouterr().err


def test_a_redirect_is_said_before_any_work(server: Provider) -> None:
    server.listing = Step(308, body={}, headers={"location": "http://127.0.0.1:9/v1/models"})
    with pytest.raises(InputError, match="sends on to another address.*Give that address"):
        open_model(parse_model("openai:tester", f"{server.url}/v1"), {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize("status", [404, 501])
def test_a_server_without_a_list_of_models_is_fine(server: Provider, status: int) -> None:
    server.listing = Step(status, gpt_error("no such page"))
    for name in ("openai:tester", "anthropic:tester"):
        open_model(parse_model(name, f"{server.url}/v1"), {"OPENAI_API_KEY": KEY})
    assert len(server.gets) == 2


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.model_access.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"package openai is not installed.*pip install 'wavesmith\[openai\]'"):
        open_model(ModelChoice("openai", "gpt-5"), {"OPENAI_API_KEY": KEY})


def test_a_key_stays_where_candidates_cannot_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.model_access.isolation_level", lambda: "process")
    with pytest.raises(InputError, match="a candidate could read the model's key"):
        open_model(ModelChoice("openai", "gpt-5"), {"OPENAI_API_KEY": KEY}, check=False)
    local = ModelChoice("openai", "qwen", "http://127.0.0.1:8000/v1")
    assert open_model(local, {}, check=False).name == "qwen"


def test_a_key_does_not_cross_a_network_in_the_clear() -> None:
    sent = {"OPENAI_API_KEY": KEY}
    for url, expected in [
        ("http://10.0.0.7/v1", None), ("http://models.internal/v1", None), ("http://127.0.0.1/v1", KEY),
        ("https://models.internal/v1", KEY), ("http://[::1]:80/v1", KEY),
    ]:  # fmt: skip
        model: Any = open_model(parse_model("openai:x", url), sent, check=False)
        assert model.api_key == expected, url


def test_a_model_always_has_a_budget() -> None:
    priced, unknown = ModelChoice("openai", "gpt-5"), ModelChoice("openai", "gpt-5", "http://h/v1")
    assert fill_budget(priced, Budget(), {}).usd == 1
    assert fill_budget(unknown, Budget(), {}).tokens == 1_000_000
    assert fill_budget(unknown, Budget(tokens=5), {}).tokens == 5
    price = model_price(unknown, {PRICE_VARIABLE: "1/2/0.1/1.25"})
    assert price is not None and (str(price.output), str(price.cache_read)) == ("2", "0.1")
    for text in ("1", "a/b", "1/-2", "1/2/3", "nan/1"):
        with pytest.raises(InputError, match="is not a price"):
            model_price(priced, {PRICE_VARIABLE: text})


def test_one_budget_serves_both_doors() -> None:
    options = with_model(Options(), AskedModel("openai:gpt-5", None, "0.25", 1000), {})
    assert (str(options.budget.usd), options.budget.tokens) == ("0.25", 1000)


def client(folder: Path, **settings: Any) -> TestClient:
    return TestClient(create_app(Settings(data_dir=folder, workers=0, **settings)), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"model": "openai:gpt-5-mini"}, "is not offered here. Choose one of openai:gpt-5."),
        ({"model": "openai:gpt-5", "budget_usd": "7"}, "a job may allow its model $5 at most"),
        ({"model": "openai:gpt-5", "budget_usd": "x"}, "is no budget in dollars"),
        ({"model": "openai:gpt-5", "budget_tokens": "0"}, "a budget of 0 tokens"),
        ({"budget_tokens": "5"}, "but no model"),
        ({"budget_minutes": "-1"}, "budget_minutes is out of range"),
        ({"budget_minutes": "nan"}, "budget_minutes is out of range"),
        ({"budget_evaluations": "0"}, "budget_evaluations is out of range"),
        ({"kind": "port", "model": "openai:gpt-5"}, "are for kind=optimize"),
    ],
)
def test_the_rest_door_checks_the_same_fields(tmp_path: Path, form: dict[str, str], sentence: str) -> None:
    asked = client(tmp_path, models="openai:gpt-5")
    name = "k.cu" if form.get("kind") == "port" else "k.py"
    answer = asked.post("/v1/jobs", files={"file": (name, KERNEL)}, data={"target": "gfx950", **form})
    assert 400 <= answer.status_code < 500
    assert sentence in answer.json()["detail"], answer.text


def test_a_service_without_models_offers_none(tmp_path: Path) -> None:
    answer = client(tmp_path).post(
        "/v1/jobs", files={"file": ("k.py", KERNEL)}, data={"target": "gfx950", "model": "openai:gpt-5"}
    )
    assert "This service offers none." in answer.json()["detail"]


def test_a_missing_key_is_said_at_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a service with workers of its own; where they run elsewhere the key is theirs."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    form = {"target": "gfx950", "model": "openai:gpt-5"}
    for workers, status in ((1, 422), (0, 202)):
        app = create_app(Settings(data_dir=tmp_path / str(workers), workers=workers, models="openai:gpt-5"))
        asked = TestClient(app, base_url="http://127.0.0.1")
        answer = asked.post("/v1/jobs", files={"file": ("k.py", KERNEL)}, data=form)
        assert answer.status_code == status, answer.text
        if status == 422:
            assert answer.headers["content-type"] == "application/problem+json"
            said = "there is no key for openai:gpt-5. Set OPENAI_API_KEY in the environment."
            assert answer.json()["detail"] == said


def test_a_job_holds_the_models_name_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    url = "https://models.internal/v1"
    asked = client(tmp_path, models="openai:qwen", model_base_url=url)
    form = {"target": "gfx950", "model": "openai:qwen", "budget_tokens": "500", "budget_minutes": "2"}
    answer = asked.post("/v1/jobs", files={"file": ("k.py", KERNEL)}, data=form)
    assert answer.status_code == 202, answer.text
    store = asked.app.state.store  # type: ignore[attr-defined]
    job = store.job(answer.json()["id"])
    words = command_of(job, tmp_path)
    at = words.index("--model")
    assert words[at : at + 6] == ["--model", "openai:qwen", "--model-base-url", url, "--budget-tokens", "500"]
    assert words[-2:] == ["--budget-minutes", "2.0"]
    assert KEY not in repr(job) and KEY not in repr(words)
    assert child_environment("openai:qwen")["OPENAI_API_KEY"] == KEY
    assert "ANTHROPIC_API_KEY" not in child_environment("openai:qwen")
    assert "OPENAI_API_KEY" not in child_environment()
    assert KEY.encode() not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert os.environ["OPENAI_API_KEY"] == KEY
