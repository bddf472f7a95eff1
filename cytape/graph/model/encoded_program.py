"""Nodes of a graph with their contexts and names, as JSON, and back.

`cytape.graph.model.graph_files` documents the format.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from typing import Any

from cytape.errors import GraphFileError
from cytape.graph.model.contexts import Context
from cytape.graph.model.encoding import (
    Decoder,
    Encoder,
    NoWordError,
    brief,
    listed,
    numbered,
)
from cytape.graph.model.graph_variables import variable_handle_op
from cytape.graph.model.names import checked_name
from cytape.ops.engine.op_kinds import OPS, find, remedy
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec

__all__ = ["GraphBuilder", "field", "graph_code", "spec_code", "symbol_codes"]


def graph_code(graph: Any, encoder: Encoder) -> dict[str, Any]:
    """Return the nodes of a graph as JSON.

    Raises
    ------
    GraphFileError
        If a node cannot be saved.
    """
    used = dict.fromkeys([graph.contexts[0], *(
        _context_before(graph, node) for node in range(graph.n_nodes))])
    contexts = {context: number for number, context in enumerate(used)}
    symbols = symbol_codes(graph)
    return {
        "scopes": graph.scope_names(),
        "contexts": [_context_code(context) for context in contexts],
        "nodes": [
            _node_code(graph, node, encoder, contexts, symbols) for node in range(graph.n_nodes)],
    }


def _context_before(graph: Any, node: int) -> Context:
    """Return the context of a node, without the op that it differentiates if that comes later."""
    context = graph.contexts[graph.context_of(node)]
    return context if context.original < node else context._replace(original=-1)


def symbol_codes(graph: Any) -> Sequence[int]:
    """Return the codes of a graph's symbols in a file: indices in the order of the nodes.

    Returns
    -------
    sequence of int
        By symbol.
    """
    codes = [0] * graph.n_symbols
    in_order = itertools.chain.from_iterable(map(graph.outputs_of, range(graph.n_nodes)))
    for code, symbol in enumerate(in_order):
        codes[symbol] = code
    return codes


def _context_code(context: Context) -> dict[str, Any]:
    return {**context._asdict(), "overrides": [list(pair) for pair in context.overrides]}


def _node_code(
    graph: Any, node: int, encoder: Encoder, contexts: dict[Context, int], symbols: Sequence[int]
) -> dict[str, Any]:
    operation = graph.operation_at(node)
    if OPS.get(operation.type) is not operation.definition:
        raise GraphFileError(
            f"op {operation.name!r} cannot be saved: its type, {operation.type!r}, is not declared "
            "under that name"
        )
    attrs = {}
    for name, value in graph.attrs[node].items():
        try:
            attrs[name] = encoder.encode(value)
        except NoWordError as error:
            raise GraphFileError(
                f"op {operation.name!r} cannot be saved: its attribute {name!r} is {brief(value)}, "
                "and only numbers, strings, slices, dtypes, arrays, tensors, variables, bodies of "
                "branches and loops, and tuples and dicts of these can be"
            ) from error
    specs = [graph.spec_of(symbol) for symbol in graph.outputs_of(node)]
    return {
        "op": operation.type,
        "name": operation.name,
        "named": graph.was_named(node),
        "inputs": [symbols[symbol] for symbol in graph.inputs_of(node)],
        "attrs": attrs,
        "outputs": [spec_code(spec) for spec in specs],
        "context": contexts[_context_before(graph, node)],
        "controls": list(graph.more_controls_of(node)),
    }


class GraphBuilder:
    """Builder of nodes from JSON, in an empty graph.

    Parameters
    ----------
    graph : Graph
    code : object
    decoder : Decoder
    """

    def __init__(self, graph: Any, code: Any, decoder: Decoder) -> None:
        self.graph = graph
        self.decoder = decoder
        self.nodes = field(code, "nodes", list)
        self._scopes = self._scope_numbers(field(code, "scopes", list))
        self._contexts = [self._context(each) for each in field(code, "contexts", list)]

    def build_all(self) -> None:
        """Build the nodes, and name them."""
        for node, code in enumerate(self.nodes):
            try:
                self._build(node, code)
            except Exception as error:
                raise GraphFileError(f"op {node}, {brief(code)}, is not valid: {error}") from error
        self.graph._names.restore(
            [checked_name(field(code, "name", str)) for code in self.nodes],
            {node for node, code in enumerate(self.nodes) if field(code, "named", bool)},
        )

    def _scope_numbers(self, names: list[Any]) -> list[int]:
        if not names or names[0] != "":
            raise GraphFileError("the first scope has no name")
        for name in names[1:]:
            if type(name) is not str or not name.endswith("/"):
                raise GraphFileError(f"{brief(name)} is not the name of a scope")
            checked_name(name[:-1])
        return self.graph._names.restore_scopes(names)

    def _context(self, code: Any) -> Context:
        original = field(code, "original", int)
        if original != -1:
            numbered(self.nodes, original, "op")
        return Context(
            numbered(self._scopes, field(code, "scope", int), "scope"),
            self._controls(field(code, "controls", list)),
            field(code, "device", str),
            tuple(self._override(pair) for pair in field(code, "overrides", list)),
            original,
            field({"recorded": True, **code}, "recorded", bool),
        )

    def _override(self, pair: Any) -> tuple[str, str]:
        op_type, name = listed(pair, 2)
        if type(op_type) is not str or type(name) is not str:
            raise GraphFileError(f"{brief(pair)} is not a pair of names")
        return op_type, name

    def _controls(self, nodes: list[Any]) -> tuple[int, ...]:
        for node in nodes:
            numbered(self.nodes, node, "op")
        return tuple(sorted(set(nodes)))

    def _build(self, node: int, code: Any) -> None:
        graph = self.graph
        name = field(code, "op", str)
        op = find(name)
        if op is None:
            raise GraphFileError(f"no op {brief(name)} is declared: {remedy(name)}")
        context = numbered(self._contexts, field(code, "context", int), "context")
        if max((*context.controls, context.original), default=-1) >= node:
            raise GraphFileError("it waits for, or differentiates, an op that follows")
        inputs = [self.tensor(symbol) for symbol in field(code, "inputs", list)]
        attrs = {key: self.decoder.decode(x) for key, x in field(code, "attrs", dict).items()}
        _check_call(op, len(inputs), attrs)
        graph.enter_context(graph.context_number(context))
        try:
            graph.build(op, *inputs, **attrs)
        finally:
            graph.enter_context(0)
        if graph.n_nodes != node + 1:
            raise GraphFileError("it consists of several ops")
        outputs = [spec_code(graph.spec_of(symbol)) for symbol in graph.outputs_of(node)]
        if outputs != field(code, "outputs", list):
            raise GraphFileError(
                f"its outputs are {brief(outputs)}, which the file calls {brief(code['outputs'])}"
            )
        if more := self._controls(field(code, "controls", list)):
            graph.add_control_inputs(
                graph.operation_at(node), [graph.operation_at(other) for other in more]
            )
        if op is variable_handle_op:
            graph.restore_handle(attrs["variable"], graph.outputs_of(node)[0])

    def tensor(self, symbol: Any) -> Tensor:
        """Return the tensor of a symbol."""
        if type(symbol) is not int:
            raise GraphFileError(f"{brief(symbol)} is not a tensor")
        return self.graph.tensor_at(symbol)


def spec_code(spec: Spec) -> list[Any]:
    """Return dtype and shape as JSON."""
    return [spec.dtype.str, None if spec.shape is None else list(spec.shape)]


def field(code: Any, name: str, kind: type) -> Any:
    """Return an entry of a JSON object, or raise if it has another type."""
    if type(code) is not dict or type(code.get(name)) is not kind:
        wanted = f"an object with {name!r} ({kind.__name__})"
        raise GraphFileError(f"expected {wanted}, got {brief(code)}")
    return code[name]


def _check_call(op: Any, n_inputs: int, attrs: dict[str, Any]) -> None:
    """Raise if the signature of an op does not fit this number of inputs and these arguments."""
    try:
        signature = inspect.signature(op.forward)
    except ValueError:  # functions in C may lack a signature
        return
    signature.bind(*[None] * n_inputs, **attrs)
