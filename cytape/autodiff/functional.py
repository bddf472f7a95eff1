"""Functions of functions: gradients without a tape in sight.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.backward import convert_output_gradients, densify, zeros
from cytape.autodiff.transformed import (
    Transformed,
    call_followed,
    checked_argnums,
    export,
    has_tensors,
    name_of,
    output_of,
    replace_arguments,
    require_result,
)
from cytape.errors import DetachedError, UnconnectedGradientWarning
from cytape.ops.engine.gradients import compute_gradients
from cytape.tensor import nest
from cytape.tensor.notices import warn
from cytape.tensor.state import MOST_DETACHED, Recorder, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["grad", "value_and_grad", "vjp"]


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """Make the function that computes the gradient of a scalar-valued function.

    Parameters
    ----------
    fun : callable
        Returns a scalar. The arguments to differentiate must be floating point or complex arrays,
        numbers or tensors, or structures (lists, tuples, dicts) of them. It is called with tensors
        in their place.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.
    has_aux : bool
        Whether `fun` returns a pair, the scalar and whatever else it has computed.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns a gradient packed like the argument, or a tuple of
        them if `argnums` is a sequence; with `has_aux` a pair, that and the rest. The gradients are
        arrays (numbers for numbers), zero where `fun` does not depend on an argument, and tensors
        if an argument is a tensor or a variable, or the result is being recorded by a tape. It can
        be pickled if `fun` can.

    Warns
    -----
    UnconnectedGradientWarning
        In a call, if the result does not depend on an argument to be differentiated.

    Raises
    ------
    TypeError
        If `fun` is not callable or `argnums` are no integers; in a call, if an argument to be
        differentiated has no gradient (an integer, say), or `fun` does not return a scalar.
    DetachedError
        In a call, if the result does not depend on such an argument after `fun` has taken a value
        out of a tensor by ``numpy()``, ``item()`` or ``tolist()``: the derivative was lost there.
    ValueError
        In a call, if there is no argument of such a number, or `fun` returns None.

    See Also
    --------
    value_and_grad : The value as well.
    vjp : For functions that return arrays.

    Notes
    -----
    The gradient of a complex result follows TensorFlow's convention, see `GradientTape`: JAX's is
    its conjugate.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> cytape.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> cytape.grad(lambda p: p["w"] * p["x"])({"w": 2.0, "x": 3.0})
    {'w': np.float64(3.0), 'x': np.float64(2.0)}
    >>> float(cytape.grad(cytape.grad(lambda x: x**3))(2.0))
    12.0
    """
    return Transformed(_grad, fun, checked_argnums(argnums), has_aux)


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable:
    """Make the function that computes a scalar-valued function and its gradient.

    Parameters
    ----------
    fun, argnums, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns ``(value, gradient)``, with `has_aux`
        ``((value, aux), gradient)``.

    Raises
    ------
    TypeError, ValueError
        As for `grad`.

    Examples
    --------
    The form in which ``scipy.optimize.minimize(..., jac=True)`` wants it:

    >>> import cytape
    >>> import numpy as np
    >>> f = cytape.value_and_grad(lambda x: (x * x).sum())
    >>> value, gradient = f(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    return Transformed(_value_and_grad, fun, checked_argnums(argnums), has_aux)


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Compute a function, and prepare its vector-Jacobian product.

    Parameters
    ----------
    fun : callable
        Returns an array or a structure of arrays.
    *primals
        Its arguments, as for `grad`; all of them are differentiated.
    has_aux : bool
        Whether `fun` returns a pair, what is to be differentiated and whatever else it computed.

    Returns
    -------
    value
        What `fun` returned.
    vjp_fn : callable
        Takes weights in the structure and the shapes of `value`, and returns the tuple of gradients
        of the weighted sum with respect to the primals. It may be called any number of times.
    aux
        The rest of what `fun` returned; only with `has_aux`.

    Raises
    ------
    TypeError
        If a primal has no gradient (an integer, say), or `fun` does not return arrays.
    ValueError
        In a call of `vjp_fn`, if the weights have not the structure of `value`.
    InvalidGradientError
        In a call of `vjp_fn`, if a weight has not the shape of its value.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> value, vjp_fn = cytape.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> value
    array([3., 6.])
    >>> gx, gy = vjp_fn(np.array([1.0, 10.0]))
    >>> gx, float(gy)
    (array([ 3., 30.]), 21.0)
    """
    run = _Run(fun, primals, {}, tuple(range(len(primals))), has_aux)
    outputs = [output_of(fun, leaf) for leaf in nest.flatten(run.value)]
    value = nest.pack_sequence_as(run.value, outputs)

    def vjp_fn(output_gradients: Any) -> tuple:
        nest.assert_same_structure(value, output_gradients)
        seeds = convert_output_gradients(outputs, output_gradients)
        arrays_out = run.arrays_out and not has_tensors(output_gradients)
        return export(run.gradients(outputs, seeds, keep=True), arrays_out)

    exported = export(value, run.arrays_out)
    return (exported, vjp_fn, run.aux) if has_aux else (exported, vjp_fn)


class _Run:
    """One call of a function on a tape of its own, with new tensors for chosen arguments.

    The tensors are new also where an argument is a tensor already: the function may reach that one
    by another way, say as another argument, and there it is a constant.
    """

    def __init__(
        self, fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool
    ) -> None:
        self.arrays_out = not has_tensors(args) and not (kwargs and has_tensors(kwargs))
        self._fun = fun
        self._argnums = argnums
        self._selected, self._sources, args = replace_arguments(fun, args, argnums, kwargs)
        self._recorder = Recorder(False, False)
        self._recorder.detached = {}
        for source in self._sources:
            self._recorder.watch(source.id)
        with self._recorder:
            self.value, aux = call_followed(fun, args, kwargs, has_aux)
        self.aux = export(aux, self.arrays_out) if has_aux else None

    def gradients(
        self, outputs: list[Tensor], seeds: list | None = None, keep: bool = False
    ) -> Any:
        """Differentiate; dense, zeros where unconnected, packed like the chosen arguments."""
        # Where values left it may be asked once more.
        keep = keep or bool(self._recorder.detached)
        gradients = compute_gradients(self._recorder, outputs, self._sources, seeds, keep)
        connected = [gradient is not None for gradient in gradients]
        if not all(connected):
            self._report_unconnected(connected)
        dense = [
            zeros(source.spec.extents, source.dtype) if gradient is None else densify(gradient)
            for gradient, source in zip(gradients, self._sources, strict=True)
        ]
        return nest.pack_sequence_as(self._selected, dense)

    def _report_unconnected(self, connected: list[bool]) -> None:
        """Say for which of the chosen arguments no part is connected to the result."""
        by_number = [(self._argnums, self._selected)]
        if not isinstance(self._argnums, int):
            by_number = list(zip(self._argnums, self._selected, strict=True))
        self._argument_of = [i for i, part in by_number for _ in nest.flatten(part)]
        reached = {i for i, found in zip(self._argument_of, connected, strict=True) if found}
        lost = set(self._argument_of) - reached
        left, certain = self._arguments_that_left(
            [i for i, found in enumerate(connected) if not found])
        detached = bool(lost & left if lost else left)
        what = "argument " + " and ".join(map(str, sorted(lost & left or lost)))
        report_unconnected(self._fun, what, bool(lost), detached, not certain)

    def _arguments_that_left(self, places: list[int]) -> tuple[set[Any], bool]:
        """Return on which of some sources' arguments values depend that left their tensors.

        And whether these are certain to be all.
        """
        noted = list((self._recorder.detached or {}).values())
        sources = [self._sources[i] for i in places]
        if noted and len(sources) == len(self._sources):  # what is noted depends on one of them
            left = self._connected(noted, sources) or [True] * len(sources)
            return {self._argument_of[i] for i, of_it in zip(places, left, strict=True)
                    if of_it}, True
        found, certain = [False] * len(places), len(noted) < MOST_DETACHED
        together = self._connected(noted, sources)
        for one in [together] if together else [self._connected([x], sources) for x in noted]:
            if one is None:
                certain = False
            else:
                found = [a or b for a, b in zip(found, one, strict=True)]
        return {self._argument_of[i] for i, of_it in zip(places, found, strict=True)
                if of_it}, certain

    def _connected(self, targets: list, sources: list) -> list[bool] | None:
        """Return on which sources targets depend, None if an op fails that nobody has asked for."""
        try:
            with unrecorded():
                found = compute_gradients(self._recorder, targets, sources, None, True)
        except Exception:
            return None
        return [gradient is not None for gradient in found]


def report_unconnected(
    fun: Callable, what: str, wholly: bool, detached: bool, unsure: bool = False
) -> None:
    """Raise or warn because a function's result does not depend on what it is differentiated in.

    Parameters
    ----------
    fun : callable
    what : str
        Its arguments in question.
    wholly : bool
        Whether it depends on no part of them.
    detached : bool
        Whether a value that depends on them was taken out of a tensor.
    unsure : bool, optional
        Whether it cannot be told of some value that was.
    """
    left = "a value left its tensor by numpy(), item() or tolist()"
    advice = (
        "Compute with the tensors themselves, by cytape.numpy; where the derivative is to stop, "
        "take the value of cytape.stop_gradient(tensor)"
    )
    if wholly and detached:
        raise DetachedError(
            f"the result of {name_of(fun)} does not depend on {what}, but on the way {left}: "
            f"the derivative was lost there. {advice}"
        )
    if wholly and not isinstance(fun, Transformed):  # that of a derivative may well vanish
        warn(
            f"the result of {name_of(fun)} does not depend on {what} by differentiable functions: "
            "the derivative is zero" + (
                f", unless it was lost where {left}. {advice}" if unsure else ""),
            UnconnectedGradientWarning,
        )
    elif detached or unsure:
        warn(
            f"some derivatives of {name_of(fun)} are zero, and on the way {left}: were they lost "
            f"there? {advice}",
            UnconnectedGradientWarning,
        )


def _value_and_grad(
    fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool
) -> tuple:
    run = _Run(fun, args, kwargs, argnums, has_aux)
    output = _scalar_output(fun, run.value)
    gradients = export(run.gradients([output]), run.arrays_out)
    value = export(output, run.arrays_out)
    return ((value, run.aux) if has_aux else value), gradients


def _grad(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool) -> Any:
    run = _Run(fun, args, kwargs, argnums, has_aux)
    gradients = export(run.gradients([_scalar_output(fun, run.value)]), run.arrays_out)
    return (gradients, run.aux) if has_aux else gradients


def _scalar_output(fun: Callable, value: Any) -> Tensor:
    require_result(fun, value)
    if isinstance(value, (list, tuple, dict)):
        raise TypeError(
            f"{name_of(fun)} must return one scalar, got a {type(value).__name__}: use vjp, or "
            "has_aux=True if it returns a scalar and something else"
        )
    output = output_of(fun, value)
    if output.shape != ():
        raise TypeError(
            f"{name_of(fun)} must return a scalar, got shape {output.shape}: sum it to one, or use "
            "vjp, jacfwd or GradientTape.jacobian"
        )
    if not output.spec.trainable:
        raise TypeError(
            f"{name_of(fun)} returned a scalar of dtype {output.dtype}, which has no gradient"
        )
    return output
