"""What a request uploads, written safely below a job's folder: single files and archives."""

from __future__ import annotations

import io
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sandbox.errors import InputError

_FILE_NAME = re.compile(r"[A-Za-z0-9_][\w.+\- ]{0,127}", re.ASCII)
ARCHIVE_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_MAX_DEPTH = 32
_UNREADABLE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""What the standard library raises for damaged, encrypted and unsupported archives."""


def safe_name(filename: str | None) -> str:
    """The base name of an uploaded file; raises `InputError` for one that could be mistaken for a path or an option."""
    name = PurePosixPath((filename or "").replace("\\", "/")).name
    if not _FILE_NAME.fullmatch(name):
        raise InputError(
            "the file name is missing or holds unusual characters.",
            file=name or None,
            remedy="Use letters, digits, dots, dashes and underscores.",
        )
    return name


def is_archive(filename: str) -> bool:
    return filename.lower().endswith(ARCHIVE_SUFFIXES)


def unpack(data: bytes, filename: str, folder: Path, *, max_bytes: int, max_files: int) -> list[str]:
    """Unpack a zip or tar.gz below `folder`; returns the relative POSIX paths written.

    Only plain files are written, as new files. Raises `InputError` for an unreadable archive, for names that leave the
    folder or collide, for links and devices, and when the limits are exceeded (counted while unpacking, never believed
    from the archive's own directory).
    """
    members = _zip_members(data, filename) if filename.lower().endswith(".zip") else _tar_members(data, filename)
    written: list[str] = []
    total = 0
    try:
        for name, stream in members:
            if len(written) >= max_files:
                raise InputError(f"the archive holds more than {max_files} files.", file=filename)
            target = folder / _member_path(name, filename)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as out:
                    while chunk := stream.read(1 << 16):
                        total += len(chunk)
                        if total > max_bytes:
                            raise InputError(f"the archive unpacks to more than {max_bytes} bytes.", file=filename)
                        out.write(chunk)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                raise InputError(f"the archive holds {name!r} twice.", file=filename) from None
            written.append(target.relative_to(folder).as_posix())
    except _UNREADABLE as e:
        raise InputError("the archive cannot be read.", file=filename, remedy="Send a plain zip or tar.gz.") from e
    if not written:
        raise InputError("the archive holds no files.", file=filename)
    return written


def _member_path(name: str, archive: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    parts = path.parts
    bad = not parts or path.is_absolute() or ".." in parts or ":" in parts[0] or len(parts) > _MAX_DEPTH
    if bad or any(len(p.encode()) > 255 or any(ord(c) < 32 for c in p) for p in parts):
        raise InputError(f"the archive holds the unsafe name {name!r}.", file=archive, remedy="Pack relative paths.")
    return path


def _zip_members(data: bytes, archive: str) -> Iterator[tuple[str, io.BufferedIOBase]]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                raise InputError(f"{info.filename!r} is a link or a device.", file=archive, remedy="Pack plain files.")
            with opened.open(info) as stream:
                yield info.filename, stream  # type: ignore[misc]


def _tar_members(data: bytes, archive: str) -> Iterator[tuple[str, io.BufferedIOBase]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as opened:
        for info in opened:
            if info.isdir():
                continue
            stream = opened.extractfile(info) if info.isreg() else None
            if stream is None:
                raise InputError(f"{info.name!r} is a link or a device.", file=archive, remedy="Pack plain files.")
            yield info.name, stream  # type: ignore[misc]
