"""Views detached from their surroundings, connected to each other, and bypassed."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.connections import ControlOutputs, check_cios
from cytape.graph.editor.placeholders import make_placeholder_from_tensor
from cytape.graph.editor.rerouting import (
    Changes,
    follow_inputs,
    inputs_rerouted,
    merge,
    replaced_symbols,
    rerouted,
    views_of_one_graph,
)
from cytape.graph.editor.subgraph_view import SubGraphView
from cytape.graph.editor.view_makers import make_view
from cytape.graph.model.graph_variables import variable_handle_op
from cytape.tensor.tensor import Tensor

__all__ = [
    "bypass",
    "connect",
    "detach",
    "detach_control_inputs",
    "detach_control_outputs",
    "detach_inputs",
    "detach_outputs",
]


def detach_inputs(sgv: Any, control_inputs: bool = False) -> tuple[SubGraphView, list[Tensor]]:
    """Replace the inputs of a view by new placeholders, handles of variables excepted.

    Parameters
    ----------
    sgv
        An argument of `make_view`; a view is changed.
    control_inputs : bool, optional
        Whether its operations no longer wait for others outside, either.

    Returns
    -------
    SubGraphView
        With the placeholders as inputs.
    list of Tensor
        The placeholders.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> y = abs(graph.constant(-2.0, name="x"))
    >>> view, [placeholder] = detach_inputs(y.op)
    >>> placeholder.name, cytape.Session(graph).run(y, {placeholder: -3.0})
    ('geph__x_0:0', np.float64(3.0))
    """
    view = make_view(sgv)
    with _editing(view):
        edit = _Edit(view)
        placeholders = edit.detach_inputs()
        if control_inputs:
            edit.detach_control_inputs()
        edit.apply()
    return view, placeholders


def detach_outputs(
    sgv: Any, control_outputs: ControlOutputs | None = None
) -> tuple[SubGraphView, list[Tensor]]:
    """Replace the outputs of a view, for consumers outside, by new placeholders.

    Parameters
    ----------
    sgv
        An argument of `make_view`.
    control_outputs : ControlOutputs, optional
        If given, operations outside no longer wait for its operations, either.

    Returns
    -------
    SubGraphView
        With those outputs that were read.
    list of Tensor
        The placeholders, one for each of these.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.constant(-2.0, name="x")
    >>> y = abs(x)
    >>> view, [placeholder] = detach_outputs(x.op)
    >>> cytape.Session(graph).run(y, {placeholder: -3.0})
    np.float64(3.0)
    """
    view = make_view(sgv)
    _, control_outputs = check_cios(False, control_outputs)
    with _editing(view):
        edit = _Edit(view)
        read, placeholders = edit.detach_outputs()
        if control_outputs is not None:
            edit.detach_control_outputs(control_outputs)
        edit.apply()
    return read, placeholders


def detach(
    sgv: Any, control_inputs: bool = False, control_outputs: ControlOutputs | None = None,
    control_ios: ControlOutputs | None = None,
) -> tuple[SubGraphView, list[Tensor], list[Tensor]]:
    """Detach the inputs and the outputs of a view, in one edit.

    Parameters
    ----------
    sgv
        An argument of `make_view`; a view is changed.
    control_inputs, control_outputs, control_ios
        As `check_cios` takes it.

    Returns
    -------
    SubGraphView
    list of Tensor
        The placeholders in place of its inputs.
    list of Tensor
        Those in place of its outputs.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.constant(-2.0, name="x")
    >>> y = abs(x) * 2.0
    >>> view, before, after = detach(y.op.inputs[0].op)
    >>> [t.name for t in before + after]
    ['geph__x_0:0', 'geph__Absolute_0:0']
    """
    view = make_view(sgv)
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    with _editing(view):
        edit = _Edit(view)
        before = edit.detach_inputs()
        _, after = edit.detach_outputs()
        if control_inputs:
            edit.detach_control_inputs()
        if control_outputs is not None:
            edit.detach_control_outputs(control_outputs)
        edit.apply()
    return view, before, after


def detach_control_inputs(sgv: Any) -> None:
    """Remove the control inputs of a view's operations from outside.

    A view is what `make_view` takes.
    """
    edit = _Edit(make_view(sgv))
    edit.detach_control_inputs()
    edit.apply()


def detach_control_outputs(sgv: Any, control_outputs: ControlOutputs) -> None:
    """Remove control inputs from a view's operations to those outside.

    Parameters
    ----------
    sgv
        An argument of `make_view`.
    control_outputs : ControlOutputs
        Of the graph.
    """
    check_cios(False, control_outputs)
    edit = _Edit(make_view(sgv))
    edit.detach_control_outputs(control_outputs)
    edit.apply()


def connect(
    sgv0: Any, sgv1: Any, disconnect_first: bool = False
) -> tuple[SubGraphView, SubGraphView]:
    """Replace the inputs of the second of two views by the outputs of the first.

    Parameters
    ----------
    sgv0, sgv1
        Arguments of `make_view`, with as many outputs as inputs; the first one must not depend on
        the second. A view is changed.
    disconnect_first : bool, optional
        Whether other consumers of these outputs get placeholders.

    Returns
    -------
    SubGraphView, SubGraphView
        Both.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, y = graph.constant(2.0), graph.constant(3.0)
    >>> z = y * y
    >>> _ = connect(x.op, z.op)
    >>> cytape.Session(graph).run(z)
    np.float64(4.0)
    """
    view0, view1 = views_of_one_graph(sgv0, sgv1)
    with _editing(view0 or view1):
        edit = _Edit(view0)
        if disconnect_first:
            edit.detach_outputs()
        new = replaced_symbols(view1.graph, view0.output_symbols, view1.input_symbols, False)
        merge(edit.changes, inputs_rerouted(view1, view1, new))
        edit.apply()
    follow_inputs(view1, view1, new)
    return view0, view1


def bypass(sgv: Any) -> tuple[SubGraphView, list[Tensor]]:
    """Replace the outputs of a view, for their consumers, by its inputs.

    Parameters
    ----------
    sgv
        An argument of `make_view`; with as many inputs as outputs. A view is changed.

    Returns
    -------
    SubGraphView
        Cut out of the graph: it reads placeholders, and nothing reads it.
    list of Tensor
        The placeholders.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.constant(-2.0, name="x")
    >>> y = abs(x) * 2.0
    >>> _ = bypass(y.op.inputs[0].op)
    >>> cytape.Session(graph).run(y)
    np.float64(-4.0)
    """
    view = make_view(sgv)
    with _editing(view):
        edit = _Edit(view)
        new = replaced_symbols(view.graph, view.input_symbols, view.output_symbols, False)
        placeholders = edit.detach_inputs()
        merge(edit.changes, rerouted(view.graph, new, None, view.nodes))
        edit.apply()
    return view, placeholders


def _editing(view: SubGraphView) -> Any:
    if not view:
        raise ValueError("there is nothing to edit: the view is empty")
    return view.graph.all_or_nothing()


class _Edit:
    """Changes around a view, made in one edit."""

    def __init__(self, view: SubGraphView) -> None:
        self.view = view
        self.graph = view.graph
        self.changes: Changes = {}
        self._controls: dict[int, list[int]] = {}
        self._inputs: dict[int, int] = {}  # new input by old input

    def apply(self) -> None:
        """Apply the changes."""
        if self.graph is not None:
            self.graph.rewire(self.changes, self._controls)
        follow_inputs(self.view, self.view, self._inputs)

    def _is_handle(self, t: Tensor) -> bool:
        """Return whether a tensor is the handle of a variable, for which no value can be fed."""
        return self.graph.ops[self.graph.as_node(t)] is variable_handle_op

    def detach_inputs(self) -> list[Tensor]:
        ts = [t for t in self.view.inputs if not self._is_handle(t)]
        placeholders = [make_placeholder_from_tensor(t, graph=self.graph) for t in ts]
        self._inputs = dict(zip(
            map(self.graph.symbol_of, ts), map(self.graph.symbol_of, placeholders), strict=True))
        merge(self.changes, inputs_rerouted(self.view, self.view, self._inputs))
        return placeholders

    def detach_outputs(self) -> tuple[SubGraphView, list[Tensor]]:
        inside = set(self.view.nodes)
        read = self.view.remap_outputs([
            i for i, symbol in enumerate(self.view.output_symbols)
            if not inside.issuperset(self.graph.consumer_nodes(symbol))
            and not self._is_handle(self.graph.tensor_at(symbol))])
        placeholders = [make_placeholder_from_tensor(t, graph=self.graph) for t in read.outputs]
        new = dict(zip(read.output_symbols, map(self.graph.symbol_of, placeholders), strict=True))
        merge(self.changes, rerouted(self.graph, new, None, inside))
        return read, placeholders

    def detach_control_inputs(self) -> None:
        inside = set(self.view.nodes)
        for node in inside:
            before = self.graph.control_inputs_of(node)
            if not inside.issuperset(before):
                self._controls[node] = [each for each in before if each in inside]

    def detach_control_outputs(self, control_outputs: ControlOutputs) -> None:
        inside = set(self.view.nodes)
        for op in self.view.ops:
            for waiting in control_outputs.get(op):
                node = waiting.node
                if node not in inside:
                    before = self._controls.get(node, self.graph.control_inputs_of(node))
                    self._controls[node] = [each for each in before if each not in inside]
