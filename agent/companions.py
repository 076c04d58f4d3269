"""The files beside a kernel that it imports or includes: they travel with it into the sandbox and every candidate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agent.port.includes import followed
from agent.port.intake import HOST_SUFFIXES, KERNEL_SUFFIXES
from sandbox.errors import InputError
from sandbox.kernel import MAX_SOURCE_BYTES, Kernel, Language, load_kernel

MAX_FILES = 200


def load_with_companions(path: Path) -> Kernel:
    """A kernel file with the local modules it imports, or the local files it includes, directly or through each other.
    Errors as `load_kernel`.

    Local is what lies in the file's own folder or below, `name.py`, a package `name/` or `"name.h"`; installed packages
    and headers are left to the interpreter and the compiler.
    """
    kernel = load_kernel(path)
    if kernel.language is not Language.TRITON:
        return load_kernel(path, _included(path))
    found: dict[str, str] = {}
    waiting = list(_local_files(kernel.source, path.parent, path.parent))
    while waiting:
        file = waiting.pop()
        name = file.relative_to(path.parent).as_posix()
        if name in found or file == path:
            continue
        if len(found) >= MAX_FILES:
            raise InputError(
                f"it imports more than {MAX_FILES} local files.", file=path, remedy="Split off the kernel."
            )
        found[name] = _read(file)
        waiting += _local_files(found[name], file.parent, path.parent)
    return load_kernel(path, found)


def load_candidate(path: Path, baseline: Kernel) -> Kernel:
    """A file that shall take the place of `baseline`: under its name, and with its local modules where the file has
    none of its own beside it. Errors as `load_kernel`."""
    given = load_with_companions(path)
    return replace(given, filename=baseline.filename, companions={**baseline.companions, **given.companions})


def _included(path: Path) -> dict[str, str]:
    """The local files that a HIP or CUDA file includes, by their path from its folder."""
    folder = path.resolve().parent
    reached = followed(path, (*KERNEL_SUFFIXES, *HOST_SUFFIXES), (), MAX_SOURCE_BYTES)
    return {p.relative_to(folder).as_posix(): _read(p) for p in reached if p.is_relative_to(folder)}


def _read(file: Path) -> str:
    if file.stat().st_size > MAX_SOURCE_BYTES:
        raise InputError(f"the file is larger than {MAX_SOURCE_BYTES // 2**20} MiB.", file=file)
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text.", file=file, remedy="Save it as UTF-8.") from None


def _local_files(source: str, folder: Path, root: Path) -> Iterator[Path]:
    """Files below `root` that `source`, lying in `folder`, imports. A file that cannot be parsed imports nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = root
            if node.level:
                base = folder
                for _ in range(node.level - 1):
                    base = base.parent
                if not base.is_relative_to(root):
                    continue
            words = (node.module or "").split(".") if node.module else []
            yield from _module_files(base, words)
            for alias in node.names:
                yield from _module_files(base, [*words, alias.name])


def _module_files(base: Path, words: list[str]) -> Iterator[Path]:
    """The module's file and the `__init__.py` of every package on the way."""
    folder = base
    for i, word in enumerate(words):
        file = folder / f"{word}.py"
        package = folder / word / "__init__.py"
        if package.is_file():
            yield package
        elif file.is_file() and i == len(words) - 1:
            yield file
            return
        folder = folder / word
        if not folder.is_dir():
            return
