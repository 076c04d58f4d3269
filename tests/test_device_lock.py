"""Programs share the GPUs, a clock has them alone; a child sees the GPUs that its parent was given."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from subprocess import PIPE

import pytest

from sandbox import device_lock
from sandbox.isolation import Confinement, child_environment

PATIENCE_S = 120.0
MOMENT_S = 0.2


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("WAVESMITH_CACHE_DIR", str(tmp_path))
    for name in device_lock.VISIBLE_DEVICES:
        monkeypatch.delenv(name, raising=False)


class Holder:
    """Holds a lock in a thread of its own, as another process would, until it is told to let go."""

    def __init__(self, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self.has, self._let_go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(lock,), daemon=True)
        self._thread.start()

    def _run(self, lock: Callable[[], AbstractContextManager[None]]) -> None:
        with lock():
            self.has.set()
            self._let_go.wait(PATIENCE_S)

    def release(self) -> None:
        self._let_go.set()
        self._thread.join(PATIENCE_S)


def test_many_compute_at_once_and_a_clock_waits_for_all_of_them() -> None:
    programs = [Holder(device_lock.shared) for _ in range(3)]
    assert all(p.has.wait(PATIENCE_S) for p in programs)
    clock = Holder(device_lock.alone)
    for program in programs:
        assert not clock.has.wait(MOMENT_S)
        program.release()
    assert clock.has.wait(PATIENCE_S)
    late = Holder(device_lock.shared)
    assert not late.has.wait(MOMENT_S)
    clock.release()
    assert late.has.wait(PATIENCE_S)
    late.release()


def test_nobody_begins_while_a_clock_waits() -> None:
    first = Holder(device_lock.shared)
    assert first.has.wait(PATIENCE_S)
    clock = Holder(device_lock.alone)
    assert not clock.has.wait(MOMENT_S)
    second = Holder(device_lock.shared)
    assert not second.has.wait(MOMENT_S)
    first.release()
    assert clock.has.wait(PATIENCE_S)
    assert not second.has.is_set()
    clock.release()
    assert second.has.wait(PATIENCE_S)
    second.release()


JOINING = """
import sys, triton
from sandbox.device_lock import away, breathe, join
def wait_for_word(said):
    print(said, flush=True)
    sys.stdin.readline()
triton.compiler.compile = wait_for_word
wait_for_word("imported")
join((int(sys.argv[1]), int(sys.argv[2])))
wait_for_word("joined")
triton.compile("compiling")
wait_for_word("compiled")
with away(1 << 30), away(1 << 30):
    wait_for_word("hashing")
with away(1000):
    wait_for_word("hashing little")
breathe()
wait_for_word("breathed")
"""


def test_a_child_keeps_a_clock_waiting_from_its_first_use_to_its_end_only() -> None:
    with device_lock.offered() as files:
        command = [sys.executable, "-c", JOINING, *map(str, files)]
        child = subprocess.Popen(command, pass_fds=files, stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "imported\n"
        early = Holder(device_lock.alone)
        assert early.has.wait(PATIENCE_S), "the child only imports"
        print(file=child.stdin)
        early.release()
        assert child.stdout.readline() == "joined\n"
        for without_gpu, next_word in (("compiling", "compiled"), ("hashing", "hashing little")):
            clock = Holder(device_lock.alone)
            assert not clock.has.wait(MOMENT_S)
            print(file=child.stdin)
            assert child.stdout.readline() == f"{without_gpu}\n"
            assert clock.has.wait(PATIENCE_S), f"the child is only {without_gpu}"
            clock.release()
            print(file=child.stdin)
            assert child.stdout.readline() == f"{next_word}\n"
        clock = Holder(device_lock.alone)
        assert not clock.has.wait(MOMENT_S), "letting go is not worth it"
        print(file=child.stdin)
        assert clock.has.wait(PATIENCE_S), "the child lets it go first"
        clock.release()
        assert child.stdout.readline() == "breathed\n"
        clock = Holder(device_lock.alone)
        assert not clock.has.wait(MOMENT_S)
        child.communicate("\n", timeout=PATIENCE_S)
        assert not clock.has.wait(MOMENT_S), "the parent holds what the child took, whatever that does with it"
    assert clock.has.wait(PATIENCE_S)
    clock.release()


def test_other_gpus_are_other_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Holder(device_lock.alone)
    assert clock.has.wait(PATIENCE_S)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    other = Holder(device_lock.alone)
    assert other.has.wait(PATIENCE_S)
    other.release()
    clock.release()


def test_a_child_on_a_gpu_sees_the_gpus_of_its_parent_and_no_other_child_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    assert child_environment(None, Confinement(gpu=True))["HIP_VISIBLE_DEVICES"] == "3"
    assert "HIP_VISIBLE_DEVICES" not in child_environment(None)


@pytest.mark.parametrize(
    ("masks", "device", "one"),
    [({}, 1, "1"), ({"CUDA_VISIBLE_DEVICES": "2,5"}, 1, "5"), ({"HIP_VISIBLE_DEVICES": "4, 6"}, 0, "4"),
     ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "7"}, 0, "1"), ({"ROCR_VISIBLE_DEVICES": "2,3"}, 1, "1")],
)  # fmt: skip
def test_one_gpu_of_the_visible_ones(masks: dict[str, str], device: int, one: str) -> None:
    assert device_lock.narrowed(masks, device) == {"CUDA_VISIBLE_DEVICES": one, "HIP_VISIBLE_DEVICES": one}


TUNING = """
import sys, triton
from triton.runtime.autotuner import Autotuner
from sandbox.device_lock import join
def wait_for_word(said):
    print(said, flush=True)
    sys.stdin.readline()
def bench(tuner):
    wait_for_word("timing")
    triton.compile("compiling")
    wait_for_word("timing again")
triton.compiler.compile, Autotuner._bench = wait_for_word, bench
join((int(sys.argv[1]), int(sys.argv[2])))
wait_for_word("joined")
Autotuner._bench(None)
wait_for_word("computing")
"""


def test_an_autotuner_times_alone_and_compiles_beside_others() -> None:
    with device_lock.offered() as files:
        command = [sys.executable, "-c", TUNING, *map(str, files)]
        child = subprocess.Popen(command, pass_fds=files, stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "joined\n"
        sister = Holder(device_lock.shared)
        assert sister.has.wait(PATIENCE_S)
        print(file=child.stdin)
        sister.release()
        assert child.stdout.readline() == "timing\n"
        for does, others_may, next_word in (
            ("timing", False, "compiling"),
            ("compiling", True, "timing again"),
            ("timing again", False, "computing"),
            ("computing", True, ""),
        ):
            other = Holder(device_lock.shared)
            assert other.has.wait(PATIENCE_S if others_may else MOMENT_S) == others_may, does
            if others_may:
                other.release()
            print(file=child.stdin)
            assert child.stdout.readline() == (f"{next_word}\n" if next_word else ""), does
            other.release()
        assert child.wait(PATIENCE_S) == 0
