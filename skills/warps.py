"""Where a file decides how many warps a launch has: followed from `num_warps=` back to the literals behind it.

A value is followed through names, parameters and their callers, returns, conditional expressions, attributes and the
lists that comprehensions and loops run over. Numbers that are computed are not guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from skills.idioms import assigned, spread_dicts, vendor_guarded
from skills.literals import int_value, string_value
from skills.triton_source import Config, TritonSource, argument, dict_items, dotted_name, walk

OPTION = "num_warps"
_COMPREHENSIONS = cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp
_SAME_ITEMS = ("list", "tuple", "sorted", "reversed", "set")


@dataclass(frozen=True, slots=True, eq=False)
class Sink:
    """An expression that is some launch's `num_warps`. `config` is the autotuner's config it stands in, if any."""

    value: cst.BaseExpression
    config: Config | None
    kernel: str = ""
    """The kernel that is launched, where it stands at a launch."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A literal that can become the `num_warps` of a launch.

    `choices` is the list whose elements are tried one after the other, where the literal is such an element.
    """

    node: cst.BaseExpression
    warps: int
    sink: Sink
    choices: cst.List | cst.Tuple | None = None
    at_launch: bool = False
    """Whether to cap where it is used: its variable has other uses, or callers elsewhere may give another number."""
    guarded: bool = False
    """Whether its author chose it for a vendor, an architecture, or left the choice to a pruning function."""


def sinks(source: TritonSource) -> Iterator[Sink]:
    """Every place that gives a launch its warps, in the order launches, configs."""
    for launch in source.launches:
        given = launch.keyword(OPTION)
        spread = [v for d in spread_dicts(source, launch.call) for k, v in dict_items(d) if k == OPTION]
        for value in [given.value] if given is not None else spread:
            yield Sink(value, None, launch.kernel)
    for config in source.configs():
        given_there = config.options.get(OPTION) or config.constants.get(OPTION)
        if given_there is not None:
            yield Sink(given_there, config)


def decisions(source: TritonSource) -> list[Decision]:
    """Every literal that a launch of the file may have as its `num_warps`; once for each sink that it reaches."""
    found: list[Decision] = []
    for sink in sinks(source):
        flow = _Flow(source, sink)
        flow.follow(sink.value)
        found += flow.found
    return found


def understood(source: TritonSource, sink: Sink) -> bool:
    """Whether every value of a sink was followed to literals: none is computed, or given by callers elsewhere."""
    flow = _Flow(source, sink)
    flow.follow(sink.value)
    return not flow.computed


def siblings(source: TritonSource, config: Config) -> tuple[cst.List, Sequence[Config]] | None:
    """The list display that a config is an element of, with all configs written in it; None where it is in none."""
    element = source.parent(config.call)
    display = source.parent(element) if isinstance(element, cst.Element) else None
    if not isinstance(display, cst.List):
        return None
    calls = {e.value for e in display.elements}
    return display, [c for c in source.configs(display) if c.call in calls]


@dataclass
class _Flow:
    """Follows one sink's value backwards."""

    source: TritonSource
    sink: Sink
    found: list[Decision] = field(default_factory=list)
    computed: bool = False
    """Whether something came up that is no literal and leads to none."""
    _seen: set[cst.CSTNode] = field(default_factory=set)
    _at_launch: bool = False

    def follow(self, node: cst.BaseExpression) -> None:
        """Every literal that `node` may have as its value."""
        if node in self._seen:
            return
        self._seen.add(node)
        value = int_value(node)
        if value is not None:
            self._note(node, value, None)
        elif isinstance(node, cst.IfExp):
            self.follow(node.body)
            self.follow(node.orelse)
        elif isinstance(node, cst.BooleanOperation):
            self.follow(node.left)
            self.follow(node.right)
        elif isinstance(node, cst.NamedExpr):
            self.follow(node.value)
        elif isinstance(node, cst.Call):
            self._call(node)
        elif isinstance(node, cst.Subscript):
            self._subscript(node)
        elif isinstance(node, cst.Name | cst.Attribute):
            self._variable(node)
        else:
            self.computed = True

    def _note(self, node: cst.BaseExpression, value: int, choices: cst.List | cst.Tuple | None) -> None:
        guarded = any(vendor_guarded(self.source, n) for n in (node, self.sink.value)) or self._pruned()
        self.found.append(Decision(node, value, self.sink, choices, self._at_launch, guarded))

    def _pruned(self) -> bool:
        """Whether a comprehension around the config filters what it makes."""
        if self.sink.config is None:
            return False
        for a in self.source.ancestors(self.sink.config.call):
            if isinstance(a, _COMPREHENSIONS):
                loop: cst.CompFor | None = a.for_in
                while loop is not None:
                    if loop.ifs:
                        return True
                    loop = loop.inner_for_in
        return False

    def _call(self, node: cst.Call) -> None:
        name = dotted_name(node.func) or ""
        if name == "min":
            numbers = {a.value: n for a in node.args if (n := int_value(a.value)) is not None}
            for value in [min(numbers, key=numbers.__getitem__)] if numbers else [a.value for a in node.args]:
                self.follow(value)
        elif name in ("max", "int"):
            for a in node.args:
                self.follow(a.value)
        else:
            values = list(self._returns(name))
            self.computed = self.computed or not values
            for value in values:
                self.follow(value)

    def _returns(self, name: str) -> Iterator[cst.BaseExpression]:
        for node in self.source.nodes:
            if isinstance(node, cst.FunctionDef) and node.name.value == name and name not in self.source.functions:
                for r in walk(node.body):
                    if isinstance(r, cst.Return) and r.value is not None:
                        yield r.value

    def _subscript(self, node: cst.Subscript) -> None:
        """An element of a display with a name: that of the key, else any."""
        index = node.slice[0].slice if len(node.slice) == 1 else None
        key = string_value(index.value) if isinstance(index, cst.Index) else None
        for display in self._values_of(node.value):
            if isinstance(display, cst.List | cst.Tuple):
                for e in display.elements:
                    self.follow(e.value)
            elif isinstance(display, cst.Dict):
                for element in display.elements:
                    named = isinstance(element, cst.DictElement) and key in (None, string_value(element.key))
                    if named:
                        self.follow(element.value)

    def _values_of(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The expressions assigned to a name of the host function or the module; a display is itself."""
        name = dotted_name(node)
        if name is None:
            return [node]
        for scope in self._scopes(node):
            values = [v for t, v in _assignments(scope) if dotted_name(t) == name]
            if values:
                return values
        return []

    def _scopes(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Functions around the node from the inside out, then the module."""
        yield from (a for a in self.source.ancestors(node) if isinstance(a, cst.FunctionDef))
        yield self.source.module

    def _variable(self, node: cst.Name | cst.Attribute) -> None:
        if isinstance(node, cst.Attribute):
            self._attribute(node)
            return
        name = node.value
        for a in self.source.ancestors(node):
            if isinstance(a, _COMPREHENSIONS) and self._loops(a.for_in, name):
                return
        if not any(self._bound_in(scope, name) for scope in self._scopes(node)):
            self.computed = True

    def _bound_in(self, scope: cst.CSTNode, name: str) -> bool:
        """Follow what `name` is given in a function or the module; whether it is given anything there."""
        before, self._at_launch = self._at_launch, self._at_launch or self._used_otherwise(scope, name)
        bound = False
        try:
            for target, value in _assignments(scope):
                if isinstance(scope, cst.Module) and self.source.enclosing_function(target) is not None:
                    continue
                if dotted_name(target) == name:
                    bound = True
                    self.follow(value)
                elif (at := _position(target, name)) is not None:
                    bound = True
                    self._element(value, at)
            for node in walk(scope.body) if isinstance(scope, cst.FunctionDef) else self.source.module.body:
                if isinstance(node, cst.For) and (here := _place(node.target, name)) is not None:
                    bound = True
                    self._items(node.iter, here)
            if isinstance(scope, cst.FunctionDef):
                bound = self._parameter(scope, name) or bound
        finally:
            self._at_launch = before
        return bound

    def _used_otherwise(self, scope: cst.CSTNode, name: str) -> bool:
        """Whether a variable that is not called after warps is read in more than one place."""
        if "warp" in name.lower():
            return False
        targets = {n for t, _ in _assignments(scope) for n in walk(t)}
        reads = [
            n
            for n in walk(scope)
            if isinstance(n, cst.Name) and n.value == name and n not in targets and not self._is_label(n)
        ]
        return len(reads) > 1

    def _is_label(self, node: cst.Name) -> bool:
        """Whether a name is no value: a keyword, an attribute or a parameter."""
        parent = self.source.parent(node)
        return (
            (isinstance(parent, cst.Arg) and parent.keyword is node)
            or (isinstance(parent, cst.Attribute) and parent.attr is node)
            or (isinstance(parent, cst.Param) and parent.name is node)
        )

    def _parameter(self, function: cst.FunctionDef, name: str) -> bool:
        """The default of a parameter, and what callers in the file give for it."""
        params = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
        names = [p.name.value for p in params]
        if name not in names:
            return False
        default = params[names.index(name)].default
        calls = [call for call, _ in self.source.calls() if dotted_name(call.func) == function.name.value]
        given = [a.value for call in calls if (a := argument(call, name, names.index(name))) is not None]
        self.computed, before = True, self._at_launch
        for value in [default, *given] if default is not None else given:
            self._at_launch = before or int_value(value) is not None
            self.follow(value)
        self._at_launch = before
        return True

    def _attribute(self, node: cst.Attribute) -> None:
        """`ctx.num_warps`, `self.warps`, `Config.WARPS`: whatever the file gives an attribute of that name."""
        name = node.attr.value
        if "warp" not in name.lower():
            return
        for target, value in _assignments(self.source.module):
            in_class = isinstance(target, cst.Name) and any(
                isinstance(a, cst.ClassDef) for a in list(self.source.ancestors(target))[:5]
            )
            if (isinstance(target, cst.Attribute) and target.attr.value == name) or (
                in_class and isinstance(target, cst.Name) and target.value == name
            ):
                self.follow(value)

    def _element(self, node: cst.BaseExpression, at: int) -> None:
        """As `follow`, for one element of a tuple."""
        if isinstance(node, cst.Tuple | cst.List):
            if at < len(node.elements):
                self.follow(node.elements[at].value)
        elif isinstance(node, cst.IfExp):
            self._element(node.body, at)
            self._element(node.orelse, at)
        elif isinstance(node, cst.Call) and node not in self._seen:
            self._seen.add(node)
            for value in self._returns(dotted_name(node.func) or ""):
                self._element(value, at)

    def _loops(self, loop: cst.CompFor | None, name: str) -> bool:
        while loop is not None:
            here = _place(loop.target, name)
            if here is not None:
                self._items(loop.iter, here)
                return True
            loop = loop.inner_for_in
        return False

    def _items(self, node: cst.BaseExpression, at: int) -> None:
        """What a loop variable runs over; `at` is its position where the loop unpacks tuples, else -1."""
        if isinstance(node, cst.List | cst.Tuple):
            for element in node.elements:
                number = int_value(element.value)
                if at >= 0:
                    self._element(element.value, at)
                elif number is not None:
                    self._note(element.value, number, node)
                else:
                    self.follow(element.value)
        elif isinstance(node, cst.Call):
            called = (dotted_name(node.func) or "").split(".")[-1]
            if called == "product" and 0 <= at < len(node.args):
                self._items(node.args[at].value, -1)
            elif called in _SAME_ITEMS and node.args:
                self._items(node.args[0].value, at)
        elif isinstance(node, cst.Name) and node not in self._seen:
            self._seen.add(node)
            for value in self._values_of(node):
                self._items(value, at)


def _assignments(scope: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """(target, value) of every assignment below a node."""
    for node in walk(scope):
        targets, value = assigned(node)
        if value is not None and not isinstance(node, cst.AugAssign):
            yield from ((target, value) for target in targets)


def _position(target: cst.BaseExpression, name: str) -> int | None:
    """Which element of a tuple target a name is."""
    if not isinstance(target, cst.Tuple | cst.List):
        return None
    return next((i for i, e in enumerate(target.elements) if dotted_name(e.value) == name), None)


def _place(target: cst.BaseExpression, name: str) -> int | None:
    """-1 for a loop target of that name, its position for a tuple that holds it, else None."""
    return -1 if dotted_name(target) == name else _position(target, name)
