"""Calls of primitives with symbolic tensors: ops of a graph that call the function in each run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from cytape.autodiff.custom.custom_gradient import custom_gradient
from cytape.autodiff.custom.custom_jvp import custom_jvp
from cytape.autodiff.wrapped_calls import Arguments, is_tensor
from cytape.ops.calls.symbolic import graph_for
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.nest import flatten, flatten_up_to, map_structure, pack_sequence_as
from cytape.tensor.recording.state import anybody_records
from cytape.tensor.tensor import Tensor, data_of

__all__ = ["as_floats", "call_in_graph", "flattened", "observing", "standing_still"]


def observing(tensors: Sequence[Any]) -> bool:
    """Return whether a rule must compute with tensors, because its results are tracked."""
    return anybody_records() or graph_for(tensors) is not None


def as_floats(ans: Any) -> Any:
    """Return a result without floating point parts, which has no derivative, as float64."""
    kinds = {x.dtype.kind if type(x) is np.ndarray else "f" for x in flatten(ans)}
    return map_structure(lambda x: x.astype(float), ans) if kinds <= set("biu") else ans


def flattened(args: tuple, argnums: Sequence[int], gradients: Sequence) -> list:
    """Return per leaf of arguments its gradient, None where there is none."""
    found = dict(zip(argnums, gradients, strict=True))
    return [gradient for i, arg in enumerate(args) for gradient in (
        len(flatten(arg)) * [None] if found.get(i) is None else _parts(arg, found[i]))]


def _parts(arg: Any, gradient: Any) -> list:
    """Return the gradients of an argument's leaves; that of a list may be an array of them."""
    sequences = list, tuple, np.ndarray, Tensor
    if isinstance(arg, sequences[:2]) and isinstance(gradient, sequences) and (
            len(arg) == len(gradient)):
        return [part for pair in zip(arg, gradient, strict=True) for part in _parts(*pair)]
    return flatten_up_to(arg, gradient)


def standing_still(x: Any) -> Any:
    """Return the tangent of a constant: zeros for numbers."""
    return 0 * x if isinstance(x, (np.ndarray, np.number, int, float, complex)) else x


def call_in_graph(op: Any, args: tuple, kwargs: dict) -> Any:
    """Call a `PrimitiveOp` with symbolic tensors among the leaves of its arguments.

    The rules become part of the graph if they use only functions of cytape. The function does not:
    it gets plain arrays.
    """
    given = Arguments(args, flatten(args))
    tensors, moves = given.tensors, given.is_tensor
    argnums = tuple([
        i for i, arg in enumerate(args) if any(map(is_tensor, flatten(arg)))])
    # Ops of the graph keep the functions below, which must not refer to its tensors.
    given = given.without_tensors()
    args = given.packed(len(tensors) * [None])

    def seen(xs: Sequence[Tensor]) -> Any:
        return given.packed(xs if observing(xs) else [data_of(x)[()] for x in xs])

    def called(*xs: Tensor) -> Any:  # a symbolic tensor raises, so this is called in each run
        ans = op.fun(*given.packed([data_of(x)[()] for x in xs]), **kwargs)
        return map_structure(convert_to_tensor, as_floats(ans))

    def rule(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple:
        inputs, moving = seen(primals), given.packed(tangents, standing_still)
        ans = op(*inputs, **kwargs)
        return ans, op.jvps(argnums, [moving[i] for i in argnums], ans, inputs, kwargs)

    def with_gradient(*xs: Tensor) -> tuple:
        def grad_fn(*gradients: Tensor) -> list:
            inputs = seen(xs)
            ans = op(*inputs, **kwargs)
            found = op.gradients(argnums, ans, inputs, kwargs, pack_sequence_as(ans, gradients))
            return list(compress(flattened(args, argnums, found), moves))

        return called(*xs), grad_fn

    called.__name__ = with_gradient.__name__ = op.name
    if op.vjps is None and op.jvps is not None:
        by_tangents = custom_jvp(called)
        by_tangents.defjvp(rule)
        return by_tangents(*tensors)
    return custom_gradient(with_gradient)(*tensors)
