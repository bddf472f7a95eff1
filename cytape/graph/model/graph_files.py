"""Files of graphs: saving and loading.

A file is a container (see `cytape.graph.model.container`) with a program in JSON:

- ``format``: "cytape graph"; ``version``: of the format
- ``variables``: objects with ``name``, ``trainable`` and ``value``, the number of an array
- ``scopes``: full names, each with a slash at the end; the first is ""
- ``contexts``: settings of nodes: ``scope``, by number; ``controls``, a list of nodes;
  ``device``; ``overrides``, pairs of an op type and a name; ``original``, a node or -1;
    ``recorded``, whether recorders track it (true where an older file does not say)
- ``nodes``, in the order of their making: ``op``, its type; ``name``, in full, and whether it was
  ``named`` by the user; ``inputs``, a list of symbols; ``attrs``, encoded as
  `cytape.graph.model.encoding` says; ``outputs``, pairs of dtype and shape; ``context``, by number;
  and further ``controls``
- ``named variables``: those that `Graph.get_variable` knows, by number
- ``collections``: pairs of a name and a list, whose items are encoded as attributes are, or are
  ``{"symbol": 3}`` or ``{"node": 3}``
- ``finalized``: whether the graph is finalized
- ``functions``, the bodies of branches and loops, each after those that it runs itself: objects
  with a ``name``; ``scopes``, ``contexts`` and ``nodes`` as above; ``inputs`` and ``outputs``,
    lists of symbols; ``history of``, the number of the function that returns a prefix of the same
    results, or -1; an older file has none of them

Loading builds the graph anew, op by op: types are looked up among the declared ops, calls are
checked as users' calls are, and shapes and dtypes are inferred and compared with the stored ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from cytape.errors import GraphFileError
from cytape.graph.model import container
from cytape.graph.model.encoded_program import (
    GraphBuilder,
    field,
    graph_code,
    spec_code,
    symbol_codes,
)
from cytape.graph.model.encoding import (
    MOST_NESTED,
    Decoder,
    Encoder,
    body_type,
    brief,
    listed,
    numbered,
)
from cytape.graph.model.operation import Operation
from cytape.ops.calls.dispatch import Lowering
from cytape.ops.calls.late import upper
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

FORMAT = "cytape graph"
VERSION = 1


# ---- saving


def save(graph: Any, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file.

    Raises
    ------
    GraphFileError
        If something in the graph cannot be saved.
    """
    encoder = Encoder(lambda body: _function_code(body, encoder))
    symbols = symbol_codes(graph)
    program = {
        "format": FORMAT,
        "version": VERSION,
        **graph_code(graph, encoder),
        "named variables": [encoder.variable(v) for v in graph.named_variables],
        "collections": [
            [name, [
                _item_code(graph, name, item, encoder, symbols)
                for item in graph.get_collection(name)]]
            for name in graph.get_all_collection_keys()
        ],
        "finalized": bool(graph.finalized),
        "functions": encoder.functions,
    }
    program["variables"] = [
        {"name": v.name, "trainable": bool(v.trainable), "value": encoder.array(v.numpy())}
        for v in encoder.variables
    ]
    container.write(path, program, encoder.arrays)


def _function_code(body: Any, encoder: Encoder) -> dict[str, Any]:
    try:
        if not body.is_closed:
            raise GraphFileError("it has captures, a gradient or a structure of its own")
        symbols = symbol_codes(body.graph)
        return {
            "name": body.name,
            **graph_code(body.graph, encoder),
            "inputs": [symbols[symbol] for symbol in body.input_symbols],
            "outputs": [symbols[symbol] for symbol in body.output_symbols],
            "history of": encoder.number_of(body.history_of),
        }
    except GraphFileError as error:
        raise GraphFileError(f"function {body.name!r} cannot be saved: {error}") from error


def _item_code(
    graph: Any, name: Any, item: Any, encoder: Encoder, symbols: Sequence[int]
) -> Any:
    if isinstance(item, Tensor) and item.graph is graph:
        return {"symbol": symbols[graph.symbol_of(item)]}
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
    """Build the graph of a file into one without operations, for `Graph.load`; return it."""
    program, arrays = container.read(path)
    try:
        with building_into(None), unrecorded(), np.errstate(all="ignore"):
            _Loader(graph, program, arrays).load()
    except GraphFileError:
        raise
    except Exception as error:  # ops may raise any error for invalid attributes
        raise GraphFileError(f"{os.fspath(path)!r} holds no valid graph: {error}") from error
    return graph


class _Loader:
    """Builder of a graph from a program; see the top of this file."""

    def __init__(self, graph: Any, program: Any, arrays: list[np.ndarray]) -> None:
        if field(program, "format", str) != FORMAT:
            raise GraphFileError("this is not a saved graph")
        if field(program, "version", int) != VERSION:
            raise GraphFileError(
                f"the graph was saved in version {brief(program['version'])} of the format; this "
                f"cytape reads version {VERSION}"
            )
        self.program = program
        self.arrays = arrays
        self.variables: list[Variable] = []
        self.functions: list[Any] = []
        self.depths: list[int] = []  # per function: depth of nesting
        self.decoder = Decoder(arrays, self.variables, self.function)
        self.variables += [
            Variable(
                self.decoder.take_array(field(code, "value", int)),
                field(code, "trainable", bool),
                field(code, "name", str),
            )
            for code in field(program, "variables", list)
        ]
        for number, code in enumerate(field({"functions": [], **program}, "functions", list)):
            try:
                self.deepest = 0
                self.functions.append(self.built_function(code))
                self.depths.append(self.deepest + 1)
            except Exception as error:
                raise GraphFileError(
                    f"function {number}, {brief(code)}, is not valid: {error}") from error
        self.graph = graph
        self.builder = GraphBuilder(graph, program, self.decoder)

    def function(self, number: Any) -> Any:
        """Return a function that has already been built: functions cannot be recursive."""
        function = numbered(self.functions, number, "function")
        self.deepest = max(self.deepest, self.depths[number])
        return function

    def built_function(self, code: Any) -> Any:
        graph = upper("FunctionGraph")(field(code, "name", str), None)
        GraphBuilder(graph, code, self.decoder).build_all()
        if self.deepest == MOST_NESTED:
            raise GraphFileError(f"more than {MOST_NESTED} functions are in one another")
        inputs, outputs = listed(code.get("inputs")), listed(code.get("outputs"))
        symbols = range(graph.n_symbols)
        for symbol in inputs:
            numbered(symbols, symbol, "tensor")
            if graph.ops[graph.node_of(symbol)].lowering != Lowering.UNFED:
                raise GraphFileError(f"its input {symbol} is not a placeholder")
        if len(set(inputs)) < len(inputs):
            raise GraphFileError("two inputs are the same")
        for symbol in outputs:
            numbered(symbols, symbol, "tensor")
        body = body_type()(graph.name, graph, inputs, list(map(graph.tensor_at, outputs)))
        if (number := field(code, "history of", int)) != -1:
            loop = numbered(self.functions, number, "function")
            if not _returns_more(
                    body, code, loop, self.program["functions"][number], self.arrays):
                raise GraphFileError(f"it does not compute all results of function {number}")
            body.history_of = loop
        return body

    def load(self) -> None:
        graph, program = self.graph, self.program
        self.builder.build_all()
        for number in field(program, "named variables", list):
            graph.restore_variable(numbered(self.variables, number, "variable"))
        for pair in field(program, "collections", list):
            name, items = listed(pair, 2)
            if type(name) is not str:
                raise GraphFileError(f"{brief(name)} is not the name of a collection")
            for item in listed(items):
                graph.add_to_collection(name, self.item(item))
        if field(program, "finalized", bool):
            graph.finalize()

    def item(self, code: Any) -> Any:
        if type(code) is dict and list(code) == ["symbol"]:
            return self.builder.tensor(code["symbol"])
        if type(code) is dict and list(code) == ["node"]:
            numbered(self.builder.nodes, code["node"], "op")
            return self.graph.operation_at(code["node"])
        return self.decoder.decode(code)


def _returns_more(
    body: Any, code: Any, other: Any, other_code: Any, arrays: list[np.ndarray]
) -> bool:
    """Return whether a body's results begin with those of another one, by the same calls."""
    graph, other_graph = body.graph, other.graph
    specs, other_specs = [
        [spec_code(each.graph.spec_of(symbol)) for symbol in each.input_symbols]
        for each in (body, other)
    ]
    if specs != other_specs or len(body.output_symbols) < len(other.output_symbols):
        return False
    same = dict(zip(other.input_symbols, body.input_symbols, strict=True))
    pairs = list(zip(other.output_symbols, body.output_symbols, strict=False))
    while pairs:
        theirs, symbol = pairs.pop()
        if theirs in same:
            if same[theirs] != symbol:
                return False
            continue
        same[theirs] = symbol
        node, other_node = graph.node_of(symbol), other_graph.node_of(theirs)
        inputs, other_inputs = graph.inputs_of(node), other_graph.inputs_of(other_node)
        if (
            graph.ops[node] is not other_graph.ops[other_node]
            or graph.output_position(symbol) != other_graph.output_position(theirs)
            or len(inputs) != len(other_inputs)
            or not _same_code(
                code["nodes"][node]["attrs"], other_code["nodes"][other_node]["attrs"], arrays)
        ):
            return False
        pairs += zip(other_inputs, inputs, strict=True)
    return True


def _same_code(code: Any, other: Any, arrays: list[np.ndarray]) -> bool:
    if type(code) is not type(other) or (
            isinstance(code, (dict, list)) and len(code) != len(other)):
        return False
    if isinstance(code, list):
        return all(_same_code(x, y, arrays) for x, y in zip(code, other, strict=True))
    if not isinstance(code, dict):
        return code == other
    if list(code) == list(other) and list(code) in (["array"], ["scalar"]):
        array, other_array = (arrays[number] for each in (code, other) for number in each.values())
        return (array.dtype, array.shape, array.tobytes()) == (
            other_array.dtype, other_array.shape, other_array.tobytes())
    return all(key in other and _same_code(x, other[key], arrays) for key, x in code.items())
