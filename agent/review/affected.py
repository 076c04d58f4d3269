"""Which kernels of a file a change affects: their own code, what they call, their configs and their launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from agent.port.intake import CUDA_WORDS
from agent.review.changes import ChangedFile
from sandbox.hip_source import HipSource
from sandbox.kernel import Language

CUDA_SUFFIXES = (".cu", ".cuh")
_HEADERS = (".h", ".hpp", ".hh", ".inl", ".inc", ".hxx", ".cpp", ".cc", ".cxx")


def language_of_change(file: ChangedFile) -> Language | None:
    """What a changed file is to a review; None for one without kernels or launches."""
    text = file.after_text
    if file.path.endswith(".py"):
        return Language.TRITON if re.search(r"^\s*(import|from)\s+triton\b", text, re.MULTILINE) else None
    if file.path.endswith(".hip"):
        return Language.HIP
    if file.path.endswith(CUDA_SUFFIXES):
        return Language.CUDA
    is_cuda = file.path.endswith(_HEADERS) and CUDA_WORDS.search(text) is not None
    return Language.CUDA if is_cuda and ("__global__" in text or "__device__" in text or "<<<" in text) else None


def affected_kernels(file: ChangedFile, language: Language) -> tuple[str, ...]:
    """Names of the kernels whose behaviour may differ between base and head; comments and formatting do not count.

    A file that only launches kernels of others counts as the kernel `launches`.
    """
    read = _python_units if language is Language.TRITON else _cuda_units
    before, after = read(file.before_text), read(file.after_text)
    return tuple(name for name, code in after.items() if before.get(name) != code)


def why_unread(file: ChangedFile, language: Language) -> str:
    """Why the head's file cannot be looked into; empty when it can."""
    if language is not Language.TRITON or not _may_launch(file.after_text):
        return ""
    try:
        ast.unparse(ast.parse(file.after_text))
    except SyntaxError as e:
        return f"Python cannot parse it: line {e.lineno}: {e.msg}"
    except (ValueError, RecursionError, MemoryError):
        return "Python cannot parse it: it is nested too deeply"
    return ""


def _may_launch(text: str) -> bool:
    """False for what holds neither a kernel nor a launch: large data files need not be parsed."""
    return "jit" in text or re.search(r"\]\s*\(", text) is not None


def _python_units(text: str) -> Mapping[str, str]:
    """Each jit kernel with everything of the file that decides what it does, as one normalised text."""
    if not _may_launch(text):
        return {}
    try:
        tree = ast.parse(text)
        return _units_of(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _units_of(tree: ast.Module) -> Mapping[str, str]:
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    kernels = {name: node for name, node in functions.items() if any(_is_jit(d) for d in node.decorator_list)}
    constants = {t.id: n for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    loose = [n for n in tree.body if not isinstance(n, definitions) and _launches(n)]
    hosts = [*(n for name, n in functions.items() if name not in kernels and _launches(n)), *loose]
    hosts_text: dict[str, set[str]] = {
        ast.unparse(n): {m.id for m in ast.walk(n) if isinstance(m, ast.Name)} for n in hosts
    }
    units: dict[str, str] = {}
    for name, node in kernels.items():
        parts = [_code(p) for p in _reach(node, {**functions, **constants})]
        parts += sorted(t for t, names in hosts_text.items() if name in names)
        units[name] = "\n".join(parts)
    orphans = sorted(t for t, names in hosts_text.items() if not names & kernels.keys())
    if orphans:
        units["launches"] = "\n".join(orphans)
    return units


def _is_jit(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return name.split(".")[-1] in ("jit", "autotune", "heuristics")


def _launches(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in ast.walk(node))


def _reach(start: ast.AST, known: Mapping[str, ast.AST]) -> Iterable[ast.AST]:
    """`start` and every known definition that it names, directly or through others."""
    seen: dict[int, ast.AST] = {id(start): start}
    waiting = [start]
    while waiting:
        for n in ast.walk(waiting.pop()):
            found = known.get(n.id) if isinstance(n, ast.Name) else None
            if found is not None and id(found) not in seen:
                seen[id(found)] = found
                waiting.append(found)
    return seen.values()


def _code(node: ast.AST) -> str:
    """The node without its docstring, in one spelling."""
    text = ast.unparse(node)
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None and len(node.body) > 1:
        text = text.replace(ast.unparse(node.body[0]), "", 1)
    return text


def _cuda_units(text: str) -> Mapping[str, str]:
    """Each `__global__` function with the rest of the file that it names, or that names it."""
    source = HipSource(text)
    kernels = source.kernels
    units: dict[str, str] = {}
    outside = [t for t in source.code if not any(k.start <= t.start < k.body.end for k in kernels)]
    lines: dict[int, list[str]] = {}
    for t in outside:
        lines.setdefault(source.line_of(t.start), []).append(t.text)
    for k in kernels:
        own = [t.text for t in source.code if k.start <= t.start < k.body.end]
        words = {t for t in own if re.fullmatch(r"[A-Za-z_]\w{2,}", t)} - _COMMON
        related = [" ".join(line) for line in lines.values() if k.name in line or _defines(line, words)]
        units[k.name] = " ".join(own) + "\n" + "\n".join(related)
    if not kernels:
        units["header"] = " ".join(t.text for t in outside)
    return units


_COMMON = frozenset(
    """int float double void const unsigned char long short bool auto return for while else threadIdx blockIdx blockDim
    gridDim static inline struct template typename class extern half size_t __global__ __shared__ __device__ include
    define pragma namespace using __restrict__ __syncthreads""".split()  # noqa: SIM905 - a list would be forty lines
)


def _defines(line: list[str], words: set[str]) -> bool:
    """Whether a line outside of kernels defines something that the kernel names: a macro, constant or function."""
    is_definition = "define" in line[:3] or "constexpr" in line or "__device__" in line or "const" in line[:2]
    return is_definition and bool(words & set(line))
