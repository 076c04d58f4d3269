"""What a CUDA source defines at namespace scope: functions, types, variables, aliases and uses of macros, as tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sandbox.hip_source import OPEN, HipSource, Token

Kind = Literal["function", "type", "variable", "alias", "declaration", "macro-use", "using"]
TYPE_WORDS = frozenset({"struct", "class", "union", "enum"})
_ATTRIBUTES = frozenset(
    {"__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__", "__align__", "__builtin_align__",
     "__attribute__", "alignas", "decltype", "explicit", "noexcept", "__declspec"}
)  # fmt: skip
_LEADING = frozenset(
    {"template", "static", "inline", "extern", "const", "constexpr", "typedef", "volatile", "__device__", "__host__",
     "__global__", "__constant__", "__shared__", "__managed__", "__forceinline__", "__noinline__", "friend", "virtual"}
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One definition or declaration. `code` holds its tokens from the first to the closing brace or semicolon; `body`
    is where in `code` the braces start, or its length when there are none."""

    kind: Kind
    names: frozenset[str]
    code: Sequence[Token]
    body: int

    @property
    def start(self) -> int:
        return self.code[0].start

    @property
    def end(self) -> int:
        return self.code[-1].end

    @property
    def head(self) -> Sequence[Token]:
        return self.code[: self.body]

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(t.text for t in self.code if t.kind == "word")

    @cached_property
    def head_words(self) -> frozenset[str]:
        return frozenset(t.text for t in self.head if t.kind == "word")


def items_of(source: HipSource) -> list[Item]:
    """The items of a file; blocks of namespaces and `extern "C"` are entered, preprocessor lines are skipped."""
    spans = [(d.start, d.end) for d in source.directives]
    code: list[Token] = []
    at = 0
    for token in source.code:
        while at < len(spans) and spans[at][1] <= token.start:
            at += 1
        if at == len(spans) or token.start < spans[at][0]:
            code.append(token)
    return list(items_in(code))


def items_in(code: Sequence[Token]) -> Iterator[Item]:
    """The items of a run of tokens: a file without its preprocessor lines, or what the braces of a type hold."""
    i = start = 0
    while i < len(code):
        text = code[i].text
        if text in ("(", "[") and code[i].kind == "punct":
            i = _matching(code, i)
            if text == "(" and (end := _macro_use(code, start, i)) is not None:
                yield Item("macro-use", frozenset(), code[start:end], end - start)
                start = end
                i = end - 1
        elif text == "{" and code[i].kind == "punct":
            if _opens_scope(code[start:i]):
                start = i + 1
            else:
                end = _end_of(code, start, i)
                if i > start:
                    yield _defined(code[start:end], i - start)
                start = end
                i = end - 1
        elif text == "}":
            start = i + 1
        elif text == ";":
            if i > start:
                yield _declared(code[start : i + 1])
            start = i + 1
        elif text == ":" and i == start + 1 and code[start].text in ("public", "private", "protected"):
            start = i + 1
        i += 1


def _matching(code: Sequence[Token], opening: int) -> int:
    """Index of the bracket that closes the one at `opening`; the last index when it is never closed."""
    open_text = code[opening].text
    close_text = OPEN[open_text]
    depth = 0
    for i in range(opening, len(code)):
        if code[i].kind == "punct":
            depth += (code[i].text == open_text) - (code[i].text == close_text)
            if depth == 0:
                return i
    return len(code) - 1


def _opens_scope(head: Sequence[Token]) -> bool:
    words = [t.text for t in head]
    return "namespace" in words or words[-2:] == ["extern", '"C"']


def _macro_use(code: Sequence[Token], start: int, closing: int) -> int | None:
    """One past the end of `NAME(...)` that stands for itself at the start of an item, None when it is a declaration."""
    name = code[start]
    if name.kind != "word" or start + 1 >= len(code) or code[start + 1].text != "(":
        return None
    if name.text in _ATTRIBUTES or _matching(code, start + 1) != closing:
        return None
    following = code[closing + 1] if closing + 1 < len(code) else None
    if following is not None and following.text == ";":
        return closing + 2
    starts = following is None or following.text == "}" or (following.kind == "word" and following.text != "const")
    return closing + 1 if starts else None


def _end_of(code: Sequence[Token], start: int, opening: int) -> int:
    """One past an item whose first brace is at `opening`: its closing brace, or the semicolon after it."""
    close = _matching(code, opening)
    kind = _kind(code[start:opening])
    if kind == "function":
        has_semicolon = close + 1 < len(code) and code[close + 1].text == ";"
        return close + 2 if has_semicolon else close + 1
    i = close + 1
    while i < len(code) and code[i].text != ";":
        if code[i].text in OPEN and code[i].kind == "punct":
            i = _matching(code, i)
        i += 1
    return min(i + 1, len(code))


def _without_prefixes(head: Sequence[Token]) -> list[Token]:
    """The head without `template <...>` and attributes with their parentheses."""
    kept: list[Token] = []
    i = 0
    while i < len(head):
        text = head[i].text
        if text == "template" and i + 1 < len(head) and head[i + 1].text == "<":
            depth = 0
            i += 1
            while i < len(head):
                if head[i].text == "(":
                    i = _matching(head, i)
                elif head[i].text in ("<", ">", ">>", ">>>", "<<"):
                    depth += len(head[i].text) * (1 if head[i].text[0] == "<" else -1)
                    if depth <= 0:
                        break
                i += 1
        elif text in _ATTRIBUTES:
            if i + 1 < len(head) and head[i + 1].text == "(":
                i = _matching(head, i + 1)
        elif text == "[" and i + 1 < len(head) and head[i + 1].text == "[":
            i = _matching(head, i)
        else:
            kept.append(head[i])
        i += 1
    return kept


def _outside(tokens: Sequence[Token]) -> list[Token]:
    """The tokens outside of brackets of any kind; the opening brackets stay."""
    kept: list[Token] = []
    i = 0
    while i < len(tokens):
        kept.append(tokens[i])
        if tokens[i].text in OPEN and tokens[i].kind == "punct":
            i = _matching(tokens, i)
        i += 1
    return kept


def _kind(head: Sequence[Token]) -> Kind:
    plain = _outside(_without_prefixes(head))
    words = [t.text for t in plain]
    if "operator" in words:
        return "function"
    if "=" in words:
        return "variable"
    if TYPE_WORDS & set(words) and "(" not in words:
        return "type"
    return "function" if "(" in words else "variable"


def _defined(code: Sequence[Token], body: int) -> Item:
    head = code[:body]
    kind = _kind(head)
    plain = _without_prefixes(head)
    if kind == "function":
        return Item(kind, _function_names(plain), code, body)
    if kind == "type":
        names = {_type_name(plain)}
        close = _matching(code, body)
        names |= {t.text for t in code[close + 1 :] if t.kind == "word"}
        if "enum" in {t.text for t in plain}:
            names |= {t.text for t in code[body:close] if t.kind == "word"}
        return Item(kind, frozenset(names - {""}), code, body)
    return Item("variable", _variable_names(_without_prefixes(code)), code, body)


def _declared(code: Sequence[Token]) -> Item:
    plain = _without_prefixes(code)
    words = [t.text for t in plain]
    outside = [t.text for t in _outside(plain)]
    size = len(code)
    if words[0] in ("using", "namespace", "typedef", "static_assert"):
        if words[:2] == ["using", "namespace"] or words[0] == "static_assert":
            return Item("using", frozenset(), code, size)
        if words[0] == "typedef":
            opening = words.index("(") if "(" in outside else 0
            named = plain[opening : _matching(plain, opening)] if opening else _outside(plain)
            return Item("alias", frozenset([t.text for t in named if t.kind == "word"][-1:]), code, size)
        name = words[1:2] if "=" in words else [w for w in words if w != ";"][-1:]
        return Item("alias", frozenset(name), code, size)
    if TYPE_WORDS & set(words[:1]) and len([w for w in words if w != ";"]) <= 2:
        return Item("type", frozenset(words[1:2]), code, size)
    if "(" in outside and "=" not in outside:
        return Item("declaration", _function_names(plain) or _variable_names(plain), code, size)
    return Item("variable", _variable_names(plain), code, size)


def _function_names(plain: Sequence[Token]) -> frozenset[str]:
    """The word before the first parenthesis, or before the template arguments that stand there."""
    if any(t.text == "operator" for t in plain):
        return frozenset({"operator"})
    outside = _outside(plain)
    for i, token in enumerate(outside):
        if token.text != "(" or i == 0:
            continue
        at = i - 1
        depth = 0
        while at > 0 and (depth or outside[at].text in (">", ">>")):
            text = outside[at].text
            depth += len(text) * ((text in (">", ">>")) - (text in ("<", "<<")))
            at -= 1
            if depth <= 0:
                break
        if outside[at].kind == "word":
            return frozenset({outside[at].text})
    return frozenset()


def _type_name(plain: Sequence[Token]) -> str:
    words = [t.text for t in plain]
    at = next(i for i, w in enumerate(words) if w in TYPE_WORDS)
    rest = [w for w in words[at + 1 :] if re.match(r"[A-Za-z_]\w*$", w) and w not in TYPE_WORDS]
    return rest[0] if rest else ""


def _variable_names(plain: Sequence[Token]) -> frozenset[str]:
    """What a declaration names: the last word before each `=`, `[`, `(`, `,` or `;` outside of brackets."""
    names: set[str] = set()
    previous: Token | None = None
    initialising = False
    for token in _outside(plain):
        if token.text in ("=", "[", "(", ",", ";", "{") and token.kind == "punct":
            if previous is not None and not initialising:
                names.add(previous.text)
            initialising = token.text in ("=", "(", "{") or (initialising and token.text != ",")
        previous = token if token.kind == "word" and token.text not in _LEADING else previous
    if previous is not None and not names:
        names.add(previous.text)
    return frozenset(names)
