"""CUDA and HIP kernels as syntax trees (tree-sitter): statements, names, and where values come from.

The grammar knows no preprocessor: what a macro hides is not seen, and a kernel that it cannot read whole is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from sandbox.hip_source import Edit, HipSource

BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
INTEGERS = frozenset(
    {"int", "unsigned", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "size_t", "short",
     "int32_t", "uint32_t", "int64_t", "uint64_t", "index_t", "uint", "std::int64_t", "std::size_t"}
)  # fmt: skip
BARRIERS = re.compile(
    r"__syncthreads|__syncwarp|__shfl|__ballot|__any|__all\b|__activemask|__match_|__reduce_|s_barrier|\bsync\s*\(|"
    r"\bhipcub\b|\bcub\b|\brocprim\b|cooperative_groups"
)
"""What lanes or threads of a block do together, so that all have to come there."""
ORDERS = re.compile(
    r"__threadfence|\bvolatile\b|__hip_atomic_|__atomic_|atomicCAS|atomicExch|atomicInc|atomicDec|fence"
)
"""What gives the order of memory accesses a meaning beyond the kernel's end."""


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> Node:
    return Parser(Language(tree_sitter_cuda.language())).parse(data).root_node


@dataclass(frozen=True)
class Variable:
    """A parameter or local variable. `type` is without qualifiers; that of a pointer is what it points to."""

    name: str
    type: str
    pointer: bool
    declared: Node
    """The declaration, or the parameter."""
    value: Node | None = None
    """What it is initialised with."""
    parameter: bool = False
    constant: bool = False
    """Declared `const`, as what a pointer points to."""
    restricted: bool = False
    """A pointer declared `__restrict__`."""


@dataclass(frozen=True)
class Change:
    """Something gets another value: the variable that leads to it, the operator, the right side if there is one."""

    name: str
    operator: str
    value: Node | None


class CudaFile:
    """A source text and its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._data = text.encode()
        self.root = _parsed(self._data)

    def start(self, node: Node) -> int:
        """First character of a node."""
        return self._character(node.start_byte)

    def end(self, node: Node) -> int:
        """One past the last character of a node."""
        return self._character(node.end_byte)

    def _character(self, byte: int) -> int:
        return byte if len(self._data) == len(self.text) else len(self._data[:byte].decode())

    def slice(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode()

    def replace(self, node: Node, text: str) -> Edit:
        return Edit(self.start(node), self.end(node), text)

    def indent(self, node: Node) -> str:
        """The white space in front of the line that a node starts on."""
        line = self.text[self.text.rfind("\n", 0, self.start(node)) + 1 : self.start(node)]
        return line[: len(line) - len(line.lstrip())]

    @cached_property
    def kernels(self) -> list[KernelTree]:
        """`__global__` functions with a body that the grammar reads whole, in source order."""
        found: list[KernelTree] = []
        for node in walk(self.root):
            if node.type == "function_definition" and not node.has_error:
                body, declarator = node.child_by_field_name("body"), _declarator(node)
                head = [c for c in node.children if body is None or c.start_byte < body.start_byte]
                if body is not None and declarator is not None and any(c.type == "__global__" for c in head):
                    found.append(KernelTree(self, node, body, declarator))
        return found

    def kernel(self, name: str) -> KernelTree | None:
        """The one kernel of a name; None when there is none or several."""
        named = [k for k in self.kernels if k.name == name]
        return named[0] if len(named) == 1 and len(HipSource(self.text).kernels) == len(self.kernels) else None

    def helper(self, name: str, text: str) -> list[Edit]:
        """The definition `text` of `name` in front of the first kernel; nothing when the file has it already."""
        if re.search(rf"\b{name}\b", self.text):
            return []
        node = self.kernels[0].node
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        while (before := node.prev_sibling) is not None and before.type == "comment" and _adjacent(before, node):
            node = before
        return [Edit(self.start(node), self.start(node), text.rstrip() + "\n\n")]


def _declarator(node: Node) -> Node | None:
    found = node.child_by_field_name("declarator")
    return found if found is not None and found.type == "function_declarator" else None


def _adjacent(before: Node, node: Node) -> bool:
    return before.end_point[0] + 1 >= node.start_point[0]


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def ancestors(node: Node, stop: Node) -> Iterator[Node]:
    """The nodes around `node`, innermost first, up to `stop` (left out)."""
    current = node.parent
    while current is not None and current.id != stop.id:
        yield current
        current = current.parent


LOOPS = ("for_statement", "while_statement", "do_statement")


@dataclass(frozen=True, eq=False)
class KernelTree:
    """One `__global__` function."""

    file: CudaFile
    node: Node
    body: Node
    declarator: Node

    @property
    def name(self) -> str:
        found = self.declarator.child_by_field_name("declarator")
        return self.file.slice(found) if found is not None else ""

    @property
    def line(self) -> int:
        return int(self.node.start_point[0]) + 1

    @property
    def text(self) -> str:
        return self.file.slice(self.body)

    @property
    def code(self) -> str:
        """The body with comments and strings blanked."""
        return HipSource(self.text).masked

    @cached_property
    def nodes(self) -> list[Node]:
        """Every node of the body."""
        return list(walk(self.body))

    def of_type(self, *types: str) -> list[Node]:
        return [n for n in self.nodes if n.type in types]

    def calls(self, *names: str) -> list[Node]:
        """Calls of plain functions by name."""
        return [n for n in self.of_type("call_expression") if callee(n) in names]

    @cached_property
    def _declared(self) -> Mapping[str, list[Variable]]:
        found: dict[str, list[Variable]] = {}
        parameters = self.declarator.child_by_field_name("parameters")
        for node in parameters.named_children if parameters is not None else ():
            if node.type == "parameter_declaration" and (v := _variable(self.file, node, node, parameter=True)):
                found.setdefault(v.name, []).append(v)
        for node in self.of_type("declaration", "for_range_loop"):
            for child in node.children_by_field_name("declarator"):
                if v := _variable(self.file, node, child):
                    found.setdefault(v.name, []).append(v)
        return found

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Parameters and locals; a name that is declared twice is left out."""
        return {name: same[0] for name, same in self._declared.items() if len(same) == 1}

    def declares(self, name: str) -> bool:
        """Whether the kernel declares a name, once or more often."""
        return name in self._declared

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that are given another value after their declaration, or whose address is taken."""
        found: set[str] = set()
        for node in self.nodes:
            if node.type == "assignment_expression":
                left = node.child_by_field_name("left")
                found |= {root_name(self.file, left)} if left is not None else set()
            elif node.type == "update_expression":
                inner = node.child_by_field_name("argument")
                found |= {root_name(self.file, inner)} if inner is not None else set()
            elif node.type == "pointer_expression" and node.children[0].type == "&":
                inner = node.child_by_field_name("argument")
                if inner is not None and inner.type == "identifier":
                    found.add(self.file.slice(inner))
        return frozenset(found)

    def identifiers(self, node: Node) -> list[Node]:
        """Uses of variables below a node: members, types and callees are not among them."""
        return [n for n in walk(node) if n.type == "identifier" and not _is_callee(n)]

    def uses(self, name: str) -> list[Node]:
        """Where the body names a variable."""
        return [n for n in self.nodes if n.type == "identifier" and self.file.slice(n) == name and not _is_callee(n)]

    def is_uniform(self, node: Node) -> bool:
        """Whether an expression has one value for all threads of a block, and has it wherever it is evaluated.

        Names that the kernel does not declare have to look like constants (template parameters and macros do).
        """
        if any(n.type in ("call_expression", "assignment_expression", "update_expression", "lambda_expression")
               for n in walk(node)):  # fmt: skip
            return False
        if any(n.type == "subscript_expression" and not _under_address(n, node) for n in walk(node)):
            return False
        if any(n.type == "pointer_expression" and n.children[0].type == "*" for n in walk(node)):
            return False
        return all(self._is_uniform_name(self.file.slice(n), 0) for n in self.identifiers(node))

    def _is_uniform_name(self, name: str, depth: int) -> bool:
        if name in BUILTINS:
            return name != "threadIdx"
        variable = self.variables.get(name)
        if variable is None:
            return name not in self._declared and self.is_constant(name)
        if name in self.assigned:
            return False
        if variable.parameter:
            return True
        value = variable.value
        if (
            value is None
            or depth > 8
            or any(n.type in ("call_expression", "subscript_expression") for n in walk(value))
        ):
            return False
        return all(self._is_uniform_name(self.file.slice(n), depth + 1) for n in self.identifiers(value))

    def depends_on_thread(self, node: Node) -> bool:
        """Whether a value is made, through whatever variables, of the thread's place in its block: an estimate of what
        costs a lane's instruction, which takes memory and functions of values of the block to be the block's."""
        seen: set[str] = set()
        pending = [node]
        while pending:
            for name in {self.file.slice(n) for n in self.identifiers(pending.pop())} - seen:
                if name == "threadIdx":
                    return True
                seen.add(name)
                pending += [v.value for v in self._declared.get(name, ()) if v.value is not None]
                pending += self._given.get(name, ())
        return False

    @cached_property
    def _given(self) -> Mapping[str, list[Node]]:
        """The right sides of a variable's assignments."""
        found: dict[str, list[Node]] = {}
        for change in self.changes:
            if change.value is not None:
                found.setdefault(change.name, []).append(change.value)
        return found

    @cached_property
    def changes(self) -> list[Change]:
        """Every assignment, increment and decrement of the kernel."""
        return [change for node in self.nodes if (change := change_of(self.file, node)) is not None]

    def is_constant(self, name: str) -> bool:
        """Whether a name that the kernel does not declare stands for a constant, or for an object of the file."""
        text = HipSource(self.file.text).masked
        if re.search(rf"#[ \t]*define[ \t]+{name}\b|\b(?:constexpr|const)\b[^;{{}}=]*\b{name}\s*=", text):
            return True
        if re.search(rf"template\s*<[^{{}};]*\b{name}\b", text):
            return True
        return re.search(rf"__device__[^;{{}}()]*\b{name}\b\s*(?:\[[^\]]*\]\s*)*[;=]", text) is not None

    def type_of_integers(self, node: Node) -> bool:
        """Whether an expression is made of integers alone, so that a comparison of it can be turned round."""
        for n in self.identifiers(node):
            name = self.file.slice(n)
            variable = self.variables.get(name)
            if name not in BUILTINS and (variable is None or variable.pointer or variable.type not in INTEGERS):
                return False
        return not any(
            n.type in ("call_expression", "subscript_expression") or (n.type == "number_literal" and _is_float(n))
            for n in walk(node)
        )


def _is_float(node: Node) -> bool:
    text = (node.text or b"").decode().lower()
    return not text.startswith("0x") and bool(re.search(r"[.ef]", text))


def _under_address(node: Node, root: Node) -> bool:
    """Whether a subscript only makes an address: `&p[i]`."""
    parent = node.parent
    return node.id != root.id and parent is not None and parent.type == "pointer_expression" and (
        parent.children[0].type == "&"
    )  # fmt: skip


def _is_callee(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type != "call_expression":
        return False
    function = parent.child_by_field_name("function")
    return function is not None and function.id == node.id


def callee(call: Node) -> str:
    """Name of the function that a call names plainly, or as a template; empty for anything else."""
    function = call.child_by_field_name("function")
    if function is None:
        return ""
    if function.type == "template_function":
        function = function.child_by_field_name("name") or function
    return (function.text or b"").decode() if function.type == "identifier" else ""


def arguments(call: Node) -> list[Node]:
    """The arguments of a call."""
    listed = call.child_by_field_name("arguments")
    return [n for n in listed.named_children if n.type != "comment"] if listed is not None else []


def root_name(file: CudaFile, node: Node) -> str:
    """The variable that an expression such as `&a.b[i]`, `(T*)a` or `a + i` starts from; empty when there is none."""
    while node.type != "identifier":
        field = {
            "subscript_expression": "argument",
            "field_expression": "argument",
            "pointer_expression": "argument",
            "cast_expression": "value",
            "binary_expression": "left",
        }.get(node.type)
        inner = node.child_by_field_name(field) if field else None
        if node.type == "parenthesized_expression":
            inner = next(iter(node.named_children), None)
        if inner is None:
            return ""
        node = inner
    return file.slice(node)


CHANGES = ("assignment_expression", "update_expression")


def change_of(file: CudaFile, node: Node) -> Change | None:
    """What an expression itself changes, not those inside it; None for one that changes nothing."""
    if node.type not in CHANGES:
        return None
    target = node.child_by_field_name("left") or node.child_by_field_name("argument")
    operator = node.child_by_field_name("operator")
    if target is None or operator is None:
        return None
    return Change(root_name(file, target), file.slice(operator), node.child_by_field_name("right"))


def statement_of(node: Node) -> Node | None:
    """The expression statement that a node is the whole of; None when its value is used."""
    parent = node.parent
    return parent if parent is not None and parent.type == "expression_statement" else None


def _variable(file: CudaFile, declared: Node, declarator: Node, *, parameter: bool = False) -> Variable | None:
    """The variable of one declarator of a declaration; None for functions and for what is not named."""
    if parameter:
        inner = declared.child_by_field_name("declarator")
        if inner is None:
            return None
        declarator = inner
    value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
    pointer = False
    node: Node | None = declarator
    while node is not None and node.type != "identifier":
        if node.type in ("function_declarator",):
            return None
        pointer = pointer or node.type in ("pointer_declarator", "array_declarator")
        node = node.child_by_field_name("declarator") or next(
            (c for c in node.named_children if c.type.endswith(("declarator", "identifier"))), None
        )
    type_ = declared.child_by_field_name("type")
    if node is None or type_ is None:
        return None
    head = [c for c in declared.children if c.start_byte < declarator.start_byte]
    constant = any(c.type == "type_qualifier" and file.slice(c) in ("const", "constexpr") for c in head)
    restricted = re.search(r"\b__restrict(?:__)?\b", file.slice(declared)) is not None
    return Variable(file.slice(node), file.slice(type_), pointer, declared, value, parameter, constant, restricted)


def statements(node: Node) -> Sequence[Node]:
    """The statements of a compound statement, comments left out."""
    return [n for n in node.named_children if n.type != "comment"]
