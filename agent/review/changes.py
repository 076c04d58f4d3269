"""What a change does to a git repository, read with git's plumbing and never from the working tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import git

from agent.port.intake import HOST_SUFFIXES, KERNEL_SUFFIXES
from sandbox.errors import InputError
from sandbox.kernel import MAX_SOURCE_BYTES

SOURCE_SUFFIXES = (".py", ".hip", *KERNEL_SUFFIXES, *HOST_SUFFIXES)
MAX_PATH_CHARACTERS = 900
MAX_FOLDER_FILES = 2000
MAX_FOLDER_BYTES = 64 * 2**20
_REGULAR = 0o100000
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One source file of the change that exists at its head. `before` is None for a new one."""

    path: str
    old_path: str
    before: bytes | None
    after: bytes
    changed: tuple[tuple[int, int], ...] = ()
    """Line ranges of the head's file that were added or rewritten, 1-based and inclusive."""
    shown: tuple[tuple[int, int], ...] = ()
    """Line ranges that the pull request's diff shows, context included."""

    @property
    def after_text(self) -> str:
        return decode(self.after) or ""

    @property
    def before_text(self) -> str:
        return (decode(self.before) if self.before is not None else None) or ""

    def shows(self, start: int, end: int) -> bool:
        """Whether all lines from `start` to `end` are in one hunk of the diff."""
        return any(a <= start and end <= b for a, b in self.shown)

    def touches(self, start: int, end: int) -> bool:
        """Whether a line from `start` to `end` was added or rewritten."""
        return any(a <= end and start <= b for a, b in self.changed)


@dataclass(frozen=True)
class Change:
    """Everything between the merge base of two commits and the second of them."""

    repository: git.Repo
    base: git.Commit
    head: git.Commit
    files: tuple[ChangedFile, ...]
    total: int
    """Changed files of any kind."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Files that cannot be reviewed, each with the reason."""
    notes: tuple[str, ...] = ()


def decode(data: bytes) -> str | None:
    """Source text with `\\n` line ends; None for what is binary or not UTF-8."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def text_lines(text: str) -> list[str]:
    """Lines as git, GitHub and Python count them: only `\n` ends one, whatever else Unicode calls a line end."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def open_repository(folder: Path) -> git.Repo:
    """The repository that holds `folder`. Raises `InputError`."""
    try:
        return git.Repo(folder, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise InputError("this is no git repository.", file=folder, remedy="Give one with --repo.") from None


def find_commit(repository: git.Repo, name: str) -> git.Commit:
    """The commit of a branch, tag or id. Raises `InputError` when there is none."""
    try:
        sha = str(repository.git.rev_parse("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"))
        return repository.commit(sha)
    except (git.GitError, ValueError):
        remedy = "Check the name; a shallow clone may lack it (fetch-depth: 0)."
        raise InputError(f"{name!r} is no commit here.", remedy=remedy) from None


def read_change(repository: git.Repo, base: str, head: str, *, direct: bool = False) -> Change:
    """The change that `head` makes on top of its merge base with `base`, as a pull request shows it.

    With `direct`, `base` is taken to be that merge base.
    """
    tip, last = find_commit(repository, base), find_commit(repository, head)
    notes: list[str] = []
    common = [tip] if direct else repository.merge_base(tip, last)
    start = common[0] if common else tip
    if not common:
        notes.append("Base and head have no common commit here; they are compared directly.")
    files: list[ChangedFile] = []
    skipped: list[tuple[str, str]] = []
    diff = _entries(repository, start, last)
    for entry in diff:
        read = _read_entry(repository, entry)
        if isinstance(read, ChangedFile):
            files.append(read)
        elif read is not None:
            skipped.append(read)
    return Change(
        repository, start, last, tuple(sorted(files, key=lambda f: f.path)), len(diff), tuple(skipped), tuple(notes)
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of git's raw diff."""

    status: str
    """First letter of git's: A, C, D, M, R or T."""
    old_mode: int
    mode: int
    old_blob: str
    blob: str
    old_path: bytes
    path: bytes


def _entries(repository: git.Repo, start: git.Commit, last: git.Commit) -> list[_Entry]:
    """What differs between two commits. Read here from git's own output, since a name may be any bytes."""
    options = ("-r", "-z", "--raw", "-M", "--no-abbrev", "--no-ext-diff")
    out = repository.git.diff_tree(*options, start.hexsha, last.hexsha, stdout_as_string=False)
    fields = iter(out.split(b"\0"))
    found = []
    for head in fields:
        if not head:
            break
        old_mode, mode, old_blob, blob, status = head.decode("ascii").removeprefix(":").split(" ")
        old_path = next(fields)
        path = next(fields) if status[0] in "RC" else old_path
        found.append(_Entry(status[0], int(old_mode, 8), int(mode, 8), old_blob, blob, old_path, path))
    return found


def _read_entry(repository: git.Repo, entry: _Entry) -> ChangedFile | tuple[str, str] | None:
    """A source file, a reason why one is not read, or None for what is none of ours."""
    path = entry.path.decode("utf-8", "backslashreplace")
    if entry.status == "D" or not path.endswith(SOURCE_SUFFIXES):
        return None
    if entry.mode & 0o170000 != _REGULAR:
        return path, "it is a symbolic link or a submodule"
    if not _is_plain(path) or path.encode() != entry.path:
        return path, "its name is no plain path"
    if len(path) > MAX_PATH_CHARACTERS:
        return path, "its name is too long"
    blob = _blob(repository, entry.blob, entry.mode, path)
    if blob.size > MAX_SOURCE_BYTES:
        return path, f"it is larger than {MAX_SOURCE_BYTES >> 20} MiB"
    after = bytes(blob.data_stream.read())
    if decode(after) is None:
        return path, "it is binary or not UTF-8 text"
    before = None
    old_path = entry.old_path.decode("utf-8", "backslashreplace")
    if entry.status != "A" and entry.old_mode & 0o170000 == _REGULAR and old_path.encode() == entry.old_path:
        old = _blob(repository, entry.old_blob, entry.old_mode, old_path)
        before = bytes(old.data_stream.read()) if old.size <= MAX_SOURCE_BYTES else None
    if before is not None and decode(before) is None:
        before = None
    return ChangedFile(path, old_path, before, after)


def _blob(repository: git.Repo, name: str, mode: int, path: str) -> git.Blob:
    return git.Blob(repository, bytes.fromhex(name), mode, path)


def _is_plain(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return (
        not path.startswith("/") and ".." not in parts and ".git" not in parts and not re.search(r"[\x00-\x1f]", path)
    )


def with_lines(change: Change, file: ChangedFile) -> ChangedFile:
    """The file with the lines that were changed and those that the diff shows."""
    return replace(file, changed=_ranges(change, file, 0), shown=_ranges(change, file, 3))


def _ranges(change: Change, file: ChangedFile, context: int) -> tuple[tuple[int, int], ...]:
    """Line ranges of the head's file in the hunks of git's own diff. No program of the repository's choice is run."""
    options = (f"-U{context}", "-M", "--no-ext-diff", "--no-textconv", "--no-color")
    literal = [f":(literal){p}" for p in sorted({file.old_path, file.path})]
    commits = (change.base.hexsha, change.head.hexsha)
    out = change.repository.git.diff(*options, *commits, "--", *literal, stdout_as_string=False)
    found = []
    for m in _HUNK.finditer(out):
        start, count = int(m.group(1)), int(m.group(2) or b"1")
        if count:
            found.append((start, start + count - 1))
    return tuple(found)


def read_file(commit: git.Commit, path: str) -> bytes | None:
    """A regular file of a commit; None when there is none or it is too large."""
    try:
        blob = commit.tree / path
    except KeyError:
        return None
    if blob.type != "blob" or blob.mode & 0o170000 != _REGULAR or blob.size > MAX_SOURCE_BYTES:
        return None
    return bytes(blob.data_stream.read())


def check_out(commit: git.Commit, folders: Mapping[str, None], target: Path) -> Iterator[str]:
    """Write the source files of the named folders of a commit below `target`; yields what was left out.

    Links are never written, so that nothing outside the commit can be read through one.
    """
    total = 0
    for folder in folders:
        for written, blob in enumerate(_blobs(commit, folder), 1):
            total += blob.size
            if written > MAX_FOLDER_FILES or total > MAX_FOLDER_BYTES:
                yield f"{folder or 'the top folder'} holds more source files than a review copies"
                return
            file = target / str(blob.path)
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(blob.data_stream.read())


def _blobs(commit: git.Commit, folder: str) -> Iterator[Any]:
    """Regular source files at and below a folder."""
    try:
        tree = commit.tree / folder if folder else commit.tree
    except KeyError:
        return
    if tree.type != "tree":
        return
    for item in tree.traverse(prune=lambda i, _: i.type == "commit"):  # type: ignore[union-attr]
        blob: Any = item
        regular = blob.type == "blob" and blob.mode & 0o170000 == _REGULAR and blob.size <= MAX_SOURCE_BYTES
        if regular and str(blob.path).endswith(SOURCE_SUFFIXES) and _is_plain(str(blob.path)):
            yield blob
