"""From what Triton, MLIR or LLVM said to a `CompileError` that names the user's source line."""

from __future__ import annotations

import ast
import os
import re
import signal
import traceback
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sandbox import jit_graph
from sandbox.jit_graph import Place

if TYPE_CHECKING:
    from sandbox.compiling import CompileError, ErrorKind

_LOG_BYTES = 4000
_MLIR_ERROR = re.compile(
    r"""^(?:loc\(.*?)?"?(?P<file>/?[^\s":()]+\.py)"?:(?P<line>\d+):\d+\)*:?\s*error: (?P<message>.*)$""", re.M
)
_VAGUE = "Failures have been detected while processing an MLIR pass pipeline"
_TELLING = re.compile(r"error|warning|note:|fatal|assert", re.I)
_ANY_ERROR = re.compile(r"^(?:<unknown>:\d+:\d+: |LLVM )?(?:error|ERROR|fatal error): (?P<message>.*)$", re.M)
_ASSERTED = re.compile(r"Assertion `(?P<text>.*)' failed\.", re.M)
_PASS = re.compile(r"Pipeline failed while executing \[`(?P<name>\w+)`")
_PYTHON_WARNING = re.compile(r"(?:^|: )\w*Warning: ")
_PTXAS_ERROR = re.compile(r"^ptxas .*?(?:error|fatal)\s*:\s*(?P<message>.*)$", re.M)
_LOC = re.compile(r"^#loc(?P<id>\d*) = loc\((?P<body>.*)\)\s*$", re.M)
_FILE_LOC = re.compile(r'"(?P<file>[^"]+\.py)":(?P<line>\d+):\d+')
_NOT_IN_TRITON = re.compile(r"AttributeError: module '(triton[\w.]*)' has no attribute '(\w+)'")
_NV_SYMBOL = re.compile(r"\b__nv_\w+")


def from_exception(
    error: BaseException, fn: Any, *, log: str = "", texts: Mapping[str, str] | None = None
) -> CompileError:
    """The `CompileError` of an exception raised before or inside Triton's compiler.

    `log` is what the compiler wrote to stderr, `texts` the intermediate forms that were reached.
    """
    from triton.compiler.errors import CompilationError

    fns = jit_graph.reachable(fn)
    if isinstance(error, CompilationError):
        message, place = _frontend(error, fns)
        return _error("frontend", message, fn, place, texts, log)
    text = _exception_text(error)
    if isinstance(error, RuntimeError) or texts or log.strip():
        message, place = _lowering(text, log, fns, texts or {})
        return _error("lowering", message, fn, place, texts, log)
    kind: ErrorKind = "internal"
    if isinstance(error, KeyError | ValueError | AssertionError):
        kind = "option"
    elif isinstance(error, TypeError):
        kind = "argument"
    return _error(kind, text, fn, jit_graph.launch_place(), texts, log)


def from_exit(fn: Any, status: int | None, log: str, texts: Mapping[str, str], timeout_s: float) -> CompileError:
    """The `CompileError` of a compiler process that gave no answer (`status` as of `waitpid`; None: killed)."""
    if status is None:
        stage = _stage(texts)
        where = f" after reaching {stage}" if stage else ""
        return _error("timeout", f"the compiler did not finish within {timeout_s:g} s{where}", fn, None, texts, log)
    kind: ErrorKind = "compiler-exit"
    ended = f"the compiler exited with status {os.WEXITSTATUS(status)}"
    if os.WIFSIGNALED(status):
        kind, ended = "compiler-crash", f"the compiler was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    message, place = _lowering(ended, log, jit_graph.reachable(fn), texts)
    return _error(kind, message, fn, place, texts, log)


def _error(
    kind: ErrorKind, message: str, fn: Any, place: Place | None, texts: Mapping[str, str] | None, log: str
) -> CompileError:
    from sandbox.compiling import CompileError

    return CompileError(
        kind=kind,
        message=message.strip(),
        kernel=fn.__name__,
        file=place.file if place else jit_graph.file_of(fn),
        line=place.line if place else None,
        source_line=place.text if place else None,
        stage=_stage(texts or {}),
        log=_digest(log),
    )


def _digest(log: str) -> str:
    """The log, without the module dumps that MLIR adds when it is long."""
    if len(log) > _LOG_BYTES:
        log = "\n".join(line[:500] for line in log.splitlines() if _TELLING.search(line))
    return log[-_LOG_BYTES:]


def _stage(texts: Mapping[str, str]) -> str | None:
    return list(texts)[-1] if texts else None


def _frontend(error: Any, fns: list[Any]) -> tuple[str, Place | None]:
    """Message of the innermost error, place of the innermost one in the user's own code."""
    from triton.compiler.errors import CompilationError

    place: Place | None = None
    message = ""
    current: BaseException | None = error
    kind = type(error).__name__
    while current is not None:
        if isinstance(current, CompilationError):
            owner = next((f for f in fns if f.src == current.src), None)
            inner = owner is not None and (place is None or not jit_graph.in_triton(owner))
            if inner and isinstance(current.node, ast.AST):
                place = jit_graph.place_in(owner, current.node)
            message, kind = current.error_message or message, type(current).__name__
        else:
            message = _exception_text(current)
        current = current.__cause__
    if not message:  # a static assertion without words
        message = f"{kind}: {place.text}" if place is not None else kind
    message = _unquote(str(message))
    if missing := _NOT_IN_TRITON.fullmatch(message):
        return _of_another_triton(missing), jit_graph.place_of_attribute(fns, missing[2]) or place
    return _explained(message, place), place


def _of_another_triton(missing: re.Match[str]) -> str:
    """Triton looks such names up even where a constexpr switches their branch off."""
    import triton

    return (
        f"Triton {triton.__version__} has no {missing[1]}.{missing[2]}: the file was written for another version of it"
    )


def _explained(message: str, place: Place | None) -> str:
    """A library function that has no variant for its argument types is a bare KeyError in Triton."""
    types = re.fullmatch(r"KeyError: [\[(](.*)[\])]", message)
    if types is None or place is None or "(" not in place.text:
        return message
    called = re.search(r"[\w.]*libdevice\.\w+|[\w.]*math\.\w+", place.text)
    names = types[1].replace("'", "").replace("triton.language.", "")
    return f"{called[0] if called else 'the library function'} has no variant for ({names}) ({message})"


def _unquote(message: str) -> str:
    """`ValueError('x')` as `ValueError: x`."""
    match = re.fullmatch(r"""(\w+)\((['"])(.*)\2,?\)""", message, re.S)
    if match is None:
        return message
    return f"{match[1]}: {match[3]}".replace("\\n", "\n").replace("\\'", "'")


def _exception_text(error: BaseException) -> str:
    """`Type: message`; of an assertion without a message, the line that asserts."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if not text and isinstance(error, AssertionError):
        raised = traceback.extract_tb(error.__traceback__)
        text = " ".join(raised[-1].line.split()) if raised and raised[-1].line else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _said(log: str) -> tuple[str, re.Match[str] | None]:
    """The most telling error in a log, and the match of its place where it names one."""
    located = [m for m in _MLIR_ERROR.finditer(log) if _VAGUE not in m["message"]]
    if located:
        return located[0]["message"].strip(), located[0]
    for pattern in (_ANY_ERROR, _PTXAS_ERROR):
        if match := pattern.search(log):
            return match["message"].strip(), None
    if said := _pass_failure(log):
        return said, None
    if match := _MLIR_ERROR.search(log):
        return match["message"].strip(), match
    lines = list(_without_warnings(log))
    return (lines[-1].strip() if lines else ""), None


def _pass_failure(log: str) -> str:
    """Which pass of the compiler failed, with the assertion it failed on; empty where neither is said."""
    asserted, within = _ASSERTED.search(log), _PASS.search(log)
    if asserted is None and within is None:
        return ""
    where = f"the compiler's pass {within['name']}" if within is not None else "the compiler"
    if asserted is None:
        return f"{where} failed"
    words = "".join(re.findall(r'"([^"]*)"', asserted["text"])) or asserted["text"]
    return f"{where} failed an assertion of its own: {' '.join(words.split())}"


def _without_warnings(log: str) -> Iterator[str]:
    """The lines of a log that are not Python's warnings, each of which may quote a line of source after it."""
    warned = False
    for line in log.splitlines():
        quoted, warned = warned and line.startswith("  "), bool(_PYTHON_WARNING.search(line))
        if line.strip() and not warned and not quoted:
            yield line


def _lowering(text: str, log: str, fns: list[Any], texts: Mapping[str, str]) -> tuple[str, Place | None]:
    """What a pass or LLVM said, and its place; where none is named, the place of the operation that is meant."""
    users = [f for f in fns if not jit_graph.in_triton(f)]
    said, match = _said(log)
    message = text if not said or said in text else f"{said} ({text})"
    if match is not None and _VAGUE not in said:
        return message, jit_graph.place_at(fns, match["file"], int(match["line"]))
    whole = f"{text}\n{said}"
    place: Place | None = None
    if symbol := _NV_SYMBOL.search(whole):
        place = _operation(f'"{symbol[0]}"', users, texts)
    if place is None and ("constraint" in whole or "asm" in whole):
        place = _operation("elementwise_inline_asm", users, texts)
    if place is None and "DotScaleOp" in whole:
        place = _operation("tt.dot_scaled", users, texts)
    return message, place


def _operation(needle: str, fns: list[Any], texts: Mapping[str, str]) -> Place | None:
    """The user's place of the first operation whose text holds `needle`, in the earliest form that has it."""
    for text in texts.values():
        locations = {match["id"]: match["body"] for match in _LOC.finditer(text)}
        for line in text.splitlines():
            if needle not in line or "loc(#loc" not in line:
                continue
            identifier = line.rsplit("loc(#loc", 1)[1].split(")")[0]
            for file, number in _files(identifier, locations):
                if any(jit_graph.file_of(f) == file for f in fns):
                    return jit_graph.place_at(fns, file, number)
    return None


def _files(identifier: str, locations: Mapping[str, str], depth: int = 0) -> list[tuple[str, int]]:
    """The file positions a location stands for, innermost first, through call sites and names."""
    body = locations.get(identifier, "")
    found = [(m["file"], int(m["line"])) for m in _FILE_LOC.finditer(body)]
    if depth < 20:
        for inner in re.findall(r"#loc(\d*)", body):
            found.extend(_files(inner, locations, depth + 1))
    return found
