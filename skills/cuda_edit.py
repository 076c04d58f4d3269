"""What the CUDA skills share: edits of tokens, constructs that cannot be ported, constants the source spells out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sandbox.hip_guards import dead_spans, live_text
from sandbox.hip_source import Edit, HipSource, Token, apply_edits
from sandbox.kernel import Kernel
from skills.skill import Refusal, Site

SIZES = {
    "char": 1, "bool": 1, "short": 2, "half": 2, "__half": 2, "int": 4, "unsigned": 4, "float": 4, "long": 8,
    "double": 8, "size_t": 8, "float2": 8, "float4": 16, "int4": 16, "half2": 4, "__nv_bfloat16": 2, "uint4": 16,
    "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8,
    "__hip_bfloat16": 2, "nv_bfloat16": 2, "__half2": 4, "int2": 8, "double2": 16,
}  # fmt: skip
"""Bytes of the types that `sizeof` names in size expressions."""


def sites(source: HipSource, edits: list[Edit], label: str) -> Iterable[Site]:
    """One site for all edits of a file, at the line of the first; none when there is nothing to do."""
    if edits:
        yield Site(source.line_of(min(edits).start), label)


def rewritten(kernel: Kernel, edits: Iterable[Edit]) -> Kernel | None:
    """The kernel with the edits made; None when there are none or two of them overlap."""
    listed = list(edits)
    if not listed:
        return None
    try:
        return kernel.with_source(apply_edits(kernel.source, listed))
    except ValueError:
        return None


def refusals(kernel: Kernel, constructs: Mapping[str, str], reason: str, route: str) -> Iterator[Refusal]:
    """A refusal at the first live use of each construct. `constructs` maps a regular expression to what it is."""
    source = HipSource(kernel.source)
    text = live_text(source)
    for pattern, construct in constructs.items():
        if m := re.search(pattern, text, re.M):
            yield Refusal(f"{construct}: {reason}", source.line_of(m.start()), route)


def plain_uses(source: HipSource, names: frozenset[str]) -> Iterator[tuple[int, Token]]:
    """(index in `code`, token) of unqualified uses of names: not members, not qualified, not a macro's own name.

    A name the source itself defines as a macro or a function is the user's: it has no uses here.
    """
    own = defined_names(source) & names
    includes = [(d.start, d.end) for d in source.directives if d.name == "include"]
    for i, token in enumerate(source.code):
        if token.kind != "word" or token.text not in names or token.text in own:
            continue
        if any(start <= token.start < end for start, end in includes):
            continue
        before = source.code[i - 1].text if i else ""
        two = source.code[i - 2].text if i > 1 else ""
        if before in ("::", ".", "->", "ifdef", "ifndef", "undef", "define", "defined"):
            continue
        if before == "(" and two == "defined":
            continue
        yield i, token


def defined_names(source: HipSource) -> frozenset[str]:
    """Functions with a body and object- or function-like macros that the source defines for AMD, in whatever build."""
    dead = dead_spans(source)
    found = {
        m.group(1)
        for m in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", source.uncommented, re.M)
        if not any(s.start <= m.start() < s.end for s in dead)
    }
    code = source.code
    for i, token in enumerate(code):
        if token.text != "(" or i < 2 or code[i - 1].kind != "word" or code[i - 2].kind != "word":
            continue
        if any(s.start <= token.start < s.end for s in dead):
            continue
        if code[i - 2].text in ("return", "else", "case", "new", "delete", "throw", "goto"):
            continue
        close = source.matching(i)
        if close is not None and close + 1 < len(code) and code[close + 1].text == "{":
            found.add(code[i - 1].text)
    return frozenset(found)


def aliased_types(source: HipSource) -> frozenset[str]:
    """Names that the source gives to types by `using NAME = ...`, in whatever build for AMD."""
    dead = dead_spans(source)
    return frozenset(
        b.text for a, b, c in zip(source.code, source.code[1:], source.code[2:], strict=False)
        if a.text == "using" and b.kind == "word" and c.text == "="
        and not any(s.start <= a.start < s.end for s in dead)
    )  # fmt: skip


def postfix_start(source: HipSource, index: int) -> int:
    """Index in `code` where the member expression that ends with the member at `index` starts: `a->b[i].c` -> `a`."""
    i = index
    while i >= 2 and source.code[i - 1].text in (".", "->", "::"):
        i -= 2
        while i > 0 and source.code[i].text in (")", "]"):
            i = _opening(source, i)
            if (i > 0 and source.code[i - 1].kind == "word") or (i > 0 and source.code[i - 1].text in (")", "]")):
                i -= 1
    return i


def _opening(source: HipSource, index: int) -> int:
    depth = 0
    for i in range(index, -1, -1):
        depth += (source.code[i].text in (")", "]")) - (source.code[i].text in ("(", "["))
        if depth == 0:
            return i
    return 0


def constants(source: HipSource) -> dict[str, int]:
    """Integer constants the file defines by `#define`, `constexpr`, `const int` or an enumerator."""
    text = source.masked
    found: dict[str, int] = {}
    definitions = [
        *re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", text, re.M),
        *_declared(text),
        *re.findall(r"[{,]\s*(\w+)\s*=\s*([\w\s*+()<<-]+?)\s*(?=[,}])", text),
    ]
    for _ in range(3):
        for name, expression in definitions:
            value = constant_value(expression, found)
            if value is not None:
                found[name] = value
    return found


def _declared(text: str) -> Iterator[tuple[str, str]]:
    """Name and initialiser of every `const` declarator; one declaration may hold several, separated by commas."""
    for declaration in re.findall(r"\b(?:constexpr|const)\b[\w\s]*?\b(\w+\s*=[^;{]+);", text):
        for part in re.split(r",(?=\s*\w+\s*=[^=])", declaration):
            name, _, expression = part.partition("=")
            yield name.strip(), expression.strip()


def constant_value(expression: str, known: Mapping[str, int]) -> int | None:
    """The value of an integer expression of literals, `sizeof` and known names; None when it needs more."""
    text = re.sub(r"/\*.*?\*/", " ", expression.strip())
    text = re.sub(r"\bsizeof\s*\(?\s*(?:unsigned\s+)?(\w+)(?:\s+int)?\s*\)?", lambda m: str(SIZES.get(m[1], "?")), text)
    text = re.sub(r"\((?:const\s+)?(?:int|unsigned|size_t|unsigned int|std::size_t)\)", "", text)
    items = re.findall(r"0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<|>>|[-+*/%()]|\S", re.sub(r"(?<=\d)[uUlL]+\b", "", text))
    words = [str(known[i]) if i in known else i for i in items]
    return _evaluate(words)


def _evaluate(words: list[str]) -> int | None:
    from sandbox.hip_guards import evaluate

    if not words or any(re.match(r"[A-Za-z_?]", w) and not w.lower().startswith("0x") for w in words):
        return None
    return evaluate(" ".join(words), {})
