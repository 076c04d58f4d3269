"""Rules for the bodies of Triton kernels, and the changes in them that the interpreter cannot see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.cheats.host import Item
from sandbox.cheats.source import Source

_EVALUATOR_BUILTINS = frozenset(
    ("hasattr", "getattr", "setattr", "isinstance", "type", "id", "vars", "dir", "callable")
)
_EVALUATOR_ATTRIBUTES = frozenset(("handle", "is_interpreter"))
_PRECISION = {"ieee": 4, "tf32x3": 3, "bf16x6": 3, "bf16x3": 2, "tf32": 1}
"""What `tl.dot(input_precision=...)` keeps, best first."""


def kernel_items(source: Source) -> Iterator[Item]:
    """Suspicious constructs inside kernels."""
    for kernel in source.kernels.values():
        for node in (n for statement in kernel.body for n in ast.walk(statement)):
            for check, message in _judge(node):
                yield check, f"{check}|{ast.unparse(node)}", getattr(node, "lineno", kernel.lineno), message


def _judge(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _EVALUATOR_BUILTINS:
            yield "environment-branch", f"`{name}()` in a kernel tells an interpreter from a compiler"
        case ast.Attribute(attr=attr) if attr in _EVALUATOR_ATTRIBUTES:
            yield "environment-branch", f"`.{attr}` in a kernel tells where it runs"
        case ast.Attribute(attr=attr) if attr.startswith("__"):
            yield "introspection", f"`.{attr}` in a kernel"
        case ast.Attribute(attr="smid" | "globaltimer" | "clock" | "num_warps" | "num_threads"):
            yield "environment-branch", f"`.{node.attr}` in a kernel asks how or when it runs"
        case ast.Global() | ast.Nonlocal():
            yield "hidden-state", f"`{ast.unparse(node)}` in a kernel"
        case ast.Import() | ast.ImportFrom() | ast.Try():
            yield "environment-branch", f"{type(node).__name__.lower()} statement in a kernel"
        case _:
            pass


_ORDERS = ("sem=", "scope=", "volatile=")


@dataclass(frozen=True, slots=True)
class BlindEdits:
    """What a candidate changes that the interpreter ignores.

    `only`: nothing else differs, so interpreting it shows nothing. `semantic`: changes that can make a compiled kernel
    wrong while the interpreter stays right (memory orders, scopes, barriers), each in words.
    """

    only: bool
    options: tuple[str, ...]
    semantic: tuple[str, ...]
    lowered: tuple[tuple[int, str], ...]
    """Line and words of each `tl.dot` whose input precision the candidate lowers."""

    @property
    def orders(self) -> tuple[str, ...]:
        """Changes of memory order and scope, which no run on one processor can show to be right."""
        return tuple(s for s in self.semantic if s[2:].startswith(_ORDERS))


_OPTION_KEYWORDS = frozenset(
    ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "launch_pdl",
     "launch_cooperative_grid", "schedule_hint", "instruction_sched_variant", "enable_fp_fusion", "warp_specialize",
     "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "reg_dec_producer", "reg_inc_consumer",
     "num_buffers_warp_spec", "num_consumer_groups", "allow_flush_denorm", "launch_pdl", "disable_licm")
)  # fmt: skip
_SEMANTIC_KEYWORDS = frozenset(("sem", "scope", "volatile", "max_num_imprecise_acc", "fast_math"))
_HARMLESS_KEYWORDS = frozenset(("cache_modifier", "eviction_policy"))
_PROMISES = frozenset(("multiple_of", "max_contiguous", "max_constancy", "assume", "assume_aligned"))
_BARRIERS = frozenset(("debug_barrier",))
UNSEEN_WORDS = _OPTION_KEYWORDS | _SEMANTIC_KEYWORDS | _HARMLESS_KEYWORDS | _PROMISES | _BARRIERS
"""Words that change the code but not what the interpreter does."""


def blind_edits(baseline: Source, candidate: Source) -> BlindEdits:
    """Compare the two files with and without what the interpreter ignores."""
    before, after = _Blinder(), _Blinder()
    bare_before, bare_after = (ast.dump(b.visit(_copy(s))) for b, s in ((before, baseline), (after, candidate)))
    options = _difference(before.options, after.options)
    semantic = _difference(before.semantic, after.semantic)
    changed = ast.dump(baseline.tree) != ast.dump(candidate.tree)
    changed = changed and not _difference(before.promises, after.promises)
    return BlindEdits(changed and bare_before == bare_after, options, semantic, _lowered(baseline, candidate))


def _copy(source: Source) -> ast.Module:
    return ast.parse(ast.unparse(source.tree))


def _difference(before: list[str], after: list[str]) -> tuple[str, ...]:
    left, right = list(before), list(after)
    for item in before:
        if item in right:
            right.remove(item)
            left.remove(item)
    return tuple(f"- {x}" for x in left) + tuple(f"+ {x}" for x in right)


class _Blinder(ast.NodeTransformer):
    """Removes everything the interpreter ignores, and remembers it."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.semantic: list[str] = []
        self.promises: list[str] = []
        """The interpreter checks these, so they are neither ignored nor unseen."""
        self._unordered: set[int] = set()
        self._only_options: set[str] = set()

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self._unordered = {id(c) for f in ast.walk(node) if isinstance(f, ast.FunctionDef) for c in _unordered(f)}
        self._only_options = _names_for_options_only(node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if attr.startswith(("fast_", "approx_")) or attr.endswith("_approx"):
            self.semantic.append(f"approximation {attr}")
        if attr in _PROMISES and node.args:
            self.promises.append(ast.unparse(node))
            return node.args[0] if attr != "assume" else ast.Constant(value=None)
        kept = []
        for keyword in node.keywords:
            text = f"{keyword.arg}={ast.unparse(keyword.value)}"
            order = keyword.arg == "sem" and id(node) in self._unordered
            if order or keyword.arg in _OPTION_KEYWORDS or keyword.arg in _HARMLESS_KEYWORDS:
                self.options.append(text)
            elif keyword.arg in _SEMANTIC_KEYWORDS:
                self.semantic.append(text)
            else:
                kept.append(keyword)
        node.keywords = kept
        return self._autotune(node, attr)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """`triton.Config({"BLOCK": 64, "waves_per_eu": 2})`."""
        self.generic_visit(node)
        kept = []
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _OPTION_KEYWORDS:
                self.options.append(f"{key.value}={ast.unparse(value)}")
            else:
                kept.append((key, value))
        node.keys, node.values = [k for k, _ in kept], [v for _, v in kept]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """`num_warps = 4 if D < 128 else 8`, whatever the name, when only options read it."""
        self.generic_visit(node)
        names = _OPTION_KEYWORDS | self._only_options
        if all(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            self.options.append(ast.unparse(node))
            return None
        return node

    def _autotune(self, node: ast.Call, attr: str) -> ast.AST:
        """A list of configurations that differ in options only is one configuration to the interpreter."""
        if attr != "autotune":
            return node
        for keyword in node.keywords:
            if keyword.arg == "configs" and isinstance(keyword.value, ast.List):
                unique = {ast.dump(e): e for e in keyword.value.elts}
                keyword.value.elts = list(unique.values())
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Constant) and call.value is None:
            return None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _BARRIERS:
            self.semantic.append(ast.unparse(node))
            return None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A constexpr parameter that no code reads is an option handed through (`waves_per_eu: tl.constexpr`)."""
        self.generic_visit(node)
        a = node.args
        positional = a.posonlyargs + a.args
        for parameter in [*positional, *a.kwonlyargs]:
            if parameter.arg in _OPTION_KEYWORDS:
                self.options.append(f"parameter {parameter.arg}")
        keep = len(positional) - len(a.defaults)
        defaults = {p.arg: d for p, d in zip(positional[keep:], a.defaults, strict=True)}
        a.args = [p for p in a.args if p.arg not in _OPTION_KEYWORDS]
        a.defaults = [defaults[p.arg] for p in a.posonlyargs + a.args if p.arg in defaults]
        return node


def _names_for_options_only(module: ast.Module) -> set[str]:
    """Names that are read nowhere but in the values of options."""
    values = [
        k.value for n in ast.walk(module) if isinstance(n, ast.Call) for k in n.keywords if k.arg in _OPTION_KEYWORDS
    ]
    inside = {id(n) for value in values for n in ast.walk(value)}
    loads = [n for n in ast.walk(module) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return {n.id for n in loads if id(n) in inside} - {n.id for n in loads if id(n) not in inside}


def _unordered(function: ast.FunctionDef) -> list[ast.Call]:
    """Atomics whose memory order decides nothing: no program of the kernel looks at what another one did.

    That is so when no result of an atomic is used, and nothing is compared-and-swapped or loaded as volatile.
    """
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    atomics = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr.startswith("atomic_")]
    dropped = {id(n.value) for n in ast.walk(function) if isinstance(n, ast.Expr)}
    looks = any(isinstance(c.func, ast.Attribute) and c.func.attr in ("atomic_cas", "atomic_xchg") for c in atomics)
    looks = looks or any(k.arg == "volatile" for c in calls for k in c.keywords)
    return [] if looks or any(id(c) not in dropped for c in atomics) else atomics


def _lowered(baseline: Source, candidate: Source) -> tuple[tuple[int, str], ...]:
    """Dots of the candidate with a worse input precision than any dot of the same kernel had before."""
    found: list[tuple[int, str]] = []
    for name, kernel in candidate.kernels.items():
        old = baseline.kernels.get(name)
        had = sorted(rank for rank, _, _ in _dot_precisions(old)) if old is not None else []
        for i, (rank, line, words) in enumerate(sorted(_dot_precisions(kernel))):
            if had and rank < had[min(i, len(had) - 1)]:
                found.append((line, words))
    return tuple(found)


def _dot_precisions(kernel: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Rank, line and words of each dot. No argument means the compiler's default, which is tf32 at worst."""
    for node in ast.walk(kernel):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "dot"):
            continue
        rank, words = _PRECISION["tf32"], "the default precision"
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg == "input_precision":
                rank = _PRECISION.get(str(value), 0) if value is not None else _PRECISION["tf32"]
                words = f"input_precision={ast.unparse(keyword.value)}"
            elif keyword.arg == "allow_tf32" and value is False:
                rank, words = _PRECISION["ieee"], "allow_tf32=False"
        yield rank, node.lineno, words
