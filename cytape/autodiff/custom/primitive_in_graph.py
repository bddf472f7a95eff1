"""Calls of primitives with symbolic tensors: ops of a graph that call the function in each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.custom.custom_gradient import custom_gradient
from cytape.autodiff.custom.custom_jvp import custom_jvp
from cytape.autodiff.wrapped_calls import is_tensor
from cytape.ops.calls.symbolic import graph_for
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.nest import flatten, flatten_up_to, map_structure, pack_sequence_as
from cytape.tensor.recording.state import anybody_records
from cytape.tensor.tensor import Tensor, data_of

__all__ = ["as_floats", "call_in_graph", "directions", "flattened", "observing"]


def observing(tensors: Sequence[Any]) -> bool:
    """Return whether a rule must compute with tensors, because its results are tracked."""
    return anybody_records() or graph_for(tensors) is not None


def as_floats(x: Any) -> Any:
    """Return an array of integers or booleans, which has no derivative, as one of float64."""
    return x.astype(float) if type(x) is np.ndarray and x.dtype.kind in "biu" else x


def flattened(args: tuple, argnums: Sequence[int], gradients: Sequence) -> list:
    """Return per leaf of arguments its gradient, None where there is none."""
    found = dict(zip(argnums, gradients, strict=True))
    return [gradient for i, arg in enumerate(args) for gradient in (
        len(flatten(arg)) * [None] if found.get(i) is None else flatten_up_to(arg, found[i]))]


def directions(args: tuple, moves: Callable[[Any], bool], tangents: Iterable) -> Any:
    """Return arguments with tangents in place of all numbers: zeros for those that do not move."""
    remaining = iter(tangents)
    return map_structure(
        lambda x: next(remaining) if moves(x)
        else 0 * x if isinstance(x, (np.ndarray, np.number, int, float, complex)) else x, args)


def call_in_graph(op: Any, args: tuple, kwargs: dict) -> Any:
    """Call a `PrimitiveOp` with symbolic tensors among the leaves of its arguments.

    The rules become part of the graph if they use only functions of cytape. The function does not:
    it gets plain arrays.
    """
    tensors = [x for x in flatten(args) if is_tensor(x)]
    argnums = tuple([
        i for i, arg in enumerate(args) if any(map(is_tensor, flatten(arg)))])

    def packed(xs: Iterable) -> Any:
        remaining = iter(xs)
        return map_structure(lambda x: next(remaining) if is_tensor(x) else x, args)

    def seen(xs: Sequence[Tensor]) -> Any:
        return packed(xs if observing(xs) else [data_of(x)[()] for x in xs])

    def called(*xs: Tensor) -> Any:  # a symbolic tensor raises, so this is called in each run
        ans = op.fun(*packed([data_of(x)[()] for x in xs]), **kwargs)
        return map_structure(lambda x: convert_to_tensor(as_floats(x)), ans)

    def rule(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple:
        given, moving = seen(primals), directions(args, is_tensor, tangents)
        ans = op(*given, **kwargs)
        return ans, op.jvps(argnums, [moving[i] for i in argnums], ans, given, kwargs)

    def with_gradient(*xs: Tensor) -> tuple:
        def grad_fn(*gradients: Tensor) -> list:
            given = seen(xs)
            ans = op(*given, **kwargs)
            found = op.gradients(argnums, ans, given, kwargs, pack_sequence_as(ans, gradients))
            return [g for g, x in zip(flattened(args, argnums, found), flatten(args), strict=True)
                    if is_tensor(x)]

        return called(*xs), grad_fn

    called.__name__ = with_gradient.__name__ = op.name
    if op.vjps is None and op.jvps is not None:
        by_tangents = custom_jvp(called)
        by_tangents.defjvp(rule)
        return by_tangents(*tensors)
    return custom_gradient(with_gradient)(*tensors)
