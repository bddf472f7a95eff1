"""`funm`: functions of matrices given by a function of numbers.

With A = V diag(w) V^-1 the derivative in direction E is V (F * (V^-1 E V)) V^-1, where F has the
divided differences of the function at pairs of eigenvalues: Higham, "Functions of Matrices" (2008),
(3.13).
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.autodiff.custom.bound_rule import bound
from cytape.autodiff.forward_functional import jvp
from cytape.errors import DetachedError
from cytape.ops.calls.op_call import OpCall
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.creation import identity
from cytape.ops.elementwise import absolute, real, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    columns,
    dtype_of,
    matmul,
    rows,
    square_shape,
)
from cytape.ops.submodules.solving import solve_op
from cytape.ops.submodules.spectral import eig_op
from cytape.tensor.values.spec import symbolic_spec

CLOSE = 1e-5  # relative distance of eigenvalues whose divided difference is a derivative
WORST = 1e3  # condition of eigenvectors, beyond which the derivative has few correct digits


def _require_independent(v: Any) -> Any:
    condition = np.max(np.linalg.cond(v)) if v.size else 1.0
    if not condition <= WORST:
        raise np.linalg.LinAlgError(
            f"funm: the eigenvectors are almost dependent (condition {condition:.1e}), so that the "
            "derivative would not be accurate; expm, logm, sqrtm and their kin have rules for such "
            "matrices")
    return v.copy()


independent_op = general(
    "ScipyLinalgIndependentVectors", _require_independent, vjp=lambda op, g: g,
    jvp=lambda op, t: t, saved_inputs=(), shape_rule=lambda v: v, batch=batch_axis.stacked)


def _theirs(a: Any, func: Any, *options: Any) -> Any:
    """Call SciPy, whose `func` gets no tensors: a tensor that it detaches is not an argument."""
    try:
        return linalg.funm(a, lambda z: np.asarray(func(z)), *options)
    except DetachedError as error:
        raise DetachedError(
            "funm: func reads a tensor that is being recorded, so that its gradient would be lost: "
            "pass tensor.numpy() if the derivative should stop here") from error


def _forward(a: Any, *, func: Any, is_real: bool) -> Any:
    result = _theirs(a.astype(dtype_of(a), copy=False), func)
    if is_real and result.dtype.kind == "c":
        raise ValueError("funm of this real matrix is complex, but the graph that was built has a "
                         "real result: call funm with a complex matrix, as funm(a + 0j, func)")
    return result


def _direction(op: OpCall, e: Any) -> Any:
    """Return the derivative in a direction."""
    func = op.attrs["func"]
    w, v = eig_op(op.inputs[0], always_complex=True)
    v = independent_op(v)
    values = func(w)
    differences = columns(w) - rows(w)
    scale = 1 + absolute(columns(w)) + absolute(rows(w))
    is_close = absolute(differences) <= CLOSE * scale
    middle = (columns(w) + rows(w)) / 2
    slopes = jvp(func, (middle,), (0 * middle + 1,))[1]
    factors = where(
        is_close, slopes,
        (columns(values) - rows(values)) / where(is_close, 1, differences))
    inner = factors * solve_op(v, matmul(e + 0j, v))
    return adjoint(solve_op(adjoint(v), adjoint(matmul(v, inner))))


def _jvp(op: OpCall, t: Any) -> Any:
    result = _direction(op, t)
    return result if op.output_specs[0].dtype.kind == "c" else real(result)


funm_op = general(
    "ScipyLinalgFunm", _forward, vjp=lambda op, g: adjoint(_direction(op, adjoint(g))), jvp=_jvp,
    shape_rule=lambda a, **_: symbolic_spec(square_shape(a, "funm"), dtype_of(a)))


def funm(A: Any, func: Any, disp: bool = True) -> Any:  # noqa: N803 (SciPy's name)
    """Return a function of a matrix, as `scipy.linalg.funm`.

    The derivative needs as many clearly independent eigenvectors as rows, and raises a LinAlgError
    otherwise. `func` must be differentiable by cytape; tensors that it reads must be constants.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.linalg import funm
    >>> cytape.grad(lambda a: funm(a, np.exp)[0, 0])(np.diag([0.0, 1.0])).round(6) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    A = joined(A)  # noqa: N806
    if not is_tensor(A):
        return _theirs(A, func, disp)
    if not disp:
        raise TypeError("funm of tensors does not take disp=False")
    return funm_op(
        A, func=bound("the function of funm", func),
        is_real=A.dtype.kind != "c" and identity(A).graph is not None)
