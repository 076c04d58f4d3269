"""A Triton file as a syntax tree with what skills look for: jit functions, launches, autotune configs, resolved
names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from sandbox.kernel import Kernel
from skills.literals import string_value

TL = "triton.language"
_WELL_KNOWN = {"tl": TL, "triton": "triton", "torch": "torch"}
"""Names that mean these modules in files that get them from a star import or a helper module."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a jit function."""

    name: str
    constexpr: bool
    default: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """One `triton.Config({...}, num_warps=...)`: constants by name and options by name, each with its value node."""

    call: cst.Call
    constants: Mapping[str, cst.BaseExpression]
    options: Mapping[str, cst.BaseExpression]


@dataclass(frozen=True, slots=True, eq=False)
class JitFunction:
    """A function under `@triton.jit`."""

    name: str
    node: cst.FunctionDef
    params: tuple[Param, ...]
    autotune: cst.Call | None
    heuristics: cst.Call | None

    @property
    def constexprs(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params if p.constexpr)


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """`kernel[grid](...)` in host code. `host` is the function it stands in, None at module level."""

    kernel: str
    call: cst.Call
    grid: cst.BaseExpression
    host: cst.FunctionDef | None

    def keyword(self, name: str) -> cst.Arg | None:
        return next((a for a in self.call.args if a.keyword is not None and a.keyword.value == name), None)


class TritonSource:
    """Parsed once per kernel text; positions are byte offsets into `data`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._newlines = [i for i, b in enumerate(self.data) if b == 0x0A]
        self.nodes: tuple[cst.CSTNode, ...] = tuple(walk(self.module))
        self._parents = {child: node for node in self.nodes for child in node.children}
        self.imports: dict[str, str] = {}
        for name, full, fallback in self._imports():
            if not (fallback and name in self.imports):
                self.imports[name] = full
        self.imports.update(self._function_aliases())
        self.functions = {f.name: f for f in self._jit_functions()}
        pairs = list(self._kernel_aliases())
        self.aliases = dict(pairs)
        self.sharing = frozenset(k for a, k in pairs if any(other != k for b, other in pairs if b == a))
        """Kernels that a name stands for which stands for others as well: its launches give all of them the same."""
        self.launches = tuple(self._launches())

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """(start, end) in bytes, without the whitespace, parentheses and comments around the node."""
        span = self._spans[node]
        return span.start, span.start + span.length

    def outer_span(self, node: cst.BaseExpression) -> tuple[int, int]:
        """As `span`, with the parentheses around the expression."""
        start, end = self.span(node)
        depth = len(node.lpar)
        while depth:
            start -= 1
            if self.data[start : start + 1] == b"(":
                depth -= 1
        depth = len(node.rpar)
        while depth:
            if self.data[end : end + 1] == b")":
                depth -= 1
            end += 1
        return start, end

    def param_span(self, param: cst.Param) -> tuple[int, int]:
        """(start, end) of a parameter with its annotation and default (`span` gives its name alone)."""
        end = self.span(param)[1]
        if param.annotation is not None:
            end = self.outer_span(param.annotation.annotation)[1]
        if param.default is not None:
            end = self.outer_span(param.default)[1]
        return self.span(param)[0], end

    def line(self, node: cst.CSTNode) -> int:
        """1-based line on which the node starts."""
        return self.line_at(self._spans[node].start)

    def line_at(self, offset: int) -> int:
        return bisect_left(self._newlines, offset) + 1

    def code(self, node: cst.CSTNode) -> str:
        """The node's text as written, parentheses around it left out."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        return self._parents[node]

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        return next((a for a in self.ancestors(node) if isinstance(a, cst.FunctionDef)), None)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The line or compound statement that holds the node."""
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            return node
        return next(
            a for a in self.ancestors(node) if isinstance(a, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        )

    def qualified(self, node: cst.CSTNode) -> str | None:
        """The dotted name an expression stands for after resolving imports, for example `triton.language.dot`."""
        dotted = dotted_name(node)
        if dotted is None:
            return None
        head, _, rest = dotted.partition(".")
        base = self.imports.get(head) or _WELL_KNOWN.get(head) or head
        return normal_name(f"{base}.{rest}" if rest else base)

    def calls(self, within: cst.CSTNode | None = None) -> Iterator[tuple[cst.Call, str]]:
        """Every call with a resolvable name, in source order."""
        for node in self.nodes if within is None else walk(within):
            if isinstance(node, cst.Call) and (name := self.qualified(node.func)):
                yield node, name

    def configs(self, within: cst.CSTNode | None = None) -> Iterator[Config]:
        """Every `triton.Config(...)` call."""
        for call, name in self.calls(within):
            if name.split(".")[-1] == "Config" and (name.startswith("triton") or name == "Config"):
                yield _config(call)

    def configs_of(self, function: JitFunction) -> tuple[Config, ...]:
        """The configs of the kernel's autotuner: written in the decorator, or in the list or function it names."""
        if function.autotune is None:
            return ()
        arg = argument(function.autotune, "configs", 0)
        if arg is None:
            return ()
        written = tuple(self.configs(arg.value))
        within = {n for c in written for n in walk(c.call)}
        names = {n.value for n in walk(arg.value) if isinstance(n, cst.Name) and n not in within}
        return (*written, *(c for holder in self._definitions(names) for c in self.configs(holder)))

    def _definitions(self, names: set[str]) -> Iterator[cst.CSTNode]:
        for node in self.module.body:
            if isinstance(node, cst.FunctionDef) and node.name.value in names:
                yield node
            if isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    if isinstance(small, cst.Assign) and any(
                        isinstance(t.target, cst.Name) and t.target.value in names for t in small.targets
                    ):
                        yield small

    def launches_of(self, kernel: str) -> tuple[Launch, ...]:
        return tuple(launch for launch in self.launches if launch.kernel == kernel)

    def callees(self, function: JitFunction) -> tuple[JitFunction, ...]:
        """Jit functions of this file reached from `function`, itself first."""
        seen = {function.name: function}
        queue = [function]
        while queue:
            for node in walk(queue.pop().node.body):
                if isinstance(node, cst.Name) and node.value in self.functions and node.value not in seen:
                    seen[node.value] = self.functions[node.value]
                    queue.append(seen[node.value])
        return tuple(seen.values())

    def in_jit(self, node: cst.CSTNode) -> JitFunction | None:
        """The jit function whose body holds the node."""
        for a in self.ancestors(node):
            if isinstance(a, cst.FunctionDef) and (f := self.functions.get(a.name.value)) is not None and f.node is a:
                return f
        return None

    def _imports(self) -> Iterator[tuple[str, str, bool]]:
        """Name, what it stands for, and whether another branch imports it first: `except ImportError:`, `else:`."""
        for node in self.nodes:
            if not isinstance(node, cst.Import | cst.ImportFrom):
                continue
            fallback = any(isinstance(a, cst.Else | cst.ExceptHandler) for a in self.ancestors(node))
            for name, full in _imported(node):
                yield name, full, fallback

    def _function_aliases(self) -> Iterator[tuple[str, str]]:
        """Module-level names for library functions: `exp = tl.exp`, `f = lib.g if hasattr(lib, "g") else h`."""
        for node in self.nodes:
            if not (isinstance(node, cst.Assign) and self.enclosing_function(node) is None):
                continue
            target, value = node.targets[0].target, node.value
            if isinstance(value, cst.IfExp) and self.code(value.test).startswith("hasattr("):
                value = value.body
            name = self.qualified(value)
            if isinstance(target, cst.Name) and name is not None and name.startswith(f"{TL}."):
                yield target.value, name

    def _jit_functions(self) -> Iterator[JitFunction]:
        for node in self.nodes:
            if not isinstance(node, cst.FunctionDef):
                continue
            names = [self.qualified(_callee(d.decorator)) or "" for d in node.decorators]
            if not any(n.startswith("triton") and n.endswith(".jit") for n in names):
                continue
            found: dict[str, cst.Call] = {}
            for decorator, name in zip(node.decorators, names, strict=True):
                if isinstance(decorator.decorator, cst.Call):
                    found.setdefault(_role(name.split(".")[-1]), decorator.decorator)
            params = tuple(
                self._param(p) for p in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
            )
            yield JitFunction(node.name.value, node, params, found.get("autotune"), found.get("heuristics"))

    def _param(self, param: cst.Param) -> Param:
        annotation = param.annotation.annotation if param.annotation is not None else None
        text = self.code(annotation).strip("\"'") if annotation is not None else ""
        default = self.code(param.default) if param.default is not None else None
        return Param(param.name.value, "constexpr" in text, default)

    def _kernel_aliases(self) -> Iterator[tuple[str, str]]:
        """Local names for kernels: `kernel = a_kernel if cond else b_kernel`, `self.kernel = a_kernel`."""
        for node in self.nodes:
            if not isinstance(node, cst.Assign) or isinstance(node.value, cst.Call):
                continue
            target = dotted_name(node.targets[0].target) or ""
            for name in walk(node.value):
                if isinstance(name, cst.Name) and name.value in self.functions:
                    yield target.split(".")[-1], name.value

    def _launches(self) -> Iterator[Launch]:
        for node in self.nodes:
            if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript)):
                continue
            dotted = dotted_name(node.func.value)
            name = dotted.split(".")[-1] if dotted else ""
            name = name if name in self.functions else self.aliases.get(name, "")
            if name and node.func.slice:
                first = node.func.slice[0].slice
                grid = first.value if isinstance(first, cst.Index) else node.func.value
                yield Launch(name, node, grid, self.enclosing_function(node))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(_children_backwards(current))


@lru_cache(maxsize=1 << 17)
def _children_backwards(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """Kept: LibCST finds the children of a node by visiting it, and skills walk the same functions many times."""
    return tuple(reversed(node.children))


def dotted_name(node: cst.CSTNode) -> str | None:
    """`a.b.c` of a name or attribute chain, else None."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted_name(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


def normal_name(name: str) -> str:
    """One spelling for names that Triton offers under several: `triton.language.math.exp` is `triton.language.exp`."""
    for long, short in (
        ("triton.language.core.", f"{TL}."),
        ("triton.language.standard.", f"{TL}."),
        ("triton.runtime.autotuner.", "triton."),
        ("triton.runtime.jit.", "triton."),
    ):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def argument(call: cst.Call, name: str, position: int) -> cst.Arg | None:
    """The argument given by keyword `name` or at `position`; None when it is absent or hidden behind `*`."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg
    if position >= 0 and len(call.args) > position:
        before = call.args[: position + 1]
        if all(a.keyword is None and not a.star for a in before):
            return before[-1]
    return None


def _role(decorator: str) -> str:
    """What a decorator does by its name: `triton_autotune` of a project's own module is an autotuner, too."""
    return "autotune" if decorator.endswith("autotune") else decorator


def _callee(node: cst.CSTNode) -> cst.CSTNode:
    return node.func if isinstance(node, cst.Call) else node


def _config(call: cst.Call) -> Config:
    constants: dict[str, cst.BaseExpression] = {}
    options: dict[str, cst.BaseExpression] = {}
    arg = argument(call, "kwargs", 0)
    if arg is not None:
        constants = dict(dict_items(arg.value))
    for extra in call.args:
        if extra.keyword is not None and extra.keyword.value != "kwargs":
            options[extra.keyword.value] = extra.value
    for position, name in enumerate(("num_warps", "num_stages", "num_ctas", "maxnreg"), 1):
        given = argument(call, name, position)
        if given is not None:
            options[name] = given.value
    return Config(call, constants, options)


def dict_items(node: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression]]:
    """(key, value) of a dict display with string keys, or of `dict(key=value)`."""
    if isinstance(node, cst.Dict):
        for element in node.elements:
            if isinstance(element, cst.DictElement) and (key := string_value(element.key)) is not None:
                yield key, element.value
    elif isinstance(node, cst.Call) and dotted_name(node.func) == "dict":
        for arg in node.args:
            if arg.keyword is not None:
                yield arg.keyword.value, arg.value


@lru_cache(maxsize=256)
def _parsed(source: str) -> TritonSource:
    return TritonSource(source)


def parse_triton(kernel: Kernel) -> TritonSource:
    """The parsed file of a kernel, cached by its text."""
    return _parsed(kernel.source)


def _imported(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    if isinstance(node, cst.Import):
        for alias in node.names:
            full = dotted_name(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                yield alias.asname.name.value, full
            else:
                yield full.split(".")[0], full.split(".")[0]
    elif not isinstance(node.names, cst.ImportStar) and node.module and not node.relative:
        module = dotted_name(node.module) or ""
        for alias in node.names:
            bound = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(alias.name, cst.Name) and isinstance(bound, cst.Name):
                yield bound.value, f"{module}.{alias.name.value}"
