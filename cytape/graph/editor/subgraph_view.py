"""SubGraphView: a set of operations of a graph as a function with inputs and outputs."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from cytape.graph.editor.connections import boundary_symbols, get_consuming_ops
from cytape.graph.editor.listed_arguments import (
    graph_of,
    make_list_of_op,
    make_list_of_t,
    symbols_of,
)
from cytape.graph.editor.walks import get_walks_union_ops
from cytape.graph.model.operation import Operation
from cytape.tensor.tensor import Tensor

__all__ = ["SubGraphView"]


class SubGraphView:
    """A set of operations of a graph, with the tensors that it reads and computes for others.

    A view does not change the graph, and its methods return new views. Functions that edit the
    graph update the inputs of the views that they are given.

    Parameters
    ----------
    inside_ops : Graph, Operation or iterable of Operation, optional
    passthrough_ts : Tensor or iterable of Tensor, optional
        Tensors that are both input and output; tensors connected to the operations are ignored.

    Raises
    ------
    ValueError
        If they belong to several graphs.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = abs(x * x)
    >>> view = SubGraphView([y.op.inputs[0].op, y.op])
    >>> print(view)
    SubGraphView of 2 operations
    ops: Multiply, Absolute
    inputs: x:0
    outputs: Absolute:0
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = list(dict.fromkeys(make_list_of_op(inside_ops)))
        ts = make_list_of_t(passthrough_ts)
        self._graph = graph_of([*self._ops, *ts])
        self._passthroughs: list[int] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._map_default(True, True)
        connected = {*self._inputs, *self._outputs, *self._boundary()[2]}
        self._passthroughs = [
            symbol for symbol in dict.fromkeys(symbols_of(ts)) if symbol not in connected]
        self._inputs += self._passthroughs
        self._outputs += self._passthroughs

    def _boundary(self) -> tuple[list[int], list[int], list[int]]:
        return boundary_symbols(self._graph, self.nodes)

    def _map_default(self, inputs: bool, outputs: bool) -> None:
        into, out, _ = self._boundary()
        if inputs:
            self._inputs = into + self._passthroughs
        if outputs:
            self._outputs = out + self._passthroughs

    def _tensors(self, symbols: Iterable[int]) -> tuple[Tensor, ...]:
        return tuple(map(self._graph.tensor_at, symbols)) if self._graph is not None else ()

    # ---- contents

    @property
    def graph(self) -> Any:
        """The graph, None for an empty view."""
        return self._graph

    @property
    def ops(self) -> tuple[Operation, ...]:
        """The operations."""
        return tuple(self._ops)

    @property
    def nodes(self) -> list[int]:
        """Their positions in the graph."""
        return [op.node for op in self._ops]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that are inputs."""
        return self._tensors(self._inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that are outputs."""
        return self._tensors(self._outputs)

    @property
    def passthroughs(self) -> tuple[Tensor, ...]:
        """Tensors that are input and output, and not connected to any of the operations."""
        return self._tensors(self._passthroughs)

    @property
    def connected_inputs(self) -> tuple[Tensor, ...]:
        """The inputs that some of the operations read."""
        return self._tensors(x for x in self._inputs if x not in self._passthroughs)

    @property
    def connected_outputs(self) -> tuple[Tensor, ...]:
        """The outputs that some of the operations compute."""
        return self._tensors(x for x in self._outputs if x not in self._passthroughs)

    @property
    def input_symbols(self) -> list[int]:
        """The symbols of the inputs."""
        return list(self._inputs)

    @property
    def output_symbols(self) -> list[int]:
        """The symbols of the outputs."""
        return list(self._outputs)

    def __bool__(self) -> bool:
        return self._graph is not None

    def op(self, op_id: int) -> Operation:
        """Return an operation.

        Parameters
        ----------
        op_id : int
            Which one of `ops`.
        """
        return self._ops[op_id]

    def find_op_by_name(self, op_name: str) -> Operation:
        """Return the operation of a name.

        Raises
        ------
        ValueError
            If the view has none.
        """
        for op in self._ops:
            if op.name == op_name:
                return op
        raise ValueError(f"there is no op {op_name!r} in the view, which has {_names(self._ops)}")

    def is_passthrough(self, t: Tensor) -> bool:
        """Return whether a tensor is both input and output."""
        return t.graph is self._graph and self._graph.symbol_of(t) in self._passthroughs

    def input_index(self, t: Tensor) -> int:
        """Return the position of a tensor among the inputs.

        Raises
        ------
        ValueError
            If it is none of them.
        """
        return _position(self._inputs, t, self.inputs, "input")

    def output_index(self, t: Tensor) -> int:
        """Return the position of a tensor among the outputs, the first one if there are several.

        As `input_index`, it raises a ValueError if it is none of them.
        """
        return _position(self._outputs, t, self.outputs, "output")

    def consumers(self) -> list[Operation]:
        """Return the operations that read outputs, and do not belong to the view.

        Returns
        -------
        list of Operation
            Each once.
        """
        inside = set(self._ops)
        return [op for op in get_consuming_ops(self.outputs) if op not in inside]

    def __str__(self) -> str:
        if not self:
            return "SubGraphView of nothing"
        return "\n".join([
            f"SubGraphView of {len(self._ops)} operations", f"ops: {_names(self._ops)}",
            f"inputs: {_names(self.inputs)}", f"outputs: {_names(self.outputs)}"])

    # ---- other views

    def copy(self) -> SubGraphView:
        """Return a view of the same operations; nothing is copied in the graph."""
        view = copy.copy(self)
        view.assign_from(self)
        return view

    def assign_from(self, other: SubGraphView) -> None:
        """Assign another view to this one."""
        self._graph = other._graph
        self._ops = list(other._ops)
        self._passthroughs = list(other._passthroughs)
        self._inputs = list(other._inputs)
        self._outputs = list(other._outputs)

    def remap_default(
        self, remove_input_map: bool = True, remove_output_map: bool = True
    ) -> SubGraphView:
        """Return a view with the inputs and outputs that follow from the graph.

        Parameters
        ----------
        remove_input_map, remove_output_map : bool, optional
            Whether this holds for inputs, and for outputs.
        """
        view = self.copy()
        view._map_default(remove_input_map, remove_output_map)
        return view

    def remap_inputs(self, new_input_indices: Iterable[int | Tensor]) -> SubGraphView:
        """Return a view with some of the inputs, in some order.

        Parameters
        ----------
        new_input_indices : iterable of int or Tensor
            Which of the inputs, each at most once.

        Raises
        ------
        ValueError
            If one occurs twice, or there is no such input.
        """
        return self.remap(new_input_indices=new_input_indices)

    def remap_outputs(self, new_output_indices: Iterable[int | Tensor]) -> SubGraphView:
        """Return a view with some of the outputs, in some order.

        Parameters
        ----------
        new_output_indices : iterable of int or Tensor
            Which of the outputs; one may occur several times.

        Raises
        ------
        ValueError
            If there is no such output.
        """
        return self.remap(new_output_indices=new_output_indices)

    def remap(
        self, new_input_indices: Iterable[int | Tensor] | None = None,
        new_output_indices: Iterable[int | Tensor] | None = None,
    ) -> SubGraphView:
        """Return a view with some of the inputs and of the outputs.

        Parameters
        ----------
        new_input_indices, new_output_indices : iterable of int or Tensor, optional
            As `remap_inputs` and `remap_outputs` take them; by default they stay as they are.

        Raises
        ------
        ValueError
            If there is no such input or output, or an input occurs twice.
        """
        view = self.copy()
        if new_input_indices is not None:
            positions = _positions(new_input_indices, self.input_index, len(self._inputs), "input")
            if len(set(positions)) < len(positions):
                raise ValueError(f"an input can occur only once, got {positions}")
            view._inputs = [self._inputs[i] for i in positions]
        if new_output_indices is not None:
            positions = _positions(
                new_output_indices, self.output_index, len(self._outputs), "output")
            view._outputs = [self._outputs[i] for i in positions]
        return view

    def remap_outputs_make_unique(self) -> SubGraphView:
        """Return a view with each output once."""
        view = self.copy()
        view._outputs = list(dict.fromkeys(self._outputs))
        return view

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """Return a view with each output repeated once per operation that reads it."""
        view = self.remap_outputs_make_unique()
        view._outputs = [
            symbol for symbol in view._outputs for _ in self._graph.consumer_nodes(symbol)]
        return view

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """Return a view without the operations that are not connected to inputs or outputs.

        Parameters
        ----------
        control_inputs : bool, optional
            Whether those count as connected for which others wait.
        """
        view = self.copy()
        used = set(get_walks_union_ops(
            self.connected_inputs, self.connected_outputs, within_ops=self._ops,
            control_inputs=control_inputs))
        view._ops = [op for op in self._ops if op in used]
        return view

    def with_inputs_replaced(self, symbols: dict[int, int]) -> SubGraphView:
        """Return a view with new inputs, after an edit.

        Parameters
        ----------
        symbols : dict of int to int
            What stands in the place of symbols.
        """
        view = self.copy()
        view._inputs = [symbols.get(symbol, symbol) for symbol in self._inputs]
        passing = {symbol: symbols.get(symbol, symbol) for symbol in self._passthroughs}
        view._passthroughs = list(passing.values())
        view._outputs = [passing.get(symbol, symbol) for symbol in self._outputs]
        return view

    def with_elements_replaced(
        self, graph: Any, op: Callable[[Operation], Any], symbol: Callable[[int], int]
    ) -> SubGraphView:
        """Return a view of the copies of the operations and tensors.

        Parameters
        ----------
        graph : Graph
        op : callable
            From the operations to others, or None.
        symbol : callable
            From the symbols of inputs and outputs to others.
        """
        view = SubGraphView()
        view._graph = graph
        view._ops = list(dict.fromkeys(filter(None, map(op, self._ops))))
        view._passthroughs = list(map(symbol, self._passthroughs))
        view._inputs = list(map(symbol, self._inputs))
        view._outputs = list(map(symbol, self._outputs))
        return view

    def __enter__(self) -> SubGraphView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass


def _names(items: Iterable[Any]) -> str:
    return ", ".join(item.name for item in items) or "none"


def _position(symbols: list[int], t: Tensor, ts: Sequence[Tensor], what: str) -> int:
    [t] = make_list_of_t(t)
    symbol = t.graph.symbol_of(t)
    if symbol not in symbols or t.graph is not ts[0].graph:
        raise ValueError(f"{t!r} is not an {what} of the view; its {what}s are {_names(ts)}")
    return symbols.index(symbol)


def _positions(
    indices: Iterable[int | Tensor], position: Callable[[Tensor], int], count: int, what: str
) -> list[int]:
    found = [position(i) if isinstance(i, Tensor) else operator.index(i) for i in indices]
    for i in found:
        if not 0 <= i < count:
            raise ValueError(f"the view has {count} {what}s, there is no {what} {i}")
    return found
