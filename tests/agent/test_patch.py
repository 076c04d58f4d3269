"""Patches: the shortest edit script, and `git apply` itself as the judge of the format."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from agent.patch import FileChange, _edits, repository_path, restore_bytes, unified_diff
from sandbox.errors import InputError

NAMES = ["k.py", "a b.py", "deep/er/k.py", "dir/ü x.py", 'q"uote.py', "tab\tname.py"]


def git_apply(folder: Path, diff: bytes) -> None:
    done = subprocess.run(["git", "apply", "-"], input=diff, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, (diff, done.stderr)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def common_length(a: list[bytes], b: list[bytes]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_edit_scripts_are_right_and_shortest() -> None:
    rng = random.Random(7)
    for _ in range(1500):
        a = [rng.choice([b"a", b"b", b"c"]) for _ in range(rng.randint(0, 12))]
        b = list(a)
        for _ in range(rng.randint(0, 5)):
            if b and rng.random() < 0.5:
                b.pop(rng.randrange(len(b)))
            else:
                b.insert(rng.randint(0, len(b)), rng.choice([b"a", b"b", b"d"]))
        edits = list(_edits(a, b))
        assert [a[i] for tag, i, _ in edits if tag != "+"] == a
        assert [b[j] for tag, _, j in edits if tag != "-"] == b
        assert sum(tag == "=" for tag, _, _ in edits) == common_length(a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("renamed", [False, True])
def test_git_applies_what_we_write(tree: Path, name: str, renamed: bool) -> None:
    rng = random.Random(name)
    for case in range(6):
        ends = [b"\n", b"\n", b"\r\n"] if case % 2 else [b"\n"]
        before = b"".join(rng.choice([b"x", b"yy", b"", b"z z"]) + rng.choice(ends) for _ in range(rng.randint(0, 40)))
        before += rng.choice([b"", b"no newline here"])
        lines = before.split(b"\n")
        for _ in range(rng.randint(1, 4)):
            lines.insert(rng.randint(0, len(lines)), b"new %d" % rng.randint(0, 9))
        change = FileChange(name, before, b"\n".join(lines), f"moved {case}/{name}" if renamed else None)
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before)
        git_apply(tree, unified_diff([change]))
        assert (tree / change.target_path).read_bytes() == change.after
        assert path.exists() != renamed


def test_new_and_removed_files_and_several_in_one_patch(tree: Path) -> None:
    (tree / "old.cu").write_bytes(b"one\ntwo")
    (tree / "keep.py").write_bytes(b"a\nb\n")
    changes = [
        FileChange("old.cu", b"one\ntwo", None),
        FileChange("include/new.h", None, b"#pragma once\n"),
        FileChange("keep.py", b"a\nb\n", b"a\nb"),
    ]
    git_apply(tree, unified_diff(changes))
    assert not (tree / "old.cu").exists()
    assert (tree / "include/new.h").read_bytes() == b"#pragma once\n"
    assert (tree / "keep.py").read_bytes() == b"a\nb"


def test_nothing_changed_is_no_patch() -> None:
    assert unified_diff([FileChange("k.py", b"a\n", b"a\n")]) == b""


def test_a_large_rewrite_still_applies(tree: Path) -> None:
    before = b"".join(b"old %d\n" % i for i in range(5000))
    after = b"".join(b"new %d\n" % i for i in range(5000))
    (tree / "k.py").write_bytes(before)
    git_apply(tree, unified_diff([FileChange("k.py", before, after)]))
    assert (tree / "k.py").read_bytes() == after


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.py", "a/../../x.py", "", ".git/config", "a\0b"])
def test_paths_outside_the_repository_are_refused(path: str) -> None:
    with pytest.raises(InputError):
        FileChange(path, b"", b"x")


def test_line_ends_and_byte_order_mark_are_kept() -> None:
    assert restore_bytes(b"a\r\nb\r\n", "a\nc\n") == b"a\r\nc\r\n"
    assert restore_bytes(b"\xef\xbb\xbfa\n", "a\nc\n") == b"\xef\xbb\xbfa\nc\n"
    mixed = b"a\nb\r\nc\nd\n"
    assert restore_bytes(mixed, "a\nb\nnew\nc\nd\n") == b"a\nb\r\nnew\nc\nd\n"


def test_path_is_taken_from_the_repository_root(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tree / "src" / "k.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    assert repository_path(file) == "src/k.py"
    outside = tmp_path_factory.mktemp("outside") / "k.py"
    outside.write_text("x = 1\n")
    assert repository_path(outside) == "k.py"
