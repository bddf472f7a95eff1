"""Fixed points of iterations, with derivatives by the adjoint fixed-point equation."""

from cytape.autograd.core import defvjp, make_vjp, primitive, vspace


@primitive
def fixed_point(f, a, x0, distance, tol):
    """Iterate a map until it moves by at most a tolerance.

    Parameters
    ----------
    f : callable
        Takes the parameters and returns the map.
    a : array or structure of arrays
        Parameters, with respect to which the fixed point can be differentiated.
    x0 : array
        The first point.
    distance : callable
        Returns the distance of two points.
    tol : float

    Examples
    --------
    >>> from cytape.autograd import grad
    >>> def root(a):  # by Newton's method
    ...     return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0,
    ...                        lambda x, y: abs(x - y), 1e-12)
    >>> round(float(root(9.0)), 6), round(float(grad(root)(9.0)), 6)
    (3.0, 0.166667)
    """
    step = f(a)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


def _adjoint(ans, f, a, x0, distance, tol):
    def adjoint_step(parameters):
        a, x, x_bar = parameters
        pull_back, _ = make_vjp(f(a), x)
        return lambda g: vspace(x).add(pull_back(g), x_bar)

    def vjp(g):
        pull_back, _ = make_vjp(lambda a: f(a)(ans), a)
        return pull_back(
            fixed_point(adjoint_step, (a, ans, g), vspace(x0).zeros(), distance, tol))

    return vjp


defvjp(fixed_point, None, _adjoint, None)
