"""Which value decides, in a loop, whether an atomic's address is still the one before: the key of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from sandbox.hip_source import HipSource
from skills.cuda_atomics import NotAssuredError
from skills.cuda_edit import constants
from skills.cuda_tree import (
    BUILTINS,
    CHANGES,
    INTEGERS,
    LOOPS,
    Change,
    KernelTree,
    Variable,
    ancestors,
    arguments,
    callee,
    change_of,
    walk,
)

_PURE = frozenset({"static_cast", "min", "max"}) | INTEGERS
_BY_VALUE = re.compile(r"atomicAdd|static_cast|min|max|f?absf?|fmaf?|sqrtf?|expf?|logf?|__\w+")
"""Functions that take numbers by value, so that a variable given to them stays what it is."""
_MOST_NESTED = 8


class EveryIterationError(NotAssuredError):
    """No two iterations of the loop have the same address."""


@dataclass(frozen=True)
class Key:
    """An expression that is equal where the address is; without text, nothing in the address changes in the loop."""

    text: str = ""
    type: str = ""


@dataclass
class RunLoop:
    """One loop of a kernel, and what changes from one iteration to the next."""

    tree: KernelTree
    loop: Node
    _keys: set[Key] = field(default_factory=set)
    _sources: list[Node] = field(default_factory=list)
    """Where the keys stand in the source."""

    def key(self, address: Node) -> Key:
        """The key of an address in this loop; raises `NotAssuredError` when more than one value decides, or what
        decides cannot be told, or threads differ in it."""
        self._keys, self._sources = set(), []
        self._read(address, 0)
        if len(self._keys) > 1:
            raise NotAssuredError("more than one value decides whether the address is the same")
        if self._keys and any(self.tree.depends_on_thread(n) for n in (*self._decisions(), *self._sources)):
            raise NotAssuredError("threads have rows of their own, so that each lane has to compare")
        return next(iter(self._keys), Key())

    def _decisions(self) -> Iterator[Node]:
        """What decides in the loop which statements are executed."""
        for node in walk(self.loop):
            condition = node.child_by_field_name("condition")
            if condition is not None and node.type in ("if_statement", "switch_statement", *LOOPS):
                yield condition

    def _read(self, node: Node, depth: int) -> None:
        if depth > _MOST_NESTED:
            raise NotAssuredError("too many definitions to follow")
        if (made := _without_access(node)) is not None:
            for part in made:
                self._read(part, depth)
        elif node.type == "subscript_expression":
            self._read_load(node, depth)
        elif node.type == "identifier":
            self._read_name(node, depth)
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            if callee(node) not in _PURE and (function is None or function.type != "primitive_type"):
                raise NotAssuredError("a function makes the address")
            for argument in arguments(node):
                self._read(argument, depth)
        elif node.type in _REFUSED or (node.type == "field_expression" and "->" in self.tree.file.slice(node)):
            raise NotAssuredError(f"the address holds a {node.type}")
        else:
            for child in node.named_children:
                self._read(child, depth)

    def _read_load(self, node: Node, depth: int) -> None:
        """An element of an array of integers, read where the atomic is: the key itself."""
        array = node.child_by_field_name("argument")
        variable = self.tree.variables.get(self.tree.file.slice(array)) if array is not None else None
        if depth or variable is None or not variable.pointer or not self._is_whole_number(variable.type):
            raise NotAssuredError("the address depends on memory that is read elsewhere")
        if any(n.type in CHANGES or n.type in _REFUSED for n in walk(node)):
            raise NotAssuredError("the index of the row cannot be read twice")
        self._add(node, variable.type)

    def _read_name(self, node: Node, depth: int) -> None:
        name = self.tree.file.slice(node)
        variable = self.tree.variables.get(name)
        if name in BUILTINS or (not self.tree.declares(name) and self._is_constant(name)):
            return
        if variable is None or name in self._aliased:
            raise NotAssuredError(f"{name} is not known, or may change elsewhere")
        if not _within(variable.declared, self.loop) and name not in self._changed:
            return
        if name in self._changed:
            if name in self._counted:
                raise EveryIterationError(f"{name} changes with every iteration")
            if depth:
                raise NotAssuredError(f"{name} may have changed since the address was made of it")
            self._add(node, self._type(variable))
        elif variable.value is None:
            raise NotAssuredError(f"{name} has no value of its own")
        elif any(n.type in ("subscript_expression", "call_expression") for n in walk(variable.value)):
            self._add(node, self._type(variable))
        else:
            self._read(variable.value, depth + 1)

    def _add(self, node: Node, type_: str) -> None:
        self._keys.add(Key(self.tree.file.slice(node), type_))
        self._sources.append(node)

    def _type(self, variable: Variable) -> str:
        """How to declare another variable like this one."""
        if variable.pointer and variable.declared.type == "declaration" and variable.type != "auto":
            return f"{variable.type}*"
        if self._is_whole_number(variable.type):
            return variable.type
        value = variable.value
        array = value.child_by_field_name("argument") if value is not None and "subscript" in value.type else None
        of = self.tree.variables.get(self.tree.file.slice(array)) if array is not None else None
        if variable.type == "auto" and of is not None and of.pointer and self._is_whole_number(of.type):
            return of.type
        raise NotAssuredError(f"{variable.name} is of a type that is not known to be a whole number")

    def _is_whole_number(self, type_: str) -> bool:
        if type_ in INTEGERS:
            return True
        return re.search(rf"\b(?:typename|class)\s+{re.escape(type_)}\b", self.tree.file.text) is not None

    def _is_constant(self, name: str) -> bool:
        text = HipSource(self.tree.file.text).masked
        if re.search(rf"#[ \t]*define[ \t]+{name}\b", text):
            return name in constants(HipSource(self.tree.file.text))
        return self.tree.is_constant(name) and not re.search(rf"__device__[^;{{}}()]*\b{name}\b", text)

    @cached_property
    def _changed(self) -> frozenset[str]:
        """Variables that get another value in the loop, its head included."""
        return frozenset(change.name for _, change in self._changes)

    @cached_property
    def _counted(self) -> frozenset[str]:
        """Those of them that are counted on rather than set."""
        return frozenset(
            change.name
            for node, change in self._changes
            if change.operator != "=" or (node.parent is not None and node.parent.type in LOOPS)
        )

    @cached_property
    def _changes(self) -> list[tuple[Node, Change]]:
        file = self.tree.file
        return [(node, change) for node in walk(self.loop) if (change := change_of(file, node)) is not None]

    @cached_property
    def _aliased(self) -> frozenset[str]:
        """Variables that may change without being named: by their address, a reference, assembly or a function."""
        tree, found = self.tree, set()
        for node in tree.nodes:
            if node.type == "gnu_asm_expression":
                found |= {tree.file.slice(n) for n in tree.identifiers(node)}
            elif node.type == "init_declarator" and any(c.type == "reference_declarator" for c in node.children):
                value = node.child_by_field_name("value")
                found |= {tree.file.slice(n) for n in tree.identifiers(value)} if value is not None else set()
            elif node.type == "pointer_expression" and node.children[0].type == "&":
                inner = node.child_by_field_name("argument")
                found |= {tree.file.slice(inner)} if inner is not None and inner.type == "identifier" else set()
            elif node.type == "call_expression" and not _BY_VALUE.fullmatch(callee(node)):
                found |= {_text(a) for a in arguments(node) if a.type == "identifier" and not self._is_fixed(a)}
        return frozenset(found)

    def _is_fixed(self, name: Node) -> bool:
        variable = self.tree.variables.get(_text(name))
        return variable is not None and (variable.pointer or variable.constant)


_REFUSED = (*CHANGES, "pointer_expression", "lambda_expression", "gnu_asm_expression", "qualified_identifier")


def run_loop(tree: KernelTree, call: Node) -> tuple[Node, Key] | None:
    """The outermost loop around an atomic in which its address has a key, and that key; None as well where an outer
    loop may have runs that no key tells of."""
    found = None
    for node in ancestors(call, tree.body):
        if node.type not in LOOPS:
            continue
        try:
            key = RunLoop(tree, node).key(arguments(call)[0])
        except EveryIterationError:
            continue
        except NotAssuredError:
            return None
        if node.parent is not None and node.parent.type == "compound_statement":
            found = node, key
    return found


def _without_access(address: Node) -> list[Node] | None:
    """The array and the index of `&p[i]`, which reads nothing; None for anything else."""
    inner = address.child_by_field_name("argument") if address.type == "pointer_expression" else None
    if inner is None or address.children[0].type != "&" or inner.type != "subscript_expression":
        return None
    array, index = (inner.child_by_field_name(f) for f in ("argument", "indices"))
    return [array, *index.named_children] if array is not None and index is not None else None


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _text(node: Node) -> str:
    return (node.text or b"").decode()
