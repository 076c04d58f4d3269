"""What CUDA has and HIP lacks or means differently: annotated C++ in `headers/*.h`, one entry per group of symbols.

An entry is the text between `//@ entry: NAME` and `//@ end`; the `//@ key: value` lines at its head say what it
provides and under which contract. A port emits only the entries its sources use and the installed headers lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from sandbox.errors import WavesmithError

Contract = Literal["exact", "weaker", "performance-only", "no-op"]
_KEYS = frozenset(
    {"entry", "provides", "header", "requires", "contract", "rename", "note", "probe", "probe-host", "probing", "when",
     "unless", "includes", "native"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShimEntry:
    """One group of shims. `provides` are the CUDA names, `headers` the CUDA headers it stands for."""

    name: str
    family: str
    """The file it lies in: warp, memory, math ..."""
    provides: tuple[str, ...]
    headers: tuple[str, ...]
    requires: tuple[str, ...]
    contract: Contract
    renamed: bool
    """Uses become `wavesmith::NAME`, so a later HIP that defines NAME can neither clash nor change the meaning."""
    note: str
    probes: tuple[str, ...]
    """Device statements that compile when HIP has the symbols; empty: always emitted when used (meaning differs)."""
    host_probes: tuple[str, ...]
    when: frozenset[str]
    """Further identifiers of which the source must use one (overloads are needed only with certain types)."""
    unless: frozenset[str]
    """Identifiers that show that the source was written for what HIP has itself."""
    includes: tuple[str, ...]
    native_since: tuple[int, int] | None
    """HIP version that brought it, where known: the emitted text steps aside from there on."""
    text: str

    def probes_of(self, symbol: str) -> tuple[str, ...]:
        """The probes that mention `symbol`; all of them when none does."""
        named = tuple(p for p in (*self.probes, *self.host_probes) if re.search(rf"\b{re.escape(symbol)}\b", p))
        return named or (*self.probes, *self.host_probes)


@cache
def load_catalogue() -> Mapping[str, ShimEntry]:
    """Every entry by name, in file order."""
    entries: dict[str, ShimEntry] = {}
    folder = resources.files("agent.shims") / "headers"
    for resource in sorted(folder.iterdir(), key=lambda r: r.name):
        if resource.name.endswith(".h"):
            for entry in parse_entries(resource.read_text(encoding="utf-8"), resource.name.removesuffix(".h")):
                if entry.name in entries:
                    raise WavesmithError(f"shim entry {entry.name} is defined twice.")
                entries[entry.name] = entry
    for entry in entries.values():
        missing = [name for name in entry.requires if name not in entries]
        if missing:
            raise WavesmithError(f"shim entry {entry.name} requires unknown {', '.join(missing)}.")
    return entries


def parse_entries(text: str, family: str) -> Iterable[ShimEntry]:
    """The entries of one header file; raises `WavesmithError` for an unknown key or contract."""
    for block in re.findall(r"^//@ entry:.*?^//@ end$", text, re.M | re.S):
        lines = block.split("\n")[:-1]
        head = [line for line in lines if line.startswith("//@ ")]
        body = "\n".join(line for line in lines if not line.startswith("//@ ")).strip()
        keys = {k.strip(): v.strip() for k, v in (line[4:].split(":", 1) for line in head)}
        if unknown := keys.keys() - _KEYS:
            raise WavesmithError(f"shim entry {keys['entry']}: unknown key {', '.join(sorted(unknown))}.")
        yield _entry(keys, family, body)


def _entry(keys: Mapping[str, str], family: str, body: str) -> ShimEntry:
    contract = keys.get("contract", "")
    if contract not in ("exact", "weaker", "performance-only", "no-op"):
        raise WavesmithError(f"shim entry {keys['entry']}: {contract!r} is no contract.")
    native = keys.get("native")
    major, minor = native.split(".") if native else ("0", "0")
    return ShimEntry(
        name=keys["entry"], family=family, provides=_listed(keys.get("provides")), headers=_listed(keys.get("header")),
        requires=_listed(keys.get("requires")), contract=contract,  # type: ignore[arg-type]
        renamed=keys.get("rename") == "wavesmith", note=keys.get("note", ""), probes=_statements(keys.get("probe")),
        host_probes=_statements(keys.get("probe-host"), whole=True),
        when=frozenset(_listed(keys.get("when"))), unless=frozenset(_listed(keys.get("unless"))),
        includes=_listed(keys.get("includes")),
        native_since=(int(major), int(minor)) if native else None, text=body,
    )  # fmt: skip


def _listed(value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",")) if value else ()


def _statements(value: str | None, *, whole: bool = False) -> tuple[str, ...]:
    if not value:
        return ()
    if whole:
        return (value,)
    parts, depth, current = [], 0, ""
    for character in value + ";":
        depth += (character in "{(") - (character in "})")
        if character == ";" and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return tuple(p for p in parts if p)


@cache
def entries_by_symbol() -> Mapping[str, tuple[ShimEntry, ...]]:
    """CUDA name -> the entries that provide it (several for overloads)."""
    found: dict[str, list[ShimEntry]] = {}
    for entry in load_catalogue().values():
        for symbol in entry.provides:
            found.setdefault(symbol, []).append(entry)
    return {symbol: tuple(entries) for symbol, entries in found.items()}


@cache
def entries_by_header() -> Mapping[str, ShimEntry]:
    """CUDA header name -> the entry that stands for it."""
    return {header: entry for entry in load_catalogue().values() for header in entry.headers}


def with_requirements(names: Iterable[str]) -> list[ShimEntry]:
    """The named entries and everything they build on, requirements first, each once."""
    catalogue = load_catalogue()
    ordered: list[ShimEntry] = []

    def add(name: str) -> None:
        entry = catalogue[name]
        if entry in ordered:
            return
        for needed in entry.requires:
            add(needed)
        ordered.append(entry)

    wanted = set(names)
    for name in catalogue:
        if name in wanted:
            add(name)
    return ordered
