"""Read what the user gave as a project: a file, folder, archive, git repository or Python file with `load_inline`."""

from __future__ import annotations

import ast
import fnmatch
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os.path import commonpath
from pathlib import Path

from agent.port.archive import is_archive, unpack
from agent.port.includes import PathIndex, closure, followed, includes_of
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
INLINE_HEAD = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
"""What torch's `load_inline` puts in front of CUDA sources."""
TORCH_INCLUDE = re.compile(r"#\s*include\s*[<\"](?:torch|ATen|c10)/")
TORCH_NAMES = re.compile(r"\b(?:torch|at|c10)::")
HOST_SUFFIXES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".inl", ".inc", ".hxx")
CUDA_WORDS = re.compile(
    r"__global__|__device__|__host__|\bcuda[A-Z]\w+|\bcu[A-Z]\w+\s*\(|\bcuda::|\bcub::|\bcurand|\bcublas|<<<|\bthrust::"
    r"|#\s*include\s*[<\"](cuda|cub|thrust|cooperative_groups|mma\.h|cute|cutlass|nvtx|curand|cublas|nvml)"
)
MAX_FILES = 3000
INCLUDED = "include/"
"""Where ported headers of `-I` folders go."""


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
        check_project(project)
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
    """The project, with all its files read, or only those reached when `include` names some of many."""
    files = _listed(path, request)
    texts = _Texts(files, single=path if path.is_file() else None)
    if path.is_file():
        wanted: list[str] | None = [next(name for name, file in files.items() if file == path.resolve())]
    else:
        wanted = [n for n in files if _globbed(n, request) and texts.read(n)] if request.include else None
        if wanted is None and len(files) > MAX_FILES:
            raise InputError(
                f"there are more than {MAX_FILES} source files.", file=path,
                remedy="Name those to port with --include GLOB.",
            )  # fmt: skip
    reached = list(files) if wanted is None else list(closure(wanted, PathIndex.of(files), texts.read))
    sources: dict[str, ProjectFile] = {}
    others: dict[str, str] = {}
    for name in reached:
        text = texts.read(name)
        if text is None:
            continue
        if name.endswith(".py"):
            sources |= _embedded(name, text, texts.data[name])
        elif _wanted(name, text, request, followed=wanted is not None and name not in wanted) and not _vendored(name):
            foreign = name.startswith(INCLUDED) and _is_foreign(files[name], request)
            sources[name] = ProjectFile(name, text, texts.data[name], foreign=foreign)
        else:
            others[name] = text
    if path.is_file():
        others |= _neighbours(path, files, set(reached))
    return Project(label, sources, others, tuple(texts.skipped), commit, frozenset(wanted or ()))


def _is_foreign(file: Path, request: PortRequest) -> bool:
    return any(file.is_relative_to(folder.resolve()) for folder in request.include_folders)


class _Texts:
    """Files read when they are asked for; what cannot be read is remembered with its reason, or raised for a single
    file."""

    def __init__(self, files: Mapping[str, Path], *, single: Path | None) -> None:
        self._files = files
        self._single = single
        self._read: dict[str, str | None] = {}
        self.data: dict[str, bytes] = {}
        self.skipped: list[str] = []

    def read(self, name: str) -> str | None:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> str | None:
        file = self._files[name]
        first = self._single is not None and not self._read
        file = self._single if first and self._single is not None else file
        if file.stat().st_size > MAX_SOURCE_BYTES:
            message = f"the file is larger than {MAX_SOURCE_BYTES >> 20} MiB."
            if first:
                raise InputError(message, file=file, remedy="Give the kernel's own file.")
            self.skipped.append(f"{name}: {message}")
            return None
        data = file.read_bytes()
        try:
            text = _decode(data, file)
        except InputError as e:
            if first:
                raise
            self.skipped.append(f"{name}: {e.message}")
            return None
        self.data[name] = data
        return text


def _listed(path: Path, request: PortRequest) -> dict[str, Path]:
    """Name in the project -> file. A single file brings the files it includes, wherever they lie."""
    suffixes = (*KERNEL_SUFFIXES, *HOST_SUFFIXES, ".py", ".hip")
    if path.is_file():
        if path.suffix not in suffixes:
            raise InputError(
                "this file type holds no CUDA.", file=path,
                remedy="Give a .cu or .cuh file, a folder, a .zip or a .tar.gz.",
            )  # fmt: skip
        return _with_followed(path.resolve(), request)
    found = [
        p for p in sorted(path.rglob("*"))
        if p.suffix in suffixes and p.is_file() and not p.is_symlink() and ".git" not in p.parts
    ]  # fmt: skip
    return {p.relative_to(path).as_posix(): p for p in found}


def _with_followed(file: Path, request: PortRequest) -> dict[str, Path]:
    if file.suffix == ".py" or file.stat().st_size > MAX_SOURCE_BYTES:
        return {file.name: file}
    folders = [folder.resolve() for folder in request.include_folders]
    reached = followed(file, (*KERNEL_SUFFIXES, *HOST_SUFFIXES), folders, MAX_SOURCE_BYTES)
    if request.contained:
        reached = [p for p in reached if p.is_relative_to(file.parent)]
    outside = [p for p in reached if any(p.is_relative_to(folder) for folder in folders)]
    near = [p for p in reached if p not in outside]
    root = Path(commonpath([file.parent, *(p.parent for p in near)]))
    named = {p.relative_to(root).as_posix(): p for p in (file, *near)}
    for p in outside:
        folder = next(folder for folder in folders if p.is_relative_to(folder))
        if CUDA_WORDS.search(p.read_text(encoding="utf-8", errors="replace")):
            named.setdefault(INCLUDED + p.relative_to(folder).as_posix(), p)
    return named


def _neighbours(path: Path, listed: Mapping[str, Path], taken: set[str]) -> dict[str, str]:
    """Headers beside a single file, which it may include in ways that cannot be read off its text."""
    found: dict[str, str] = {}
    name = next(n for n, p in listed.items() if p == path.resolve())
    prefix = name.removesuffix(path.name)
    for file in sorted(path.parent.iterdir()):
        label = prefix + file.name
        if label in taken or file.suffix not in (".h", ".hpp", ".cuh", ".inl", ".hh") or not file.is_file():
            continue
        if file.stat().st_size <= MAX_SOURCE_BYTES and len(found) < 200:
            found[label] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _decode(data: bytes, file: Path) -> str:
    if b"\0" in data[:65536]:
        raise InputError("the file is binary, not source text.", file=file, remedy="Give the source file.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise InputError("the file is not UTF-8 text.", file=file, line=line, remedy="Save it as UTF-8.") from None


def _globbed(name: str, request: PortRequest) -> bool:
    if request.include and not any(fnmatch.fnmatch(name, g) for g in request.include):
        return False
    return not any(fnmatch.fnmatch(name, g) for g in request.exclude)


def _wanted(name: str, text: str, request: PortRequest, *, followed: bool) -> bool:
    """Whether a file is ported; one that was reached through an include is when it holds CUDA."""
    if followed:
        return CUDA_WORDS.search(text) is not None
    if not _globbed(name, request):
        return False
    return name.endswith((*KERNEL_SUFFIXES, ".hip")) or CUDA_WORDS.search(text) is not None


def _vendored(name: str) -> bool:
    return any(part.lower() in VENDORED for part in name.split("/")[:-1])


def _embedded(name: str, text: str, data: bytes) -> dict[str, ProjectFile]:
    """CUDA texts of `load_inline(..., cuda_sources=...)`: string constants that hold a kernel, named by the variable or
    the argument they are given to. What `load_inline` puts in front of them is put in front here too."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    found: dict[str, ProjectFile] = {}
    for name_of, value in _constants(tree):
        if "__global__" not in value:
            continue
        number = sum(f.embedded.split(":")[1] == name_of for f in found.values())
        path = f"{name.removesuffix('.py')}.{name_of}{number or ''}.cu"
        whole = value if TORCH_INCLUDE.search(value) or not TORCH_NAMES.search(value) else INLINE_HEAD + value
        found[path] = ProjectFile(path, whole, whole.encode(), embedded=f"{name}:{name_of}")
    return found


def _constants(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Strings with the variable they are assigned to, or the argument of `load_inline` they are given as."""
    for node in ast.walk(tree):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            pairs = [(node.targets[0].id, node.value)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "load_inline":
            names = ("name", "cpp_sources", "cuda_sources")
            pairs = [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords if k.arg)]
        for label, value in pairs:
            for item in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield label, item.value


def check_project(project: Project) -> None:
    """Raises `InputError` for files that cannot be ported: no CUDA, unbalanced brackets, an include from elsewhere."""
    if not project.sources:
        reason = "; ".join(project.skipped[:3]) or "no file holds CUDA"
        raise InputError(f"there is nothing to port: {reason}.", file=project.name, remedy="Give CUDA sources.")
    holds_cuda = False
    for file in project.sources.values():
        source = HipSource(file.text)
        if CUDA_WORDS.search(source.masked) or CUDA_WORDS.search(source.uncommented):
            holds_cuda = True
            check_balanced(source, file.path)
        _check_includes(file)
    if not holds_cuda:
        only = next(iter(project.sources))
        raise InputError("the file holds no CUDA.", file=only, remedy="Give a file with kernels or CUDA calls.")


def _check_includes(file: ProjectFile) -> None:
    """An include that leaves the project can only mean a file that was not given."""
    depth = file.path.count("/")
    for include in includes_of(file.text):
        ups = len(re.match(r"(?:\.\./)*", include.name).group()) // 3  # type: ignore[union-attr]
        if ups > depth or include.name.startswith("/"):
            raise InputError(
                f"`{include.name}` lies outside of what was given.", file=file.path, line=include.line,
                remedy="Give the folder that holds both, or pass its folder with -I FOLDER and include it by name.",
            )  # fmt: skip
