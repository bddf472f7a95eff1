"""elementwise: functions of arrays that act on each element, with their derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.autodiff.custom.bound_rule import BoundRule, bound
from cytape.autodiff.detached_rules import call_rule
from cytape.autodiff.wrapped_calls import is_tensor, name_of
from cytape.errors import DetachedError, NotDifferentiableError
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.kernels.partial_tracer import NotAProgram, Symbol
from cytape.ops.python.python_ops import attempted
from cytape.tensor.tensor import Tensor

__all__ = ["elementwise"]


def elementwise(f: Callable[..., Any], *derivatives: Callable[..., Any] | None) -> Callable:
    """Make a differentiable function from an elementwise function of arrays.

    Parameters
    ----------
    f : callable
        Function of arrays that returns an array: a ufunc of SciPy, or a function that broadcasts
        like a ufunc. A graph calls it in each run.
    *derivatives : callable or None
        One per argument of `f`, at most four: the derivative with respect to that argument, a
        function of all arguments. With functions of cytape, or made by `elementwise`, it can be
        differentiated itself. None: unknown, an error if it is needed.

    Returns
    -------
    callable
        Plain arrays in, plain arrays out.

    Raises
    ------
    TypeError
        If there is no derivative, something is not a function, or a ufunc has another number of
        arguments.
    ValueError
        In a call, if the result of `f` does not have the shape that its arguments broadcast to.
    NotDifferentiableError, DetachedError
        If an unknown derivative is needed: None, or the derivative of a derivative with other
        functions than cytape's.

    See Also
    --------
    custom_jvp : for functions that do not act on each element.
    cytape.testing.check_grads : to check a derivative against central differences, in both modes.

    Notes
    -----
    Derivatives read their closures as the `grad_fn` of `custom_gradient` does.

    Graphs with such a function cannot be saved to a file; ``cytape.ops.declare.elementwise`` gives
    it a name.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import cytape
    >>> erf = cytape.elementwise(
    ...     np.vectorize(math.erf, otypes=[float]),
    ...     lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x))
    >>> erf(np.array([0.0, 1.0]))
    array([0.        , 0.84270079])
    >>> cytape.hessian(lambda x: np.sum(erf(x)))(np.array([0.0, 1.0])).round(4) + 0.0
    array([[ 0.    ,  0.    ],
           [ 0.    , -0.8302]])
    """
    if not derivatives:
        raise TypeError("elementwise takes a derivative per argument of the function, got none")
    for x in (f, *derivatives):
        if not callable(x) and (x is not None or x is f):
            raise TypeError(f"elementwise takes functions, got {type(x).__name__}")
    if isinstance(f, np.ufunc) and f.nin != len(derivatives):
        raise TypeError(
            f"elementwise takes a derivative per argument: {f.__name__} has {f.nin} arguments, got "
            f"{len(derivatives)} derivatives. Say None for one that is not known")
    whats = [f"the derivative of {name_of(f)} with respect to its argument {i}"
             for i in range(len(derivatives))]
    rules: list[Callable | None] = []

    def made() -> ElementwiseOp:
        partials = []
        rules.clear()
        for what, derivative in zip(whats, derivatives, strict=True):
            rule = None if derivative is None else bound(what, derivative)
            partials.append(_unknown(what) if rule is None else _partial(what, rule, len(whats)))
            rules.append(rule)
        return _op(f, partials)

    op = made()
    if not any(isinstance(rule, BoundRule) for rule in rules):
        return op

    @functools.wraps(f, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal op
        if any(isinstance(rule, BoundRule) and rule.changed() for rule in rules):
            op = made()  # earlier calls keep their op
        return op(*args, **kwargs)

    return called


def _op(f: Callable, partials: list[Callable]) -> ElementwiseOp:
    def forward(*arrays: Any) -> Any:
        return f(*arrays)

    forward.__doc__ = f.__doc__
    return ElementwiseOp(name_of(f), forward, tuple(partials))


def _unknown(what: str) -> Callable:
    def partial(_: Any, *xs: Any) -> Any:
        _require_values(xs)
        raise NotDifferentiableError(
            f"{what} is not known: pass it to cytape.elementwise, or apply cytape.stop_gradient to "
            "that argument if it counts as a constant")

    return partial


def _partial(what: str, derivative: Callable, n_inputs: int) -> Callable:
    # A derivative with other functions than cytape's cannot be differentiated itself.
    opaque = _op(derivative, [_unknown(f"the derivative of {what}")] * n_inputs)

    def partial(_: Any, *xs: Any) -> Any:
        _require_values(xs)
        tensors = list(filter(is_tensor, xs))
        if not tensors:
            return derivative(*xs)

        def called() -> Tensor:
            return call_rule(what, lambda: [derivative(*xs)], (), lambda: tensors)[0]

        graph = graph_for(tensors)
        if graph is not None:
            found = attempted(graph, called)
        else:
            try:
                found = called()
            except DetachedError:
                found = NotImplemented
        return opaque(*xs) if found is NotImplemented else found

    return partial


def _require_values(xs: tuple) -> None:
    """Wrap derivatives so that they are called with arrays and tensors, not with kernel symbols."""
    if any(isinstance(x, Symbol) for x in xs):
        raise NotAProgram
