"""cytape.cond and cytape.while_loop: branches and loops that depend on values of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.graph.control.conditional import call_branch
from cytape.graph.control.loops import Loop
from cytape.graph.tracing.bodies import given_symbols, like
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.ops.engine.symbolic import in_graph
from cytape.ops.shared.grouping import may_agree
from cytape.tensor import nest
from cytape.tensor.making import constant, convert_to_tensor
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.variable import Variable

__all__ = ["cond", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """Call one of two functions, as a tensor says.

    Where it has a value that is all. In a graph, or a function that is traced, both functions are
    traced and become one op, which runs one of them whenever the graph runs.

    Parameters
    ----------
    pred : Tensor or array
        Boolean, a scalar.
    true_fn, false_fn : callable
        Without arguments. What they return, tensors or structures of them, must agree in structure
        and dtypes, but not in shapes.
    name : str, optional
        Of the op in the graph.

    Returns
    -------
    Tensor or structure
        What the function returned. In a graph all is tensors, sparse results dense.

    Raises
    ------
    TypeError
        If `pred` is a Python bool (for which Python has ``if``) or not boolean, or the functions
        return tensors of different dtypes.
    ValueError
        If `pred` is no scalar, or the functions return different structures.

    Notes
    -----
    The gradient runs the branch again that was run; random numbers in it are not drawn again.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def decayed(x):
    ...     return cytape.cond(x > 0, lambda: np.exp(-x), lambda: 1.0 - x)
    >>> decayed(np.array(-2.0))
    Tensor(3.)
    >>> gradient = cytape.grad(decayed)
    >>> float(gradient(np.array(-2.0))), float(gradient(np.array(0.0)))
    (-1.0, -1.0)
    """
    for argument, f in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(f):
            raise TypeError(f"{argument} must be a function, got {type(f).__name__}")
    pred = _predicate("pred", pred)
    graph = current_graph() if pred.graph is None else current_graph() or pred.graph
    if graph is None:
        return true_fn() if pred else false_fn()
    with building_into(graph):
        functions = []
        for suffix, f in (("true", true_fn), ("false", false_fn)):
            body = FunctionGraph(f"{name or 'cond'}_{suffix}", graph)
            with unrecorded(), building_into(body):
                functions.append((body, call_traced(body, f)))
        (body, of_true), (other_body, of_false) = functions
        _check_structures("the results of true_fn and false_fn", of_true, of_false)
        leaves = _agreeing(body, nest.flatten(of_true), other_body, nest.flatten(of_false))
        traces, assigned = _branches([body, other_body], leaves)
        results = iter(call_branch(
            pred, traces, [trace.captured_inputs for trace in traces], assigned))
        _told(graph, name, assigned is not None)
    packed = [None if leaf is None else next(results) for leaf in leaves[0]]
    return nest.pack_sequence_as(of_true, packed)


def _predicate(argument: str, pred: Any) -> Tensor:
    if isinstance(pred, bool):
        raise TypeError(
            f"{argument} must be a boolean tensor or array, got the Python bool {pred}, for which "
            "Python has if and while"
        )
    tensor = convert_to_tensor(pred)
    if tensor.dtype != np.bool_:
        raise TypeError(f"{argument} must be boolean, got {tensor.dtype}: compare it, say with 0")
    if not may_agree(tensor.shape, ()):
        raise ValueError(f"{argument} must be a scalar, got shape {tensor.shape}")
    return tensor


def _check_structures(what: str, first: Any, second: Any) -> None:
    try:
        nest.assert_same_structure(first, second)
    except ValueError as error:
        raise ValueError(
            f"{what} must agree in structure, got {first!r} and {second!r}: {error}"
        ) from None


def _as_tensor(x: Any, dtype: Any = None) -> Tensor:
    """Return a tensor for what a function returned; a number in a dtype if it fits."""
    if isinstance(x, (int, float, complex)) and not isinstance(x, (bool, np.generic)) and (
            dtype is not None and np.result_type(dtype, x) == dtype):
        return constant(x, dtype)
    return convert_to_tensor(x)


def _agreeing(body: FunctionGraph, leaves: list, other_body: FunctionGraph, others: list) -> list:
    """Return tensors of both graphs that agree in dtypes, None where both functions say None."""
    first: list[Tensor | None] = []
    second: list[Tensor | None] = []
    for i, (x, y) in enumerate(zip(leaves, others, strict=True)):
        if x is None and y is None:
            first.append(None)
            second.append(None)
            continue
        if x is None or y is None:
            raise ValueError(
                "true_fn and false_fn must return the same structure, but of their results number "
                f"{i} one is None: {x!r} and {y!r}"
            )
        with unrecorded(), building_into(body):
            a = in_graph(body, _as_tensor(x, getattr(y, "dtype", None)))
        with unrecorded(), building_into(other_body):
            b = in_graph(other_body, _as_tensor(y, a.dtype))
        if a.dtype != b.dtype:
            raise TypeError(
                f"true_fn and false_fn must return the same dtypes, but their results number {i} "
                f"are {a.dtype} and {b.dtype}"
            )
        first.append(a)
        second.append(b)
    return [first, second]


def _branches(
    graphs: list[FunctionGraph], leaves: list
) -> tuple[list[ConcreteFunction], tuple | None]:
    """Make bodies of two graphs; with what their stateful nodes return if there are any."""
    given = [[graph.tensor_at(symbol) for symbol in given_symbols(graph)] for graph in graphs]
    assigned = None
    if any(graph.stateful for graph in graphs):
        variables = {**graphs[0].assigned, **graphs[1].assigned}
        assigned = tuple(variables.values())
    traces = []
    for i, graph in enumerate(graphs):
        outputs = [x for x in leaves[i] if x is not None]
        for j, tensors in enumerate(given):
            outputs += tensors if i == j else [_nothing(graph, tensor) for tensor in tensors]
        traces.append(ConcreteFunction(graph.name, graph, [], outputs))
    return traces, assigned


def _nothing(graph: FunctionGraph, tensor: Tensor) -> Tensor:
    """Return a constant that stands for what the other branch found."""
    shape = [extent or 0 for extent in tensor.shape or ()]
    return graph.constant(tensor_of(np.zeros(shape, tensor.dtype)))


def _told(graph: Any, name: str | None, stateful: bool) -> None:
    """Name the node that was built last, and have the graph forget what it has changed."""
    node = graph.n_nodes - 1
    if stateful:
        graph.changed(graph.ops[node], graph.attrs[node])
    outputs = graph.outputs_of(node)
    if name is not None and outputs:
        graph.give_name(graph.tensor_at(outputs[0]), name)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call a function on its own results, as long as another one says.

    Where all has a value this is Python's ``while``. In a graph, or a function that is traced, both
    functions are traced and become one op, which runs the loop whenever the graph runs.

    Parameters
    ----------
    cond : callable
        Called with the loop variables; returns a boolean scalar tensor: whether to go on.
    body : callable
        Called with the loop variables; returns their next values, of the same structure, shapes and
        dtypes.
    loop_vars : list, tuple or other structure of Tensor or array_like
        The start values. The parts of a list or tuple are separate arguments of the functions.
    maximum_iterations : int or Tensor, optional
    name : str, optional
        Of the op in the graph.

    Returns
    -------
    Tensor or structure
        The last values, as `loop_vars` is built.

    Raises
    ------
    TypeError
        If `cond` returns something else than a boolean tensor, or `body` changes a dtype.
    ValueError
        If `body` changes a shape or the structure.

    Notes
    -----
    The gradient of a loop in a graph keeps of each iteration what the gradient of the body reads,
    for which it may go through the loop once more, and then goes backward over this. What is the
    same in all iterations, because it comes from outside the loop, is not kept, and gets the sum of
    its gradients. Random numbers are
    not drawn again, and variables not assigned to again. A body that assigns to variables is traced
    twice.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def grown(v, a):
    ...     [v] = cytape.while_loop(lambda v: v < 100, lambda v: [v * a], [v])
    ...     return v
    >>> v, a = cytape.constant(2.0), cytape.constant(3.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch([v, a])
    ...     y = grown(v, a)
    >>> y, tape.gradient(y, [v, a])
    (Tensor(162.), [Tensor(81.), Tensor(216.)])
    """
    for argument, f in (("cond", cond), ("body", body)):
        if not callable(f):
            raise TypeError(f"{argument} must be a function, got {type(f).__name__}")
    if maximum_iterations is not None:
        maximum_iterations = _checked_maximum(maximum_iterations)
    program = _Program(cond, body, loop_vars)
    variables = program.starts
    graph = _graph_around([*variables, maximum_iterations])
    count = 0
    while graph is None and (maximum_iterations is None or count < maximum_iterations):
        pred = program.goes_on(variables)
        graph = pred.graph
        if graph is None:
            if not pred:
                break
            variables = program.step(variables)
            count += 1
    if graph is not None:
        limit = np.iinfo(np.int64).max if maximum_iterations is None else maximum_iterations
        with building_into(graph):
            variables = _build_loop(graph, program, variables, limit, count, name)
    return nest.pack_sequence_as(loop_vars, variables)


def _checked_maximum(maximum: Any) -> Any:
    """Return an int, or a tensor that has no value yet."""
    tensor = convert_to_tensor(maximum)
    if tensor.dtype.kind not in "iu" or not may_agree(tensor.shape, ()):
        raise TypeError(f"maximum_iterations must be an integer, got {maximum!r}")
    return int(tensor) if tensor.graph is None else tensor


def _graph_around(tensors: list) -> Any:
    """Return the graph that a loop over some tensors is a part of, None if they have values."""
    graph = current_graph()
    for tensor in tensors:
        if graph is None and isinstance(tensor, Tensor):
            graph = tensor.graph
    return graph


class _Program:
    """The functions of a loop, called with lists of tensors and checked."""

    def __init__(self, cond: Callable, body: Callable, loop_vars: Any) -> None:
        self._cond, self._body, self._loop_vars = cond, body, loop_vars
        self._unpacked = isinstance(loop_vars, (list, tuple)) and not hasattr(loop_vars, "_fields")
        self.starts = list(map(convert_to_tensor, nest.flatten(loop_vars)))

    def _call(self, f: Callable, variables: list[Tensor]) -> Any:
        structure = nest.pack_sequence_as(self._loop_vars, variables)
        arguments = tuple(structure) if self._unpacked else (structure,)
        graph = current_graph()
        return call_traced(graph, f, arguments) if isinstance(graph, FunctionGraph) else (
            f(*arguments))

    def goes_on(self, variables: list[Tensor]) -> Tensor:
        return _predicate("the result of cond", self._call(self._cond, variables))

    def step(self, variables: list[Tensor]) -> list[Tensor]:
        results = self._call(self._body, variables)
        if self._unpacked:
            kind = type(self._loop_vars)
            results = kind(results) if isinstance(results, (list, tuple)) else kind([results])
        _check_structures("loop_vars and the results of body", self._loop_vars, results)
        tensors = []
        for i, (x, start) in enumerate(zip(nest.flatten(results), self.starts, strict=True)):
            tensor = _as_tensor(x, start.dtype)
            if tensor.dtype != start.dtype:
                raise TypeError(
                    f"body changes the dtype of loop variable {i} from {start.dtype} to "
                    f"{tensor.dtype}"
                )
            if not may_agree(tensor.shape, start.shape):
                raise ValueError(
                    f"body changes the shape of loop variable {i} from {start.shape} to "
                    f"{tensor.shape}"
                )
            tensors.append(tensor)
        return tensors


def _build_loop(
    graph: Any, program: _Program, variables: list[Tensor], limit: Any, count: int, name: str | None
) -> list[Tensor]:
    """Add the node of a loop that has made some iterations already."""
    starts = [in_graph(graph, variable) for variable in variables]
    symbols = list(map(graph.symbol_of, starts))
    if isinstance(limit, int):
        limit = graph.constant(np.asarray(limit - count, np.int64))
    assigned: dict[int, Variable] = {}
    while True:
        body = _body_graph(f"{name or 'while'}_body", graph, assigned)
        with unrecorded(), building_into(body):
            arguments = like(body, graph, symbols)
            arguments_at = list(map(body.symbol_of, arguments))
            body.starts = list(zip(starts, arguments_at, strict=True))
            results = [in_graph(body, x) for x in program.step(arguments)]
        if body.assigned.keys() == assigned.keys():
            break
        # Each iteration must look at what the one before assigned, even before it assigns itself.
        assigned = body.assigned
    condition = _body_graph(f"{name or 'while'}_cond", graph, assigned)
    with unrecorded(), building_into(condition):
        more_arguments = like(condition, graph, symbols)
        goes_on = in_graph(condition, program.goes_on(more_arguments))
    assigned = condition.assigned
    given = [body.tensor_at(symbol) for symbol in given_symbols(body)]
    trace = ConcreteFunction(body.name, body, arguments_at, results + given)
    condition_trace = ConcreteFunction(
        condition.name, condition, list(map(condition.symbol_of, more_arguments)), [goes_on])
    stateful = bool(body.stateful or condition.stateful)
    outputs = Loop(
        trace, limit, starts, [], trace.captured_inputs, condition_trace,
        condition_trace.captured_inputs,
        assigned=tuple(assigned.values()) if stateful else None).call()
    _told(graph, name, stateful)
    return outputs[1 : 1 + len(starts)]


def _body_graph(name: str, graph: Any, assigned: dict[int, Variable]) -> FunctionGraph:
    body = FunctionGraph(name, graph)
    body.assigned.update(assigned)
    return body
