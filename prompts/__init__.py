"""Every prompt text of the product, as strict Jinja2 templates: `render("system", ...)` fills `system.j2`.

An undefined variable is an error, never an empty string. Text from outside (source, build logs, comments) is passed
through `fenced`, which makes the fence longer than any run of backticks inside: it cannot end its own block.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def fenced(text: str, language: str = "") -> str:
    """`text` as one Markdown code block that it cannot close itself."""
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
    return environment


def render(name: str, **values: Any) -> str:
    """The text of `prompts/<name>.j2`; raises `jinja2.UndefinedError` for a variable that was not given."""
    return _environment().get_template(f"{name}.j2").render(**values)
