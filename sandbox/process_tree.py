"""What /proc says of a process and of those below it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """Process numbers below and including `pid` that exist now."""
    if not Path("/proc/thread-self/children").exists():  # a kernel without CONFIG_PROC_CHILDREN
        return descendants_among_all(pid)
    return _below(pid, _children)


def _children(pid: int) -> list[int]:
    """Children of every thread of `pid`; a list that is read while one of them ends may lack another."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (thread / "children").read_bytes().split())
    return found


def descendants_among_all(pid: int) -> set[int]:
    """The same from the parents that all processes of the machine name: complete, and dear where there are many."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parent = parent_of(int(entry.name))
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    return _below(pid, lambda parent: children.get(parent, []))


def _below(pid: int, children_of: Callable[[int], list[int]]) -> set[int]:
    found: set[int] = set()
    todo = [pid]
    while todo:
        current = todo.pop()
        if current not in found:
            found.add(current)
            todo += children_of(current)
    return found


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rfind(")") + 2 :].split()


def parent_of(pid: int) -> int | None:
    """Its parent; None where there is no such process any more."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def session_of(pid: int) -> int | None:
    """The process that began its session."""
    fields = _stat(pid)
    return int(fields[3]) if fields else None


def private_bytes(pid: int) -> int:
    """Resident anonymous memory: resident minus file-backed and shared pages."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
