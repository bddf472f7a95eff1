"""Checks of derivatives by central differences."""

from itertools import product

from cytape.autograd.core import make_jvp, make_vjp, vspace
from cytape.autograd.wrap_util import get_name, unary_to_nary

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a, b):
    """Return whether two numbers are equal within `TOL`, or relatively within `RTOL`.

    Examples
    --------
    >>> scalar_close(1.0, 1.0 + 1e-8), scalar_close(1.0, 1.1)
    (True, False)
    """
    return abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL


def make_numerical_jvp(f, x):
    """Make the Jacobian-vector product of a function, by central differences.

    Examples
    --------
    >>> round(float(make_numerical_jvp(lambda x: x**2, 3.0)(1.0)), 4)
    6.0
    """
    x_space, y_space = vspace(x), vspace(f(x))

    def moved(v, step):
        return f(x_space.add(x, x_space.scalar_mul(v, step)))

    def jvp(v):
        backward = y_space.scalar_mul(moved(v, -EPS / 2), -1.0)
        return y_space.scalar_mul(y_space.add(moved(v, EPS / 2), backward), 1.0 / EPS)

    return jvp


def check_vjp(f, x):
    """Check the vector-Jacobian product of a function in a random direction."""
    vjp, y = make_vjp(f, x)
    x_space, y_space = vspace(x), vspace(y)
    x_v, y_v = x_space.randn(), y_space.randn()
    pulled = x_space.covector(vjp(y_space.covector(y_v)))
    assert vspace(pulled) == x_space
    exact = x_space.inner_prod(x_v, pulled)
    numeric = y_space.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\n"
        f"analytic: {exact}\nnumeric:  {numeric}")


def check_jvp(f, x):
    """Check the Jacobian-vector product of a function in a random direction."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x, y):
    """Check that two values are of one vector space and close to each other.

    Examples
    --------
    >>> check_equivalent([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """
    x_space, y_space = vspace(x), vspace(y)
    assert x_space == y_space, f"VSpace mismatch:\nx: {x_space}\ny: {y_space}"
    v = x_space.randn()
    assert scalar_close(x_space.inner_prod(x, v), x_space.inner_prod(y, v)), (
        f"Value mismatch:\nx: {x}\ny: {y}")


@unary_to_nary
def check_grads(f, x, modes=("fwd", "rev"), order=2):
    """Check the derivatives of a function, up to an order, in random directions.

    Parameters
    ----------
    f : callable
    argnum : int, tuple or list, optional
        Arguments to differentiate with respect to.
    modes : sequence of str, optional
        Of "fwd" and "rev".
    order : int, optional

    Raises
    ------
    AssertionError
        In a call with the arguments of `f`, if a derivative differs.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> check_grads(np.multiply, [0, 1])(2.0, np.array([3.0, 4.0]))
    """
    assert set(modes) <= {"fwd", "rev"}, modes
    for mode, check in (("fwd", check_jvp), ("rev", check_vjp)):
        if mode in modes:
            check(f, x)
            if order > 1:
                v = vspace(x if mode == "fwd" else f(x)).randn()
                check_grads(_product(f, mode), (0, 1), modes, order=order - 1)(x, v)


def _product(f, mode):
    """Return the product of a Jacobian and a vector as a function of the point and the vector."""
    def derivative(x, v):
        return make_jvp(f, x)(v)[1] if mode == "fwd" else make_vjp(f, x)[0](v)

    derivative.__name__ = f"{'jvp' if mode == 'fwd' else 'vjp'}_{get_name(f)}"
    return derivative


def combo_check(fun, *args, **kwargs):
    """Make the check of `check_grads` for all combinations of given arguments.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> combo_check(np.sum, order=1)([np.ones((2, 2))], axis=[None, 0], keepdims=[True, False])
    """
    def check_all(*choices, **named_choices):
        for chosen in product(*choices, *named_choices.values()):
            named = dict(zip(named_choices, chosen[len(choices):], strict=True))
            check_grads(fun, *args, **kwargs)(*chosen[:len(choices)], **named)

    return check_all
