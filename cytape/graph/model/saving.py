"""Saving and loading graphs.

A file is a container (see `cytape.graph.model.container`) with a program in JSON:

- ``format``: "cytape graph"; ``version``: of the format
- ``variables``: objects with ``name``, ``trainable`` and ``value``, the number of an array
- ``scopes``: full names, each with a slash at the end; the first is ""
- ``contexts``: what nodes are built under: ``scope``, by number; ``controls``, a list of nodes;
  ``device``; ``overrides``, pairs of an op type and a name; ``original``, a node or -1;
  ``recorded``, whether recorders are to follow; they are where an older file does not say
- ``nodes``, in the order of their making: ``op``, its type; ``name``, in full, and whether it was
  ``named`` by the user; ``inputs``, a list of symbols; ``attrs``, encoded as
  `cytape.graph.model.encoding` says; ``outputs``, pairs of dtype and shape; ``context``, by number;
  and further ``controls``
- ``named variables``: those that `Graph.get_variable` knows, by number
- ``collections``: pairs of a name and a list, whose items are encoded as attributes are, or are
  ``{"symbol": 3}`` or ``{"node": 3}``
- ``finalized``: whether the graph is

Loading builds the graph anew, op by op: types are looked up among the ops that are declared, calls
are checked as those of users are, and shapes and dtypes inferred and compared with what is stored.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np

from cytape.errors import GraphFileError
from cytape.graph.model import container
from cytape.graph.model.contexts import Context
from cytape.graph.model.encoding import Decoder, Encoder, brief, listed, numbered
from cytape.graph.model.names import checked_name
from cytape.graph.model.operation import Operation
from cytape.ops.engine.declare import OPS
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.tensor.spec import Spec
from cytape.tensor.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

FORMAT = "cytape graph"
VERSION = 1


# ---- saving


def save(graph: Any, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file.

    Parameters
    ----------
    graph : Graph
    path : str or path

    Raises
    ------
    GraphFileError
        If something in the graph cannot be saved.
    """
    encoder = Encoder()
    used = dict.fromkeys([0, *map(graph.context_of, range(graph.n_nodes))])
    contexts = {context: number for number, context in enumerate(used)}
    program = {
        "format": FORMAT,
        "version": VERSION,
        "scopes": graph.scope_names(),
        "contexts": [_context_code(graph.contexts[context]) for context in contexts],
        "nodes": [_node_code(graph, node, encoder, contexts) for node in range(graph.n_nodes)],
        "named variables": [encoder.variable(v) for v in graph.named_variables],
        "collections": [
            [name, [_item_code(graph, name, item, encoder) for item in graph.get_collection(name)]]
            for name in graph.get_all_collection_keys()
        ],
        "finalized": bool(graph.finalized),
    }
    program["variables"] = [
        {"name": v.name, "trainable": bool(v.trainable), "value": encoder.array(v.numpy())}
        for v in encoder.variables
    ]
    container.write(path, program, encoder.arrays)


def _context_code(context: Context) -> dict[str, Any]:
    return {**context._asdict(), "overrides": [list(pair) for pair in context.overrides]}


def _node_code(
    graph: Any, node: int, encoder: Encoder, contexts: dict[int, int]
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
        except GraphFileError as error:
            raise GraphFileError(
                f"op {operation.name!r} cannot be saved: its attribute {name!r} is {brief(value)}, "
                "and only numbers, strings, slices, dtypes, arrays, tensors, variables, and tuples "
                "and dicts of these can be"
            ) from error
    specs = [graph.spec_of(symbol) for symbol in graph.outputs_of(node)]
    return {
        "op": operation.type,
        "name": operation.name,
        "named": graph.was_named(node),
        "inputs": graph.inputs_of(node),
        "attrs": attrs,
        "outputs": [_spec_code(spec) for spec in specs],
        "context": contexts[graph.context_of(node)],
        "controls": list(graph.more_controls_of(node)),
    }


def _item_code(graph: Any, name: Any, item: Any, encoder: Encoder) -> Any:
    if isinstance(item, Tensor) and item.graph is graph:
        return {"symbol": graph.symbol_of(item)}
    if isinstance(item, Operation) and item.graph is graph:
        return {"node": item.node}
    try:
        if type(name) is not str:
            raise GraphFileError("a name is a string")
        return encoder.encode(item)
    except GraphFileError as error:
        raise GraphFileError(
            f"collection {name!r} cannot be saved: it holds {brief(item)}"
        ) from error


# ---- loading


def load(graph: Any, path: str | os.PathLike[str]) -> Any:
    """Build what a file holds in a new graph.

    Parameters
    ----------
    graph : Graph
        Without operations.
    path : str or path

    Returns
    -------
    Graph
        The same.

    Raises
    ------
    GraphFileError
        If it is no saved graph, is damaged, or has ops that are not declared.
    OSError
        If it cannot be read.
    """
    program, arrays = container.read(path)
    try:
        with building_into(None), unrecorded(), np.errstate(all="ignore"):
            _Loader(graph, program, arrays).load()
    except GraphFileError:
        raise
    except Exception as error:  # whatever op declarations make of arguments no user would give
        raise GraphFileError(f"{os.fspath(path)!r} holds no valid graph: {error}") from error
    return graph


class _Loader:
    """Builds a graph from a program; see the top of this file."""

    def __init__(self, graph: Any, program: Any, arrays: list[np.ndarray]) -> None:
        if _field(program, "format", str) != FORMAT:
            raise GraphFileError("this is no saved graph")
        if _field(program, "version", int) != VERSION:
            raise GraphFileError(
                f"the graph was saved in version {brief(program['version'])} of the format; this "
                f"cytape reads version {VERSION}"
            )
        self.graph = graph
        self.program = program
        self.nodes = _field(program, "nodes", list)
        self.variables: list[Variable] = []
        self.decoder = Decoder(arrays, self.variables)
        self.variables += [
            Variable(
                self.decoder.take_array(_field(code, "value", int)),
                _field(code, "trainable", bool),
                _field(code, "name", str),
            )
            for code in _field(program, "variables", list)
        ]

    def load(self) -> None:
        graph, program = self.graph, self.program
        self.scopes = self.scope_numbers(_field(program, "scopes", list))
        self.contexts = [self.context(code) for code in _field(program, "contexts", list)]
        for node, code in enumerate(self.nodes):
            try:
                self.build(node, code)
            except Exception as error:
                raise GraphFileError(f"op {node}, {brief(code)}, is not valid: {error}") from error
        graph._names.restore(
            [checked_name(_field(code, "name", str)) for code in self.nodes],
            {node for node, code in enumerate(self.nodes) if _field(code, "named", bool)},
        )
        for number in _field(program, "named variables", list):
            graph.restore_variable(numbered(self.variables, number, "variable"))
        for pair in _field(program, "collections", list):
            name, items = listed(pair, 2)
            if type(name) is not str:
                raise GraphFileError(f"{brief(name)} is no name of a collection")
            for item in listed(items):
                graph.add_to_collection(name, self.item(item))
        if _field(program, "finalized", bool):
            graph.finalize()

    def scope_numbers(self, names: list[Any]) -> list[int]:
        if not names or names[0] != "":
            raise GraphFileError("the first scope has no name")
        for name in names[1:]:
            if type(name) is not str or not name.endswith("/"):
                raise GraphFileError(f"{brief(name)} is no name of a scope")
            checked_name(name[:-1])
        return self.graph._names.restore_scopes(names)

    def context(self, code: Any) -> Context:
        original = _field(code, "original", int)
        if original != -1:
            numbered(self.nodes, original, "op")
        return Context(
            numbered(self.scopes, _field(code, "scope", int), "scope"),
            self.controls(_field(code, "controls", list)),
            _field(code, "device", str),
            tuple(self.override(pair) for pair in _field(code, "overrides", list)),
            original,
            _field({"recorded": True, **code}, "recorded", bool),
        )

    def override(self, pair: Any) -> tuple[str, str]:
        op_type, name = listed(pair, 2)
        if type(op_type) is not str or type(name) is not str:
            raise GraphFileError(f"{brief(pair)} is no pair of names")
        return op_type, name

    def controls(self, nodes: list[Any]) -> tuple[int, ...]:
        for node in nodes:
            numbered(self.nodes, node, "op")
        return tuple(sorted(set(nodes)))

    def build(self, node: int, code: Any) -> None:
        graph = self.graph
        name = _field(code, "op", str)
        op = OPS.get(name)
        if op is None:
            raise GraphFileError(f"no op {brief(name)} is declared: import the module that does it")
        context = numbered(self.contexts, _field(code, "context", int), "context")
        if max((*context.controls, context.original), default=-1) >= node:
            raise GraphFileError("it is to wait for, or to differentiate, an op that follows")
        inputs = [self.tensor(symbol) for symbol in _field(code, "inputs", list)]
        attrs = {key: self.decoder.decode(x) for key, x in _field(code, "attrs", dict).items()}
        _check_call(op, len(inputs), attrs)
        graph.enter_context(graph.context_number(context))
        try:
            graph.build(op, *inputs, **attrs)
        finally:
            graph.enter_context(0)
        if graph.n_nodes != node + 1:
            raise GraphFileError("it consists of several ops")
        outputs = [_spec_code(graph.spec_of(symbol)) for symbol in graph.outputs_of(node)]
        if outputs != _field(code, "outputs", list):
            raise GraphFileError(
                f"its outputs are {brief(outputs)}, which the file calls {brief(code['outputs'])}"
            )
        if more := self.controls(_field(code, "controls", list)):
            graph.add_control_inputs(
                graph.operation_at(node), [graph.operation_at(other) for other in more]
            )
        if name == "VariableHandle":
            graph.restore_handle(attrs["variable"], graph.outputs_of(node)[0])

    def tensor(self, symbol: Any) -> Tensor:
        if type(symbol) is not int:
            raise GraphFileError(f"{brief(symbol)} is no tensor")
        return self.graph.tensor_at(symbol)

    def item(self, code: Any) -> Any:
        if type(code) is dict and list(code) == ["symbol"]:
            return self.tensor(code["symbol"])
        if type(code) is dict and list(code) == ["node"]:
            numbered(self.nodes, code["node"], "op")
            return self.graph.operation_at(code["node"])
        return self.decoder.decode(code)


def _spec_code(spec: Spec) -> list[Any]:
    return [spec.dtype.str, None if spec.shape is None else list(spec.shape)]


def _field(code: Any, name: str, kind: type) -> Any:
    """Return an entry of a JSON object, of a certain type."""
    if type(code) is not dict or type(code.get(name)) is not kind:
        wanted = f"an object with {name!r} ({kind.__name__})"
        raise GraphFileError(f"expected {wanted}, got {brief(code)}")
    return code[name]


def _check_call(op: Any, n_inputs: int, attrs: dict[str, Any]) -> None:
    """Raise if an op cannot be called with so many inputs and these arguments."""
    if isinstance(op, ElementwiseOp):
        if n_inputs != len(op.partials) or attrs:
            raise GraphFileError(f"it takes {len(op.partials)} inputs and no attributes")
        return
    try:
        signature = inspect.signature(op.forward)
    except ValueError:  # a function in C may have none
        return
    signature.bind(*[None] * n_inputs, **attrs)
