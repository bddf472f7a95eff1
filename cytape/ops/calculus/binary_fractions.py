"""Parts of floating point numbers: `ldexp`, `frexp`, `modf`."""

from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import as_operands
from cytape.ops.calculus.powers_of_two import over_powers_of_two
from cytape.ops.calls.operands import is_tensor, is_written, joined
from cytape.ops.creation import result_in_order
from cytape.ops.elementwise import exp2
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import elementwise, general, multilinear
from cytape.ops.shapes import shape_rules
from cytape.tensor import Tensor

__all__ = ["frexp", "ldexp", "modf"]

_ldexp = elementwise("Ldexp", np.ldexp, lambda z, x, n: exp2(n), None)


def ldexp(x1, x2, /, *out, **kwargs) -> Any:
    """Return ``x1 * 2**x2``, as `numpy.ldexp`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.ldexp(3.0, 2)
    np.float64(12.0)
    """
    if type(x2) is int:  # a Python int would become a float beside a symbolic tensor
        x2 = np.asarray(x2)
    return _ldexp(x1, x2, *out, **kwargs)


def _quotients(x, exponents):
    if type(x) is type(exponents) is np.ndarray:
        found = over_powers_of_two(x, exponents)
        if found is not None:
            return found
    with np.errstate(over="ignore"):  # the kernel does not warn either
        return np.ldexp(x, -exponents)


over_powers_of_two_op = multilinear(
    "OverPowersOfTwo", _quotients, lambda op, g, n: over_powers_of_two_op(g, n), None,
    core=(0, 0), shape_rule=shape_rules.elementwise(np.ldexp))


def _frexp_vjp(op, g, _):
    divide = _quotients if type(g) is np.ndarray else over_powers_of_two_op
    return divide(g, op.outputs[1])


_frexp = general(
    "Frexp", np.frexp, _frexp_vjp,
    lambda op, dx: (over_powers_of_two_op(dx, op.outputs[1]), None),
    saved_inputs=(), saved_outputs=(1,), optional_gradients=(1,),
    shape_rule=shape_rules.both_parts(np.frexp),
    batch=batch_axis.aligned,
)  # fmt: skip
_modf = general(
    "Modf", np.modf,
    lambda op, g, _: g,
    lambda op, dx: (dx, None),
    saved_inputs=(), optional_gradients=(1,), shape_rule=shape_rules.both_parts(np.modf),
    batch=batch_axis.aligned,
)  # fmt: skip


def frexp(x, /, *out, **kwargs) -> Any:
    """Return mantissas and exponents of two, as `numpy.frexp`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.frexp(6.0)
    (np.float64(0.75), np.int32(3))
    """
    if type(x) is Tensor and not out and not kwargs:
        return _frexp(x)
    return _parts_of_number(_frexp, x, out, kwargs)


def modf(x, /, *out, **kwargs) -> Any:
    """Return fractional and integral parts, as `numpy.modf`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.modf(6.5)
    (np.float64(0.5), np.float64(6.0))
    """
    if type(x) is Tensor and not out and not kwargs:
        return _modf(x)
    return _parts_of_number(_modf, x, out, kwargs)


def _parts_of_number(op, x, out, keywords):
    x = joined(x)
    if is_written(out, keywords) or not is_tensor(x):
        return op.forward(x, *out, **keywords)
    parts = op(*as_operands(op.forward, (x,), keywords))
    return tuple([result_in_order(part, keywords.get("order"), (x,)) for part in parts])
