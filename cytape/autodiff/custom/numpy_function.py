"""numpy_function: calls of functions of arrays, in eager programs and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.custom.bound_rule import bound
from cytape.autodiff.detached_rules import call_rule
from cytape.autodiff.wrapped_calls import (
    Arguments,
    is_tensor,
    name_of,
    owned,
    value_of,
    values_at_call,
)
from cytape.errors import InvalidGradientError
from cytape.ops.adjoints.missing_derivatives import missing_gradients
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.engine.custom_op import custom_call
from cytape.ops.python.python_ops import PythonCall, checked_results, described, python_values_op
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.recording.state import anybody_records, building_into, current_graph
from cytape.tensor.structures import leaves_of_arguments, leaves_of_operand
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.values.spec import Spec, symbolic_spec

__all__ = ["numpy_function"]


def numpy_function(
    f: Callable[..., Any], *args: Any, specs: Any, grad_func: Callable[..., Any] | None = None
) -> Any:
    """Call a function of arrays; in a graph or a trace, at each run.

    Parameters
    ----------
    f : callable
        Any Python function: of NumPy, SciPy, another library. It is called with `args`, with arrays
        in place of tensors and variables.
    *args : Tensor, Variable, array_like or structure of them
        Other objects are passed unchanged.
    specs : Spec or structure of Spec
        Shapes and dtypes of the results of `f`. Shapes may have unknown extents (None).
    grad_func : callable, optional
        The gradient of `f`: called with `args`, tensors for all tensors and arrays, then one
        gradient per array in the result of `f` (zeros for unused ones). It returns one gradient per
        argument (per leaf, where arguments are structures); None for no gradient. It must use
        functions that cytape can differentiate; `numpy_function` is one of them.

    Returns
    -------
    Tensor or structure of Tensor
        Results of `f`, packed as `specs` is. Plain arrays in, plain arrays out, unless a graph is
        being built.

    Raises
    ------
    TypeError
        If `f` is not callable, or a leaf of `specs` is not a spec.
    ValueError
        When `f` is called, if its results differ from `specs` in structure, shape or dtype.
    NotDifferentiableError
        If a derivative is needed, without `grad_func`. A derivative that is multiplied by zero is
        not needed.
    InvalidGradientError
        In a derivative, if `grad_func` returns a wrong number of gradients.

    Notes
    -----
    The call is one op. Each run of a graph calls `f` once, in the order of ops with side effects
    (in a `Graph`, if a fetch depends on it; in a `function` always); derivatives do not call it
    again. `custom_jvp` and `custom_gradient` around it can define its derivative, too. Graphs with
    such an op cannot be saved.

    `grad_func` reads its closure like the `grad_fn` of `custom_gradient`. Forward mode transposes
    it. In a graph it is traced when the call is built, and may capture tensors, as constants.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import cytape
    >>> def erf(x):
    ...     return cytape.numpy_function(
    ...         np.vectorize(math.erf, otypes=[float]), x, specs=x.spec,
    ...         grad_func=lambda x, dy: dy * 2 / math.sqrt(math.pi) * np.exp(-x * x))
    >>> slope = cytape.function(cytape.grad(erf))
    >>> slope(cytape.constant(0.0))
    Tensor(1.12837917)
    """
    for what, function in (("f", f), ("grad_func", grad_func)):
        if not callable(function) and (what == "f" or function is not None):
            raise TypeError(f"{what} must be a function, got {type(function).__name__}")
    leaves = [
        leaf.to_tensor() if isinstance(leaf, IndexedSlices)
        else tensor_of(leaf.copy()) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
        for leaf in leaves_of_arguments(args)
    ]
    arguments = Arguments(args, leaves)
    call = _NumpyCall(f, arguments.without_tensors(), specs)
    inputs = arguments.tensors
    graph = current_graph() or next((x.graph for x in inputs if x.graph is not None), None)
    with building_into(graph):
        if graph is not None:  # before copies, since it must capture the caller's tensors
            inputs = [in_graph(graph, value_of(x)) for x in inputs]
        inputs = values_at_call(inputs)
    if graph is not None:
        results = graph.build(python_values_op, *inputs, call=call)
    else:
        results = call.run(*map(data_of, inputs))
        if not any(map(is_tensor, nest.flatten(args))):
            return nest.pack_sequence_as(specs, results)
        results = list(map(tensor_of, results))

    rule = grad_func
    if grad_func is not None and (graph is not None or anybody_records()):
        rule = bound(f"the grad_func of {call.name}", grad_func)

    def backward(*gradients: Tensor) -> Any:
        if rule is None:
            return missing_gradients(_no_gradient(call.name), gradients, inputs)
        seeds = owned(gradients)
        return call_rule(
            f"the grad_func of {call.name}", lambda: found(rule, seeds), seeds,
            lambda: inputs)

    def found(rule: Callable, seeds: Any) -> list:
        returned = nest.flatten(rule(*owned(arguments.packed(inputs)), *seeds))
        if len(returned) != len(leaves):
            raise InvalidGradientError(
                f"the grad_func of {call.name} must return {len(leaves)} gradients (None where "
                f"there is none), got {len(returned)}"
            )
        return [
            gradient
            for gradient, moves in zip(returned, arguments.is_tensor, strict=True)
            if moves
        ]

    if inputs and results:
        results = custom_call(call.name, results, inputs, backward)
    return nest.pack_sequence_as(specs, results)


class _NumpyCall(PythonCall):
    """One call."""

    def __init__(self, f: Callable, arguments: Arguments, specs: Any) -> None:
        self.name = name_of(f)
        self._f = f
        self._arguments = arguments
        leaves = leaves_of_operand(specs)
        for leaf in leaves:
            if not isinstance(leaf, Spec):
                raise TypeError(
                    "specs must be a cytape.Spec or a structure of them, which describes the "
                    f"result of {self.name}; got {leaf!r}"
                )
        self._specs = list(map(described, leaves))
        self._structure = nest.pack_sequence_as(specs, [None] * len(leaves))

    def result_specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the results."""
        return [symbolic_spec(*spec) for spec in self._specs]

    def run(self, *arrays: np.ndarray) -> list:
        """Call the function."""
        with building_into(None):
            result = self._f(*self._arguments.packed(arrays))
            if not self._specs:
                return []
            try:
                nest.assert_same_structure(result, self._structure)
            except ValueError as error:
                raise ValueError(
                    f"the result of {self.name} does not have the specs given for it: "
                    f"{error}") from None
            return checked_results(self.name, nest.flatten(result), self.result_specs(()))


def _no_gradient(name: str) -> str:
    return (
        f"the call of {name} by numpy_function has no gradient, so it cannot be differentiated: "
        "give it one by grad_func=..., or wrap it in cytape.custom_jvp or custom_gradient; or, if "
        "it is to count as a constant, stop_gradient its arguments"
    )
