"""A Python source seen as kernels, host functions, launches and the qualified names behind its aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_JIT = ("triton.jit", "triton.autotune", "triton.heuristics", "triton.runtime.jit.jit", "triton.runtime.autotuner")
_JIT_SUFFIXES = (".jit", ".autotune", ".heuristics")


@dataclass
class Source:
    """Built by `read_source`. `aliases` maps a local name to what it stands for (`F` to `torch.nn.functional`)."""

    tree: ast.Module
    aliases: dict[str, str]
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    """Qualified name (`Op.forward`) to every function that is no kernel."""
    kernels: dict[str, FunctionNode] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)

    def resolve(self, node: ast.expr) -> str | None:
        """The dotted name of an expression, aliases followed; None when it is not a plain chain of names.

        The receiver of an unknown object is `?`: `x.sum` gives `?.sum`, so that methods can be told from functions.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(["?", *reversed(parts)]) if parts else None
        root = self.aliases.get(node.id)
        if root is None:
            root = "?" if parts and node.id not in self.functions and node.id not in self.classes else node.id
        return ".".join([root, *reversed(parts)])

    def kernel_nodes(self) -> set[int]:
        """`id` of every node inside a kernel's body (its decorators belong to the host)."""
        return {id(n) for k in self.kernels.values() for part in (k.args, *k.body) for n in ast.walk(part)}

    def launches(self, node: ast.AST) -> Iterator[ast.Call]:
        """Every `kernel[grid](...)` below `node`, and `kernel.run(...)`."""
        for n in ast.walk(node):
            if (
                isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) and self._is_launchable(n.func.value)
            ) or (
                isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and n.func.attr in ("run", "warmup")
                and isinstance(n.func.value, ast.Name)
                and n.func.value.id in self.kernels
            ):
                yield n

    def _is_launchable(self, node: ast.expr) -> bool:
        # `Callable[[int], int](...)` is no launch; anything else that is subscripted and called is.
        name = self.resolve(node)
        return name is None or not name.startswith(("typing.", "collections.", "torch."))

    def called(self, node: ast.AST) -> set[str]:
        """Local functions, classes and kernels that code below `node` names: errs on the large side."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        found = {f for f in self.functions if f.split(".")[0] in names or f.split(".")[-1] in attributes & _last(self)}
        return found | (names & set(self.kernels)) | (names & set(self.classes))

    def closure(self, roots: set[str]) -> set[str]:
        """Every function and kernel reachable from `roots` by name."""
        seen: set[str] = set()
        todo = list(roots)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self.functions.get(name) or self.kernels.get(name) or self.classes.get(name)
            if node is not None:
                todo.extend(self.called(node) - seen)
        return seen


def _last(source: Source) -> set[str]:
    return {f.rsplit(".", 1)[-1] for f in source.functions if "." in f and not f.rsplit(".", 1)[-1].startswith("__")}


def read_source(text: str, filename: str) -> Source:
    """Parse a file; it is known to be Python (`sandbox.kernel` refuses anything else)."""
    tree = ast.parse(text, filename)
    source = Source(tree, _imported_names(tree))
    _collect(source, tree.body, "")
    _assigned_aliases(source)
    return source


def _imported_names(tree: ast.Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                names[item.asname or item.name.split(".")[0]] = item.name if item.asname else item.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                names[item.asname or item.name] = f"{'.' * node.level}{node.module or ''}.{item.name}"
    return names


def _collect(source: Source, body: list[ast.stmt], prefix: str) -> None:
    for node in body:
        if isinstance(node, FunctionNode):
            name = prefix + node.name
            if any(_makes_kernel(source, d) for d in node.decorator_list):
                source.kernels[name] = node
            else:
                source.functions[name] = node
                _collect(source, node.body, f"{name}.")
        elif isinstance(node, ast.ClassDef):
            source.classes[prefix + node.name] = node
            _collect(source, node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for inner in _blocks(node):
                _collect(source, inner, prefix)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _makes_kernel(source, node.value):
            _jitted_by_call(source, node.value, prefix)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _jitted_by_call(source: Source, call: ast.Call, prefix: str) -> None:
    """`kernel = triton.jit(function)`: the function is a kernel from then on."""
    for argument in call.args:
        name = f"{prefix}{argument.id}" if isinstance(argument, ast.Name) else ""
        if name in source.functions:
            source.kernels[name] = source.functions.pop(name)


def _makes_kernel(source: Source, node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Call):
        return _makes_kernel(source, target)
    name = source.resolve(target) or ""
    return name.startswith(_JIT) or (name.startswith("triton") and name.endswith(_JIT_SUFFIXES))


def _assigned_aliases(source: Source) -> None:
    """`mm = torch.matmul` makes `mm` another name for it, wherever it stands."""
    for _ in range(3):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                name = source.resolve(node.value)
                if name is None or name.startswith("?") or not _from_import(source, name):
                    continue
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        source.aliases.setdefault(target.id, name)


def _from_import(source: Source, name: str) -> bool:
    return any(name == full or name.startswith(full + ".") for full in source.aliases.values())
