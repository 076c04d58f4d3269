"""A child that cannot start says nothing about the kernel: that is a fault, never a result."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.errors import SandboxError, ToolMissing
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target

KERNEL = Kernel("import triton\n", "k.py", Language.TRITON)


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """A Python that ends as one without our dependencies does."""
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named '$MISSING'\" >&2\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("module", "fault", "message"),
    [
        ("torch", ToolMissing, "torch is not installed.*ROCm build"),
        ("triton", ToolMissing, "triton is not installed"),
        ("pydantic", SandboxError, "could not start: ModuleNotFoundError: No module named 'pydantic'"),
    ],
)
def test_a_child_that_cannot_start_is_a_fault(
    interpreter: Path, monkeypatch: pytest.MonkeyPatch, module: str, fault: type[Exception], message: str
) -> None:
    interpreter.write_text(interpreter.read_text().replace("$MISSING", module))
    monkeypatch.setattr(sys, "executable", str(interpreter))
    # inside bubblewrap the stand-in does not exist
    monkeypatch.setattr("sandbox.isolation.isolation_level", lambda: "process")
    with pytest.raises(fault, match=message):
        capture(KERNEL, load_target("gfx950"), executor="none")
