"""Rules for host code: everything of a candidate file that is not the body of a Triton kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.cheats import names
from sandbox.cheats.source import FunctionNode, Source

Item = tuple[str, str, int, str]
"""Check, key that is the same for the same construct in the baseline, line, message."""

_MUTATORS = frozenset(
    ("append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "clear", "discard")
)
_HONEST_DUNDERS = frozenset(
    ("__init__", "__version__", "__call__", "__doc__", "__post_init__", "__all__", "__len__", "__iter__", "__repr__")
)


def host_items(source: Source, permitted: frozenset[int] = frozenset()) -> Iterator[Item]:
    """Every suspicious construct of the host code, honest or not: the caller keeps what the baseline does not have.

    `permitted` holds the `id` of nodes that put integers in order, see `sandbox.cheats.orderings`.
    """
    inside = source.kernel_nodes() | permitted
    for node in ast.walk(source.tree):
        if id(node) in inside:
            continue
        for check, key, message in _judge(source, node):
            yield check, f"{check}|{key}", getattr(node, "lineno", 1), message
    for name, function in source.functions.items():
        for check, node, message in _function_items(source, name, function):
            if check == "library-call" and id(node) in permitted:
                continue
            yield check, f"{check}|{ast.unparse(node)}", getattr(node, "lineno", function.lineno), message
    for node in _outside_functions(source):
        if isinstance(node, ast.Lambda):
            for check, part, message in _lambda_items(source, node):
                yield check, f"{check}|{ast.unparse(part)}", node.lineno, message


def _outside_functions(source: Source) -> Iterator[ast.AST]:
    """Nodes of decorators and module-level statements: hooks, heuristics and pruning functions live there."""
    inside = source.kernel_nodes() | {id(n) for f in source.functions.values() for s in f.body for n in ast.walk(s)}
    return (n for n in ast.walk(source.tree) if id(n) not in inside)


def _lambda_items(source: Source, node: ast.Lambda) -> Iterator[tuple[str, ast.AST, str]]:
    """A lambda outside functions is handed to the autotuner or a heuristic, with the launch's arguments."""
    for part in ast.walk(node.body):
        match part:
            case ast.Call(func=ast.Attribute(value=receiver, attr=attr)) if attr in names.COMPUTING_METHODS:
                if _computes_on_tensor(source, receiver, attr, set(), set()):
                    yield "library-call", part, f"`.{attr}()` computes outside the kernel"
            case _:
                pass


def _judge(source: Source, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _imports(node)
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            yield from _names(source, node)
        case ast.Name() if not node.id.isascii():
            yield "dynamic-code", node.id, f"`{node.id}` is not written in ASCII letters"
        case ast.Global() | ast.Nonlocal():
            yield "hidden-state", ast.unparse(node), f"`{ast.unparse(node)}` keeps state between calls"
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete():
            yield from _assignments(source, node)
        case ast.Try() | ast.TryStar():
            if not _import_guard(node):
                yield "exception-fallback", ast.unparse(node), "a try block can hide a kernel that fails"
        case ast.ClassDef():
            yield from _class_items(source, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            yield from _signatures(node)
        case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
            yield "library-call", ast.unparse(node), "`@` multiplies matrices outside the kernel"
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() if _numbers_in(node) > _MOST_LITERALS:
            yield (
                "hard-coded-data",
                ast.unparse(node)[:200],
                "so many numbers in one literal are a stored result",
            )
        case ast.Constant(value=str() | bytes()):
            yield from _constants(node)
        case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.AsyncWith() | ast.AsyncFor():
            yield "concurrency", ast.unparse(node), "results that are computed later than they are returned"
        case _:
            pass


_MOST_LITERALS = 128
"""Numbers in one literal that a lookup table or a list of configurations may hold."""


def _numbers_in(node: ast.AST) -> int:
    return sum(isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in ast.iter_child_nodes(node))


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.ImportFrom):
        if any(item.name == "*" for item in node.names) and node.module not in ("triton.language", "typing"):
            yield "dynamic-code", ast.unparse(node), f"`{ast.unparse(node)}` hides which names it brings"
        modules = [] if node.level else [node.module or ""]
    else:
        modules = [item.name for item in node.names]
    for module in modules:
        top = module.split(".")[0]
        if top not in names.HONEST_MODULES:
            check = names.MODULE_CHECKS.get(top, "foreign-import")
            yield check, f"import {top}", f"imports `{module}`"


def _names(source: Source, node: ast.Name | ast.Attribute) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.Name):
        if not node.id.isascii():
            yield "dynamic-code", node.id, f"`{node.id}` is not written in ASCII letters"
        if node.id in names.BUILTIN_CHECKS and node.id not in source.functions and node.id not in source.aliases:
            yield names.BUILTIN_CHECKS[node.id], node.id, f"uses `{node.id}`"
    elif node.attr in names.ATTRIBUTE_CHECKS:
        yield names.ATTRIBUTE_CHECKS[node.attr], ast.unparse(node), f"uses `.{node.attr}`"
    elif node.attr.startswith("__") and node.attr.endswith("__") and node.attr not in _HONEST_DUNDERS:
        yield "introspection", ast.unparse(node), f"uses `.{node.attr}`"
    elif node.attr == "type" and isinstance(node.value, ast.Attribute) and node.value.attr == "device":
        yield "environment-branch", ast.unparse(node), "asks on which kind of device it runs"
    name = source.resolve(node)
    if name is not None and not name.startswith("?") and name.split(".")[0] in _known_roots(source):
        check = check_of_name(name)
        if check:
            yield check, name, f"uses `{name}`"


def _known_roots(source: Source) -> set[str]:
    return {full.split(".")[0] for full in source.aliases.values()}


def check_of_name(name: str) -> str | None:
    """The check that a qualified name falls under, None where it may be used."""
    if name.startswith(names.TARGET_QUERIES):
        return None
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        check = names.NAME_CHECKS.get(".".join(parts[:end]))
        if check is not None:
            return check or None
    top = parts[0]
    if top in names.MODULE_CHECKS:
        return names.MODULE_CHECKS[top]
    if top == "torch" and len(parts) > 1:
        return None if _honest_torch(parts[1:]) else "library-call"
    if top == "numpy" and len(parts) > 1:
        return (
            None if parts[1] in ("inf", "pi", "nan", "float32", "float16", "int32", "int64", "ceil") else "library-call"
        )
    return None


def _honest_torch(parts: list[str]) -> bool:
    if ".".join(parts[:2]) in names.HONEST_TORCH or parts[0] in names.HONEST_TORCH:
        # `torch.Tensor.matmul` and `torch.empty(...).x` differ: only the class hides functions behind a name.
        return parts[0] != "Tensor" or len(parts) == 1 or parts[1] not in names.COMPUTING_METHODS
    return parts in (["nn"], ["cuda"], ["autograd"], ["version"], ["backends"], ["nn", "functional"], ["amp"])


def _assignments(
    source: Source, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete
) -> Iterator[tuple[str, str, str]]:
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    for target in [t for one in targets for t in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]:
        if isinstance(target, ast.Name):
            absent = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
            if target.id in _protected(source) and not absent:
                yield "monkeypatch", ast.unparse(node), f"gives `{target.id}` another meaning"
            continue
        root, depth = _root(target)
        if root is None or depth == 0:
            continue
        name = source.resolve(target.value) if isinstance(target, ast.Attribute | ast.Subscript) else None
        if root in source.aliases or (name is not None and name.split(".")[0] in ("torch", "triton", "builtins")):
            yield "monkeypatch", ast.unparse(target), f"changes `{ast.unparse(target)}`"
        elif root in source.functions or root in source.kernels or root in source.classes or root == "cls":
            yield "hidden-state", ast.unparse(target), f"`{ast.unparse(target)}` keeps state between calls"
        elif isinstance(target, ast.Attribute) and target.attr in ("data", "src", "fn", "__class__"):
            yield "monkeypatch", ast.unparse(target), f"changes `{ast.unparse(target)}`"


def _protected(source: Source) -> set[str]:
    return {n for n in source.aliases if source.aliases[n].split(".")[0] in ("torch", "triton")} & {
        "torch", "triton", "tl", "libdevice", "F",
    }  # fmt: skip


def _root(node: ast.expr) -> tuple[str | None, int]:
    depth = 0
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        depth += 1
    return (node.id if isinstance(node, ast.Name) else None), depth


def _import_guard(node: ast.Try | ast.TryStar) -> bool:
    """`try: import x / except ImportError: import y`, nested or with a fall-back constant: nothing is called."""
    blocks = [node.body, node.orelse, node.finalbody, *(h.body for h in node.handlers)]
    plain = (ast.Import, ast.ImportFrom, ast.Pass)
    return all(
        isinstance(s, plain)
        or (isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant | ast.Name))
        or (isinstance(s, ast.Try | ast.TryStar) and _import_guard(s))
        for block in blocks
        for s in block
    ) and any(isinstance(s, ast.Import | ast.ImportFrom) for s in node.body)


def _class_items(source: Source, node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    for base in node.bases:
        name = source.resolve(base) or ast.unparse(base)
        if name.startswith(("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter")) or name.endswith(
            "TorchFunctionMode"
        ):
            yield "tensor-subclass", node.name, f"class `{node.name}` stands in for a tensor"
    if node.keywords:
        yield "dynamic-code", node.name, f"class `{node.name}` has a metaclass or class arguments"
    for member in node.body:
        if isinstance(member, FunctionNode):
            check = {
                "__del__": "exit-hook", "__torch_function__": "tensor-subclass",
                "__torch_dispatch__": "tensor-subclass",
                "__getattr__": "dynamic-code", "__getattribute__": "dynamic-code", "__getitem__": "fake-launch",
                "__init_subclass__": "dynamic-code", "__set_name__": "dynamic-code", "__array__": "tensor-subclass",
                "__class_getitem__": "fake-launch", "__setattr__": "dynamic-code", "__reduce__": "dynamic-code",
                "__exit__": "exception-fallback", "__bool__": "tensor-subclass", "__float__": "tensor-subclass",
                "__instancecheck__": "dynamic-code", "__eq__": "tensor-subclass", "__index__": "tensor-subclass",
            }.get(member.name)  # fmt: skip
            if check is not None:
                yield check, f"{node.name}.{member.name}", f"`{node.name}` defines `{member.name}`"


def _signatures(node: FunctionNode | ast.Lambda) -> Iterator[tuple[str, str, str]]:
    for default in [*node.args.defaults, *node.args.kw_defaults]:
        if isinstance(default, ast.List | ast.Dict | ast.Set | ast.Call | ast.ListComp | ast.DictComp):
            yield "hidden-state", ast.unparse(default), f"default `{ast.unparse(default)}` is shared between calls"


def _constants(node: ast.Constant) -> Iterator[tuple[str, str, str]]:
    text = node.value if isinstance(node.value, str) else bytes(node.value).decode("latin1")  # type: ignore[arg-type]
    if "pip install" in text or "pip3 install" in text or "-m pip" in text:
        yield "runtime-install", text, "names a package installation"
    longest = max((len(word) for word in text.split()), default=0)
    if longest > 120:
        yield "dynamic-code", text, f"a string without a space for {longest} characters is no text"


def _function_items(source: Source, name: str, function: FunctionNode) -> Iterator[tuple[str, ast.AST, str]]:
    """Rules that need to know what is local to the function, and which of its names are tensors."""
    local = _local_names(function)
    tensors, scratch = _tensor_names(source, function)
    method = "." in name and name.rsplit(".", 1)[0] in source.classes
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr=attr)) if attr in names.COMPUTING_METHODS:
                if _computes_on_tensor(source, receiver, attr, scratch, local):
                    yield "library-call", node, f"`.{attr}()` computes outside the kernel"
                elif attr in _MUTATORS and _outer(receiver, local):
                    yield "hidden-state", node, f"`{ast.unparse(receiver)}` keeps state between calls"
            case ast.Call(func=ast.Attribute(value=receiver, attr=attr)) if attr in _MUTATORS and _outer(
                receiver, local
            ):
                yield "hidden-state", node, f"`{ast.unparse(receiver)}` keeps state between calls"
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete():
                targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
                for target in targets:
                    yield from _stateful_target(target, local, method, name)
            case ast.BinOp(left=left, right=right) if _is_tensor(left, tensors) or _is_tensor(right, tensors):
                yield "library-call", node, f"`{ast.unparse(node)}` computes on tensors outside the kernel"
            case ast.UnaryOp(operand=operand, op=ast.USub() | ast.Invert()) if _is_tensor(operand, tensors):
                yield "library-call", node, f"`{ast.unparse(node)}` computes on tensors outside the kernel"
            case ast.Compare(left=left, ops=[op, *_]) if not isinstance(op, ast.Is | ast.IsNot) and _is_tensor(
                left, tensors
            ):
                yield "input-probe", node, f"`{ast.unparse(node)}` looks at the values of an input"
            case ast.Call(func=ast.Name(id="bool" | "float" | "int" | "sum" | "max" | "min" | "abs"), args=[first, *_]):
                if _is_tensor(first, tensors):
                    yield "input-probe", node, f"`{ast.unparse(node)}` looks at the values of an input"
            case _:
                pass


def _stateful_target(target: ast.expr, local: set[str], method: bool, name: str) -> Iterator[tuple[str, ast.AST, str]]:
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return
    if isinstance(target, ast.Subscript) and _outer(target.value, local):
        yield "hidden-state", target, f"`{ast.unparse(target)}` keeps state between calls"
    root, _ = _root(target)
    if root == "self" and method and name.rsplit(".", 1)[-1] not in ("__init__", "reset_parameters", "__post_init__"):
        yield "hidden-state", target, f"`{ast.unparse(target)}` keeps state between calls"


def _outer(node: ast.expr, local: set[str]) -> bool:
    """Whether the container outlives the call: a module's or enclosing function's name, or an attribute of `self`."""
    root, depth = _root(node)
    return root is not None and (root not in local or (root in ("self", "cls") and depth > 0))


def _local_names(function: FunctionNode) -> set[str]:
    a = function.args
    names_ = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)} | {x.arg for x in (a.vararg, a.kwarg) if x}
    outer = {n for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    nested = {x.arg for n in ast.walk(function) if isinstance(n, ast.Lambda) for x in n.args.args}
    return (names_ | stored | nested) - outer


_SHAPE_ATTRIBUTES = frozenset(
    (
        "shape",
        "stride",
        "numel",
        "size",
        "contiguous",
        "is_contiguous",
        "element_size",
        "view",
        "reshape",
        "ndim",
        "dim",
    )
)


def _tensor_names(source: Source, function: FunctionNode) -> tuple[set[str], set[str]]:
    """Names in a function that surely hold tensors, and among them those allocated there as scratch or output."""
    tensors: set[str] = set()
    scratch: set[str] = set()
    codes: set[str] = set()
    # A view of bytes holds codes, not numbers: rewriting them is how one fp8 encoding becomes another.
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        if argument.annotation is not None and ast.unparse(argument.annotation).endswith("Tensor"):
            tensors.add(argument.arg)
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _SHAPE_ATTRIBUTES and isinstance(node.value, ast.Name):
            tensors.add(node.value.id)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            allocated = (source.resolve(node.value.func) or "").split(".")[-1]
            as_bytes = allocated == "view" and ast.unparse(node.value).endswith("uint8)")
            if as_bytes or allocated.startswith(("empty", "zeros", "new_empty", "new_zeros", "full", "new_full")):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        scratch.add(target.id)
                        codes |= {target.id} if as_bytes else set()
    for launch in source.launches(function):
        tensors |= _pointers_given(source, launch)
    known = set(source.aliases) | set(source.functions) | set(source.kernels) | set(source.classes) | {"self", "ctx"}
    return (tensors | scratch) - known - codes, scratch - known


def _pointers_given(source: Source, launch: ast.Call) -> set[str]:
    """Names that a launch hands to parameters which the kernel loads from or stores to."""
    target = launch.func.value if isinstance(launch.func, ast.Subscript | ast.Attribute) else None
    kernel = source.kernels.get(target.id) if isinstance(target, ast.Name) else None
    if kernel is None:
        return set()
    pointers = pointer_parameters(kernel)
    names_ = [a.arg for a in (*kernel.args.posonlyargs, *kernel.args.args)]
    given = [*zip(names_, launch.args, strict=False), *((k.arg, k.value) for k in launch.keywords)]
    return {value.id for name, value in given if name in pointers and isinstance(value, ast.Name)}


def pointer_parameters(kernel: FunctionNode) -> set[str]:
    """Names that stand first in an address: of a load, a store, an atomic, or what such an address was made of."""
    found: set[str] = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            attr = node.func.attr
            if attr in ("load", "store", "make_block_ptr", "make_tensor_descriptor") or attr.startswith("atomic_"):
                found |= _leftmost(node.args[0])
    for _ in range(3):
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in found for t in node.targets):
                found |= _leftmost(node.value)
    return found


def _leftmost(node: ast.expr) -> set[str]:
    while isinstance(node, ast.BinOp):
        node = node.left
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_tensor(node: ast.expr, tensors: set[str]) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id in tensors


def _computes_on_tensor(source: Source, receiver: ast.expr, attr: str, scratch: set[str], local: set[str]) -> bool:
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        receiver = receiver.func.value
    root, _ = _root(receiver)
    if root is not None and (root in source.aliases or root in source.classes):
        return False  # a module's function: judged by its qualified name
    if attr in _MUTATORS and root is not None and not isinstance(receiver, ast.Call):
        return False
    return not (root in scratch and attr in names.SCRATCH_METHODS)
