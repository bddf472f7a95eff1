"""Elementwise choices between arrays; each array gets the gradient where it is selected."""

from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import identity_op
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.adjoints.line_elements import take_along
from cytape.ops.broadcasting import broadcast_arrays
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.constants import zeros_like
from cytape.ops.creation import snapshot
from cytape.ops.elementwise import where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.indexing import getitem, index_add
from cytape.ops.joining import stack
from cytape.ops.shaping import expand_dims, ndim, squeeze
from cytape.tensor import convert_to_tensor
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import spec_like

__all__ = ["choose", "piecewise", "select"]

_NUMBERS = (bool, int, float, complex)
_FEW = 4  # arrays; so few are selected one after the other, without stacking them


@numpy_function(np.select, "condlist", "choicelist", "default")
def select(condlist, choicelist, default=0) -> Any:
    """Take elements from the first array whose condition holds, as `numpy.select`.

    Examples
    --------
    >>> from cytape import grad
    >>> x = np.array([-1.0, 2.0])
    >>> grad(lambda x: np.sum(np.select([x < 0, x > 1], [x, x**2])))(x)
    array([1., 4.])
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    conditions = [operand(c) for c in condlist]
    for i, condition in enumerate(conditions):
        if condition.dtype != bool:
            raise TypeError(
                f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = together(*[
        x if type(x) in _NUMBERS else operand(x)
        for x in (*choicelist, default)])
    dtype = np.result_type(*[
        x.dtype if hasattr(x, "dtype") else x for x in choices])
    *choices, result = [_in(x, dtype) for x in choices]
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


def _in(x, dtype):
    if is_tensor(x):
        return convert_to_tensor(x).astype(dtype)
    return np.asarray(x, dtype)


def _within(a, *, n, mode):
    a = a.astype(np.intp)
    if mode == "wrap":
        return a % n
    if mode == "clip":
        return a.clip(0, n - 1)
    if mode != "raise":
        np.choose([0], [[0]], mode=mode)  # raises NumPy's error
    if ((a < 0) | (a >= n)).any():
        raise ValueError("invalid entry in choice array")
    return a


within_op = nondifferentiable(
    "WithinChoices", _within, shape_rule=lambda a, **_: spec_like(a, np.dtype(np.intp)))


@numpy_function(np.choose, "a", "choices")
def choose(a, choices, out=None, mode="raise") -> Any:
    """Take each element from the array with the number at its place, as `numpy.choose`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.choose([1, 0], [x, x**2])))(np.array([3.0, 4.0]))
    array([6., 1.])
    """
    a = operand(a)
    if a.dtype.kind not in "biu":
        np.choose(np.ones(1, a.dtype), [[0]])  # raises NumPy's error
    choices = [operand(c) for c in choices]
    if 1 < len(choices) <= _FEW and len({x.dtype for x in choices}) == 1:
        *choices, result = together(*choices)
        within = within_op(a, n=len(choices) + 1, mode=mode)
        for i, choice in enumerate(choices):
            result = where(within == i, choice, result)
        return result
    a, *choices = broadcast_arrays(a, *together(*choices))
    within = within_op(a, n=len(choices), mode=mode)
    return identity_op(squeeze(
        take_along(stack(choices, -1), expand_dims(within, -1), unique=True), -1))


# -- pieces ----------------------------------------------------------------------------------------


def _noting(function, returned):
    """Return a function that stores the result of another one, and returns 0 if it is a tensor."""
    def noting(*args, **kw):
        returned.append(snapshot(function(*args, **kw)))
        return 0 if is_tensor(returned[-1]) else returned[-1]
    return noting


def _placed(values, condition, like):
    """Return zeros in the shape of a tensor, with values where a condition holds."""
    if condition.graph is None and like.spec.known:
        return index_add(values, like.spec, data_of(condition))
    return index_add(values, like.spec, "@0", condition)


def piecewise(x, condlist, funclist, *args, **kw) -> Any:
    """Apply to each element the function whose condition holds, as `numpy.piecewise`.

    Examples
    --------
    >>> from cytape import grad
    >>> x = np.array([-1.0, 2.0])
    >>> f = lambda x: np.sum(np.piecewise(x, [x < 0, x >= 0], [0.0, lambda x: x**2]))
    >>> grad(f)(x)
    array([0., 4.])
    """
    conditions = [condlist] if _is_one(condlist, x) else list(condlist)
    if not any(map(is_tensor, (x, *conditions, *funclist))):
        returned: list[Any] = []
        noting = [_noting(f, returned) if callable(f) else f for f in funclist]
        result = np.piecewise(x, condlist, noting, *args, **kw)
        if not is_tensor(returned):
            return result
        # The functions capture tensors: their results are joined below.
        returned.reverse()
        funclist = [(lambda *_, **__: returned.pop()) if callable(f) else f for f in funclist]
    x = convert_to_tensor(x)
    conditions = [_of_slices(convert_to_tensor(c).astype(bool), x) for c in conditions]
    if len(conditions) == len(funclist) - 1:  # the last one is for all other elements
        taken = conditions[0]
        for condition in conditions[1:]:
            taken = taken | condition
        conditions.append(~taken)
    elif len(conditions) != len(funclist):
        n = len(conditions)
        raise ValueError(
            f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    result = zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function) or is_tensor(function):
            values = operand(function)
            if not is_tensor(function):
                values = np.asarray(function, x.dtype)  # raises for integers that it cannot hold
        else:
            part = getitem(x, condition)
            if part.shape is not None and 0 in part.shape:  # NumPy does not call it either
                continue
            values = function(part, *args, **kw)
        values = convert_to_tensor(values).astype(x.dtype)
        of_elements = expand_dims(condition, tuple(range(ndim(condition), ndim(x))))
        result = where(
            of_elements, _placed(values, condition, x) if ndim(values) else values, result)
    return result


def _of_slices(condition, x):
    """Return a condition on slices along the first axes of `x`; raise if its shape does not fit."""
    if ndim(condition) > ndim(x):
        raise IndexError(
            f"piecewise: a condition of {ndim(condition)} axes for an array of {ndim(x)}")
    return with_extents(
        condition, IndexError, "piecewise: a condition does not have the shape of the array",
        like=x, same=[(i, i) for i in range(ndim(condition))])


def _is_one(condlist, x):
    """Return whether there is one condition instead of a list, by NumPy's rule."""
    if np.isscalar(condlist) or is_tensor(condlist) and ndim(condlist) == ndim(x):
        return True
    first = condlist[0]
    return not isinstance(first, list) and ndim(first) == 0 and ndim(x) != 0
