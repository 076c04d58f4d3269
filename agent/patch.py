"""Unified diffs that `git apply` accepts: minimal, byte-exact, with git's rules for names and missing final newlines.

Kernels are held as text with `\\n` line ends; the user's file may have a byte order mark or `\\r\\n`. A `FileChange`
keeps the original bytes, so unchanged lines are quoted as they lie on disk and new lines get the file's usual line end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.errors import InputError

CONTEXT_LINES = 3
_MAX_EDITS = 2000
"""Myers' algorithm keeps O(edits^2) numbers; beyond this many edited lines the middle is replaced as one block."""
_BOM = b"\xef\xbb\xbf"
_NO_NEWLINE = b"\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a patch. `before` is None for a new file, `after` is None for a removed one.

    `path` and `new_path` are relative POSIX paths as seen from the repository's root; `new_path` only for a rename.
    """

    path: str
    before: bytes | None
    after: bytes | None
    new_path: str | None = None

    def __post_init__(self) -> None:
        for path in (self.path, self.new_path):
            if path is not None and not _is_safe(path):
                raise InputError(f"{path!r} is not a path inside the repository.", remedy="Give a relative path.")

    @property
    def target_path(self) -> str:
        return self.new_path or self.path


def _is_safe(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path and ".git" not in parts


def restore_bytes(original: bytes, text: str) -> bytes:
    """`text` (with `\\n` line ends) as bytes in the manner of `original`: its byte order mark and usual line end."""
    crlf = original.count(b"\r\n")
    data = text.encode()
    if crlf and crlf * 2 >= original.count(b"\n"):
        data = data.replace(b"\n", b"\r\n")
    elif crlf:
        data = _keep_mixed_ends(original, data)
    return (_BOM if original.startswith(_BOM) else b"") + data


def _keep_mixed_ends(original: bytes, data: bytes) -> bytes:
    """A file with both line ends keeps each unchanged line as it was; new lines end with `\\n`."""
    old = _lines(original.removeprefix(_BOM))
    new = _lines(data)
    bare = [line.replace(b"\r\n", b"\n") for line in old]
    out = []
    for tag, i, j in _edits(bare, new):
        if tag == "=":
            out.append(old[i])
        elif tag == "+":
            out.append(new[j])
    return b"".join(out)


def unified_diff(changes: Sequence[FileChange]) -> bytes:
    """The patch of all `changes`, in git's format, empty when nothing differs."""
    return b"".join(_file_diff(change) for change in changes)


def _file_diff(change: FileChange) -> bytes:
    renamed = change.new_path is not None and change.new_path != change.path
    if change.before == change.after and not renamed:
        return b""
    old_name, new_name = _quote("a/" + change.path), _quote("b/" + change.target_path)
    head = [b"diff --git " + old_name + b" " + new_name]
    if change.before is None:
        head.append(b"new file mode 100644")
    elif change.after is None:
        head.append(b"deleted file mode 100644")
    elif renamed:
        similarity = _similarity(change.before, change.after)
        head += [
            b"similarity index %d%%" % similarity,
            b"rename from " + _quote(change.path),
            b"rename to " + _quote(change.target_path),
        ]
    hunks = b"".join(_hunks(_lines(change.before or b""), _lines(change.after or b"")))
    if hunks:
        head.append(b"--- " + (b"/dev/null" if change.before is None else _tabbed(old_name)))
        head.append(b"+++ " + (b"/dev/null" if change.after is None else _tabbed(new_name)))
    return b"\n".join(head) + b"\n" + hunks


def _tabbed(name: bytes) -> bytes:
    """git ends an unquoted name that holds a space with a tab, so that the name's end is known."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _quote(name: str) -> bytes:
    """git's C-style quoting: names with control characters, quotes, backslashes or bytes above 127."""
    data = name.encode()
    if all(32 <= b < 127 and b not in b'"\\' for b in data):
        return data
    named = {9: b"\\t", 10: b"\\n", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    out = b"".join(named.get(b) or (bytes([b]) if 32 <= b < 127 else b"\\%03o" % b) for b in data)
    return b'"' + out + b'"'


def _similarity(before: bytes, after: bytes) -> int:
    """Share of lines kept, in per cent; 100 only for equal contents, as git means it."""
    if before == after:
        return 100
    old, new = _lines(before), _lines(after)
    kept = sum(1 for tag, _, _ in _edits(old, new) if tag == "=")
    return min(99, 200 * kept // max(1, len(old) + len(new)))


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only `\\n` ends a line, as in git."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    edits = list(_edits(old, new))
    changed = [k for k, (tag, _, _) in enumerate(edits) if tag != "="]
    start = 0
    while start < len(changed):
        end = start
        while end + 1 < len(changed) and changed[end + 1] - changed[end] <= 2 * CONTEXT_LINES:
            end += 1
        first = max(0, changed[start] - CONTEXT_LINES)
        last = min(len(edits), changed[end] + CONTEXT_LINES + 1)
        yield _hunk(edits[first:last], old, new)
        start = end + 1


def _hunk(edits: list[tuple[str, int, int]], old: list[bytes], new: list[bytes]) -> bytes:
    old_count = sum(tag != "+" for tag, _, _ in edits)
    new_count = sum(tag != "-" for tag, _, _ in edits)
    _, i, j = edits[0]
    body = []
    for tag, a, b in edits:
        line = new[b] if tag == "+" else old[a]
        body.append((b" " if tag == "=" else tag.encode()) + line)
        if not line.endswith(b"\n"):
            body.append(b"\n" + _NO_NEWLINE)
    ranges = _range(i, old_count), _range(j, new_count)
    return b"@@ -%s +%s @@\n" % ranges + b"".join(body)


def _range(start: int, count: int) -> bytes:
    """git's line range: 1-based, the line before for an empty one, the count left out when it is one."""
    first = start + 1 if count else start
    return b"%d" % first if count == 1 else b"%d,%d" % (first, count)


def _edits(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[str, int, int]]:
    """The shortest edit script as (`=`|`-`|`+`, index in old, index in new), deletions before insertions.

    E. Myers, "An O(ND) difference algorithm and its variations" (1986), on what lies between common head and tail.
    """
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    yield from (("=", k, k) for k in range(head))
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    yield from ((tag, i + head, j + head) for tag, i, j in _deletions_first(_myers(a, b)))
    yield from (("=", len(old) - tail + k, len(new) - tail + k) for k in range(tail))


def _deletions_first(edits: list[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Within each run of changes put deletions before insertions and give each its place in both files."""
    run: list[tuple[str, int, int]] = []
    for edit in [*edits, ("", 0, 0)]:
        if edit[0] in ("-", "+"):
            run.append(edit)
            continue
        if run:
            i0, j0 = min(e[1] for e in run), min(e[2] for e in run)
            deleted = sum(e[0] == "-" for e in run)
            yield from (("-", i0 + k, j0) for k in range(deleted))
            yield from (("+", i0 + deleted, j0 + k) for k in range(len(run) - deleted))
            run = []
        if edit[0]:
            yield edit


def _myers(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[str, int, int]]:
    n, m = len(a), len(b)
    best = {1: 0}
    trace: list[dict[int, int]] = []
    for d in range(min(n + m, _MAX_EDITS) + 1):
        trace.append(dict(best))
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and best.get(k - 1, -1) < best.get(k + 1, -1))
            x = best[k + 1] if down else best[k - 1] + 1
            while x < n and 0 <= x - k < m and a[x] == b[x - k]:
                x += 1
            best[k] = x
            if x >= n and x - k >= m:
                return _backtrack(trace, n, m)
    return [("-", i, 0) for i in range(n)] + [("+", n, j) for j in range(m)]


def _backtrack(trace: list[dict[int, int]], n: int, m: int) -> list[tuple[str, int, int]]:
    """The edit script from the furthest points of every round, walked from the end."""
    x, y = n, m
    out: list[tuple[str, int, int]] = []
    for d in range(len(trace) - 1, -1, -1):
        best, k = trace[d], x - y
        down = k == -d or (k != d and best.get(k - 1, -1) < best.get(k + 1, -1))
        from_k = k + 1 if down else k - 1
        from_x = best[from_k] if d else 0
        from_y = from_x - from_k if d else 0
        snake_x, snake_y = (from_x + (not down), from_y + down) if d else (0, 0)
        while x > snake_x and y > snake_y:
            x, y = x - 1, y - 1
            out.append(("=", x, y))
        if d:
            x, y = from_x, from_y
            out.append(("+" if down else "-", x, y))
    return out[::-1]


def repository_path(path: Path, outside: str | None = None) -> str:
    """Path of a file from the root of the git work tree it lies in; outside of any, `outside` or its base name."""
    full = path.resolve()
    for folder in full.parents:
        if (folder / ".git").exists():
            return full.relative_to(folder).as_posix()
    return outside or full.name
