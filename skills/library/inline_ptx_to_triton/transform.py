"""Replace `tl.inline_asm_elementwise` with PTX by Triton expressions; drop programmatic dependent launch whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import (
    Edit,
    add_import,
    apply_edits,
    drop_argument,
    drop_line,
    insert_function_before,
    replace,
    tl_name,
)
from skills.facts import Facts
from skills.idioms import assignments, needs_parentheses, tl_call, vendor_guarded
from skills.library.inline_ptx_to_triton.ptx import TRITON_TYPES, Names, Term, UnknownPtxError, evaluate
from skills.library.inline_ptx_to_triton.ptx_text import instructions, is_amd_assembly, is_dependent_launch_only
from skills.library.port_cuda_libdevice.functions import HELPERS
from skills.literals import int_value, string_value
from skills.skill import Refusal, Site
from skills.triton_source import TL, TritonSource, argument, parse_triton

_TIMER = '''@triton.jit
def _global_timer():
    """Nanoseconds of a clock that all programs share (on HIP a 100 MHz counter)."""
    if {tl}.target_info.is_hip():
        now = memrealtime() * 10
    else:
        now = globaltimer()
    return now
'''
_TIMER_IMPORTS = (
    "from triton.language.extra.cuda import globaltimer",
    "from triton.language.extra.hip import memrealtime",
)
_GDC = (f"{TL}.extra.cuda.gdc_wait", f"{TL}.extra.cuda.gdc_launch_dependents", f"{TL}.extra.cuda.gdc.gdc_wait",
        f"{TL}.extra.cuda.gdc.gdc_launch_dependents")  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Snippet:
    """One call of inline assembly. `asm` is None when its text is computed."""

    call: cst.Call
    asm: str | None
    constraints: str


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the file, and one refusal per snippet without a counterpart."""
    source = parse_triton(kernel)
    snippets = list(_snippets(source))
    if not snippets and not list(_dependent_launch(source)):
        return
    names = Names(tl_name(source), "libdevice")
    for snippet in snippets:
        try:
            _expression(source, snippet, names)
        except UnknownPtxError as e:
            yield Refusal(
                f"inline PTX {e} has no counterpart in Triton",
                source.line(snippet.call),
                "write this step with Triton operations, or keep it behind a test of the vendor",
            )
    edited = transform(kernel, Site(1, ""), target)
    if edited is not None:
        first = min([source.line(s.call) for s in snippets] + [source.line(n) for n in _dependent_launch(source)])
        yield Site(first, "Triton operations")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every snippet that has a counterpart, nested ones from the inside."""
    edited: Kernel | None = None
    for _ in range(8):
        step = _one_pass(edited or kernel, parse_triton(edited or kernel))
        if step is None:
            break
        edited = step
    return edited


def _one_pass(kernel: Kernel, source: TritonSource) -> Kernel | None:
    library = next((n for n, full in source.imports.items() if full == f"{TL}.extra.libdevice"), "libdevice")
    names = Names(tl_name(source), library)
    texts: list[tuple[_Snippet, str]] = []
    for snippet in _snippets(source):
        try:
            text = _expression(source, snippet, names)
        except UnknownPtxError:
            continue
        if not _holds_snippet(source, snippet):
            texts.append((snippet, text))
    edits = [_in_place(source, s.call, text) for s, text in texts]
    edits += _without_dependent_launch(source)
    if not edits:
        return None
    used = "\n".join(text for _, text in texts)
    imports = [f"from {TL}.extra import libdevice"] if f"{library}." in used and library not in source.imports else []
    helpers = [h for h in HELPERS if f"{h}(" in used and h not in source.functions]
    if "_clz" in helpers and "_popc" not in (*helpers, *source.functions):
        helpers.insert(0, "_popc")
    bodies = [HELPERS[h].replace("{tl}", names.tl) for h in helpers]
    if "_global_timer()" in used and "_global_timer" not in source.functions:
        bodies.append(_TIMER.replace("{tl}", names.tl))
        imports += list(_TIMER_IMPORTS)
    missing = [text for text in imports if text not in source.text]
    if missing and (edit := add_import(source, "\n".join(missing))) is not None:
        edits.append(edit)
    if bodies:
        edits.append(insert_function_before(source, next(iter(source.functions.values())), "\n\n".join(bodies)))
    return apply_edits(kernel, source, edits)


def _snippets(source: TritonSource) -> Iterator[_Snippet]:
    """Inline PTX that is not already behind a test of the vendor and does more than order launches."""
    for node in source.nodes:
        call = tl_call(source, node, "inline_asm_elementwise")
        if call is None or vendor_guarded(source, call):
            continue
        asm = _text(source, call, "asm", 0)
        constraints = _text(source, call, "constraints", 1) or ""
        if asm is not None and (is_amd_assembly(asm, constraints) or is_dependent_launch_only(asm)):
            continue
        yield _Snippet(call, asm, constraints)


def _text(source: TritonSource, call: cst.Call, name: str, position: int) -> str | None:
    """A string argument: written in place, or a name that is given one string."""
    arg = argument(call, name, position)
    if arg is None:
        return None
    value = string_value(arg.value)
    if value is None and isinstance(arg.value, cst.Name):
        found = [string_value(_unwrapped(v)) for v in assignments(source, source.module, arg.value.value)]
        value = found[0] if len(found) == 1 else None
    return value


def _unwrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """The value inside `tl.constexpr(...)`."""
    return node.args[0].value if isinstance(node, cst.Call) and len(node.args) == 1 else node


def _expression(source: TritonSource, snippet: _Snippet, names: Names) -> str:
    """The call as a Triton expression; raises `UnknownPtxError` where there is none."""
    if snippet.asm is None:
        raise UnknownPtxError("whose text is computed")
    given = argument(snippet.call, "args", 2)
    values = list(given.value.elements) if given is not None and isinstance(given.value, cst.List | cst.Tuple) else []
    if (
        "%globaltimer" in snippet.asm
        and not values
        and re.fullmatch(r"\s*mov\.u64\s+\$0,\s*%globaltimer;?\s*", snippet.asm)
    ):
        return "_global_timer()"
    args = [Term(source.code(e.value), "bits", not needs_parentheses(e.value)) for e in values]
    packed = argument(snippet.call, "pack", 5)
    per_register = (int_value(packed.value) or 0) if packed is not None else 1
    if per_register != 1 and not all("x2" in line.split()[0] for line in instructions(snippet.asm)):
        raise UnknownPtxError(f"`{instructions(snippet.asm)[0].split()[0]}` on several elements per register")
    terms = evaluate(snippet.asm, snippet.constraints, args, names)
    dtype = argument(snippet.call, "dtype", 3)
    written = source.code(dtype.value) if dtype is not None else ""
    types = [t.strip() for t in written.strip("()[]").split(",") if t.strip()]
    texts = [_typed(t, types[i] if i < len(types) else "", names) for i, t in enumerate(terms)]
    return texts[0].text if len(texts) == 1 else f"({', '.join(t.text for t in texts)})"


def _typed(term: Term, written: str, names: Names) -> Term:
    """The expression with the type the call declares."""
    kind = written.split(".")[-1]
    if not kind or TRITON_TYPES.get(term.kind) == kind:
        return term
    same_bits = term.kind == "bits" or kind.startswith(("int", "uint"))
    return Term(f"{term.operand}.to({written}{', bitcast=True' if same_bits else ''})", "bits")


def _holds_snippet(source: TritonSource, snippet: _Snippet) -> bool:
    inner = {id(s.call) for s in _snippets(source)} - {id(snippet.call)}
    stack: list[cst.CSTNode] = list(snippet.call.children)
    while stack:
        node = stack.pop()
        if id(node) in inner:
            return True
        stack += node.children
    return False


def _in_place(source: TritonSource, call: cst.Call, text: str) -> Edit:
    """The call replaced, in parentheses unless its surroundings keep the expression together."""
    parent = source.parent(call)
    bare = isinstance(parent, cst.Assign | cst.Return | cst.Arg | cst.AnnAssign | cst.AugAssign | cst.Expr)
    simple = re.fullmatch(r"[\w.]+\(.*\)", text) is not None and text.count("(") == 1
    return replace(source, call, text if bare or simple or (text.startswith("(") and parent is None) else f"({text})")


def _dependent_launch(source: TritonSource) -> Iterator[cst.Call]:
    """Statements that only order dependent launches."""
    for node in source.nodes:
        if not isinstance(node, cst.Call) or not isinstance(source.parent(node), cst.Expr | cst.Assign):
            continue
        if vendor_guarded(source, node):
            continue
        call = tl_call(source, node, "inline_asm_elementwise")
        asm = _text(source, call, "asm", 0) if call is not None else None
        if source.qualified(node.func) in _GDC or (asm is not None and is_dependent_launch_only(asm)):
            yield node


def _without_dependent_launch(source: TritonSource) -> list[Edit]:
    calls = list(_dependent_launch(source))
    edits: list[Edit] = []
    for call in calls:
        statement = source.statement(call)
        block = source.parent(statement)
        siblings = getattr(block, "body", ())
        if (all(source.statement(c) in siblings for c in calls) and len(siblings) == 1) or len(siblings) == 1:
            edits.append(replace(source, statement, "pass"))
        else:
            edits.append(drop_line(source, statement))
    parameters = {p.name for f in source.functions.values() for p in f.params}
    for launch in source.launches if calls and "launch_pdl" not in parameters else ():
        flag = launch.keyword("launch_pdl")
        if flag is not None:
            edits.append(drop_argument(source, launch.call, flag))
    return edits
