"""Text of others in GitHub's Markdown: nothing in it mentions people, links issues, or becomes markup."""

from __future__ import annotations

import re

_ZERO_WIDTH = "\u200b"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()|~>!])")


def plain(text: str) -> str:
    """One line of text in which Markdown, HTML, mentions, issue numbers and addresses are inert."""
    line = " ".join(text.split())
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    line = _SPECIAL.sub(r"\\\1", line)
    line = line.replace("@", f"@{_ZERO_WIDTH}").replace("://", f":{_ZERO_WIDTH}//")
    return re.sub(r"#(?=\w)", f"#{_ZERO_WIDTH}", line)


def code(text: str) -> str:
    """A code span, whatever backticks are in the text."""
    line = " ".join(text.split())
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def sentence(text: str) -> str:
    """A sentence of ours that quotes code between backticks; with an odd number of backticks all of it is plain."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return plain(text)
    return "".join(code(p) if n % 2 else _spaced(p) for n, p in enumerate(parts))


def _spaced(text: str) -> str:
    """`plain`, with the spaces at both ends kept."""
    inner = plain(text)
    return (" " if text[:1].isspace() else "") + inner + (" " if inner and text[-1:].isspace() else "")


def fenced(text: str, language: str = "") -> str:
    """A code block that its contents cannot close."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(m.group()) for m in re.finditer(r"`+", text)), default=0)


def details(summary: str, body: str) -> str:
    """A collapsed section; `summary` is Markdown-free HTML text or a short line made with `code` and `plain`."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def html_code(text: str) -> str:
    """Code inside an HTML line such as a `<summary>`, where Markdown is not read."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<code>{line}</code>"
