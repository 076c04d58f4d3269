"""Processes that are forked with torch imported are as good as those that are started."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sandbox import fork_server
from sandbox.fork_server import ForkedProcess, PythonProgram, fork
from sandbox.isolation import Confinement, Ended, Limits, child_environment, run_isolated
from sandbox.process_tree import descendants_among_all

LIBRARIES = child_environment(None)


def program(code: str, *arguments: str) -> PythonProgram:
    return PythonProgram(textwrap.dedent(code), arguments)


def forked(code: str, *arguments: str, out: Path, environment: dict[str, str] | None = None) -> ForkedProcess:
    with out.open("wb") as stream:
        descriptors = {1: stream.fileno(), 2: stream.fileno()}
        process = fork(
            program(code, *arguments),
            environment=environment or {},
            libraries=LIBRARIES,
            folder=out.parent,
            descriptors=descriptors,
        )
    assert process is not None
    return process


def isolated(code: str, tmp_path: Path, limits: Limits) -> tuple[Ended, bytes]:
    got = bytearray()
    ended = run_isolated(program(code), confinement=Confinement(work=tmp_path), limits=limits, on_result=got.extend)
    return ended, bytes(got)


def test_it_is_a_process_of_its_own(tmp_path):
    """Its arguments, folder, environment, session and descriptors, with torch there from the start."""
    code = """
        import os, sys
        print("torch" in sys.modules, sys.argv, os.getcwd(), dict(os.environ), os.getsid(0) == os.getpid())
        print(sorted(os.listdir("/proc/self/fd"))[:3], len(os.listdir("/proc/self/fd")), __name__)
    """
    process = forked(code, "a", "b c", out=tmp_path / "out", environment={"A": "1"})
    assert process.wait() == 0
    first, second = (tmp_path / "out").read_text().splitlines()
    assert first == f"True ['-c', 'a', 'b c'] {tmp_path} {{'A': '1'}} True"
    assert second == "['0', '1', '2'] 4 __main__"  # the fourth lists the folder


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit('no')", 1),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 11)", -11),
        ("import os; os._exit(7)", 7),
    ],
)
def test_its_exit_status_is_that_of_python(code, status, tmp_path):
    assert forked(code, out=tmp_path / "out").wait() == status
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == status


def test_what_it_raises_is_printed(tmp_path):
    forked("raise ValueError('because')", out=tmp_path / "out").wait()
    assert (tmp_path / "out").read_text().endswith("ValueError: because\n")


def test_it_has_the_random_numbers_of_no_sister(tmp_path):
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    said = []
    for i in range(2):
        assert forked(code, out=tmp_path / str(i)).wait() == 0
        said += (tmp_path / str(i)).read_text().split()
    assert len(set(said)) == 4


def test_many_at_a_time_are_told_apart(tmp_path):
    codes = [3, 5, 0, 9, 1, 4]
    processes = [
        forked(f"import sys, time; time.sleep({0.05 * i}); sys.exit({c})", out=tmp_path / str(i))
        for i, c in enumerate(codes)
    ]
    assert [p.wait() for p in reversed(processes)] == codes[::-1]


def test_nothing_outlives_its_server(tmp_path):
    """Who kills the server ends what it forked; the next process comes from another server."""
    process = forked("import time; time.sleep(60)", out=tmp_path / "out")
    server = process.server.process
    assert process.poll() is None
    server.kill()
    assert process.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 5
    while Path(f"/proc/{process.pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{process.pid}").exists()
    again = forked("pass", out=tmp_path / "out")
    assert again.wait() == 0
    assert again.server.process.pid != server.pid


def test_a_server_that_ended_unseen_is_replaced(tmp_path):
    first = forked("pass", out=tmp_path / "out")
    assert first.wait() == 0
    first.server.process.kill()
    first.server.process.wait()
    second = forked("pass", out=tmp_path / "out")
    assert second.wait() == 0 and second.server.process.pid != first.server.process.pid


def test_a_request_that_is_too_large_is_started_the_long_way(tmp_path):
    first = forked("pass", out=tmp_path / "out")
    large = PythonProgram("pass", ("x" * 2**22,))
    assert fork(large, environment={}, libraries=LIBRARIES, folder=None, descriptors={}) is None
    again = forked("pass", out=tmp_path / "out")
    assert (first.wait(), again.wait()) == (0, 0) and again.server is first.server


def test_it_can_be_had_without(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVESMITH_FORK", "0")
    assert fork(program("pass"), environment={}, libraries=LIBRARIES, folder=None, descriptors={}) is None


def test_a_server_that_cannot_import_or_fork_is_not_asked_again(tmp_path):
    (tmp_path / "threaded.py").write_text(
        "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    )
    for module in ("no_such_module", "threaded"):
        asked = PythonProgram("pass", modules=(module,), root=str(tmp_path))
        for _ in range(2):
            assert fork(asked, environment={}, libraries=LIBRARIES, folder=None, descriptors={}) is None
        key = (sys.executable, (module,), str(tmp_path), tuple(sorted(LIBRARIES.items())))
        assert fork_server._servers[key] is None


# --- below `run_isolated` ---------------------------------------------------------------------------------------------


@pytest.fixture
def process_level(monkeypatch):
    monkeypatch.setenv("WAVESMITH_ISOLATION", "process")


def test_a_result_and_what_is_printed_come_back(tmp_path, process_level):
    code = """
        import os, sys
        os.write(int(sys.argv[-1]), b"result")
        print("out", "torch" in sys.modules)
        print("err", file=sys.stderr)
        sys.exit(3)
    """
    ended, got = isolated(code, tmp_path, Limits(wall_s=30))
    assert (ended.ending, ended.code, ended.stdout, ended.stderr) == ("exit", 3, "out True\n", "err\n")
    assert got == b"result" and ended.level == "process"


def test_no_secret_is_in_its_surroundings(tmp_path, process_level, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-value")
    code = """
        import os
        print("ANTHROPIC_API_KEY" in os.environ, "secret-value" in open("/proc/self/environ").read())
        print("secret-value" in open(f"/proc/{os.getppid()}/environ").read())
    """
    ended, _ = isolated(code, tmp_path, Limits(wall_s=30))
    assert ended.stdout.split() == ["False", "False", "False"]


def test_daemons_end_with_it_when_its_time_is_up(tmp_path, process_level):
    code = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                time.sleep(60)
            os._exit(0)
        time.sleep(60)
    """
    started = time.monotonic()
    ended, _ = isolated(code, tmp_path, Limits(wall_s=1.5))
    assert ended.ending == "timeout" and time.monotonic() - started < 50
    daemon = int(ended.stdout)
    assert daemon not in descendants_among_all(1) or "Z" in Path(f"/proc/{daemon}/stat").read_text()


def test_touched_memory_counts(tmp_path, process_level):
    code = "import time; full = bytearray(600 << 20); time.sleep(20)"
    ended, _ = isolated(code, tmp_path, Limits(wall_s=30, memory_bytes=500 << 20))
    assert ended.ending == "memory"


def test_the_server_ends_with_its_owner(tmp_path):
    """The owner killed, nothing is left of the server nor of what it forked."""
    code = f"""
        import sys, time
        sys.path.insert(0, {str(Path(fork_server.__file__).parent.parent)!r})
        from sandbox.fork_server import PythonProgram, fork
        asked = PythonProgram("import time; time.sleep(60)")
        process = fork(asked, environment={{}}, libraries={LIBRARIES!r}, folder=None, descriptors={{}})
        print(process.pid, process.server.process.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        left = [int(word) for word in owner.stdout.readline().split()]
        owner.kill()
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(left) == 2 and not any(_runs(pid) for pid in left)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
