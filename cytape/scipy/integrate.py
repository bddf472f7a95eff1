"""Ordinary differential equations, differentiable, with the names of `scipy.integrate`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import numpy as _numpy
import scipy.integrate as _scipys

import cytape.numpy as _np
from cytape.autodiff.recorded_call import RecordedCall as _RecordedCall
from cytape.errors import DetachedError as _DetachedError
from cytape.ops.adjoints.identity_groups import together as _together
from cytape.ops.calls.operands import is_tensor as _is_tensor
from cytape.ops.engine.op_kinds import general as _general
from cytape.tensor import convert_to_tensor as _convert_to_tensor
from cytape.tensor import nest as _nest
from cytape.tensor.values.spec import symbolic_spec as _symbolic_spec

_TOLERANCES = ("rtol", "atol", "mxstep", "hmax", "hmin", "mxordn", "mxords")  # of the adjoint, too


def _solve(*args, **options):
    """Call SciPy, whose `func` gets no tensors: a tensor that it detaches is not an argument."""
    try:
        return _scipys.odeint(*args, **options)
    except _DetachedError as error:
        raise _DetachedError(
            "odeint: func reads a tensor that is not among its arguments, so that its gradient "
            "would be lost: pass the tensor in `args`") from error


def _odeint(y0, t, *leaves, func, options):
    return _solve(
        lambda y, t: _numpy.asarray(func(y, t, *leaves)), _numpy.ravel(y0), t, **options)


def _call(func, y, t, leaves):
    return _np.asarray(func(y, t, *leaves))


def _adjoint(op, g):
    """Solve the adjoint equation, backwards from one output time to the one before.

    The state is y, the adjoint of y, and the gradients of the other arguments: Cao, Li, Petzold and
    Serban, "Adjoint sensitivity analysis for differential-algebraic equations" (2003).
    """
    func, options = op.attrs["func"], op.attrs["options"]
    options = {
        name: options[name] for name in _TOLERANCES if _numpy.ndim(options.get(name, [0])) == 0}
    (y0, times, *leaves), values, n = op.inputs, op.outputs[0], op.outputs[0].shape[1]

    def augmented(state, t, *leaves):
        call = _RecordedCall(
            lambda y, *leaves: _call(func, y, t, leaves), (state[:n], *leaves), {},
            tuple(range(1 + len(leaves))), has_aux=False, quiet=True)
        value = _np.asarray(call.value)
        if not _is_tensor(value):
            return _np.concatenate([value, _np.zeros(state.size - n)])
        products = call.gradients([value], [_convert_to_tensor(state[n:2 * n])])
        return _np.concatenate([value, *[-_np.ravel(product) for product in products]])

    adjoint, others = g[-1], _np.zeros(sum(map(_np.size, leaves)))
    of_times = []
    for i in range(len(times) - 1, 0, -1):
        of_times.append(_np.sum(g[i] * _call(func, values[i], times[i], leaves)))
        start = _np.concatenate([values[i], adjoint, others])
        end = odeint(augmented, start, times[i - 1:i + 1][::-1], tuple(leaves), **options)[-1]
        adjoint, others = end[n:2 * n] + g[i - 1], end[2 * n:]
    of_times.append(-_np.sum((adjoint - g[0]) * _call(func, values[0], times[0], leaves)))
    sizes = _numpy.cumsum([_np.size(leaf) for leaf in leaves])[:-1]
    parts = _np.split(others, sizes) if leaves else []
    return (_np.reshape(adjoint, _np.shape(y0)), _np.stack(of_times[::-1]),
            *[_np.reshape(part, leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])


_odeint_op = _general(
    "ScipyOdeint", _odeint, vjp=_adjoint, saved_outputs=(0,),
    shape_rule=lambda y0, t, *leaves, **_: _symbolic_spec((*t.shape, y0.size), _numpy.float64))


def odeint(func: _Any, y0: _Any, t: _Any, args: tuple = (), **options: _Any) -> _Any:
    """Integrate a system of ordinary differential equations, as `scipy.integrate.odeint`.

    The gradient in `y0`, `t` and the tensors in `args` is computed by the adjoint equation, to the
    tolerances of the call. Tensors that `func` reads must be among `args`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import odeint
    >>> def decayed(rate):
    ...     return odeint(lambda y, t, rate: -rate * y, 1.0, [0.0, 1.0], (rate,))[-1, 0]
    >>> cytape.grad(decayed)(2.0).round(6)  # -exp(-2)
    np.float64(-0.135335)
    """
    args = args if isinstance(args, tuple) else (args,)
    leaves = _nest.flatten(args)
    if not any(map(_is_tensor, (y0, t, *leaves))):
        return _solve(func, y0, t, args, **options)
    if options.get("full_output"):
        raise TypeError("odeint of tensors does not take full_output")
    if options.pop("tfirst", False):
        user = func
        func = lambda y, t, *args: user(t, y, *args)  # noqa: E731
    moving = [i for i, leaf in enumerate(leaves) if _is_tensor(leaf)]

    def packed(y, t, *given):
        filled = list(leaves)
        for i, leaf in zip(moving, given, strict=True):
            filled[i] = leaf
        return func(y, t, *_nest.pack_sequence_as(args, filled))

    y0, t, *tensors = _together(
        _np.asarray(y0, float), _np.asarray(t, float), *[leaves[i] for i in moving])
    return _odeint_op(y0, t, *tensors, func=packed, options=options)


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
