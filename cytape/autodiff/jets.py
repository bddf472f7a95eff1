"""jet: derivatives of any order along a curve, in one pass (Taylor mode).

While the function runs, a recorder stores for every tensor that depends on the curve the series of
its derivatives in the curve's parameter. They are computed order by order:

- A product (of elements, of matrices, ...) follows Leibniz' rule; a quotient solves it for the last
  term.
- The derivative of another elementwise op is a product: y' = p(y, x) x', with the declared partial
  p. The partial runs once, on operands with series, so its own series follows from the same rules.
  It may depend on the lower orders of y.
- Linear ops act on each derivative separately.
- All other ops use their forward rule, which gives y'. It runs once and is tracked itself, so the
  derivatives of y' are those of y, one order higher.

The cost of an op is a polynomial in the order; that of nested forward mode doubles with each order.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any

import numpy as np

from cytape.autodiff.seeds import zeros
from cytape.autodiff.transform_arguments import (
    call_followed,
    export,
    has_tensors,
    new_source,
    output_of,
    report_unconnected,
    require_result,
)
from cytape.ops.adjoints.conform import broadcast_to, cast
from cytape.ops.calls.partial_terms import operands
from cytape.ops.calls.tangents import fetch, follow_call
from cytape.ops.creation import identity_op
from cytape.ops.elementwise import divide, multiply, where, where_op
from cytape.ops.engine.custom_op import CustomOp
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import TangentRecorder
from cytape.tensor.structures import leaves_of_operand, leaves_of_result
from cytape.tensor.tensor import Tensor

__all__ = ["jet"]


def jet(f: Callable, primals: Any, series: Sequence) -> tuple[Any, list]:
    """Compute a function and its derivatives up to some order along a curve (Taylor mode).

    If the arguments are curves x(t), the result is the curve y(t) = f(x(t)). Given the values and
    the first n derivatives of x in t at one point, it returns those of y.

    Parameters
    ----------
    f : callable
        Returns an array or a structure (lists, tuples, dicts) of arrays. It is called with tensors.
    primals : tuple, or any other argument
        The arguments of `f`: floating point or complex arrays, numbers or tensors, or structures of
        them. An object other than a tuple is the only argument.
    series : sequence
        For each primal the sequence of its n derivatives ``[x', x'', ...]``, for a primal that is
        no tuple just that: array_likes of its shape, cast to its dtype, or structures of them; None
        stands for zeros. All primals have derivatives up to the same order n, at least 1.

    Returns
    -------
    value
        Result of `f`.
    derivatives : list
        The n derivatives ``[y', y'', ...]``, each packed like `value`; zeros where it does not
        depend on the primals. They are arrays, or tensors if the primals or their derivatives are,
        or the result is being recorded.

    Raises
    ------
    TypeError
        If a primal has no derivative (an integer, say), a derivative is of another kind (complex,
        say), or `f` does not return arrays.
    ValueError
        If the derivatives are not as many for all primals, or have not their primal's structure or
        shape; or if `f` returns None.

    See Also
    --------
    jvp : The first derivative only.
    ForwardAccumulator : The same, of as much of a program as you like.

    Notes
    -----
    These are derivatives, not the coefficients of Taylor's series: those are y^(k) / k!.

    The result can be differentiated: by tapes, accumulators or another `jet` around this one.

    The cost grows as a polynomial of the order (between its square and its fourth power, by the
    function; with the power n for a product of n operands in one `einsum`), see [1]_; [2]_
    describes how that makes a higher-order forward mode.

    References
    ----------
    .. [1] A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008, chapter 13.
    .. [2] J. Bettencourt, M. J. Johnson and D. Duvenaud, "Taylor-Mode Automatic Differentiation for
       Higher-Order Derivatives in JAX", Program Transformations workshop, NeurIPS 2019.

    Examples
    --------
    The derivatives of ``exp(2 x)`` at 0: the curve is x(t) = t.

    >>> import cytape
    >>> import cytape.numpy as np
    >>> value, derivatives = cytape.jet(lambda x: np.exp(2 * x), 0.0, [1.0, 0.0, 0.0, 0.0])
    >>> float(value), [float(derivative) for derivative in derivatives]
    (1.0, [2.0, 4.0, 8.0, 16.0])

    The acceleration of a distance, as a point at (3, 4) falls:

    >>> position, velocity, gravity = [3.0, 4.0], [1.0, 0.0], [0.0, -10.0]
    >>> distance, (speed, acceleration) = cytape.jet(
    ...     np.linalg.norm, np.array(position), [velocity, gravity])
    >>> round(float(distance), 6), round(float(speed), 6), round(float(acceleration), 6)
    (5.0, 0.6, -7.872)
    """
    several = isinstance(primals, tuple)
    primals, series = (primals, series) if several else ((primals,), (series,))
    if len(series) != len(primals):
        raise ValueError(f"got {len(primals)} primals, but series for {len(series)}")
    try:
        series = [list(derivatives) for derivatives in series]
    except TypeError:
        raise ValueError("series needs a sequence of derivatives for every primal") from None
    order = _order(series)
    arrays_out = not has_tensors((primals, series))
    rule = _Rule(order)
    recorder = TangentRecorder(tensor_vspace, rule=rule)
    arguments = []
    for i, (primal, derivatives) in enumerate(zip(primals, series, strict=True)):
        leaves = leaves_of_operand(primal)
        by_order = [_leaves(i, primal, derivative) for derivative in derivatives]
        tensors = []
        for leaf, *tangents in zip(leaves, *by_order, strict=True):
            tensor = new_source(f, i, leaf)
            known = _Series([_converted(i, tensor, tangent) for tangent in tangents])
            recorder.watch(tensor.id, known)
            rule.alive[tensor.id] = known
            tensors.append(tensor)
        arguments.append(nest.pack_sequence_as(primal, tensors))
    with recorder:
        value, _ = call_followed(f, arguments, {}, has_aux=False)
    require_result(f, value)
    outputs = [output_of(f, leaf) for leaf in leaves_of_result(value)]
    series = [fetch(recorder, y.id) for y in outputs]
    connected = [of_y is not None and not (recorder.detached and _vanishes(of_y, order))
                 for of_y in series]
    if arguments and not all(connected):
        report_unconnected(f, "its arguments", not any(connected), recorder.detached)
    by_order = [
        [_dense(y, of_y, k) for y, of_y in zip(outputs, series, strict=True)]
        for k in range(order + 1)
    ]
    value, *derivatives = [
        export(nest.pack_sequence_as(value, leaves), arrays_out) for leaves in by_order
    ]
    return value, derivatives


# -- inputs ----------------------------------------------------------------------------------------


def _order(series: list) -> int:
    orders = [len(derivatives) for derivatives in series]
    if len(set(orders)) > 1:
        raise ValueError(f"all primals need derivatives up to the same order, got {orders}")
    if not any(orders):
        raise ValueError("jet needs a primal and its derivatives up to order 1 at least")
    return orders[0]


def _leaves(position: int, primal: Any, derivative: Any) -> list:
    """List the leaves of a derivative; a list is an array if the primal is one leaf."""
    if not isinstance(primal, (list, tuple, dict)) and nest.composition_of(primal) is None:
        return [derivative]
    try:
        nest.assert_same_structure(primal, derivative)
    except ValueError as error:
        message = f"a derivative of primal {position} is not packed like it: {error}"
        raise ValueError(message) from error
    return nest.flatten(derivative)


def _converted(position: int, primal: Tensor, derivative: Any) -> Tensor | None:
    if derivative is None:
        return None
    derivative = convert_to_tensor(derivative)
    if derivative.shape != primal.shape:
        raise ValueError(
            f"a derivative of primal {position} has shape {derivative.shape}, the primal "
            f"{primal.shape}"
        )
    if not np.can_cast(derivative.dtype, primal.dtype, "same_kind"):
        raise TypeError(
            f"a derivative of primal {position} is {derivative.dtype}, the primal {primal.dtype}"
        )
    return cast(derivative, primal.dtype)


def _vanishes(series: Any, order: int) -> bool:
    """Return whether all derivatives are known to be zero."""
    return all(series[k] is None for k in range(1, order + 1))


# -- series ----------------------------------------------------------------------------------------


class _Series:
    """The derivatives of a tensor along the curve (None: zero), computed as they are needed.

    An order may need all lower ones. The tensor is not referenced, so that it and its series can be
    released while the function is running.
    """

    __slots__ = ("__weakref__", "_derivative", "_known")

    def __init__(self, known: Sequence = (), derivative: Callable | None = None) -> None:
        self._known = list(known)
        self._derivative = derivative

    def __getitem__(self, order: int) -> Any:
        while order > len(self._known):
            assert self._derivative is not None
            self._known.append(self._derivative(self, len(self._known) + 1))
        return self._known[order - 1]

    def complete(self, order: int) -> None:
        """Compute all orders, and drop the rule."""
        self[order]
        self._derivative = None


def _at(x: Any, series: Any, order: int) -> Any:
    """Return a derivative of a series, None if there is no series."""
    if order == 0:
        return x
    return None if series is None else series[order]


def _dense(x: Tensor, series: Any, order: int) -> Tensor:
    derivative = _at(x, series, order)
    return zeros(x.shape, x.dtype) if derivative is None else derivative


class _Rule:
    """Rule for each op; with an order, all series are computed up to it immediately."""

    def __init__(self, order: int | None = None) -> None:
        self._order = order
        self._waiting: list[_Series] = []  # not computed yet, in the order of their ops
        self.alive: weakref.WeakValueDictionary[int, _Series] = weakref.WeakValueDictionary()

    def __call__(
        self, op: Any, inputs: list, outputs: list, stored: list, attrs: dict
    ) -> Sequence[_Series | None]:
        if not getattr(op, "differentiable", True):
            return [None] * len(outputs)
        # Rules of calls that are not repeated may read the outputs; users' rules, any tensor.
        known: dict[int, Any] = dict(self.alive) if _counts(op) else {}
        if op is multiply or isinstance(op, MultilinearOp) and len(outputs) == 1:
            derivatives = [_product(op, inputs, outputs[0], stored, attrs)]
        elif op is divide:
            derivatives = [_quotient(inputs[1], outputs[0], *stored)]
        elif isinstance(op, ElementwiseOp):
            derivatives = [_chain(op, inputs, outputs[0], stored)]
        elif op is where_op or getattr(op, "linear", False):
            derivatives = _linear(op, inputs, outputs, stored, attrs)
        else:
            derivatives = _by_forward_rule(op, inputs, outputs, stored, attrs, known)
        results = [_Series(derivative=derivative) for derivative in derivatives]
        for output, series in zip(outputs, results, strict=True):
            self.alive[output.id] = series
            if _counts(op):
                known[output.id] = series
        for series in results:
            if self._order is None:
                self._waiting.append(series)
            else:
                series.complete(self._order)
        return results

    def advance(self, order: int) -> None:
        """Compute all series up to an order, op by op, to avoid deep recursion."""
        for series in self._waiting if order else ():
            series[order]


def _followed(
    known: dict[int, Any], function: Callable[[], list], rule: _Rule | None = None
) -> list[tuple]:
    """Call a function; return its result with the series of each tensor, given those of inputs."""
    recorder = TangentRecorder(tensor_vspace, rule=rule or _Rule())
    for id, series in known.items():
        recorder.watch(id, series)
    with recorder:
        results = function()
    return [(y, fetch(recorder, y.id) if isinstance(y, Tensor) else None) for y in results]


# -- rules: each returns functions of an output's series, up to the known orders, and an order
# ------


def _product(op: Any, inputs: list, output: Tensor, stored: list, attrs: dict) -> Callable:
    """Differentiate an op that is linear in each input, by Leibniz' rule."""
    if isinstance(op, MultilinearOp):  # other inputs are constant
        stored = [of_x if op.is_linear_in(i) else None for i, of_x in enumerate(stored)]

    def derivative(series: _Series, order: int) -> Any:
        total = None
        for weight, orders in _splits(order, len(inputs)):
            factors = list(map(_at, inputs, stored, orders))
            if all(factor is not None for factor in factors):
                total = _plus(total, weight, op(*factors, **attrs))
        return _fitted(total, output)

    return derivative


def _splits(order: int, n_parts: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield all partitions of an order into parts, with multinomial coefficients."""
    if n_parts == 1:
        yield 1, (order,)
        return
    for first in range(order + 1):
        for weight, rest in _splits(order - first, n_parts - 1):
            yield comb(order, first) * weight, (first, *rest)


def _quotient(divisor: Tensor, output: Tensor, x: Any, y: Any) -> Callable:
    """Solve Leibniz' rule for x = z y."""

    def derivative(series: _Series, order: int) -> Any:
        total = _at(None, x, order)
        for k in range(1, order + 1):
            factor, quotient = _at(None, y, k), _at(output, series, order - k)
            if factor is not None and quotient is not None:
                total = _plus(total, -comb(order, k), quotient * factor)
        return None if total is None else _fitted(total / divisor, output)

    return derivative


def _chain(op: ElementwiseOp, inputs: list, output: Tensor, stored: list) -> Callable:
    """Differentiate the product of a partial and its input's derivative, summed over the inputs."""
    rules: list[Any] = list(op.partials)
    moving = [i for i, x in enumerate(stored) if x is not None and rules[i] is not None]
    partials: list[tuple] = []

    def derivative(series: _Series, order: int) -> Any:
        if not partials:
            known = {x.id: of_x for x, of_x in zip(inputs, stored, strict=True) if of_x is not None}
            known[output.id] = weakref.proxy(series)  # not a cycle, as it holds the partials
            partials[:] = _followed(
                known, lambda: [rules[i](output, *operands(output, inputs)) for i in moving]
            )
        total = None
        for i, (partial, of_partial) in zip(moving, partials, strict=True):
            for k in range(order):
                tangent, factor = stored[i][order - k], _at(partial, of_partial, k)
                if tangent is not None and factor is not None:
                    total = _plus(total, comb(order - 1, k), _times(tangent, factor))
        return _fitted(total, output)

    return derivative


def _linear(op: Any, inputs: list, outputs: list, stored: list, attrs: dict) -> list[Callable]:
    moving = [i for i in range(len(inputs)) if op.moving >> min(i, 63) & 1]

    def at(order: int) -> list:
        if all(_at(None, stored[i], order) is None for i in moving):
            return [None] * len(outputs)
        orders = [order if i in moving else 0 for i in range(len(inputs))]
        results = nest.flatten(op(*map(_dense, inputs, stored, orders), **attrs))
        return list(map(_fitted, results, outputs))

    return _joint(at, len(outputs))


def _by_forward_rule(
    op: Any, inputs: list, outputs: list, stored: list, attrs: dict, known: dict
) -> list[Callable]:
    """Run the op under an accumulator and track this: tangents of the outputs have series, too.

    Stateful ops do not run again.
    """
    tangents: list[tuple] = []
    rule = _Rule()

    def follow() -> list:
        accumulator = TangentRecorder(tensor_vspace)
        for x, series in zip(inputs, stored, strict=True):
            if series is not None and fetch(accumulator, x.id) is None:
                tangent = identity_op(_dense(x, series, 1))  # a tensor of its own
                accumulator.watch(x.id, tangent)
                known[x.id] = series
                known[tangent.id] = _Series(derivative=lambda _, k, series=series: series[k + 1])

        def results() -> list:
            with accumulator:
                if _counts(op):
                    again = outputs
                    follow_call(accumulator, op, inputs, outputs, attrs)
                else:
                    again = nest.flatten(op(*inputs, **attrs))
            return [fetch(accumulator, output.id) for output in again]

        return _followed(known, results, rule)

    def at(order: int) -> list:
        if not tangents:
            tangents[:] = follow()
        rule.advance(order - 1)
        return [_at(tangent, series, order - 1) for tangent, series in tangents]

    return _joint(at, len(outputs))


def _counts(op: Any) -> bool:
    """Return whether a call of an op must not be repeated."""
    return isinstance(op, CustomOp) or op.stateful


def _joint(at: Callable[[int], list], n_outputs: int) -> list[Callable]:
    """Make one function per output from one that computes an order of all outputs."""
    at = functools.cache(at)
    return [lambda series, order, i=i: at(order)[i] for i in range(n_outputs)]


# -- arithmetic in which None is zero --------------------------------------------------------------


def _plus(total: Any, weight: int, term: Any) -> Any:
    term = term if weight == 1 else weight * term
    return term if total is None else total + term


def _times(tangent: Tensor, partial: Any) -> Any:
    """Multiply by a partial derivative, as `PartialsOp` does."""
    if callable(partial):
        return partial(tangent)
    if isinstance(partial, int) and partial == 1:
        return tangent
    if np.dtype(bool) == getattr(partial, "dtype", None):
        return where(partial, tangent, 0)
    return tangent * partial


def _fitted(total: Any, output: Tensor) -> Any:
    """Return a derivative in the shape and dtype of the output."""
    return None if total is None else cast(broadcast_to(total, output.shape), output.dtype)
