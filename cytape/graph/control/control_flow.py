"""`cytape.cond` and `cytape.while_loop`: branches and loops that depend on values of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from cytape.graph.control.checkpointed_while import Checkpoints
from cytape.graph.control.cond_op import call_branch
from cytape.graph.control.function_checks import (
    as_count,
    as_predicate,
    as_tensor,
    call,
    check_structures,
    lent,
    require_function,
    without_gradients,
)
from cytape.graph.control.loop_program import Program, settled
from cytape.graph.control.while_op import Loop, ragged_places
from cytape.graph.model.graph_variables import assigned_variables
from cytape.graph.tracing.body_tools import given_symbols
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.functions import Function
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.calls.symbolic import graph_for, in_graph
from cytape.ops.creation import constant_op
from cytape.ops.python.progress_reports import progress_of
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, stop_recording, unrecorded
from cytape.tensor.structures import leaves_of_operand, leaves_of_result
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.variable import Variable

__all__ = ["body_graph", "call_now", "cond", "either", "name_result", "scanned", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """Call one of two functions, depending on a tensor.

    If the predicate has a value, the chosen function is called directly. In a graph or a traced
    function, both functions are traced and become one op, which runs one of them in each run of the
    graph. A traced function that is called with arrays returns arrays.

    Parameters
    ----------
    pred : bool, Tensor or array
        Boolean, a scalar. A Python bool chooses a function immediately, as Python's ``if`` does,
        also where a graph is built. Predicates of tensors are combined by ``&``, ``|`` and ``~``;
        Python's ``and``, ``or`` and ``not`` ask for values, which tensors of a graph do not have.
    true_fn, false_fn : callable
        Functions without arguments. Their results, tensors or structures of them, must agree in
        structure and dtypes, but not in shapes.
    name : str, optional
        Of the op in the graph.

    Returns
    -------
    Tensor or structure
        The function's result. In a graph all results are dense tensors.

    Raises
    ------
    TypeError
        If `pred` is not boolean, `name` is no string, or the functions return tensors of different
        dtypes.
    ValueError
        If `pred` is no scalar, or the functions return different structures.

    Notes
    -----
    The gradient of a `cond` in a graph keeps the values that the gradient of the taken branch
    reads; it may run that branch a second time. Random numbers are not drawn again.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def decayed(x):
    ...     return cytape.cond(x > 0, lambda: np.exp(-x), lambda: 1.0 - x)
    >>> decayed(np.array(-2.0))
    np.float64(3.0)
    >>> gradient = cytape.grad(decayed)
    >>> float(gradient(np.array(-2.0))), float(gradient(np.array(0.0)))
    (-1.0, -1.0)
    """
    for argument, f in (("true_fn", true_fn), ("false_fn", false_fn)):
        require_function(argument, f)
    if name is not None and not isinstance(name, str):
        raise TypeError(
            f"name must be a string, got {type(name).__name__}: the functions take no operands, so "
            "let them close over what they read (lambda: f(x))")
    return either(
        pred if isinstance(pred, bool) else as_predicate("pred", pred), true_fn, false_fn, name)


def either(
    pred: bool | Tensor,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    name: str | None,
    called: tuple[str, str] = ("true_fn", "false_fn"),
) -> Any:
    """Call one of two functions; error messages name them as the caller's."""
    if isinstance(pred, bool) or (graph := graph_for([pred])) is None:
        return call_now(called[0], true_fn) if pred else call_now(called[1], false_fn)
    with building_into(graph):
        functions = []
        for suffix, word, f in zip(("true", "false"), called, (true_fn, false_fn), strict=True):
            body = FunctionGraph(f"{name or 'cond'}_{suffix}", graph).under_overrides()
            with unrecorded(), building_into(body):
                functions.append((body, call(word, f)))
                leaves_of_operand(functions[-1][1])  # registers its dataclasses
        (body, of_true), (other_body, of_false) = functions
        who = " and ".join(called)
        check_structures(f"the results of {who}", of_true, of_false)
        of_true, of_false = (
            settled(of_true, of_false, "result"), settled(of_false, of_true, "result"))
        leaves = _agreeing(who, body, of_true, other_body, of_false)
        traces, assigned = _branches([body, other_body], leaves)
        results = call_branch(
            pred, traces, [trace.captured_inputs for trace in traces], assigned)
        name_result(graph, name, results)
    remaining = iter(results)
    packed = [None if leaf is None else next(remaining) for leaf in leaves[0]]
    return nest.pack_sequence_as(of_true, packed)


def call_now(called: str, f: Callable[[], Any]) -> Any:
    """Call a function; results that are captured tensors or arrays are copied, as in a graph."""
    result = call(called, f)
    return nest.pack_sequence_as(result, lent(leaves_of_result(result)))


def _agreeing(
    who: str, body: FunctionGraph, result: Any, other_body: FunctionGraph, other: Any
) -> list:
    """Return tensors of both graphs with equal dtypes, None if both functions return None."""
    with unrecorded(), building_into(body):
        leaves = nest.flatten(result)
    with unrecorded(), building_into(other_body):
        others = nest.flatten(other)
    first: list[Tensor | None] = []
    second: list[Tensor | None] = []
    for place, x, y in zip(nest.paths(result, "result"), leaves, others, strict=True):
        if x is None and y is None:
            first.append(None)
            second.append(None)
            continue
        if x is None or y is None:
            raise ValueError(
                f"{who} must return the same structure, but one of their results at {place} is "
                f"None: {x!r} and {y!r}"
            )
        with unrecorded(), building_into(body):
            a = in_graph(body, as_tensor(x, getattr(y, "dtype", None)))
        with unrecorded(), building_into(other_body):
            b = in_graph(other_body, as_tensor(y, a.dtype))
        if a.dtype != b.dtype:
            raise TypeError(
                f"{who} must return the same dtypes, but their results at {place} are {a.dtype} "
                f"and {b.dtype}: convert one, say with astype"
            )
        first.append(a)
        second.append(b)
    return [first, second]


def _branches(
    graphs: list[FunctionGraph], leaves: list
) -> tuple[list[ConcreteFunction], tuple | None]:
    """Make bodies of two graphs, with the results of stateful nodes as further outputs."""
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
    """Return a constant in place of a result of the other branch."""
    shape = [extent or 0 for extent in tensor.shape or ()]
    return graph.constant(tensor_of(np.zeros(shape, tensor.dtype)))


def name_result(graph: Any, name: str | None, outputs: Sequence[Tensor]) -> None:
    """Set the user's name of the node of a branch or a loop."""
    if name is not None and outputs:
        graph.give_name(outputs[0], name)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    *,
    maximum_iterations: Any = None,
    back_prop: bool = True,
    parallel_iterations: int = 10,
    return_same_structure: bool = True,
    checkpoints: Any = None,
    memory_budget: int | None = None,
    name: str | None = None,
    progress: Callable[[int, int | None], Any] | bool | None = None,
) -> Any:
    """Call a function on its own results, while a condition holds.

    If all arguments have values, this is Python's ``while``, and the results are tensors. In a
    graph or a traced function, both functions are traced and become one op, which runs the loop in
    each run of the graph. A traced function that is called with arrays returns arrays.

    Parameters
    ----------
    cond : callable
        Called with the loop variables; returns whether to go on, a boolean scalar (made of several
        by ``&``, ``|`` and ``~``).
    body : callable
        Called with the loop variables; returns their next values, of the same structure, shapes and
        dtypes.
    loop_vars : list, tuple or other structure of Tensor, array_like or TensorArray
        The start values. The parts of a list or tuple are separate arguments of the functions.
        A Python number is a tensor of int64, float64 or complex128, as ``asarray`` makes one of
        it; ``numpy.float32(0)`` is one of float32.
    shape_invariants : structure, optional
        The invariant parts of the shapes, structured as `loop_vars`: for each a shape in which
        extents that may change are None, or a `Spec` (``Spec.of(None, dtype)`` where the rank may
        change).
        None: the shape of the start value.
    maximum_iterations : int or Tensor, optional
    back_prop : bool, optional
        Whether derivatives go through the loop. If not, the results are constants to them.
    parallel_iterations : int, optional
        At least 1. It has no effect: iterations run one after the other.
    return_same_structure : bool, optional
        Whether the result is built as `loop_vars` if this is a list or tuple of one; if not it is
        the last value itself.
    checkpoints : int or "auto", optional
        The number of states (values of all loop variables) that the gradient keeps at a time; it
        recomputes the others from these, by the schedule of Griewank and Walther. "auto": the
        numbers of states, and of iterations with intermediate values, that together need the least
        memory while every iteration runs only twice. By default the residuals of every iteration
        are kept.
    memory_budget : int, optional
        Instead of `checkpoints`: how many bytes both may take.
    name : str, optional
        Of the op in the graph.
    progress : callable or bool, optional
        Called with the number of iterations that are done and of all (`maximum_iterations`, or
        None), at most ten times a second and at the end. True: a bar, by tqdm if that is installed.

    Returns
    -------
    Tensor or structure
        The last values, as `loop_vars` is built.

    Raises
    ------
    TypeError
        If `cond` returns something else than a boolean, or `body` changes a dtype.
    ValueError
        If `cond` returns no scalar, or `body` changes a shape or the structure; if both
        `checkpoints` and `memory_budget` are given, or less than 1.
    GraphError
        In the gradient, if one state and one iteration take more than `memory_budget`.

    Notes
    -----
    The gradient of a loop in a graph keeps, for each iteration, the values that the gradient of the
    body reads; it may run the loop a second time to get them. Loop-invariant values are not kept
    per iteration; their gradients are summed. The gradient of a start value that no gradient passes
    through is zero, not None; without iterations it is the gradient of the result. Random numbers
    are not drawn again, and variables not assigned to again. A body that assigns to variables, or
    is the first to write to a `TensorArray`, is traced twice. With `checkpoints` or `memory_budget`
    eager loops are traced, too; derivatives of the gradient keep everything.

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
    require_function("cond", cond)
    require_function("body", body)
    as_count("parallel_iterations", parallel_iterations)
    reports = progress_of(progress, maximum_iterations)
    if maximum_iterations is not None:
        maximum_iterations = _checked_maximum(maximum_iterations)
    kept = _checked_checkpoints(checkpoints, memory_budget)
    body = body if reports is None else reports.counting(body)
    program = Program(cond, body, loop_vars, shape_invariants)
    with nullcontext() if back_prop else stop_recording():
        if kept is not None and not (
                graph_for([*program.starts, maximum_iterations]) or current_graph()):
            # A tape would keep all iterations.
            result = Function(lambda variables: _looped(
                Program(cond, body, variables, shape_invariants), maximum_iterations, kept, name
            ))(program.packed(program.starts))
        else:
            result = _looped(program, maximum_iterations, kept, name)
    if reports is not None:
        reports.anywhere("end")
    if not back_prop:
        result = without_gradients(result)
    if not return_same_structure and isinstance(loop_vars, (list, tuple)) and len(loop_vars) == 1:
        return result[0]
    return result


def scanned(
    step: Callable[[Any], Any], state: Any, n: int, snapshots: int, progress: Any
) -> Any:
    """Add `checkpointed_scan` to a graph."""
    _, state = while_loop(
        lambda i, _: True, lambda i, state: (i + 1, step(state)), (np.array(0), state),
        maximum_iterations=n, checkpoints=snapshots, progress=progress)
    return state


def _looped(
    program: Program, maximum: Any, checkpoints: Checkpoints | None, name: str | None
) -> Any:
    """Run a loop; add it to a graph when its condition becomes symbolic."""
    graph = graph_for([*program.starts, maximum]) or current_graph()
    variables = lent(program.starts) if graph is None else program.starts
    count = 0
    while graph is None and (maximum is None or count < maximum):
        pred = program.goes_on(variables)
        graph = pred.graph
        if graph is None:
            if not pred:
                break
            variables = lent(program.step(variables))
            count += 1
    if graph is None:
        return program.packed(variables)
    limit = np.iinfo(np.int64).max if maximum is None else maximum
    with building_into(graph):
        program = program.in_graph(variables)
        return program.packed(_build_loop(
            graph, program, limit, count, checkpoints, name))


def _checked_checkpoints(checkpoints: Any, memory_budget: Any) -> Checkpoints | None:
    if checkpoints is not None and memory_budget is not None:
        raise ValueError("give checkpoints or memory_budget, not both: each says what is kept")
    if memory_budget is not None:
        return Checkpoints(nbytes=as_count("memory_budget", memory_budget))
    if isinstance(checkpoints, str) and checkpoints != "auto":
        raise ValueError(f"checkpoints is an integer or 'auto', got {checkpoints!r}")
    if checkpoints is None or checkpoints == "auto":
        return None if checkpoints is None else Checkpoints()
    return Checkpoints(as_count("checkpoints", checkpoints, " or 'auto'"))


def _checked_maximum(maximum: Any) -> Any:
    """Return a limit as an int, or as a symbolic tensor."""
    tensor = convert_to_tensor(maximum)
    if tensor.dtype.kind not in "iu" or not may_agree(tensor.shape, ()):
        raise TypeError(f"maximum_iterations must be an integer, got {maximum!r}")
    return int(tensor) if tensor.graph is None else tensor


def _build_loop(
    graph: Any, program: Program, limit: Any, count: int, checkpoints: Checkpoints | None,
    name: str | None,
) -> list[Tensor]:
    """Add the node of a loop that has already run some iterations."""
    starts: list[Any] = [in_graph(graph, start) for start in program.starts]
    if isinstance(limit, int):
        limit = graph.constant(np.asarray(limit - count, np.int64))
    def build(body: FunctionGraph) -> tuple[list[int], list[Tensor]]:
        arguments = program.arguments(body)
        arguments_at = list(map(body.symbol_of, arguments))
        body.starts = list(zip(starts, arguments_at, strict=True))
        return arguments_at, [in_graph(body, x) for x in program.step(lent(arguments))]

    body, (arguments_at, results) = traced_body(
        f"{name or 'while'}_body", graph, program.body, build)
    assigned = body.assigned
    condition = body_graph(f"{name or 'while'}_cond", graph, assigned)
    with unrecorded(), building_into(condition):
        more_arguments = program.arguments(condition)
        goes_on = in_graph(condition, program.goes_on(lent(more_arguments)))
    assigned = condition.assigned
    given = [body.tensor_at(symbol) for symbol in given_symbols(body)]
    trace = ConcreteFunction(body.name, body, arguments_at, results + given)
    condition_trace = ConcreteFunction(
        condition.name, condition, list(map(condition.symbol_of, more_arguments)), [goes_on])
    stateful = bool(body.stateful or condition.stateful)
    node = condition.node_of(condition.symbol_of(goes_on))
    always = (condition.ops[node] is constant_op and bool(condition.attrs[node]["value"])
              and not condition.stateful)
    outputs = Loop(
        trace, limit, starts, [], trace.captured_inputs, None if always else condition_trace,
        () if always else condition_trace.captured_inputs,
        ragged_kept=ragged_places(trace, len(starts), 0),
        assigned=tuple(assigned.values()) if stateful else None, checkpoints=checkpoints).call()
    name_result(graph, name, outputs)
    return outputs[1 : 1 + len(starts)]


def traced_body(
    name: str, graph: Any, f: Callable, build: Callable[[FunctionGraph], Any]
) -> tuple[FunctionGraph, Any]:
    """Trace the body of a loop, again if necessary, to find the variables that it changes.

    An iteration may read a variable before it assigns to it, and must get the value of the
    iteration before: then the body is traced again. Inner loops begin with the changes of the first
    trace.

    Parameters
    ----------
    name : str
    graph : Graph
        The graph that the loop is a part of.
    f : callable
        The user's function.
    build : callable
        Called with the body, into which it builds.

    Returns
    -------
    body : FunctionGraph
    results : object
        Of the last call of `build`.
    """
    code = getattr(f, "__code__", None)
    around = _changes_around(graph)
    changes: dict[Any, dict[int, Variable]] = {} if around is None else around
    assigned = changes.get(code, {})
    is_guess = bool(assigned)
    while True:
        body = body_graph(name, graph, assigned)
        body.changes_by_code = changes
        with unrecorded(), building_into(body):
            results = build(body)
        found = _assigned_in(body) if is_guess else body.assigned
        if found.keys() == assigned.keys():
            break
        assigned, is_guess = found, False
    changes[code] = assigned
    if around is None:
        changes.clear()
    return body, results


def _changes_around(graph: Any) -> dict[Any, dict[int, Variable]] | None:
    while isinstance(graph, FunctionGraph):
        if graph.changes_by_code is not None:
            return graph.changes_by_code
        graph = graph.outer_graph
    return None


def _assigned_in(body: FunctionGraph) -> dict[int, Variable]:
    return {variable.id: variable for node in body.stateful
            for variable in assigned_variables(body.ops[node], body.attrs[node])}


def body_graph(name: str, graph: Any, assigned: dict[int, Variable]) -> FunctionGraph:
    """Return a graph inside of another one for a function that changes some variables."""
    body = FunctionGraph(name, graph).under_overrides()
    body.assigned.update(assigned)
    return body
