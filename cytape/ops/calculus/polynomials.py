"""Polynomials with coefficients from the highest power down, and their roots.

The derivative of a root is that of an implicit function; at a multiple root, where the derivative
of the polynomial is 0, it is infinite or NaN.
"""

import operator
from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calculus.signal_convolution import convolve
from cytape.ops.calls.operands import is_tensor, operand, plain, values_of
from cytape.ops.cumulative import cumsum
from cytape.ops.elementwise import conj, real, sqrt, where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import matmul_op
from cytape.ops.reductions import sum
from cytape.ops.shaping import atleast_1d, expand_dims, ndim, ravel, reshape, shape, size, transpose
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.user_warnings import warn

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots", "vander",
]  # fmt: skip


def _coefficients(x, name):
    """Return coefficients as a tensor or array of one axis whose length is known."""
    x = operand(x)
    if not x.shape:
        x = atleast_1d(x)
    if ndim(x) != 1:
        raise ValueError(f"{name}: coefficients have one axis, got shape {shape(x)}")
    return _counted(x, name)


def _counted(x, name):
    """Return coefficients, each perhaps an array; raise if their number is unknown."""
    if ndim(x) == 0:
        raise TypeError(f"{name}: coefficients have at least one axis, got a number")
    if shape(x)[0] is None:
        raise SymbolicTensorError(
            f"{name}: how many coefficients there are is not known: give the placeholder a shape, "
            "or reshape the tensor to a known one")
    return x


def _all_coefficients(name, *operands):
    return [_coefficients(x, name) for x in together(*map(operand, operands))]


def _trimmed(x):
    """Drop leading zeros, unless the coefficients are symbolic."""
    if shape(x) == (0,):
        return np.zeros(1, x.dtype)
    values = values_of(x)
    if values is None:
        return x
    first = np.flatnonzero(values != 0)
    start = first[0] if first.size else len(values) - 1
    return x[start:] if start else x


def _padded(x, n):
    """Return n coefficients, with zeros for higher powers in front."""
    missing = n - shape(x)[0]
    return concatenate((np.zeros(missing, x.dtype), x)) if missing else x  # or NumPy's error


def _sum_or_difference(name, combine):
    numpy_function = getattr(np, name)

    def function(a1, a2):
        if not any(map(is_tensor, (a1, a2))):
            return numpy_function(a1, a2)
        a1, a2 = [_counted(atleast_1d(x), name) for x in together(operand(a1), operand(a2))]
        n = max(shape(a1)[0], shape(a2)[0])
        return combine(_padded(a1, n), _padded(a2, n))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the {"sum" if name == "polyadd" else "difference"} of polynomials, as `numpy.{name}`.

    Examples
    --------
    >>> import cytape
    >>> np.{name}(cytape.constant([1.0, 2.0]), [0.0]).numpy()
    array([1., 2.])
    """  # noqa: E501
    return function


polyadd = _sum_or_difference("polyadd", lambda x, y: x + y)
polysub = _sum_or_difference("polysub", lambda x, y: x - y)


@numpy_function(np.polymul, "a1", "a2")
def polymul(a1, a2) -> Any:
    """Return the product of polynomials, as `numpy.polymul`.

    In a graph leading zeros are kept, since values are unknown.

    Examples
    --------
    >>> import cytape
    >>> np.polymul(cytape.constant([1.0, 2.0]), [1.0, 1.0]).numpy()
    array([1., 3., 2.])
    """
    a1, a2 = _all_coefficients("polymul", a1, a2)
    return convolve(_trimmed(a1), _trimmed(a2))


@numpy_function(np.polydiv, "u", "v")
def polydiv(u, v) -> Any:
    """Return the quotient and the remainder of polynomials, as `numpy.polydiv`.

    Examples
    --------
    >>> import cytape
    >>> quotient, remainder = np.polydiv(cytape.constant([1.0, 3.0, 5.0]), [1.0, 1.0])
    >>> quotient.numpy(), remainder.numpy()
    (array([1., 2.]), array([3.]))
    """
    u, v = map(operand, (u, v))
    if any(values_of(x) is None for x in (u, v)):
        raise SymbolicTensorError(
            "polydiv: how many coefficients the remainder has depends on values, which symbolic "
            "tensors do not have yet; call it through cytape.numpy_function, which runs with the "
            "graph")
    u, v = _all_coefficients("polydiv", u, v)
    dtype = np.result_type(*[np.result_type(x.dtype, 0.0) for x in (u, v)])
    u, v = convert_to_tensor(u).astype(dtype), convert_to_tensor(v).astype(dtype)
    m, n = len(u) - 1, len(v) - 1
    rest, quotient, scale = u, [], 1.0 / v[0]
    for k in range(m - n + 1):
        factor = scale * rest[k]
        quotient.append(factor)
        rest = rest - concatenate((np.zeros(k, dtype), factor * v, np.zeros(m - n - k, dtype)))
    q = np.stack(quotient) if quotient else convert_to_tensor(np.zeros(1, dtype))
    while np.allclose(values_of(rest[0]), 0, rtol=1e-14) and len(rest) > 1:
        rest = rest[1:]
    return q, rest


@numpy_function(np.polyder)
def polyder(p, m=1) -> Any:
    """Return the derivative of a polynomial, as `numpy.polyder`.

    Examples
    --------
    >>> import cytape
    >>> np.polyder(cytape.constant([1.0, 2.0, 3.0])).numpy()
    array([2., 2.])
    """
    if int(m) < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = _counted(operand(p), "polyder")
    for _ in range(int(m)):
        p = p[:-1] * np.arange(p.shape[0] - 1, 0, -1)
    if ndim(p) > 1:  # NumPy takes one more step
        n = max(p.shape[0] - 1, 0)
        np.broadcast_shapes((n, *p.shape[1:]), (n,))
    return p


@numpy_function(np.polyint, "p", "k")
def polyint(p, m=1, k=None) -> Any:
    """Return an antiderivative of a polynomial, as `numpy.polyint`.

    Examples
    --------
    >>> import cytape
    >>> np.polyint(cytape.constant([2.0, 2.0]), k=7.0).numpy()
    array([1., 2., 7.])
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p, k = together(operand(p), k if k is None else operand(k))
    p = _counted(p, "polyint")
    k = np.zeros(m) if k is None else ravel(k)
    if shape(k)[0] == 1 and m > 1:
        k = k * np.ones(m)
    k = with_extents(
        k, ValueError, "k must be a scalar or a rank-1 array of length 1 or >m.", least=[(0, m)])
    for i in range(m):
        p = concatenate((p / np.arange(shape(p)[0], 0, -1), reshape(k[i], (1,))))
    return convert_to_tensor(p)


@numpy_function(np.polyval, "p", "x")
def polyval(p, x) -> Any:
    """Evaluate a polynomial, as `numpy.polyval`; coefficients may be arrays, along the first axis.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.polyval([1.0, 2.0, 3.0], x))(2.0)
    np.float64(6.0)
    """
    if isinstance(x, np.poly1d):
        raise TypeError("polyval: a poly1d cannot be evaluated with coefficients that are tensors; "
                        "use polymul and polyadd")
    p, x = together(operand(p), operand(x))
    p = _counted(p, "polyval")
    y = np.zeros(shape(x), x.dtype) if None not in shape(x) else np.zeros_like(x)
    for i in range(shape(p)[0]):
        y = y * x + p[i]
    return convert_to_tensor(y)


def _times_factor(a, zero):
    """Return the coefficients of the polynomial a times (x - zero)."""
    none = np.zeros(1, a.dtype)
    return concatenate((a, none)) - concatenate((none, a * zero))


def _by_factors(zeros):
    a = convert_to_tensor(np.ones(1, zeros.dtype))
    for i in range(zeros.shape[0]):
        a = _times_factor(a, zeros[i])
    return a


def _poly(zeros):
    a = np.zeros(zeros.size + 1, zeros.dtype)
    a[0] = 1
    for n, zero in enumerate(zeros, 1):
        a[1:n + 1] -= zero * a[:n]
    return a


def _poly_vjp(op, g):
    zeros = conj(op.inputs[0]) if g.dtype.kind == "c" else op.inputs[0]
    n = zeros.size
    products, gradients = np.zeros((2, n, n), zeros.dtype)  # rows: products of the first factors
    products[:1, :1] = 1
    for i in range(1, n):
        products[i, :i] = products[i - 1, :i]
        products[i, 1:i + 1] -= zeros[i - 1] * products[i - 1, :i]
    for i in range(n - 1, -1, -1):
        gradients[i, :i + 1] = g[1:]
        g = g[:-1] - zeros[i] * g[1:]
    return [-sum(products * gradients, 1)]


def _poly_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    zeros = op.inputs[0]
    a, moved = convert_to_tensor(np.ones(1, zeros.dtype)), np.zeros(1, zeros.dtype)
    for i in range(zeros.shape[0]):
        moved = _times_factor(moved, zeros[i]) - concatenate((np.zeros(1, a.dtype), a * t[i]))
        a = _times_factor(a, zeros[i])
    return moved


poly_op = composed(
    "Poly", _poly, _by_factors, vjp_of_arrays=_poly_vjp, jvp=_poly_jvp,
    shape_rule=lambda zeros: symbolic_spec(
        (None if zeros.shape[0] is None else zeros.shape[0] + 1,), zeros.dtype))


@numpy_function(np.poly)
def poly(seq_of_zeros) -> Any:
    """Return the polynomial with given roots, as `numpy.poly`.

    Examples
    --------
    >>> import cytape
    >>> np.poly(cytape.constant([1.0, 2.0])).numpy()
    array([ 1., -3.,  2.])
    """
    zeros = atleast_1d(convert_to_tensor(seq_of_zeros))
    if ndim(zeros) == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif ndim(zeros) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    zeros = _coefficients(zeros, "poly")
    if zeros.shape == (0,):
        return convert_to_tensor(1.0)
    zeros = zeros.astype(np.mintypecode(zeros.dtype.char))
    a = _by_factors(zeros) if zeros.graph is not None else poly_op(zeros)
    if a.dtype.kind == "c" and a.graph is None:
        values = values_of(zeros)
        if np.all(np.sort(values) == np.sort(values.conj())):
            a = real(a)
    return a


# -- least squares ---------------------------------------------------------------------------------


@numpy_function(np.polyfit, "x", "y", "w")
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False) -> Any:
    """Fit a polynomial by least squares, as `numpy.polyfit`.

    It is differentiable in the points, in their values and weights.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda y: np.polyfit([0.0, 1.0, 2.0], y, 1)[0])(np.zeros(3)).round(6) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    x, y, w = together(operand(x), operand(y), w if w is None else operand(w))
    n = int(deg) + 1
    lengths = shape(x) and shape(x)[0], shape(y) and shape(y)[0], w is not None and shape(w)[0]
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if ndim(x) != 1:
        raise TypeError("expected 1D vector for x")
    if lengths[0] == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= ndim(y) <= 2:
        raise TypeError("expected 1D or 2D array for y")
    x = with_extents(
        x, TypeError, "expected x and y to have same length", like=y, same=[(0, 0)])
    is_scaled = cov and not full and not (isinstance(cov, str) and cov == "unscaled")
    if is_scaled:
        x = with_extents(
            x, ValueError,
            "the number of data points must exceed order to scale the covariance matrix",
            least=[(0, n + 1)])
    x, y = x + 0.0, y + 0.0
    powers, values = vander(x, n), y
    if w is not None:
        if ndim(w) != 1:
            raise TypeError("expected a 1-d array for weights")
        w = with_extents(
            w, TypeError, "expected w and y to have the same length", like=y, same=[(0, 0)])
        powers = powers * expand_dims(w, 1)
        values = values * (expand_dims(w, 1) if ndim(y) == 2 else w)
    if rcond is None:
        if lengths[0] is None:
            raise SymbolicTensorError(
                "polyfit: the number of points is not known, on which rcond depends: give it, or "
                "give the placeholder a shape")
        rcond = lengths[0] * np.finfo(x.dtype).eps
    still = None if full else values_of(powers)
    scale, scaled, solution = _solved(powers, powers if still is None else still, values, rcond)
    found = values_of(solution[2])
    if found is not None and found != n and not full:
        if still is not None:  # the solution depends on the scale
            scale, scaled, solution = _solved(powers, powers, values, rcond)
        warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    c, residuals, rank, values_of_scale = solution
    c = transpose(transpose(c) / scale)
    if full:
        return c, residuals, rank, values_of_scale, rcond
    if not cov:
        return c
    base = np.linalg.inv(matmul_op(transpose(scaled), scaled))
    base = base / (expand_dims(scale, 1) * expand_dims(scale, 0))
    if is_scaled:
        base = base * residuals[0] / (size(x) - n) if ndim(y) == 1 else (
            expand_dims(base, 2) * (residuals / (size(x) - n)))
    elif ndim(y) == 2:
        base = expand_dims(base, 2)
    return c, base


def _solved(powers, columns, values, rcond):
    """Solve a problem scaled by the lengths of columns; return also these and the problem."""
    scale = sqrt(sum(columns * columns, 0))
    scaled = convert_to_tensor(powers / scale)
    return scale, scaled, np.linalg.lstsq(scaled, values, rcond)


# -- powers and roots ------------------------------------------------------------------------------


def _slopes(op, dtype):
    """Return the derivatives of all powers but the constant one."""
    n, increasing = op.attrs["n"], op.attrs["increasing"]
    lower = powers_op(op.inputs[0], n=n - 1, increasing=increasing)
    factors = range(1, n) if increasing else range(n - 1, 0, -1)
    return lower * np.array(factors, np.empty(0, dtype).real.dtype)


def _powers_vjp(op, g):
    if op.attrs["n"] < 2:
        return 0 * op.inputs[0]
    slopes = _slopes(op, g.dtype)
    g = g[:, 1:] if op.attrs["increasing"] else g[:, :-1]
    return sum(g * (conj(slopes) if slopes.dtype.kind == "c" else slopes), 1)


def _powers_jvp(op, t):
    none = expand_dims(np.zeros_like(t), 1)
    if op.attrs["n"] < 2:
        return none[:, :op.attrs["n"]]
    moved = expand_dims(t, 1) * _slopes(op, t.dtype)
    return concatenate((none, moved) if op.attrs["increasing"] else (moved, none), 1)


def _powers_in_batch(call):
    (x,), (spec,) = call.inputs, call.input_specs
    if call.extent is None or not spec.known:
        return NotImplemented
    found = call.again([reshape(x, (call.extent * spec.size,))])
    return reshape(found, (call.extent, spec.size, found.shape[-1]))


powers_op = general(
    "Powers", lambda x, *, n, increasing: np.vander(x, n, increasing),
    vjp=_powers_vjp, jvp=_powers_jvp,
    shape_rule=lambda x, *, n, **_: symbolic_spec(
        (*x.shape, n), np.vander(np.ones(1, x.dtype)).dtype),
    batch=_powers_in_batch,
)  # fmt: skip


@numpy_function(np.vander)
def vander(x, N=None, increasing=False) -> Any:  # noqa: N803 (NumPy's name)
    """Return the powers of each element in a row, as `numpy.vander`.

    Examples
    --------
    >>> import cytape
    >>> np.vander(cytape.constant([2.0, 3.0]), 3).numpy()
    array([[4., 2., 1.],
           [9., 3., 1.]])
    """
    x = convert_to_tensor(x)
    if ndim(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    if N is None:
        N = _coefficients(x, "vander").shape[0]  # noqa: N806
    return powers_op(x, n=operator.index(plain(N)), increasing=bool(increasing))


def _root_factors(op):
    """Return the derivative of each root in each coefficient: -r**k / p'(r)."""
    p, found = op.inputs[0], op.outputs[0]
    n = op.input_specs[0].shape[0]
    slopes = polyval(polyder(p), found)
    return -powers_op(found, n=n, increasing=False) / expand_dims(slopes, 1)


def _roots_vjp(op, g):
    factors = _root_factors(op)
    factors = conj(factors) if factors.dtype.kind == "c" else factors
    g = sum(expand_dims(g, 1) * factors, 0)
    return g if op.input_specs[0].dtype.kind == "c" or g.dtype.kind != "c" else real(g)


def _roots(p):
    found = np.roots(p)
    return found.astype(p.dtype, copy=False) if p.dtype.kind == "c" else found  # none: float64


roots_op = general(
    "Roots", _roots,
    vjp=_roots_vjp,
    jvp=lambda op, t: sum(_root_factors(op) * t, 1).astype(op.output_specs[0].dtype),
    saved_outputs=(0,),
    shape_rule=lambda p: symbolic_spec((None,), p.dtype),
)  # fmt: skip


@numpy_function(np.roots)
def roots(p) -> Any:
    """Return the roots of a polynomial, as `numpy.roots`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda p: np.max(np.roots(p)))(np.array([1.0, 0.0, -4.0]))
    array([-1.  , -0.5 , -0.25])
    """
    p = convert_to_tensor(p)
    if p.graph is not None and p.dtype.kind == "c":
        p = _coefficients(p, "roots")
        return roots_op(where(cumsum(p != 0) > 0, p, 0))  # leading zeros have no derivative
    if p.graph is not None:
        raise SymbolicTensorError(
            "roots: whether they are complex depends on values, which symbolic tensors do not have "
            "yet; convert the coefficients to complex numbers, call it through "
            "cytape.numpy_function, which runs with the graph, or take the eigenvalues of the "
            "companion matrix")
    p = _coefficients(p, "roots")
    nonzero = np.flatnonzero(values_of(p))
    if not nonzero.size:
        return convert_to_tensor(np.array([]))
    start = nonzero[0]
    return roots_op(p[start:] if start else p)
