"""Hypergeometric functions, those of Wright, orthogonal polynomials (DLMF 13, 14, 15, 18).

They are differentiable in the argument, but not in parameters, orders and degrees. Degrees that are
whole numbers are passed as integers, for which SciPy has other formulas.
"""

from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.adjoints.conform import cast
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.shape_parameters import (
    in_last,
    is_complex,
    no_partial,
    no_partials,
    op_name,
    real_order,
    whole_numbers,
)
from cytape.ops.special_kernels.polynomial_ufuncs import by_degrees, derivatives
from cytape.tensor import Tensor

__all__ = [
    "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu", "eval_gegenbauer",
    "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi", "eval_laguerre",
    "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre",
    "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "legendre_p", "log_wright_bessel", "lpmv",
    "wright_bessel", "wrightomega"]

hyp0f1 = in_last("hyp0f1", "v", lambda y, v, z: hyp0f1(real_order(v) + 1, z) / v)
hyp1f1 = in_last("hyp1f1", "ab", lambda y, a, b, x: (
    a / b * hyp1f1(real_order(a) + 1, real_order(b) + 1, x)))
hyp2f1 = in_last("hyp2f1", "abc", lambda y, a, b, c, z: (
    a * b / c * hyp2f1(real_order(a) + 1, real_order(b) + 1, real_order(c) + 1, z)))
hyperu = in_last("hyperu", "ab", lambda y, a, b, x: -a * hyperu(a + 1, b + 1, x))
wright_bessel = in_last("wright_bessel", "ab", lambda y, a, b, x: wright_bessel(a, a + b, x))
log_wright_bessel = in_last("log_wright_bessel", "ab", lambda y, a, b, x: (
    np.exp(log_wright_bessel(a, a + b, x) - y)))
wrightomega = elementwise("ScipyWrightomega", special.wrightomega, lambda y, z: y / (1 + y))


# ---- orthogonal polynomials ------------------------------------------------------------------


_ops: dict = {}


def _of_scipys_dtype(name):
    """Return a function that calls the op of a polynomial, with SciPy's dtype as its result.

    The op's is double precision, as graphs convert degrees to the dtype of the argument.
    """
    op, ufunc = _ops[name], getattr(special, f"eval_{name}")

    def function(*operands, **arguments):
        if any(map(is_complex, operands[:ufunc.nin - 1])):
            ufunc.resolve_dtypes((*[np.dtype(complex)] * ufunc.nin, None))  # raises SciPy's error
        for x in operands:
            if isinstance(x, Tensor) and x.dtype.char in "dD":
                return op(*operands, **arguments)
        operands = [joined(x) for x in operands]
        if not any(map(is_tensor, operands)):
            return ufunc(*operands, **arguments)
        y = op(*operands, **arguments)
        if ufunc.ntypes == 1 or len(operands) > ufunc.nin:
            return y
        types = [type(x) if type(x) in (int, float, complex) else np.result_type(
            getattr(x, "dtype", x)) for x in operands]
        return cast(y, ufunc.resolve_dtypes((*types, None))[-1])

    function.__name__ = function.__qualname__ = ufunc.__name__
    function.__doc__ = f"Return values of polynomials, as `scipy.special.{ufunc.__name__}`."
    return function


def _polynomial(name, parameters, slope):
    """Declare a polynomial with the factor and polynomial of degree n - 1 of its derivative."""
    function = getattr(special, f"eval_{name}")

    def forward(n, *others):
        n = whole_numbers(n)
        if function.ntypes > 1 and not np.issubdtype(np.result_type(n), np.integer):
            n = np.asarray(n, float)
        return function(n, *map(real_order, others[:-1]), others[-1])

    def partial(y, n, *others):
        n, *parameters = map(real_order, (n, *others[:-1]))
        if isinstance(n, (np.ndarray, np.generic)) and n.ndim == 0 and n != 0:
            return slope(float(n), *parameters, others[-1])
        is_constant = n == 0
        return np.where(is_constant, 0, slope(np.where(is_constant, 1, n), *parameters, others[-1]))

    forward.__name__, forward.__doc__ = function.__name__, function.__doc__
    _ops[name] = elementwise(
        op_name(f"eval_{name}"), forward, *no_partials(f"eval_{name}", "n", *parameters), partial)
    return _of_scipys_dtype(name)


eval_gegenbauer = _polynomial("gegenbauer", ("alpha",), lambda n, alpha, x: (
    2 * alpha * _ops["gegenbauer"](n - 1, alpha + 1, x)))


_derivatives: dict = {}


def _family(name, **family):
    """Declare polynomials with a kernel for their derivatives of all orders."""
    function = f"eval_{name}"
    _derivatives[name] = derivative = elementwise(
        op_name(f"{function}_derivative"), derivatives(name, special.hyp2f1, **family),
        no_partial(function, "n"), None, lambda y, n, j, x: derivative(n, j + 1, x))
    _ops[name] = elementwise(
        op_name(function), by_degrees(getattr(special, function)), no_partial(function, "n"),
        lambda y, n, x: derivative(n, 1, x))
    return _of_scipys_dtype(name)


eval_chebyt = _family("chebyt")
eval_chebyu = _family("chebyu", a=1)
eval_chebyc = _family("chebyc", amplitude=2, scale=0.5)
eval_chebys = _family("chebys", a=1, scale=0.5)
eval_sh_chebyt = _family("sh_chebyt", scale=2, shift=-1)
eval_sh_chebyu = _family("sh_chebyu", a=1, scale=2, shift=-1)
eval_legendre = _family("legendre", a=0.5)
eval_sh_legendre = _family("sh_legendre", a=0.5, scale=2, shift=-1)
eval_jacobi = _polynomial("jacobi", ("alpha", "beta"), lambda n, alpha, beta, x: (
    0.5 * (n + alpha + beta + 1) * _ops["jacobi"](n - 1, alpha + 1, beta + 1, x)))
eval_sh_jacobi = _polynomial(
    "sh_jacobi", ("p", "q"), lambda n, p, q, x: n * _ops["sh_jacobi"](n - 1, p + 2, q + 1, x))
eval_genlaguerre = _polynomial(
    "genlaguerre", ("alpha",), lambda n, alpha, x: -_ops["genlaguerre"](n - 1, alpha + 1, x))
eval_laguerre = _polynomial("laguerre", (), lambda n, x: -_ops["genlaguerre"](n - 1, 1, x))
eval_hermite = _polynomial("hermite", (), lambda n, x: 2 * n * _ops["hermite"](n - 1, x))
eval_hermitenorm = _family("hermitenorm", is_hermite=True)


def legendre_p(n, z, *, diff_n=0) -> Any:
    """Return a Legendre polynomial and its derivatives, as `scipy.special.legendre_p`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import legendre_p
    >>> cytape.jacobian(lambda z: legendre_p(2, z, diff_n=1))(0.5)
    array([1.5, 3. ])
    """
    n, z = joined(n), joined(z)
    if not (is_tensor(n) or is_tensor(z)):
        return special.legendre_p(n, z, diff_n=diff_n)
    special.legendre_p(0, 0.5, diff_n=diff_n)  # raises errors
    return np.stack([eval_legendre(n, z), *[
        _derivatives["legendre"](n, order, z) for order in range(1, diff_n + 1)]])


def _lpmv_partial(y, m, v, x):
    """Differentiate by the orders m - 1 and m + 1; for m = 0 as a polynomial."""
    is_0 = m == 0
    order = np.where(is_0, 1, m)
    root = np.sqrt((1 - x) * (1 + x))
    slope = 0.5 / root * (
        (v + order) * (v - order + 1) * lpmv(order - 1, v, x) - lpmv(order + 1, v, x))
    if isinstance(is_0, (np.ndarray, np.bool_)) and not np.any(is_0):
        return slope
    return np.where(is_0, _ops["gegenbauer"](v - 1, 1.5, x), slope)


lpmv = in_last("lpmv", "mv", _lpmv_partial)
