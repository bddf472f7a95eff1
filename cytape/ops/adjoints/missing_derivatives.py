"""Unknown derivatives, which raise an error unless they are multiplied by zero.

`missing_gradients` is for backward functions, `without_derivative` for a result that depends on
tensors in a way that recorders cannot track. In a graph both raise when it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from cytape.errors import DetachedError, NotDifferentiableError
from cytape.ops.adjoints.conform import stand_in
from cytape.ops.engine.custom_op import GradientsIfNeeded
from cytape.ops.engine.op_kinds import general
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import current_graph
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec

__all__ = ["missing_gradients", "missing_op", "without_derivative"]

ANY_INPUTS = range(1 << 30)  # more than an op has


def missing_gradients(refusal: str, gradients: Sequence[Tensor], inputs: Sequence[Any]) -> Any:
    """Return the result of a backward function whose gradients are unknown.

    Parameters
    ----------
    refusal : str
        The error.
    gradients : sequence of Tensor
        Of the results.
    inputs : sequence of Tensor

    Returns
    -------
    GradientsIfNeeded, or list of Tensor or None
    """
    specs = [x.spec for x in inputs]
    if current_graph() is not None:
        return _refused(NotDifferentiableError, refusal, gradients, specs)
    return GradientsIfNeeded(
        lambda needed: (
            _refused(NotDifferentiableError, refusal, gradients, specs) if any(needed)
            else [None] * len(needed)))


def without_derivative(
    result: Tensor, tensors: Sequence[Tensor], refusal: str, factors: Sequence[Tensor] = ()
) -> Tensor:
    """Return a result that also depends on tensors, by an unknown derivative.

    Parameters
    ----------
    result : Tensor
    tensors : sequence of Tensor
    refusal : str
        Text of the `DetachedError` that is raised if the derivative is needed.
    factors : sequence of Tensor, optional
        If these are given and all zero, the result does not depend on the tensors.

    Returns
    -------
    Tensor
    """
    moving = [x for x in tensors if x.spec.trainable]
    if not moving or not result.spec.trainable:
        return result
    matters = functools.reduce(np.logical_or, map(np.any, factors)) if factors else np.True_
    return without_derivative_op(result, matters, *moving, refusal=refusal)


def _vjp(op: Any, gradient: Any) -> list:
    _, matters, *tensors = op.inputs
    found: list = [None] * len(tensors)
    if any(op.needs[2:]):
        found = _refused(
            DetachedError, op.attrs["refusal"], [gradient * matters], op.input_specs[2:])
    # The derivative of the gradient in the same tensors is unknown, too.
    alike = without_derivative_op(gradient, np.any(gradient), *tensors, **op.attrs)
    return [alike, None, *found]


def _jvp(op: Any, tangent: Any, _: Any, *others: Any) -> Any:
    _, matters, *tensors = op.inputs
    result = None if tangent is None else without_derivative_op(
        tangent, np.True_, *tensors, **op.attrs)
    factors = [dx * matters for dx in others if dx is not None]
    if not factors:
        return result
    [zero] = _refused(DetachedError, op.attrs["refusal"], factors, op.output_specs)
    return zero if result is None else result + zero


without_derivative_op = general(
    "WithoutDerivative", lambda x, matters, *tensors, refusal: np.array(x),
    vjp=_vjp, jvp=_jvp, optional_tangents=ANY_INPUTS,
    shape_rule=lambda x, matters, *tensors, refusal: x)


def _refused(
    error: type, refusal: str, given: Sequence[Any], specs: Sequence[Spec]
) -> list:
    """Return zeros if the given derivatives are zero, at run time in a graph; raise if not."""
    given = [convert_to_tensor(x) for x in given if x is not None]
    results = iter(missing_op(
        *given, *[stand_in(spec) for spec in specs if spec.trainable], n=len(given), error=error,
        refusal=refusal))
    return [next(results) if spec.trainable else None for spec in specs]


def _missing(*arrays: Any, n: int, error: type, refusal: str) -> list[np.ndarray]:
    if any(map(np.any, arrays[:n])):
        raise error(refusal)
    return [np.zeros_like(array) for array in arrays[n:]]


def _refused_again(op: Any, given: Sequence[Any], specs: Sequence[Spec]) -> list:
    return _refused(op.attrs["error"], op.attrs["refusal"], given, specs)


missing_op = general(
    "MissingDerivative", _missing,
    vjp=lambda op, *gradients: [
        *_refused_again(op, gradients, op.input_specs[: op.attrs["n"]]),
        *[None] * (len(op.input_specs) - op.attrs["n"])],
    jvp=lambda op, *tangents: _refused_again(
        op, tangents[: op.attrs["n"]], op.output_specs),
    saved_inputs=(), optional_tangents=ANY_INPUTS,
    shape_rule=lambda *specs, n, error, refusal: list(specs[n:]))
