"""Second derivatives of a graph's tensors, as ops that are added to the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from cytape.errors import InvalidGradientError
from cytape.graph.differentiation.graph_gradients import as_list, gradients, graph_of, place_of
from cytape.graph.differentiation.places import Places
from cytape.graph.differentiation.reach import BETWEEN, REACHED, nodes_between, reach
from cytape.graph.tracing.body_tools import dense
from cytape.graph.tracing.replay import symbolic_tangents
from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.shaping import reshape
from cytape.tensor.making import constant
from cytape.tensor.recording.state import building_into, building_under
from cytape.tensor.tensor import Tensor, tensor_of

__all__ = ["hessian_vector_product", "hessians"]


def hessians(ys: Any, xs: Any, name: str = "hessians", **options: Any) -> list[Tensor]:
    """Add ops to a graph that compute the Hessians of the sum of some of its tensors.

    The ops of the gradient are differentiated in forward mode, in all directions at once: the
    number of ops does not depend on the size of `xs`, but their memory does.

    Parameters
    ----------
    ys : Tensor or list of Tensor
    xs : Tensor or Variable, or a list of them
        Of known shapes.
    name : str, optional
        The scope of the new ops.
    **options
        As `gradients` takes them, by keyword.

    Returns
    -------
    list of Tensor
        One per entry of `xs`, of its shape twice; zeros where the gradient does not depend on it.

    Raises
    ------
    ValueError
        If the shape of an entry of `xs` is not known, or `ys` do not depend on it and
        `unconnected_gradients` is not "zero".
    RuntimeError, TypeError, NotDifferentiableError, InvalidGradientError
        As `gradients` raises them.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = cytape.Graph().placeholder("float64", (2,))
    >>> [hessian] = cytape.hessians(np.sum(x**3) + x[0] * x[1], x)
    >>> cytape.Session(x.graph).run(hessian, {x: [1.0, 2.0]})
    array([[ 6.,  1.],
           [ 1., 12.]])
    """
    ys, xs = as_list(ys), as_list(xs)
    graph = graph_of(ys + xs)
    with building_into(graph), building_under(graph, graph.scope_context(name)):
        found = gradients(ys, xs, **options)
        return [
            _hessian(graph, i, x, gradient)
            for i, (x, gradient) in enumerate(zip(xs, found, strict=True))
        ]


def _hessian(graph: Any, i: int, x: Tensor, gradient: Any) -> Tensor:
    if not x.spec.known:
        raise ValueError(f"hessians need the shapes of xs, but that of xs[{i}] is {x.shape}")
    if gradient is None:
        raise ValueError(
            f"ys have no derivative with respect to xs[{i}], {x!r}: for zeros pass "
            "unconnected_gradients='zero'")
    units = np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
    columns = _tangent(graph, x, dense(gradient), graph.constant(tensor_of(units)))
    if columns is None:
        return in_graph(graph, broadcast_to(constant(0, x.dtype), x.shape + x.shape))
    return reshape(columns, x.shape + x.shape)


def _tangent(graph: Any, x: Tensor, y: Tensor, tangent: Tensor) -> Tensor | None:
    """Return the tangents of a tensor for a batch of directions of another one; None for zero."""
    places = Places(graph)
    source, target = place_of(places, "xs", x), places.place_of("ys", y)
    moving = {source: tangent}
    for level in reversed(range(len(places.graphs))):
        graph = places.graphs[level]
        for symbol, outer in places.captures_of(level).items():
            if outer in moving:
                moving[level, symbol] = moving[outer]
        wanted = {target}.union(*[places.captures_of(inner).values() for inner in range(level)])
        symbols = sorted(symbol for of, symbol in wanted if of == level)
        here = {symbol: each for (of, symbol), each in moving.items() if of == level}
        marks = bytearray(graph.n_symbols)
        for symbol in here:
            marks[symbol] |= REACHED
        reach(graph, marks)
        for symbol in symbols:
            marks[symbol] |= marks[symbol] & REACHED and BETWEEN
        tangents = symbolic_tangents(
            graph, list(here), list(here.values()), symbols,
            nodes=reversed(nodes_between(graph, marks)), use_batch=True)
        for symbol, each in zip(symbols, tangents, strict=True):
            if each is not None:
                moving[level, symbol] = each
    return moving.get(target)


def hessian_vector_product(
    ys: Any, xs: Any, vs: Any, name: str = "hessian_vector_product", **options: Any
) -> list[Any]:
    """Add ops to a graph that multiply the Hessian of the sum of some of its tensors by a vector.

    Parameters
    ----------
    ys : Tensor or list of Tensor
    xs : Tensor or Variable, or a list of them
    vs : Tensor or ndarray, or a list of them
        The vector, in parts: one per entry of `xs`, of its shape.
    name : str, optional
        The scope of the new ops.
    **options
        As `gradients` takes them, by keyword.

    Returns
    -------
    list of Tensor, IndexedSlices or None
        The product, in parts like `vs`; zeros where the gradient of `ys` does not depend on an
        entry of `xs`, None (or what `unconnected_gradients` says) where `ys` do not.

    Raises
    ------
    ValueError
        If `vs` do not fit `xs` in number or shape.
    RuntimeError, TypeError, NotDifferentiableError
        As `gradients` raises them.

    See Also
    --------
    cytape.hessian_vector_product : For functions.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = cytape.Graph().placeholder("float64", (2,))
    >>> v = np.array([1.0, 10.0])
    >>> [product] = cytape.graph.hessian_vector_product(np.sum(x**3), x, v)
    >>> cytape.Session(x.graph).run(product, {x: [1.0, 2.0]})
    array([  6., 120.])
    """
    ys, xs, vs = as_list(ys), as_list(xs), as_list(vs)
    if len(vs) != len(xs):
        raise InvalidGradientError(
            f"vs must have one entry for each of the {len(xs)} xs, got {len(vs)}"
        )
    graph = graph_of(ys + xs)
    with building_into(graph), building_under(graph, graph.scope_context(name)):
        # The gradients, weighted by the vector, are differentiated again.
        firsts = gradients(ys, xs, **options)
        weighted = [(dense(first), v) for first, v in zip(firsts, vs, strict=True)
                    if first is not None]
        seconds = gradients(
            [first for first, _ in weighted], xs, grad_ys=[v for _, v in weighted],
            **{**options, "unconnected_gradients": "zero"})
        return [None if first is None else second
                for first, second in zip(firsts, seconds, strict=True)]
