"""Edits of a source file as replaced byte spans, so that everything not named in an edit stays as it was written."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from skills.shadowed import in_builtin_terms
from skills.triton_source import TL, JitFunction, TritonSource


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace bytes `start` to `end` with `text`; `start == end` inserts."""

    start: int
    end: int
    text: str


def apply_edits(kernel: Kernel, source: TritonSource, edits: Iterable[Edit]) -> Kernel | None:
    """The kernel with all edits made; None when there is none, when two overlap or the result is not Python, and where
    the parameters of a kernel would change whose launches may start another kernel as well."""
    ordered = in_builtin_terms(source, sorted(dict.fromkeys(edits)))
    if not ordered or any(_changes_parameters(source, name, ordered) for name in source.sharing):
        return None
    pieces: list[bytes] = []
    at = 0
    for edit in ordered:
        if edit.start < at:
            if edit.text or edit.end < at:
                return None
            edit = Edit(at, edit.end, "")  # two neighbours dropped from one list share a comma
        pieces += [source.data[at : edit.start], edit.text.encode()]
        at = edit.end
    pieces.append(source.data[at:])
    text = b"".join(pieces).decode()
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return kernel.with_source(text)


def _changes_parameters(source: TritonSource, kernel: str, edits: Iterable[Edit]) -> bool:
    params = source.functions[kernel].node.params
    spans = [source.param_span(p) for p in (*params.params, *params.kwonly_params)]
    return bool(spans) and any(spans[0][0] <= e.start <= spans[-1][1] for e in edits)


def replace(source: TritonSource, node: cst.CSTNode, text: str) -> Edit:
    """Replace a node, parentheses around it stay."""
    start, end = source.span(node)
    return Edit(start, end, text)


def drop_argument(source: TritonSource, call: cst.Call, arg: cst.Arg) -> Edit:
    """Remove one argument of a call with its comma; a line that held nothing else goes as well."""
    args = list(call.args)
    return _drop_item(source, [source.span(a) for a in args], args.index(arg))


def drop_element(source: TritonSource, elements: list[cst.CSTNode], element: cst.CSTNode) -> Edit:
    """Remove one element of a dict or list display, as `drop_argument`."""
    return _drop_item(source, [source.span(e) for e in elements], elements.index(element))


def drop_line(source: TritonSource, statement: cst.CSTNode) -> Edit:
    """Remove a simple statement with its line, the comment behind it and an empty line too many."""
    start, end = source.span(statement)
    line_start = source.data.rfind(b"\n", 0, start) + 1
    line_end = source.data.find(b"\n", end) + 1 or len(source.data)
    if source.data[:line_start].endswith(b"\n\n") and source.data[line_end : line_end + 1] == b"\n":
        line_end += 1
    return Edit(line_start, line_end, "")


def _drop_item(source: TritonSource, spans: list[tuple[int, int]], index: int) -> Edit:
    start, end = _trimmed(source, spans[index])
    whole = _own_line(source, start, end)
    if whole is not None:
        return Edit(*whole, "")
    if index + 1 < len(spans):
        following = spans[index + 1][0]
        between = source.data[end:following]
        if index > 0 and b"\n" in between and b"#" not in between and not _starts_line(source, start):
            # Last of its line with more lines to come: take the comma before it and leave the line break.
            return Edit(_trimmed(source, spans[index - 1])[1], end, "")
        if b"\n" in between and b"#" in between:
            return Edit(start, end + between.index(b",") + 1, "")
        return Edit(start, following, "")
    if index == 0:
        return Edit(start, end, "")
    return Edit(_trimmed(source, spans[index - 1])[1], end, "")


def _own_line(source: TritonSource, start: int, end: int) -> tuple[int, int] | None:
    """The whole line, when nothing but the item, its comma and a comment stand on it."""
    line_start = source.data.rfind(b"\n", 0, start) + 1
    line_end = source.data.find(b"\n", end)
    if line_end < 0 or source.data[line_start:start].strip() or b"\n" in source.data[start:end]:
        return None
    rest = source.data[end:line_end].split(b"#", 1)[0].strip()
    return (line_start, line_end + 1) if rest == b"," else None


def _trimmed(source: TritonSource, span: tuple[int, int]) -> tuple[int, int]:
    """LibCST counts the comma and the space after it to an argument; leave them out."""
    start, end = span
    text = source.data[start:end]
    stripped = text.rstrip()
    if stripped.endswith(b","):
        stripped = stripped[:-1].rstrip()
    return start, start + len(stripped)


def _starts_line(source: TritonSource, offset: int) -> bool:
    return source.data[source.data.rfind(b"\n", 0, offset) + 1 : offset].strip() == b""


def add_argument(source: TritonSource, call: cst.Call, text: str) -> Edit:
    """Append an argument (`num_stages=2`) to a call, before a trailing comma or `**kwargs`."""
    if not call.args:
        end = source.span(call)[1] - 1
        return Edit(end, end, text)
    last = call.args[-1]
    if last.star == "**":
        start = source.span(last)[0]
        return Edit(start, start, f"{text}, ")
    end = _trimmed(source, source.span(last))[1]
    return Edit(end, end, f", {text}")


def set_keyword(source: TritonSource, call: cst.Call, name: str, value: str) -> Edit:
    """Give a keyword argument a value, whether it is there already or not."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return replace(source, arg.value, value)
    return add_argument(source, call, f"{name}={value}")


def add_element(source: TritonSource, display: cst.Dict | cst.List, text: str) -> Edit:
    """Append an element to a dict or list display, following the layout of the last one."""
    elements: list[cst.CSTNode] = list(display.elements)
    end = source.span(display)[1] - 1
    if not elements:
        return Edit(end, end, text)
    start, last_end = _trimmed(source, source.span(elements[-1]))
    if _starts_line(source, start):
        indent = source.data[source.data.rfind(b"\n", 0, start) + 1 : start].decode()
        return Edit(last_end, last_end, f",\n{indent}{text}")
    return Edit(last_end, last_end, f", {text}")


def indentation(source: TritonSource, node: cst.CSTNode) -> str:
    """The white space before the line a statement starts on."""
    start = source.span(source.statement(node))[0]
    line = source.data[source.data.rfind(b"\n", 0, start) + 1 : start].decode()
    return line[: len(line) - len(line.lstrip())]


def insert_before(source: TritonSource, node: cst.CSTNode, lines: Iterable[str]) -> Edit:
    """Insert whole lines before the statement that holds `node`, at its indentation."""
    start = source.span(source.statement(node))[0]
    at = source.data.rfind(b"\n", 0, start) + 1
    indent = indentation(source, node)
    return Edit(at, at, "".join(f"{indent}{line}\n" if line else "\n" for line in lines))


def insert_after(source: TritonSource, node: cst.CSTNode, lines: Iterable[str]) -> Edit:
    """Insert whole lines after the simple statement that holds `node`, at its indentation."""
    end = source.span(source.statement(node))[1]
    at = source.data.find(b"\n", end)
    indent = indentation(source, node)
    text = "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    return Edit(len(source.data), len(source.data), f"\n{text}") if at < 0 else Edit(at + 1, at + 1, text)


def insert_after_block(source: TritonSource, node: cst.BaseCompoundStatement, lines: Iterable[str]) -> Edit:
    """Insert whole lines after the last line of a loop or branch, at its indentation."""
    end = len(source.data[: source.span(node)[1]].rstrip())
    at = source.data.find(b"\n", end)
    indent = indentation(source, node)
    text = "".join(f"{indent}{line}\n" for line in lines)
    return Edit(len(source.data), len(source.data), f"\n{text}") if at < 0 else Edit(at + 1, at + 1, text)


def add_constexpr_param(source: TritonSource, function: JitFunction, defaults: Mapping[str, int]) -> Edit:
    """Append `name: tl.constexpr = default` parameters to a jit function, so that launches need not name them."""
    params = function.node.params
    last = [*params.params, *params.kwonly_params][-1]
    texts = [f"{name}: {tl_name(source)}.constexpr = {value}" for name, value in defaults.items()]
    start, end = source.param_span(last)
    lead = source.data[source.data.rfind(b"\n", 0, start) + 1 : start]
    own_line = not lead.strip()
    before = _line_indent(source, start) if not own_line else lead.decode()
    length = len(source.data[source.data.rfind(b"\n", 0, end) + 1 : source.data.find(b"\n", end)])
    if own_line or length + sum(len(t) + 2 for t in texts) > _LINE_LENGTH:
        return Edit(end, end, "".join(f",\n{before}{text}" for text in texts))
    return Edit(end, end, "".join(f", {text}" for text in texts))


def append_param(source: TritonSource, function: JitFunction, name: str) -> Edit:
    """Append a runtime parameter that launches give by keyword, so that positional arguments stay where they are."""
    params = [*function.node.params.params, *function.node.params.kwonly_params]
    end = source.param_span(params[-1])[1]
    return Edit(end, end, f", {name}=0" if any(p.default is not None for p in params) else f", {name}")


_LINE_LENGTH = 120


def _line_indent(source: TritonSource, offset: int) -> str:
    """White space that aligns a continued parameter list with the first parameter after the parenthesis."""
    start = source.data.rfind(b"\n", 0, offset) + 1
    opened = source.data.rfind(b"(", start, offset)
    if opened >= 0:
        return " " * (opened + 1 - start)
    line = source.data[start:offset].decode()
    return line[: len(line) - len(line.lstrip())]


def tl_name(source: TritonSource) -> str:
    """The name under which the file knows `triton.language`."""
    return next((local for local, full in source.imports.items() if full == TL), "tl")


def add_import(source: TritonSource, text: str) -> Edit | None:
    """An import line after the last import at module level; None when the file holds it already."""
    if text in source.text:
        return None
    last: cst.CSTNode | None = None
    for node in source.module.body:
        if isinstance(node, cst.SimpleStatementLine) and any(
            isinstance(small, cst.Import | cst.ImportFrom) for small in node.body
        ):
            last = node
    if last is None:
        return Edit(0, 0, f"{text}\n")
    return insert_after(source, last, [text])


def insert_function_before(source: TritonSource, function: JitFunction, text: str) -> Edit:
    """Insert a top-level definition, and two empty lines, before a jit function and its decorators."""
    node: cst.CSTNode = function.node
    start = min([source.span(node)[0], *(source.span(d)[0] for d in function.node.decorators)])
    at = source.data.rfind(b"\n", 0, start) + 1
    return Edit(at, at, f"{text.rstrip()}\n\n\n")
