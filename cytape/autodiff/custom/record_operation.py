"""record_operation: results computed by other libraries, recorded by hand as one op."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cytape.autodiff.custom.bound_rule import BoundRule, bound
from cytape.autodiff.detached_rules import Trail, call_rule
from cytape.autodiff.wrapped_calls import is_plain_tensor, is_tensor, owned, value_of
from cytape.core import OpType
from cytape.errors import InvalidIdError, SymbolicTensorError
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.engine.custom_op import GradientsIfNeeded, record_custom
from cytape.tensor import nest

__all__ = ["record_operation"]


def record_operation(
    op_type: str | OpType,
    outputs: Any,
    inputs: Any,
    backward_function: Callable | None = None,
    forward_function: Callable | None = None,
    *,
    backward_getter: Callable[[], Callable] | None = None,
    deleter: Callable[[Callable], object] | None = None,
) -> bool:
    """Record an op on every active tape and accumulator that tracks an input.

    The outputs may have been computed by another library. `custom_gradient` does the same around a
    function, in graphs as well.

    Parameters
    ----------
    op_type : str or cytape.core.OpType
        For messages. An OpType also says which output gradients `backward_function` takes as None.
    outputs : Tensor or structure of Tensor
        Each is known as an output of this op from now on, if it was one of another op before.
    inputs : Tensor, Variable or structure of them
    backward_function : callable
        Called when a gradient has reached the op, with one gradient per output: zeros (or None, see
        `op_type`) where none arrived. Returns a list of one gradient per input, each a tensor, an
        array, None for no gradient, or a function that is called for it if it is needed. Outer
        tapes record its computations with tensors, so it can be differentiated itself.
    forward_function : callable, optional
        Called with one tangent per input (zeros where there is none, None for integers and the
        like), also of a batch with one direction at a time. Returns a list of one tangent or None
        per output. Without it, accumulators transpose `backward_function`.
    backward_getter : callable, optional
        Called instead, without arguments and immediately, if a recorder tracks an input; returns
        `backward_function`.
    deleter : callable, optional
        Called with `backward_function`, exactly once, when the last tape releases it.

    Returns
    -------
    bool
        Whether a recorder tracks any of the inputs.

    Raises
    ------
    TypeError
        If an output is not a tensor or an input neither that nor a variable, or of
        `backward_function` and `backward_getter` there is not exactly one.
    InvalidIdError
        If an output is there twice, or is an input.
    SymbolicTensorError
        If it is called in a graph or in a function that is traced.
    InvalidGradientError
        In the backward pass or under an accumulator, if a function returns a wrong number of
        gradients or one of a wrong shape.

    See Also
    --------
    push_forwardprop_state : makes accumulators track the ops of `forward_function`.

    Notes
    -----
    The code that computes the outputs should not be recorded, too (see `stop_recording`): an
    accumulator would already have their tangents, and keep those. The functions should refer to
    values, not to the outputs, because a tape drops the op when these are released.
    `backward_function` reads its closure like the `grad_fn` of `custom_gradient`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> x = cytape.constant([0.0, 1.0])
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = cytape.constant(np.heaviside(x.numpy() - 0.5, 0.0))
    ...     _ = cytape.record_operation("StraightThrough", [y], [x], lambda dy: [dy])
    ...     loss = 3.0 * y
    >>> loss, tape.gradient(loss, x)
    (Tensor([0., 3.]), Tensor([3., 3.]))
    """
    outputs, inputs = nest.flatten(outputs), nest.flatten(inputs)
    if (backward_function is None) == (backward_getter is None):
        raise TypeError(
            "record_operation takes a backward_function or a backward_getter that returns it, "
            f"{'not both' if backward_getter is not None else 'got neither'}")
    _require_tensors(outputs, inputs)
    name = op_type.name if isinstance(op_type, OpType) else op_type
    if graph_for([*outputs, *inputs]) is not None:
        raise SymbolicTensorError(
            f"op {name!r} cannot be recorded by hand in a graph or in a traced function, which are "
            "differentiated through their own ops. Make an op of the function that computes the "
            "outputs with cytape.custom_gradient or cytape.custom_jvp")
    values = list(map(value_of, inputs))
    taken = {x.id for x in (*inputs, *values)}
    for i, output in enumerate(outputs):
        if output.id in taken:
            raise InvalidIdError(
                f"output {i} of op {name!r} is listed twice or is an input: give every output a "
                "tensor of its own (cytape.identity makes one)")
        taken.add(output.id)
    return record_custom(
        op_type, outputs, inputs,
        lambda: _ByHand(
            name, backward_getter() if backward_getter else backward_function, Trail(values)),
        forward_function, lazy=True,
        deleter=None if deleter is None else lambda by_hand: deleter(by_hand.function))


class _ByHand:
    """A backward function that may return functions in place of gradients."""

    __slots__ = ("_inputs", "_rule", "_what", "function")

    def __init__(self, name: str, function: Any, inputs: Trail) -> None:
        self._what = f"the backward function of op {name!r}"
        self.function = function
        self._rule = bound(self._what, function)
        self._inputs = inputs

    def __call__(self, *gradients: Any) -> GradientsIfNeeded:
        seeds = owned(gradients)

        found = self._followed(lambda: self._rule(*seeds), seeds)

        def computed(needed: tuple[bool, ...]) -> Any:
            if len(found) != len(needed):
                return found  # the caller raises
            return [
                gradient if not callable(gradient)
                else self._followed(partial(self._noting, gradient), seeds)[0] if wanted else None
                for gradient, wanted in zip(found, needed, strict=True)]

        return GradientsIfNeeded(computed)

    def _noting(self, gradient: Callable) -> Any:
        return (self._rule.noting(gradient) if isinstance(self._rule, BoundRule)
                else gradient())

    def _followed(self, function: Callable[[], Any], seeds: Any) -> list:
        def called() -> list | tuple:
            returned = function()
            return returned if isinstance(returned, (list, tuple)) else [returned]

        return call_rule(self._what, called, seeds, self._inputs.tensors)


def _require_tensors(outputs: list, inputs: list) -> None:
    for role, leaves, is_one, wanted in (
        ("output", outputs, is_plain_tensor, "a tensor"),
        ("input", inputs, is_tensor, "a tensor or a variable"),
    ):
        for i, leaf in enumerate(leaves):
            if not is_one(leaf):
                raise TypeError(
                    f"{role} {i} of record_operation must be {wanted}, got {type(leaf).__name__}: "
                    "convert it with cytape.constant and compute with the result")
