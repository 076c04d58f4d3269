"""A command that is told to end: the real program and real signals, busy in each of the ways that kept it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.process_tree import descendants_among_all

SOON_S = 3.0
"""What is promised is about two seconds; the machine may be busy."""
COMMAND = "from api.cli import main; main()"
BUSY_HARNESS = """
import torch, triton, triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

x = torch.ones(64, device="cuda")
print("here", flush=True)
while True:
    x = x + 1
"""
SLOW_COMPILER = """#!/bin/sh
case "$*" in *--version*) echo slow 1.0; exit 0;; esac
sleep 47
"""


class Told:
    """A program that was told to end while it was `busy`: how it ended, when, and what it left."""

    def __init__(self, words: list[str], folder: Path, sign: signal.Signals, busy: Callable[[set[int]], bool]) -> None:
        temporary = folder / "temporary"
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary), "WAVESMITH_CACHE_DIR": str(folder / "cache")}
        with subprocess.Popen(
            [sys.executable, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).parent.parent, preexec_fn=_heeds_the_keyboard,
        ) as process:  # fmt: skip
            below = self._wait_until(busy, process)
            began = time.monotonic()
            process.send_signal(sign)
            _, self.complaints = process.communicate(timeout=60)
            self.seconds = time.monotonic() - began
        self.code = process.returncode
        self.alive = [pid for pid in below if _lives(pid)]
        self.folders = list(temporary.iterdir())

    def _wait_until(self, busy: Callable[[set[int]], bool], process: subprocess.Popen[str]) -> set[int]:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            below = descendants_among_all(process.pid) - {process.pid}
            if busy(below):
                return below
            time.sleep(0.05)
        process.kill()
        raise AssertionError(f"it never was busy: {process.communicate()[1]}")

    def check(self, code: int) -> None:
        assert self.code == code, self.complaints
        assert self.seconds < SOON_S
        assert not self.alive
        assert not self.folders
        assert "fault of ours" not in self.complaints


def _heeds_the_keyboard() -> None:
    """As in a terminal's foreground: tests that a script runs behind it have SIGINT ignored, and would hand that on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _runs(word: str) -> Callable[[set[int]], bool]:
    def found(below: set[int]) -> bool:
        return any(word in _command(pid) for pid in below)

    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _worked(seconds: float) -> Callable[[set[int]], bool]:
    """Whether a process below has computed for so long."""

    def found(below: set[int]) -> bool:
        ticks = 0
        for pid in below:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks = max(ticks, int(fields[11]) + int(fields[12]))
        return ticks > seconds * os.sysconf("SC_CLK_TCK")

    return found


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_file_that_runs_on_ends_with_the_command(tmp_path: Path, sign: signal.Signals, code: int) -> None:
    file = tmp_path / "busy.py"
    file.write_text(BUSY_HARNESS)
    words = ["optimize", str(file), "--target", "gfx950", "--executor", "interpreter", "--out", str(tmp_path / "out")]
    Told(["-c", COMMAND, *words], tmp_path, sign, _worked(4.0)).check(code)


def test_threads_that_wait_for_children_keep_nobody(tmp_path: Path) -> None:
    """The emulator's core is compiled by a pool of threads; its end waits for all of them."""
    compiler = tmp_path / "cc"
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    build = f"import os; os.environ['CC'] = {str(compiler)!r}\n"
    build += "from api import cli; from sandbox.emulator import native\n"
    build += "@cli.app.command()\ndef build() -> None:\n    native.library()\ncli.main()"
    Told(["-c", build, "build"], tmp_path, signal.SIGTERM, _runs("sleep\x0047")).check(143)


def test_a_call_of_c_keeps_nobody(tmp_path: Path) -> None:
    """Python hears a signal when the call returns; the folder that the program has open goes with it."""
    deep = "import hashlib, subprocess, tempfile\nfrom api.ending import heed_signals\nheed_signals()\n"
    deep += "with tempfile.TemporaryDirectory() as folder:\n"
    deep += "    subprocess.Popen(['sleep', '53'])\n    hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)\n"
    Told(["-c", deep], tmp_path, signal.SIGTERM, _runs("sleep\x0053")).check(143)


def test_what_an_interrupted_program_raises_is_no_fault(tmp_path: Path) -> None:
    """Libraries that are left in the middle raise something of their own where they clear up."""
    left = "import subprocess, time\nfrom api import cli\n@cli.app.command()\ndef stuck() -> None:\n"
    left += "    try:\n        subprocess.run(['sleep', '59'])\n    finally:\n        raise KeyError('halfway')\n"
    Told(["-c", left + "cli.main()", "stuck"], tmp_path, signal.SIGTERM, _runs("sleep\x0059")).check(143)


def test_a_command_keeps_its_own_handlers(tmp_path: Path) -> None:
    """A worker ends after its job, however long that takes."""
    own = "import signal, subprocess, sys, time\nfrom api.ending import heed_signals\nheed_signals()\n"
    own += "told = []\nsignal.signal(signal.SIGTERM, lambda *_: told.append(1))\n"
    own += "child = subprocess.Popen(['sleep', '61'])\n"
    own += (
        "while not told: time.sleep(0.05)\ntime.sleep(2.5)\nalive = child.poll() is None\nchild.kill()\nchild.wait()\n"
    )
    own += "sys.exit(7 if alive else 8)\n"
    told = Told(["-c", own], tmp_path, signal.SIGTERM, _runs("sleep\x0061"))
    assert told.code == 7
