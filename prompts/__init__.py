"""Every prompt text of the product, as strict Jinja2 templates: `render("system", ...)` fills `system.j2`.

An undefined variable is an error, never an empty string. Text from outside (source, build logs, comments) is passed
through `fenced`, which makes the fence longer than any run of backticks inside: it cannot end its own block. It is cut
where it is longer than it may be, so that it cannot push out what we say. Names from outside go through `one_line`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

MAX_FENCED_CHARS = 120_000
"""Of a source file; about 40,000 tokens."""
_UNPRINTED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories of what is not seen: controls, marks of direction, joiners, tags, halves of characters."""


def one_line(text: str, limit: int = 200) -> str:
    """`text` as one line without backticks and without anything that is not seen, at most `limit` characters."""
    shown = "".join(" " if c in "\t\n\r`" else c for c in text)
    words = "".join(c for c in shown if unicodedata.category(c) not in _UNPRINTED).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def unseen_characters(text: str) -> set[str]:
    """What a reader of `text` does not see, apart from line ends, tabs and form feeds."""
    return {c for c in set(text) if c not in "\t\n\r\f" and unicodedata.category(c) in _UNPRINTED}


def fenced(text: str, language: str = "", limit: int = MAX_FENCED_CHARS) -> str:
    """`text` as one Markdown code block that it cannot close itself; what is beyond `limit` characters is left out."""
    if len(text) > limit:
        text = f"{text[:limit]}\n[cut: {len(text) - limit:,} more characters]"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("prompts", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    environment.filters["fenced"] = fenced
    environment.filters["one_line"] = one_line
    return environment


def render(name: str, **values: Any) -> str:
    """The text of `prompts/<name>.j2`; raises `jinja2.UndefinedError` for a variable that was not given."""
    return _environment().get_template(f"{name}.j2").render(**values)
