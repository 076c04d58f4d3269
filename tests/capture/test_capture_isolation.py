"""The confined child: limits, endings, and what it cannot see or reach."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sandbox import triton_cache
from sandbox.isolation import (
    Confinement,
    Ended,
    Limits,
    isolation_level,
    run_isolated,
)
from sandbox.kernel import Kernel, Language
from sandbox.process_tree import descendants, descendants_among_all

bubblewrap_only = pytest.mark.skipif(isolation_level() != "bubblewrap", reason="needs bubblewrap")


def run(code: str, limits: Limits | None = None, tmp=None) -> tuple[Ended, bytes]:
    got = bytearray()
    work = tmp
    command = [sys.executable, "-P", "-s", "-c", textwrap.dedent(code)]
    ended = run_isolated(
        command, confinement=Confinement(work=work), limits=limits or Limits(wall_s=30), on_result=got.extend
    )
    return ended, bytes(got)


def test_result_and_output_come_back(tmp_path):
    ended, got = run("import os, sys; os.write(int(sys.argv[-1]), b'result'); print('out'); sys.exit(3)", tmp=tmp_path)
    assert (ended.ending, ended.code, ended.stdout, got) == ("exit", 3, "out\n", b"result")


def test_signal_is_told_from_status(tmp_path):
    ended, _ = run("import os; os.kill(os.getpid(), 11)", tmp=tmp_path)
    assert (ended.ending, ended.signal) == ("signal", 11)


def test_time_limit_ends_daemons_too(tmp_path):
    started = time.monotonic()
    code = """
        import os, time, sys, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        time.sleep(60)
    """
    ended, _ = run(code, Limits(wall_s=1.5), tmp_path)
    assert ended.ending == "timeout"
    assert time.monotonic() - started < 50
    time.sleep(0.3)
    mine = descendants(os.getpid()) - {os.getpid()}
    assert not [pid for pid in mine if b"time.sleep(60)" in _cmdline(pid)]


def test_a_tree_is_read_from_itself_as_from_all_processes():
    """A grandchild that a thread started, in a session of its own, included."""
    code = """
        import os, subprocess, sys, threading
        def start():
            subprocess.Popen([sys.executable, "-c", "input()"], start_new_session=True)
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        print("started", flush=True)
        os.read(0, 1)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"started\n"
        tree = descendants(child.pid)
        assert len(tree) == 2 and child.pid in tree
        assert tree == descendants_among_all(child.pid)
        child.kill()


def _cmdline(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def test_memory_that_is_touched_counts(tmp_path):
    code = """
        import mmap, time
        lazy = mmap.mmap(-1, 4 << 30)      # asked for, never touched
        print("lazy", flush=True)
        time.sleep(1)
        full = bytearray(600 << 20)
        time.sleep(20)
    """
    ended, _ = run(code, Limits(wall_s=30, memory_bytes=400 << 20), tmp_path)
    assert ended.ending == "memory"
    assert ended.stdout == "lazy\n"


def test_endless_output_and_results_are_cut(tmp_path):
    ended, _ = run("while True: print('x' * 1000)", Limits(wall_s=30, output_bytes=1 << 20, tail_bytes=4096), tmp_path)
    assert ended.ending == "output"
    assert len(ended.stdout) <= 4096
    code = "import os, sys\nwhile True: os.write(int(sys.argv[-1]), b'x' * 65536)"
    ended, got = run(code, Limits(wall_s=30, result_bytes=1 << 20), tmp_path)
    assert ended.ending == "result"
    assert len(got) <= 1 << 20


@bubblewrap_only
def test_secrets_network_and_files_are_out_of_reach(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-value")
    code = """
        import os, socket
        seen = []
        for number in [n for n in os.listdir("/proc") if n.isdigit()]:
            try:
                seen.append(open(f"/proc/{number}/environ", "rb").read())
            except OSError:
                pass
        print(b"secret-value" in b"".join(seen), "ANTHROPIC_API_KEY" in os.environ)
        try:
            socket.create_connection(("127.0.0.1", 22), timeout=1)
        except OSError as e:
            print(type(e).__name__)
        for path in ("/usr/x", "/etc/x", "/proc/sys/kernel/core_pattern"):
            try:
                open(path, "w")
                print("wrote", path)
            except OSError:
                print("refused")
        print(os.path.exists("/etc/shadow"), os.getuid(), [n for n in os.listdir("/tmp") if n not in BOUND])
    """
    # the code itself is bound read-only at its own path, which may lie below /tmp
    code = code.replace(
        "BOUND", repr([p.parts[2] for p in (Path(__file__).resolve(), Path(sys.prefix)) if p.parts[1] == "tmp"])
    )
    ended, _ = run(code)
    assert ended.stdout.splitlines() == [
        "False False", "ConnectionRefusedError", "refused", "refused", "refused", "False 65534 ['work']",
    ]  # fmt: skip


@pytest.mark.parametrize("level", ["bubblewrap", "process"])
def test_what_triton_compiles_is_kept_for_the_next_run_of_the_same_program(level, tmp_path, monkeypatch):
    if level == "process":
        monkeypatch.setenv("WAVESMITH_ISOLATION", level)
    elif isolation_level() != level:
        pytest.skip("no bubblewrap")
    (work := tmp_path / "work").mkdir()
    first, second = (Kernel(text, "k.py", Language.TRITON) for text in (f"{level} = 1\n", f"{level} = 2\n"))
    write = "import os, pathlib; p = pathlib.Path(os.environ['TRITON_CACHE_DIR']); print(len(list(p.iterdir())), p);"
    write += "(p / 'binary').write_text('x')"
    said = []
    for kernel in (first, first, second):
        place = Confinement(work=work, triton_cache=triton_cache.folder_of(kernel))
        command = [sys.executable, "-P", "-s", "-c", write]
        ended = run_isolated(command, confinement=place, limits=Limits(wall_s=30), on_result=lambda data: None)
        said.append(ended.stdout.split())
    assert [count for count, _ in said] == ["0", "1", "0"]
    assert said[0][1] == said[1][1] != said[2][1]
