"""Names of uploaded files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from sandbox.errors import InputError

_FILE_NAME = re.compile(r"[A-Za-z0-9_][\w.+\- ]{0,127}", re.ASCII)


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
