"""Read what the user gave as a project: a file, folder, archive, git repository or Python file with `load_inline`."""

from __future__ import annotations

import ast
import fnmatch
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.port.archive import is_archive, unpack
from agent.port.request import PortRequest, Project, ProjectFile
from sandbox.errors import InputError
from sandbox.hip_checks import check_balanced
from sandbox.hip_source import HipSource
from sandbox.kernel import MAX_SOURCE_BYTES

VENDORED = frozenset(
    {"third_party", "third-party", "3rdparty", "thirdparty", "external", "externals", "extern", "vendor", "vendored",
     "deps", "submodules", "node_modules", "build", "cmake-build-debug", ".git", "cutlass", "cub", "thrust"}
)  # fmt: skip
"""Folder names that hold code of others: read for includes, never rewritten."""
KERNEL_SUFFIXES = (".cu", ".cuh")
HOST_SUFFIXES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".inl", ".inc", ".hxx")
CUDA_WORDS = re.compile(
    r"__global__|__device__|__host__|\bcuda[A-Z]\w+|\bcu[A-Z]\w+\s*\(|\bcuda::|\bcub::|\bcurand|\bcublas|<<<|\bthrust::"
    r"|#\s*include\s*[<\"](cuda|cub|thrust|cooperative_groups|mma\.h|cute|cutlass|nvtx|curand|cublas|nvml)"
)
MAX_FILES = 3000


@contextmanager
def open_project(request: PortRequest) -> Iterator[Project]:
    """The project of a request; temporary copies are gone afterwards. Raises `InputError` for what cannot be ported."""
    text = str(request.path)
    with tempfile.TemporaryDirectory(prefix="wavesmith-port-") as name:
        folder = Path(name)
        commit = None
        if re.match(r"(https?|git|ssh)://|git@", text):
            commit = _clone(text, folder)
            path = folder
            label = re.sub(r"\.git$", "", text.rstrip("/").rsplit("/", 1)[-1])
        else:
            path = Path(request.path)
            label = path.name
            if not path.exists():
                raise InputError("there is no such file or folder.", file=path, remedy="Check the path.")
            if path.is_file() and is_archive(path):
                unpack(path, folder)
                path = folder
        project = _read(path, label, request, commit)
        _check(project)
        yield project


def _clone(url: str, folder: Path) -> str:
    import git

    try:
        repository = git.Repo.clone_from(url, folder, depth=1, multi_options=["--no-recurse-submodules"])
    except git.GitError as e:
        reason = str(e).strip().splitlines()[-1][:200]
        raise InputError(f"the repository cannot be cloned: {reason}", file=url, remedy="Check the URL.") from None
    return str(repository.head.commit.hexsha)


def _read(path: Path, label: str, request: PortRequest, commit: str | None) -> Project:
    sources: dict[str, ProjectFile] = {}
    others: dict[str, str] = {}
    skipped: list[str] = []
    root = path if path.is_dir() else path.parent
    for file in _candidates(path):
        name = file.relative_to(root).as_posix()
        single = path.is_file()
        if file.stat().st_size > MAX_SOURCE_BYTES:
            if single:
                raise InputError(
                    f"the file is larger than {MAX_SOURCE_BYTES >> 20} MiB.",
                    file=file,
                    remedy="Give the kernel's own file.",
                )
            skipped.append(f"{name}: larger than {MAX_SOURCE_BYTES >> 20} MiB")
            continue
        data = file.read_bytes()
        try:
            text = _decode(data, file)
        except InputError as e:
            if single:
                raise
            skipped.append(f"{name}: {e.message}")
            continue
        if file.suffix == ".py":
            sources |= _embedded(name, text, data)
        elif _wanted(name, text, request) and not _vendored(name):
            sources[name] = ProjectFile(name, text, data)
        else:
            others[name] = text
    if path.is_file():
        others |= _neighbours(path, set(sources))
    return Project(label, sources, others, tuple(skipped), commit)


def _candidates(path: Path) -> list[Path]:
    if path.is_file():
        if path.suffix not in (*KERNEL_SUFFIXES, *HOST_SUFFIXES, ".py", ".hip"):
            raise InputError(
                "this file type holds no CUDA.",
                file=path,
                remedy="Give a .cu or .cuh file, a folder, a .zip or a .tar.gz.",
            )
        return [path]
    suffixes = (*KERNEL_SUFFIXES, *HOST_SUFFIXES, ".py")
    found = [
        p for p in sorted(path.rglob("*"))
        if p.suffix in suffixes and p.is_file() and not p.is_symlink() and ".git" not in p.parts
    ]  # fmt: skip
    if len(found) > MAX_FILES:
        raise InputError(f"there are more than {MAX_FILES} source files.", file=path, remedy="Give a smaller folder.")
    return found


def _neighbours(path: Path, taken: set[str]) -> dict[str, str]:
    """Headers beside a single file, which it may include."""
    found: dict[str, str] = {}
    for file in sorted(path.parent.iterdir()):
        if file.name in taken or file.suffix not in (".h", ".hpp", ".cuh", ".inl", ".hh") or not file.is_file():
            continue
        if file.stat().st_size <= MAX_SOURCE_BYTES and len(found) < 200:
            found[file.name] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _decode(data: bytes, file: Path) -> str:
    if b"\0" in data[:65536]:
        raise InputError("the file is binary, not source text.", file=file, remedy="Give the source file.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise InputError("the file is not UTF-8 text.", file=file, line=line, remedy="Save it as UTF-8.") from None


def _wanted(name: str, text: str, request: PortRequest) -> bool:
    if request.include and not any(fnmatch.fnmatch(name, g) for g in request.include):
        return False
    if any(fnmatch.fnmatch(name, g) for g in request.exclude):
        return False
    return name.endswith((*KERNEL_SUFFIXES, ".hip")) or CUDA_WORDS.search(text) is not None


def _vendored(name: str) -> bool:
    return any(part.lower() in VENDORED for part in name.split("/")[:-1])


def _embedded(name: str, text: str, data: bytes) -> dict[str, ProjectFile]:
    """CUDA texts of `load_inline(..., cuda_sources=...)`: string constants of the module that hold a kernel."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    found: dict[str, ProjectFile] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and "__global__" in value.value:
            variable = node.targets[0].id
            path = f"{name.removesuffix('.py')}.{variable}.cu"
            found[path] = ProjectFile(path, value.value, value.value.encode(), embedded=f"{name}:{variable}")
    return found


def _check(project: Project) -> None:
    if not project.sources:
        reason = "; ".join(project.skipped[:3]) or "no file holds CUDA"
        raise InputError(f"there is nothing to port: {reason}.", file=project.name, remedy="Give CUDA sources.")
    holds_cuda = False
    for file in project.sources.values():
        source = HipSource(file.text)
        if CUDA_WORDS.search(source.masked) or CUDA_WORDS.search(source.uncommented):
            holds_cuda = True
            check_balanced(source, file.path)
    if not holds_cuda:
        only = next(iter(project.sources))
        raise InputError("the file holds no CUDA.", file=only, remedy="Give a file with kernels or CUDA calls.")
