"""The files beside a kernel that it imports or includes: they travel with it into the sandbox and every candidate."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from agent.port.includes import followed
from agent.port.intake import HOST_SUFFIXES, KERNEL_SUFFIXES
from sandbox.errors import InputError
from sandbox.kernel import MAX_SOURCE_BYTES, Kernel, Language, load_kernel
from sandbox.workload import parse

MAX_FILES = 1000
MAX_PACKAGE_BYTES = 16 * 1024 * 1024
PACKAGE_SUFFIXES = (".py", ".yaml", ".yml", ".json", ".toml")


def load_with_companions(path: Path) -> Kernel:
    """A kernel file with the local modules it imports, or the local files it includes, directly or through each other.
    Errors as `load_kernel`.

    Local is what lies in the file's own folder or below, `name.py`, a package `name/` or `"name.h"`; of a file in a
    package, also what lies in the folder that holds the package. Installed packages and headers are left to the
    interpreter and the compiler.
    """
    kernel = load_kernel(path)
    if kernel.language is not Language.TRITON:
        return load_kernel(path, _included(path))
    path = path.parent.resolve() / path.name
    root = import_root(path)
    found: dict[str, str] = {}
    waiting = [*_whole_package(path, root), *_local_files(kernel.source, path, root)]
    while waiting:
        file = waiting.pop()
        name = file.relative_to(root).as_posix()
        if name in found or file == path:
            continue
        if len(found) >= MAX_FILES:
            raise InputError(
                f"it imports more than {MAX_FILES} local files.", file=path, remedy="Split off the kernel."
            )
        found[name] = _read(file)
        if file.suffix == ".py":
            waiting += _local_files(found[name], file, root)
    return replace(load_kernel(path, found), filename=path.relative_to(root).as_posix())


def import_root(path: Path) -> Path:
    """The folder that the package of a Python file lies in, from which others import it; for a file in no package, the
    folder it lies in."""
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        folder = folder.parent
    return folder


def _whole_package(path: Path, root: Path) -> Iterator[Path]:
    """All of the package of a file, as it may also be imported or read by name; nothing of one that is too large."""
    if path.parent == root:
        return
    found: list[Path] = []
    size = 0
    for folder, below, names in os.walk(root / path.relative_to(root).parts[0]):
        below[:] = sorted(n for n in below if n != "__pycache__" and not n.startswith("."))
        for file in (Path(folder, n) for n in names if Path(n).suffix in PACKAGE_SUFFIXES):
            if file.is_file():
                found.append(file)
                size += file.stat().st_size
        if len(found) >= MAX_FILES or size > MAX_PACKAGE_BYTES:
            return
    yield from found


def load_program(file: Path, harness: Path | None, workload: Path | None) -> tuple[Kernel, Kernel | None]:
    """A kernel file and its harness. Errors as `load_kernel`.

    A harness may import the file from a folder below its own that is no package: then the file is named by its path
    from there, as the recorded `workload` of such a run names it.
    """
    kernel = load_with_companions(file)
    runner = load_with_companions(harness) if harness is not None else None
    name = kernel.filename
    if harness is not None and runner is not None:
        root, full = import_root(harness.parent.resolve() / harness.name), file.parent.resolve() / file.name
        seen = full.relative_to(root).as_posix() if full.is_relative_to(root) else ""
        name = seen if seen in runner.companions else name
    elif workload is not None and (workload / "workload.json").is_file():
        name = parse((workload / "workload.json").read_bytes()).filename
    prefix = name.removesuffix(f"/{kernel.filename}") if name.endswith(f"/{kernel.filename}") else ""
    if not prefix:
        return kernel, runner
    return replace(kernel, filename=name, companions={f"{prefix}/{n}": t for n, t in kernel.companions.items()}), runner


def load_candidate(path: Path, baseline: Kernel) -> Kernel:
    """A file that shall take the place of `baseline`: under its name, and with its local modules where the file has
    none of its own beside it. Errors as `load_kernel`."""
    given = load_with_companions(path)
    place, own = PurePosixPath(baseline.filename).parent, given.companions
    if PurePosixPath(given.filename).parent != place:
        own = {(place / name).as_posix(): text for name, text in own.items()}
    return replace(given, filename=baseline.filename, companions={**baseline.companions, **own})


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


def _local_files(source: str, file: Path, root: Path) -> Iterator[Path]:
    """Files below `root` that `source`, the text of `file`, imports. What cannot be parsed imports nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for folder in file.parents[: len(file.relative_to(root).parts) - 1]:  # importing a file runs its packages first
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = root
            if node.level:
                base = file.parent
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
