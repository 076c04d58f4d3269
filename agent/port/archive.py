"""Unpack a .zip or .tar.gz that came from outside: bounded, plain files only, nothing outside its own folder."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from sandbox.errors import InputError

MAX_FILES = 5000
MAX_TOTAL_BYTES = 128 * 2**20
MAX_FILE_BYTES = 16 * 2**20
_UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""What the standard library raises for damaged, encrypted and unsupported archives."""
SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def unpack(path: Path, folder: Path) -> None:
    """Write the members of an archive below `folder`; raises `InputError` and stops at the first that is not allowed.

    Sizes are counted while reading, so a declared size that lies does not matter.
    """
    total = 0
    count = 0
    try:
        for name, stream in _members(path):
            relative = _safe(name, path)
            count += 1
            if count > MAX_FILES:
                raise InputError(
                    f"the archive holds more than {MAX_FILES} files.", file=path, remedy="Pack the sources only."
                )
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                size = 0
                while chunk := stream.read(1 << 16):
                    size += len(chunk)
                    total += len(chunk)
                    if size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
                        raise InputError(
                            "the archive unpacks to more than is allowed "
                            f"({MAX_FILE_BYTES >> 20} MiB a file, {MAX_TOTAL_BYTES >> 20} MiB in all).",
                            file=path, remedy="Pack the sources only.",
                        )  # fmt: skip
                    out.write(chunk)
    except _UNREADABLE as e:
        raise InputError(f"the archive cannot be read ({e}).", file=path, remedy="Pack it again.") from None


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                if (info.external_attr >> 16) & 0o170000 == 0o120000:
                    raise InputError(f"the member {info.filename} is a link.", file=path, remedy="Pack plain files.")
                with archive.open(info) as stream:
                    yield info.filename, stream
        return
    with tarfile.open(path, "r:*") as tar:
        for member in tar:
            if member.isdir():
                continue
            if not member.isfile():
                raise InputError(f"the member {member.name} is no plain file.", file=path, remedy="Pack plain files.")
            extracted = tar.extractfile(member)
            if extracted is not None:
                with extracted:
                    yield member.name, extracted


def _safe(name: str, archive: Path) -> str:
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in name or ":" in pure.parts[0]:
        raise InputError(
            f"the member {name!r} leaves the archive's folder.", file=archive, remedy="Pack relative paths."
        )
    return pure.as_posix()
