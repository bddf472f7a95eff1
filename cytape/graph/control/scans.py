"""`cytape.map_fn`, `scan`, `foldl` and `foldr`: loops over the elements of tensors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from cytape.graph.control.control_flow import name_result, traced_body
from cytape.graph.control.function_checks import (
    as_count,
    as_tensor,
    check_structures,
    lent,
    next_values,
    require_function,
    without_gradients,
)
from cytape.graph.control.while_op import Loop, ragged_places
from cytape.graph.tracing.body_tools import given_symbols, like
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.functions import function
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.calls.symbolic import graph_for, in_graph
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.joining import concatenate, stack, unstack
from cytape.ops.python.progress_reports import progress_of
from cytape.ops.shaping import size
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, stop_recording
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.tensor import Tensor, made_whole
from cytape.tensor.values.spec import Spec, symbolic_spec

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def map_fn(
    fn: Callable[[Any], Any], elems: Any, dtype: Any = None, *, fn_output_signature: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, name: str | None = None,
) -> Any:
    """Call a function on each element of tensors, and stack its results.

    If all arguments have values this is a Python loop, and the results are tensors. In a graph or a
    traced function, `fn` is traced once, and the graph has one op for the loop. A traced function
    that is called with arrays returns arrays.

    Parameters
    ----------
    fn : callable
        Called with slices along the first axis, structured as `elems`.
    elems : array_like or structure
        All with first axes of one length.
    dtype, fn_output_signature : dtype, Spec or structure of these, optional
        Spec of the function's result, which is checked. Optional.
    parallel_iterations : int, optional
        At least 1. It has no effect: calls are made one after the other.
    back_prop : bool, optional
        Whether derivatives go through the calls. If not, the results are constants to them.
    name : str, optional
        Of the op in the graph.

    Returns
    -------
    Tensor or structure
        Structured as the function's result.

    Raises
    ------
    TypeError
        If the function returns dtypes other than it was said, or that change from call to call.
    ValueError
        If the tensors have different lengths or none, or it returns other structures.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> cytape.map_fn(lambda row: row / np.sum(row), x).numpy().round(3)
    array([[0.333, 0.667],
           [0.429, 0.571]])
    >>> sums, products = cytape.map_fn(lambda pair: (pair[0] + pair[1], pair[0] * pair[1]), (x, x))
    >>> products.shape
    (2, 2)
    """
    signature = dtype if fn_output_signature is None else fn_output_signature
    sequence = _Sequence("map_fn", fn, elems, parallel_iterations, back_prop, False, name)

    def step(_: Any, slices: Any) -> tuple[list, Any]:
        result = fn(slices)
        leaves_of_operand(result)  # registers its dataclasses
        return [], _as_signed(result, signature)

    return sequence.run(step, [])[1]


def scan(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, *, reverse: bool = False,
    parallel_iterations: int = 10, back_prop: bool = True, name: str | None = None,
    progress: Callable[[int, int | None], Any] | bool | None = None,
) -> Any:
    """Accumulate the elements of tensors by a function, and stack all accumulated values.

    It runs, and returns tensors or arrays, like `map_fn`.

    Parameters
    ----------
    fn : callable
        Called with the accumulated value and a slice along the first axis, structured as
        `initializer` and `elems`; returns the next accumulated value, of the same structure, dtypes
        and shapes.
    elems : array_like or structure
        All with first axes of one length.
    initializer : array_like or structure, optional
        The first accumulated value. By default the first element, which is then the first result.
    reverse : bool, optional
        Whether to begin with the last element.
    parallel_iterations, back_prop, name
        As for `map_fn`.
    progress : callable or bool, optional
        Called with the number of calls of `fn` that are done and of all (None if unknown), at most
        ten times a second and at the end. True: a bar, by tqdm if that is installed.

    Returns
    -------
    Tensor or structure
        Structured as `initializer`, with a first axis as long as that of `elems`.

    Raises
    ------
    TypeError
        If the function changes a dtype.
    ValueError
        If it changes a shape or the structure, or there are no elements and no initializer.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> cytape.scan(lambda total, x: total + x, x).numpy()
    array([1., 3., 6.])
    >>> cytape.scan(lambda y, x: y * x, x, np.array(10.0), reverse=True).numpy()
    array([60., 60., 30.])
    """
    sequence = _Sequence("scan", fn, elems, parallel_iterations, back_prop, reverse, name)
    first, start = sequence.started(initializer)
    step, reports = sequence.accumulate(start, keep=True), progress_of(progress, sequence.length)
    _, found = sequence.run(step if reports is None else reports.counting(step), start)
    if reports is not None:
        reports.anywhere("end")
    if initializer is None:
        parts = [(stack([x]), y) for x, y in zip(first, found, strict=True)]
        found = [concatenate(part[::-1] if reverse else part) for part in parts]
        found = without_gradients(found) if not back_prop else found
    return nest.pack_sequence_as(elems if initializer is None else initializer, found)


def foldl(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, *,
    parallel_iterations: int = 10, back_prop: bool = True, name: str | None = None,
) -> Any:
    """Accumulate the elements of tensors by a function, from the first to the last.

    Returns the last result of `scan`, with the same parameters.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> float(cytape.foldl(lambda y, x: 10 * y + x, np.array([1.0, 2.0, 3.0])))
    123.0
    """
    return _folded(
        _Sequence("foldl", fn, elems, parallel_iterations, back_prop, False, name), initializer)


def foldr(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, *,
    parallel_iterations: int = 10, back_prop: bool = True, name: str | None = None,
) -> Any:
    """Accumulate the elements of tensors by a function, from the last to the first.

    Returns the last result of `scan` with ``reverse=True``, with the same parameters.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> float(cytape.foldr(lambda y, x: 10 * y + x, np.array([1.0, 2.0, 3.0])))
    321.0
    """
    return _folded(
        _Sequence("foldr", fn, elems, parallel_iterations, back_prop, True, name), initializer)


def _folded(sequence: _Sequence, initializer: Any) -> Any:
    _, start = sequence.started(initializer)
    last, _ = sequence.run(sequence.accumulate(start, keep=False), start)
    return nest.pack_sequence_as(
        sequence.elems if initializer is None else initializer, last)


class _Sequence:
    """Tensors over whose elements a loop iterates.

    Attributes
    ----------
    elems : structure
        As it was passed.
    """

    def __init__(
        self, kind: str, fn: Callable, elems: Any, parallel_iterations: int, back_prop: bool,
        reverse: bool, name: str | None,
    ) -> None:
        require_function("fn", fn)
        as_count("parallel_iterations", parallel_iterations)
        self.elems = elems
        self._kind, self._fn, self._name = kind, fn, name
        self._back_prop, self._reverse = back_prop, reverse
        self._structure: Any = elems
        self._tensors = list(map(convert_to_tensor, leaves_of_operand(elems)))
        if not self._tensors:
            raise ValueError("elems must have at least one tensor")
        places = nest.paths(elems, "elems")
        shape = self._tensors[0].shape
        for place, tensor in zip(places, self._tensors, strict=True):
            if tensor.shape == ():
                raise ValueError(f"{place} must have a first axis, got a scalar: "
                                 "write scan(fn, elems, initializer), where JAX has scan(f, init, "
                                 "xs), and return the state only")
            if shape is not None and tensor.shape is not None and (
                    not may_agree(tensor.shape[:1], shape[:1])):
                raise ValueError(
                    "elems must have first axes of one length, got "
                    f"{shape[0]} for {places[0]} and {tensor.shape[0]} for {place}"
                )

    def started(self, initializer: Any) -> tuple[list[Tensor], list[Tensor]]:
        """Return the initial value, by default the first elements, and the first step."""
        if initializer is not None:
            self._accumulated, name = initializer, "initializer"
            start = list(map(convert_to_tensor, leaves_of_operand(initializer)))
            first: list[Tensor] = []
        else:
            if any(tensor.shape is not None and tensor.shape[0] == 0 for tensor in self._tensors):
                raise ValueError("elems has no elements, so an initializer is needed as the result")
            self._accumulated, name = self.elems, "elems"
            first = start = [
                made_whole(tensor[-1 if self._reverse else 0]) for tensor in self._tensors]
            self._tensors = [
                tensor[:-1] if self._reverse else tensor[1:] for tensor in self._tensors]
        self._places = nest.paths(self._accumulated, name)
        return first, start

    def accumulate(self, start: list[Tensor], keep: bool) -> Callable:
        """Return the function of one step, which checks the accumulated value."""
        specs = [tensor.spec for tensor in start]

        def step(accumulated: list[Tensor], slices: Any) -> tuple[list[Tensor], Any]:
            result = self._fn(nest.pack_sequence_as(self._accumulated, accumulated), slices)
            check_structures(
                "the accumulated value and the results of fn", self._accumulated, result)
            result = next_values("fn", self._places, nest.flatten(result), specs)
            return result, list(result) if keep else []

        return step

    def run(self, step: Callable, start: list[Tensor]) -> tuple[list[Tensor], Any]:
        """Return the last accumulated value, and the stacks of the steps' other results."""
        graph = graph_for([*self._tensors, *start])
        with nullcontext() if self._back_prop else stop_recording():
            if graph is not None:
                with building_into(graph):
                    found = self._in_graph(graph, step, start)
            elif self._tensors[0].shape[0] == 0:  # the step is traced for the specs of its results
                empty = function(lambda tensors, start: self._with(tensors).run(step, start))
                found = empty(self._tensors, start)
            else:
                found = self._in_python(step, start)
        return found if self._back_prop else without_gradients(found)

    def _with(self, tensors: list[Tensor]) -> _Sequence:
        self._tensors = tensors
        return self

    def _slices(self, slices: Any) -> Any:
        return nest.pack_sequence_as(self._structure, list(slices))

    def _in_python(self, step: Callable, accumulated: list[Tensor]) -> tuple[list[Tensor], Any]:
        kept: list[list[Any]] = []
        structure: Any = None
        rows = list(zip(*[map(made_whole, unstack(x)) for x in self._tensors], strict=True))
        for row in rows[::-1] if self._reverse else rows:
            accumulated, results = step(lent(accumulated), self._slices(row))
            if not kept:
                structure = results
            check_structures("the results of fn", structure, results)
            kept.append(lent(nest.flatten(results)))
        if self._reverse:
            kept.reverse()
        places = nest.paths(structure, "its result")
        specs = [as_tensor(x).spec for x in kept[0]]
        columns = zip(*[next_values("fn", places, row, specs) for row in kept], strict=True)
        return lent(accumulated), nest.pack_sequence_as(structure, list(map(stack, columns)))

    def _in_graph(self, graph: Any, step: Callable, start: list[Tensor]) -> tuple[list, Any]:
        tensors = [in_graph(graph, tensor) for tensor in self._tensors]
        start = [in_graph(graph, tensor) for tensor in start]

        def build(body: FunctionGraph) -> tuple[list[int], list[Tensor], int, Any]:
            arguments = like(body, graph, map(graph.symbol_of, start))
            slices = [body.argument(x.shape and x.shape[1:], x.dtype) for x in tensors]
            accumulated, structure = call_traced(
                body, step, (lent(arguments), self._slices(lent(slices))))
            results = list(map(as_tensor, nest.flatten(structure)))
            return (list(map(body.symbol_of, (*arguments, *slices))),
                    [in_graph(body, x) for x in (*accumulated, *results)], len(results), structure)

        body, (symbols, outputs, n_results, structure) = traced_body(
            f"{self._name or self._kind}_fn", graph, self._fn, build)
        given = [body.tensor_at(symbol) for symbol in given_symbols(body)]
        trace = ConcreteFunction(body.name, body, symbols, outputs + given)
        count = in_graph(graph, self._count(tensors))
        _, *values = Loop(
            trace, count, start, tensors, trace.captured_inputs, reverse=self._reverse,
            ragged_kept=ragged_places(trace, len(start), n_results),
            assigned=tuple(body.assigned.values()) if body.stateful else None).call()
        name_result(graph, self._name, values)
        n, length = len(start), self.length
        stacks = [ensure_shape(x, x.shape and (length, *x.shape[1:]))
                  for x in values[n : n + n_results]]
        return values[:n], nest.pack_sequence_as(structure, stacks)

    @property
    def length(self) -> int | None:
        """The number of slices of each tensor, None if it is unknown."""
        lengths = [x.shape[0] for x in self._tensors if x.shape is not None]
        return next((n for n in lengths if n is not None), None)

    def _count(self, tensors: list[Tensor]) -> Tensor:
        """Return the number of slices of each tensor, as a tensor."""
        if all([x.shape is not None and x.shape[0] is not None for x in tensors]):
            return convert_to_tensor(np.asarray(tensors[0].shape[0], np.int64))
        return size(tensors[0], 0) if len(tensors) == 1 else (
            same_length_op(*tensors, kind=self._kind))


def _same_length(*arrays: np.ndarray, kind: str) -> np.ndarray:
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(f"{kind} takes tensors of one length, got {lengths}")
    return np.asarray(lengths[0], np.int64)


same_length_op = nondifferentiable(
    "SameLength", _same_length, shape_rule=lambda *tensors, kind: symbolic_spec((), np.int64))


def _as_signed(result: Any, signature: Any) -> Any:
    """Return a result cast to the given dtypes, or raise."""
    if signature is None:
        return result
    check_structures("fn_output_signature and the results of fn", signature, result)
    specs = [s if isinstance(s, Spec) else symbolic_spec(None, s) for s in nest.flatten(signature)]
    tensors = []
    for place, x, spec in zip(
            nest.paths(result, "its result"), nest.flatten(result), specs, strict=True):
        tensor = as_tensor(x, spec.dtype)
        if tensor.dtype != spec.dtype or not may_agree(tensor.shape, spec.shape):
            raise TypeError(
                f"fn returns {tensor.dtype} of shape {tensor.shape} for {place}, where "
                f"fn_output_signature has {spec.dtype} of shape {spec.shape}"
            )
        tensors.append(tensor)
    return nest.pack_sequence_as(result, tensors)
