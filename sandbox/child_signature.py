"""Child side: plausible types and constants for a kernel's parameters, from its text alone."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox import jit_graph

_ADDRESS_CALLS = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "advance")
_INTEGER_POINTER = re.compile(
    r"idx|ind(ex|ices)|_ids?\b|ids|seq_?len|lens?(_|$)|offs|table|_loc|loc_|mask|count|cu_|block_map|label|target", re.I
)
_NOT_QUANTIZED = re.compile(r"scale|state|bias|out|^c(_|$)|zero", re.I)
_FLOAT_SCALAR = re.compile(
    r"eps|scale|alpha|beta|gamma|lr$|^lr|momentum|decay|prob|^p$|dropout_p|temp|thresh|soft_?cap", re.I
)
_FLAG = re.compile(
    r"^(is|has|use|with|do|apply|store|return|causal|transpose|enable)_?|^[A-Z_]*(CAUSAL|BIAS|MASK)$", re.I
)
_DTYPE_NAME = re.compile(r"dtype|_ty$|^ty", re.I)
_DEFAULT_BLOCK = 64
_DEFAULT_DIM = 64


@dataclass(frozen=True, slots=True)
class Guess:
    """One way to type a kernel: everything `compile_signature` needs."""

    fn: Any
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]


def kernels_of(module: types.ModuleType) -> list[tuple[str, Any]]:
    """Kernels of the file by name: JIT functions, with their tuners, that no other JIT function of it calls and that
    give no value."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        inner = jit_of(value)
        if inner is not None and inner.fn.__module__ == module.__name__:
            found[name] = value
    called: set[str] = set()
    for value in found.values():
        inner = jit_of(value)
        called |= {n.id for n in ast.walk(inner.parse()) if isinstance(n, ast.Name)} - {inner.__name__}
    return [(n, value) for n, value in found.items() if n not in called and not _gives_a_value(jit_of(value))]


def _gives_a_value(fn: Any) -> bool:
    """Whether it is a function for kernels to call: a kernel returns nothing."""
    returned = [node.value for node in ast.walk(fn.parse()) if isinstance(node, ast.Return)]
    return any(not (value is None or (isinstance(value, ast.Constant) and value.value is None)) for value in returned)


def jit_of(value: Any) -> Any:
    """The JIT function inside tuners, heuristics and wrappers; None where there is none."""
    inner = jit_graph.unwrap(value)
    return inner if jit_graph.is_jit(inner) else None


def guesses(module: types.ModuleType, kernel: Any) -> Iterator[Guess]:
    """Typings to try, the likeliest first: pointers as the names say, then all float32, float16, bfloat16."""
    fn = jit_of(kernel)
    pointers = pointer_parameters(fn, {name: jit_of(k) for name, k in _all_jit(module)})
    constants, options = _constants(module, kernel, fn)
    for dtype in ("named", "fp32", "fp16", "bf16", "i8"):
        signature: dict[str, str] = {}
        for param in fn.params:
            if param.is_constexpr or param.name in constants:
                continue
            signature[param.name] = _type(param, param.name in pointers, dtype)
        yield Guess(fn, signature, constants, options)


def _all_jit(module: types.ModuleType) -> list[tuple[str, Any]]:
    return [(n, v) for n, v in vars(module).items() if jit_of(v) is not None]


def _type(param: Any, pointer: bool, dtype: str) -> str:
    annotation = str(param.annotation or "")
    if annotation.startswith("*") or annotation in ("i32", "i64", "fp32", "i1", "u32"):
        return annotation
    if pointer or annotation in ("pointer_type", "tl.pointer_type"):
        if _INTEGER_POINTER.search(param.name):
            return "*i32"
        if dtype == "i8" and _NOT_QUANTIZED.search(param.name):
            return "*fp32"
        return "*fp16" if dtype == "named" else f"*{dtype}"
    default = getattr(param, "default", None)
    if isinstance(default, float) or annotation in ("float", "float32") or _FLOAT_SCALAR.search(param.name):
        return "fp32"
    return "i32"


def pointer_parameters(fn: Any, others: Mapping[str, Any], depth: int = 0) -> set[str]:
    """Parameters that are addresses: the left end of what `tl.load` and the like take, followed through assignments."""
    tree = fn.parse()
    names = {p.name for p in fn.params}
    origin: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _assign(target, node.value, origin)
    found: set[str] = set()

    def trace(node: ast.AST, seen: frozenset[str] = frozenset()) -> None:
        for name in _left_names(node) - seen:
            if name in names:
                found.add(name)
            for value in origin.get(name, ()):
                trace(ast.Name(value), seen | {name})

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in _ADDRESS_CALLS or called.startswith("atomic_"):
                trace(node.args[0])
            elif isinstance(node.func, ast.Name) and node.func.id in others and depth < 3:
                inner = others[node.func.id]
                wanted = pointer_parameters(inner, others, depth + 1)
                for param, argument in zip(inner.params, node.args, strict=False):
                    if param.name in wanted:
                        trace(argument)
        elif isinstance(node, ast.Attribute) and node.attr == "element_ty":
            trace(node.value)
    return found | {n for n in names if n.lower().endswith(("_ptr", "ptr", "_pointer"))}


def _assign(target: ast.AST, value: ast.AST, origin: dict[str, set[str]]) -> None:
    if isinstance(target, ast.Name):
        origin.setdefault(target.id, set()).update(_left_names(value))
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for t, v in zip(target.elts, value.elts, strict=False):
            _assign(t, v, origin)


def _left_names(node: ast.AST) -> set[str]:
    """The name at the left end of an address: of `x + offs`, `x + a * b + c`, `tl.cast(x)`, `x.to(t)`."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.IfExp):
            return _left_names(node.body) | _left_names(node.orelse)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "advance", "make_block_ptr"):
                node = node.args[0] if node.func.attr != "to" and node.args else node.func.value
            elif node.args:
                node = node.args[0]
            elif node.keywords:
                node = node.keywords[0].value
            else:
                return set()
        else:
            return {node.id} if isinstance(node, ast.Name) else set()


def _constants(module: types.ModuleType, kernel: Any, fn: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values for constexpr parameters: tuning config, default, what a launch in the file says, else by name."""
    from triton.runtime.autotuner import Autotuner, Heuristics

    constants: dict[str, Any] = {}
    options: dict[str, Any] = {}
    heuristics: dict[str, Any] = {}
    for layer in jit_graph.layers(kernel):
        if isinstance(layer, Autotuner) and layer.configs:
            config = layer.configs[0]
            constants.update(config.kwargs)
            options = {k: v for k, v in config.all_kwargs().items() if k not in config.kwargs and v is not None}
        elif isinstance(layer, Heuristics):
            heuristics.update(layer.values)
    said = _launch_keywords(module, fn.__name__)
    for param in fn.params:
        if not param.is_constexpr or param.name in constants:
            continue
        default = param.default if param.has_default else None
        if param.name in said:
            constants[param.name] = said[param.name]
        elif param.has_default:
            constants[param.name] = default
        else:
            constants[param.name] = _by_name(param.name)
    for name, function in heuristics.items():
        try:
            constants[name] = function(_Meta(constants))
        except (KeyError, TypeError, AttributeError, ValueError):
            constants[name] = _by_name(name)
    for key in ("num_warps", "num_stages"):
        if isinstance(said.get(key), int):
            options[key] = said[key]
    return {k: v for k, v in constants.items() if k in fn.arg_names}, options


class _Meta(dict[str, Any]):
    """What a heuristic is asked with: sizes it reads that nobody knows are round numbers."""

    def __missing__(self, key: str) -> Any:
        return 1.0 if _FLOAT_SCALAR.search(key) else 1024


def _by_name(name: str) -> Any:
    if _DTYPE_NAME.search(name):
        import triton.language as tl

        return tl.float32
    if _FLAG.search(name):
        return False
    if "group" in name.lower():
        return 8
    if "stage" in name.lower() or "split" in name.lower():
        return 1
    return _DEFAULT_BLOCK if "block" in name.lower() else _DEFAULT_DIM


def _launch_keywords(module: types.ModuleType, kernel: str) -> dict[str, Any]:
    """Literal keyword arguments of `kernel[grid](...)` in the file, names resolved to literals assigned nearby."""
    path = module.__file__ or ""
    with open(path, encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    found: dict[str, Any] = {}
    for function in [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Module))]:
        local: dict[str, Any] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                local.update({t.id: node.value.value for t in node.targets if isinstance(t, ast.Name)})
        for node in ast.walk(function):
            is_launch = isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
            if not is_launch or not isinstance(node.func.value, ast.Name) or node.func.value.id != kernel:  # type: ignore[attr-defined]
                continue
            for keyword in node.keywords:  # type: ignore[attr-defined]
                value = keyword.value
                if isinstance(value, ast.Constant):
                    found[keyword.arg] = value.value
                elif isinstance(value, ast.Name) and value.id in local:
                    found[keyword.arg] = local[value.id]
    found.pop(None, None)  # type: ignore[call-overload]
    return found
