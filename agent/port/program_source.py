"""A file as a whole program, twice: the original for the CPU model, the port for HIP's host runtime.

A file with a `main()` is its own driver. For one without, host functions are called with made-up arguments
(`reference/host/entry.h`), the same on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from agent.port.items import Item, items_of
from sandbox.hip_source import OPEN, Edit, HipSource, Token, apply_edits

ENTRY_HEADER = "wavesmith_entry.h"
_DEVICE = frozenset({"__global__", "__device__"})
_UNPRINTED = "WAVESMITH_UNPRINTED"
_HIP_PRELUDE = f"#define {_UNPRINTED}(...) (0)\n#define WAVESMITH_API(name) hip##name\n"


@cache
def host_headers() -> Mapping[str, str]:
    """What a whole program needs beside the CPU model, by the name it is included by."""
    folder = resources.files("agent.port") / "reference" / "host"
    files = {r.name: r.read_text(encoding="utf-8") for r in folder.iterdir() if r.name.endswith(".h")}
    files["matmul.h"] = (resources.files("sandbox") / "host_runtime" / "matmul.h").read_text(encoding="utf-8")
    return {
        f"wavesmith_{name}": re.sub(r'#include "(\w+\.h)"', r'#include "wavesmith_\1"', t) for name, t in files.items()
    }


def has_main(source: HipSource) -> bool:
    """Whether the file defines `main`."""
    return any("main" in i.names and i.kind == "function" for i in items_of(source))


def entries(source: HipSource) -> list[Item]:
    """Host functions that could be called from outside: no templates, no members, no operators."""
    return [
        i for i in items_of(source)
        if i.kind == "function" and i.body < len(i.code) and not i.head_words & (_DEVICE | {"template", "operator"})
        and len(i.names) == 1 and "main" not in i.names and "::" not in {t.text for t in i.head[: _parameters(i.head)]}
    ]  # fmt: skip


def _parameters(head: Sequence[Token]) -> int:
    return next((k for k, t in enumerate(head) if t.text == "("), len(head))


def entry_main(functions: Sequence[Item], text: str, *, hip: bool) -> str:
    """The lines that call the functions; `text` shows what of Thrust and cuBLASLt they are given."""
    if not functions:
        return ""
    lines = []
    if "device_vector" in text:
        lines.append("#define WAVESMITH_VECTORS 1")
    if re.search(r"\b(?:cu|hip)blasLtHandle_t\b", text):
        lines.append(f"#define WAVESMITH_BLASLT(name) {'hip' if hip else 'cu'}blasLt##name")
    calls = [f'  wavesmith_entry::call<{_handles(f):#x}u>("{n}", &{n});' for f in functions for n in f.names]
    body = "\n".join(calls)
    return "\n".join([*lines, f'#include "{ENTRY_HEADER}"', f"int main() {{\n{body}\n  return 0;\n}}", ""])


def _handles(function: Item) -> int:
    """A bit for each parameter of the original that is a handle of cuBLASLt: HIP's is any pointer."""
    head, depth, number, found = function.head, 0, 0, 0
    for token in head[_parameters(head) :]:
        depth += (token.text in ("(", "<", "[", "{")) - (token.text in (")", ">", "]", "}"))
        number += token.text == "," and depth == 1
        if token.text == "cublasLtHandle_t":
            found |= 1 << number
    return found


def ported_program(text: str, functions: Sequence[Item]) -> str:
    """The HIP text without prints on the device, and the driver for `functions`, the original's, behind it."""
    return f"{_HIP_PRELUDE}{without_device_prints(text)}\n{entry_main(functions, text, hip=True)}"


def without_device_prints(text: str) -> str:
    """`printf` in device code has no effect: it asks for a host, and its order is no result."""
    source = HipSource(text)
    edits = [
        Edit(a.start, a.end, _UNPRINTED)
        for item in items_of(source) if item.head_words & _DEVICE
        for a, b in zip(item.code, item.code[1:], strict=False) if a.text == "printf" and b.text == "("
    ]  # fmt: skip
    return apply_edits(text, edits)


def with_launches_as_calls(text: str) -> str:
    """`k<T><<<grid, block>>>(a, b)` as a call that gives each thread its own copy of the arguments."""
    source = HipSource(text)
    code = source.code
    edits: list[Edit] = []
    for i, token in enumerate(code):
        if token.text != "<<<" or token.kind != "punct":
            continue
        close = next((k for k in range(i + 1, len(code)) if code[k].text == ">>>"), None)
        start = _callee(code, i)
        if close is None or start is None or close + 1 >= len(code) or code[close + 1].text != "(":
            continue
        end = _closing(code, close + 1)
        callee = text[code[start].start : token.start]
        config = text[token.end : code[close].start]
        arguments = text[code[close + 1].end : code[end].start]
        comma = ", " if arguments.strip() else ""
        call = (
            f"wavesmith_host::at({config}).go([&](auto... wavesmith_a) {{ "
            f"return [=] {{ {callee}(wavesmith_a...); }}; }}{comma}{arguments})"
        )
        edits.append(Edit(code[start].start, code[end].end, call))
    return apply_edits(text, edits)


def _callee(code: Sequence[Token], at: int) -> int | None:
    """Index of the first token of what is launched by the `<<<` at `at`: a name, its scopes and template arguments."""
    i = at - 1
    if i >= 0 and code[i].text in (">", ">>"):
        depth = 0
        while i >= 0:
            text = code[i].text
            depth += len(text) * ((text in (">", ">>")) - (text in ("<", "<<")))
            i -= 1
            if depth <= 0:
                break
    if i < 0 or code[i].kind != "word":
        return None
    while i >= 2 and code[i - 1].text == "::" and code[i - 2].kind == "word":
        i -= 2
    return i


def _closing(code: Sequence[Token], opening: int) -> int:
    depth = 0
    for i in range(opening, len(code)):
        if code[i].kind == "punct" and code[i].text in OPEN:
            depth += 1
        elif code[i].kind == "punct" and code[i].text in OPEN.values():
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1
