"""Functions of matrices: exponential, logarithm, square root, powers, trigonometric functions.

L(A, E), the derivative of f at A in direction E, is a block of f([[A, E], [0, A]]): Higham,
"Functions of Matrices" (2008), (3.16). The gradient is the adjoint of L(A, G^H), for
tr(B L(A, E)) = tr(L(A, B) E). The exponential, logarithm, square root and sign have cheaper rules.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.creation import identity
from cytape.ops.elementwise import imag, real
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.scipy_linalg.linear_systems import any_tensor
from cytape.ops.scipy_linalg.matrix_equations import solve_sylvester_op
from cytape.ops.shaping import atleast_2d, extents
from cytape.ops.submodules.matrix_parts import adjoint, dtype_of, in_matrix, matmul, square_shape
from cytape.ops.submodules.solving import solve_op as numpys_solve_op
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "coshm", "cosm", "expm", "expm_frechet", "fractional_matrix_power", "logm", "signm", "sinhm",
    "sinm", "sqrtm", "tanhm", "tanm"]


NODES = np.polynomial.legendre.leggauss(7)


def _square_spec(a, *_, **__):
    return symbolic_spec(square_shape(a, "function of a matrix"), dtype_of(a))


def _block(a, t):
    return concatenate([
        concatenate([a, t], -1), concatenate([np.zeros_like(a), a], -1)], -2)


def _corner(function, a, t):
    """Return the derivative of a function of matrices at `a` in a direction."""
    n = extents(a)[-1]
    return function(_block(a, t))[..., :n, n:]


# -- the exponential -------------------------------------------------------------------------------


def _expm_frechet(a, e):
    if 0 in e.shape[:-2]:  # which SciPy refuses
        return np.zeros(e.shape, dtype_of(a, e))
    result = linalg.expm_frechet(a, e, compute_expm=False)
    return result.astype(dtype_of(a, e), copy=False)


frechet_op = composed(
    "ScipyLinalgExpmFrechet", _expm_frechet, lambda a, e: _corner(expm_op, a, e),
    shape_rule=lambda a, e: symbolic_spec(square_shape(a, "expm_frechet"), dtype_of(a, e)),
    batch=batch_axis.stacked)
expm_op = general(
    "ScipyLinalgExpm", lambda a: linalg.expm(a),
    vjp=lambda op, g: frechet_op(adjoint(op.inputs[0]), g),
    jvp=lambda op, t: frechet_op(op.inputs[0], t), shape_rule=_square_spec,
    batch=batch_axis.stacked)


def expm(A) -> Any:  # noqa: N803 (SciPy's name)
    """Return the exponential of a matrix, as `scipy.linalg.expm`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import expm
    >>> cytape.grad(lambda a: expm(a)[0, 0])(np.array([[0.0]]))
    array([[1.]])
    """
    A = joined(A)
    return expm_op(atleast_2d(A)) if is_tensor(A) else linalg.expm(A)


def expm_frechet(A, E, method=None, compute_expm=True, check_finite=True) -> Any:  # noqa: N803
    """Return the derivative of the exponential at A in direction E, as `scipy.linalg.expm_frechet`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import expm_frechet
    >>> cytape.grad(lambda e: expm_frechet(np.zeros((1, 1)), e)[1][0, 0])(np.eye(1))
    array([[1.]])
    """
    A, E = joined(A), joined(E)  # noqa: N806
    if not any_tensor(A, E):
        return linalg.expm_frechet(A, E, method, compute_expm, check_finite)
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"Unknown implementation {method}")
    A, E = together(A, E)  # noqa: N806
    tangent = frechet_op(A, E)
    return (expm_op(A), tangent) if compute_expm else tangent


# -- other functions -------------------------------------------------------------------------------


def _checked(name, result, is_real, dtype):
    if is_real and result.dtype.kind == "c":
        raise ValueError(
            f"{name} of this real matrix is complex, but the graph that was built has a real "
            f"result: call {name} with a complex matrix, as {name}(a + 0j)")
    if result.dtype.kind == "c":
        dtype = np.result_type(dtype, np.complex64)
    return result.astype(dtype, copy=False)


def _function_op(name, forward, frechet=None):
    """Declare a function of matrices, differentiated by a block matrix or a given function."""

    def along(op, direction):
        if frechet is not None:
            return frechet(op.inputs[0], direction, op.output_specs[0])
        return _corner(lambda block: of_matrix(block, **op.attrs), op.inputs[0], direction)

    def vjp(op, g):
        return adjoint(along(op, adjoint(g)))

    def jvp(op, t):
        return along(op, t)

    of_matrix = general(
        f"ScipyLinalg{name.title().replace('_', '')}",
        lambda a, *, is_real, **attrs: _checked(
            name, forward(a.astype(dtype_of(a), copy=False), **attrs), is_real,
            _double(dtype_of(a))),
        vjp=vjp, jvp=jvp, shape_rule=_double_spec, batch=batch_axis.stacked)
    return of_matrix


def _double_spec(a, **_):
    return symbolic_spec(square_shape(a, "function of a matrix"), _double(dtype_of(a)))


def _double(dtype):
    """Return the dtype of the result, which SciPy computes in double precision."""
    return np.result_type(dtype, np.float64)


def _stays_real(A):  # noqa: N803
    """Return whether a result must be real: the graph that is being built says so."""
    return A.dtype.kind != "c" and identity(A).graph is not None


def _refuse_pairs(name, options):
    if not options.get("disp", True):
        raise TypeError(f"{name} of tensors does not take disp=False, which returns an error, too")


def _log_along(a, e):
    """Return the derivative of the logarithm of a matrix in a direction, by its square roots.

    Al-Mohy, Higham and Relton, "Computing the Fréchet derivative of the matrix logarithm" (2013).
    """
    scale = np.max(np.abs(a), initial=0) or 1.0
    t, z = linalg.schur(a / scale)
    if np.any(np.tril(t, -1)):
        t, z = linalg.rsf2csf(t, z)
    t, e = t.astype(complex), (z.conj().T @ e @ z / scale).astype(complex)
    unit = np.eye(len(t))
    if not np.all(np.diagonal(t)):
        return np.full_like(t, np.nan)
    trsyl, = linalg.get_lapack_funcs(("trsyl",), (t, t))
    while np.abs(t - unit).sum(0).max(initial=0) > 0.25:
        t = np.triu(linalg.sqrtm(t))
        e, factor, _ = trsyl(t, t, e)
        e = e * (2 / factor)
    found = np.zeros_like(e)
    for node, weight in zip(*NODES, strict=True):
        step = unit + (1 + node) / 2 * (t - unit)
        half = linalg.solve_triangular(step, weight / 2 * e)
        found += linalg.solve_triangular(step, half.T, trans=1).T
    return z @ found @ z.conj().T


def _logm_frechet(a, e, *, is_real):
    dtype = _double(dtype_of(a, e))
    a, e = np.broadcast_arrays(a, e)
    pairs = (x.reshape(-1, *a.shape[-2:]) for x in (a, e))
    found = np.array([_log_along(*pair) for pair in zip(*pairs, strict=True)], complex)
    found = found.reshape(a.shape)
    return found.real.astype(dtype) if is_real else found


def _logm_along(a, e, spec):
    return logm_frechet_op(a, e, is_real=spec.dtype.kind != "c")


logm_frechet_op = composed(
    "ScipyLinalgLogmFrechet", _logm_frechet, lambda a, e, **_: _corner(logm, a, e),
    shape_rule=lambda a, e, *, is_real: symbolic_spec(
        square_shape(a, "logm"), _double(dtype_of(a, e)) if is_real else np.complex128),
    batch=batch_axis.stacked)
logm_op = _function_op("logm", lambda a: linalg.logm(a), _logm_along)
power_op = _function_op(
    "fractional_matrix_power", lambda a, t: linalg.fractional_matrix_power(a, t))


def logm(A, **options) -> Any:  # noqa: N803
    """Return the logarithm of a matrix, as `scipy.linalg.logm`.

    In a graph that of a real matrix must be real.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import logm
    >>> cytape.grad(lambda a: logm(a)[0, 0])(np.array([[4.0]]))
    array([[0.25]])
    """
    A = joined(A)
    if not is_tensor(A):
        return linalg.logm(A, **options)
    _refuse_pairs("logm", options)
    return logm_op(A, is_real=_stays_real(A))


def fractional_matrix_power(A, t) -> Any:  # noqa: N803
    """Return a power of a matrix, as `scipy.linalg.fractional_matrix_power`.

    A tensor as the exponent gives the exponential of its product with the logarithm.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import fractional_matrix_power
    >>> cytape.grad(lambda a: fractional_matrix_power(a, 0.5)[0, 0])(np.array([[4.0]]))
    array([[0.25]])
    """
    A = joined(A)
    if not any_tensor(A, t):
        return linalg.fractional_matrix_power(A, t)
    if is_tensor(t):
        A, t = together(A, t)  # noqa: N806
        return expm_op(in_matrix(t) * logm(A + 0 * in_matrix(t)))
    return power_op(A, t=t, is_real=_stays_real(A))


def _root_vjp(op, g):
    root = adjoint(op.outputs[0])
    return solve_sylvester_op(root, root, g)


def _root_jvp(op, t):
    return solve_sylvester_op(op.outputs[0], op.outputs[0], t)


sqrtm_op = general(
    "ScipyLinalgSqrtm", lambda a, *, is_real: _checked(
        "sqrtm", linalg.sqrtm(a.astype(dtype_of(a), copy=False)), is_real, dtype_of(a)),
    vjp=_root_vjp, jvp=_root_jvp, batched=_root_jvp, saved_inputs=(), saved_outputs=(0,),
    shape_rule=_square_spec, batch=batch_axis.stacked)


def sqrtm(A, **options) -> Any:  # noqa: N803
    """Return the square root of a matrix, as `scipy.linalg.sqrtm`.

    In a graph that of a real matrix must be real.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import sqrtm
    >>> cytape.grad(lambda a: sqrtm(a)[0, 0])(np.array([[4.0]]))
    array([[0.25]])
    """
    A = joined(A)
    if not is_tensor(A):
        return linalg.sqrtm(A, **options)
    _refuse_pairs("sqrtm", options)
    A = atleast_2d(A)  # noqa: N806
    return sqrtm_op(A, is_real=_stays_real(A))


def _sign_jvp(op, t):
    """Return the tangent of the sign S: N L + L N = E - S E S with N = S A; Higham, theorem 5.3."""
    sign = op.outputs[0]
    magnitude = matmul(sign, op.inputs[0])
    return solve_sylvester_op(magnitude, magnitude, t - matmul(matmul(sign, t), sign))


signm_op = general(
    "ScipyLinalgSignm", lambda a, *, is_real: _checked(
        "signm", linalg.signm(a.astype(dtype_of(a), copy=False)), is_real, dtype_of(a)),
    vjp=lambda op, g: adjoint(_sign_jvp(op, adjoint(g))), jvp=_sign_jvp, batched=_sign_jvp,
    saved_outputs=(0,), shape_rule=_square_spec, batch=batch_axis.stacked)


def signm(A, **options) -> Any:  # noqa: N803
    """Return the sign of a matrix, as `scipy.linalg.signm`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import signm
    >>> a = np.array([[1.0, 2.0], [0.0, -3.0]])
    >>> cytape.grad(lambda a: signm(a)[0, 1])(a)[0, 1].round(6)
    np.float64(0.5)
    """
    A = joined(A)
    if not is_tensor(A):
        return linalg.signm(A, **options)
    _refuse_pairs("signm", options)
    return signm_op(A, is_real=_stays_real(A))


# -- by exponentials -------------------------------------------------------------------------------


def _cos_and_sin(A):  # noqa: N803
    if A.dtype.kind != "c":
        power = expm_op(1j * A)
        return real(power), imag(power)
    up, down = expm_op(1j * A), expm_op(-1j * A)
    return (up + down) / 2, (up - down) / 2j


def _cosh_and_sinh(A):  # noqa: N803
    up, down = expm_op(A), expm_op(-A)
    return (up + down) / 2, (up - down) / 2


def _ratio(c, s):
    return numpys_solve_op(c, s)


def _named(name, parts, combine):
    theirs = getattr(linalg, name)

    def function(A):  # noqa: N803
        A = joined(A)
        if not is_tensor(A):
            return theirs(A)
        square_shape(A.spec, name)
        return combine(*parts(A))

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = (
        f"Return the {_NAMES[name]} of a matrix, as `scipy.linalg.{name}`.")
    return function


_NAMES = {
    "cosm": "cosine", "sinm": "sine", "tanm": "tangent", "coshm": "hyperbolic cosine",
    "sinhm": "hyperbolic sine", "tanhm": "hyperbolic tangent"}
cosm = _named("cosm", _cos_and_sin, lambda c, s: c)
sinm = _named("sinm", _cos_and_sin, lambda c, s: s)
tanm = _named("tanm", _cos_and_sin, _ratio)
coshm = _named("coshm", _cosh_and_sinh, lambda c, s: c)
sinhm = _named("sinhm", _cosh_and_sinh, lambda c, s: s)
tanhm = _named("tanhm", _cosh_and_sinh, _ratio)
