"""Roots of functions of one number, and fixed points, with implicit derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import restored
from cytape.autodiff.functional import grad
from cytape.autodiff.wrapped_calls import Arguments
from cytape.graph.tracing.kept_traces import identity_of
from cytape.scipy.optimize.implicit import Equation, held, require_no_captures, run, solution
from cytape.scipy.optimize.stored_results import forgetting
from cytape.scipy.optimize.unknowns import separated, tuple_of
from cytape.tensor.tensor import Tensor


def root_scalar(
    f: Callable, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
    fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None,
    maxiter: Any = None, options: Any = None,
) -> scipys.RootResults:
    """Find a root of a function of one number, as `scipy.optimize.root_scalar`.

    The methods "newton" and "halley" get exact derivatives unless these are given. If `args`
    contain tensors, `root` of the result is a tensor, differentiable in them. If the method fails
    (``converged`` is False), its derivatives raise an error. Brackets and starting points have a
    derivative of 0.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import root_scalar
    >>> def cube_root(a):
    ...     return root_scalar(lambda x, a: x**3 - a, (a,), bracket=[0, 10]).root
    >>> cytape.grad(cube_root)(8.0).round(12)  # 1 / (3 * 2**2)
    np.float64(0.083333333333)
    """
    given = separated(tuple_of(args), (bracket, x0, x1))
    is_pair, rules = fprime is True, held("root_scalar", [f, fprime, fprime2], given)
    packed = given.without_tensors().packed

    def solve(_, *parameters):
        args, (bracket, x0, x1) = packed(parameters)
        f, fprime, fprime2 = map(restored, rules)
        slopes = {"fprime": _with(fprime, args), "fprime2": _with(fprime2, args)}
        by_newton = method is None and bracket is None and x1 is None or (
            isinstance(method, str) and method.lower() in ("newton", "halley"))
        if by_newton and not is_pair and fprime is None:
            slopes["fprime"] = _slope(f, args)
        if isinstance(method, str) and method.lower() == "halley" and fprime2 is None:
            slopes["fprime2"] = _slope(f, args, 2)

        def value(x):  # SciPy's C code does not look for errors where it converts to a number
            y = f(x, *args)
            return float(y) if isinstance(y, Tensor) else y

        return _described(scipys.root_scalar(
            value, (), method, bracket, x0=x0, x1=x1, xtol=xtol, rtol=rtol,
            maxiter=maxiter, options=options, **slopes))

    x, found = _solved("root_scalar", rules, given, np.zeros(()), solve, is_pair)
    found.root = x
    return found


def newton(
    func: Callable, x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-8,
    maxiter: int = 50, fprime2: Any = None, x1: Any = None, rtol: float = 0.0,
    full_output: bool = False, disp: bool = True,
) -> Any:
    """Find roots by Newton's, Halley's or the secant method, as `scipy.optimize.newton`.

    Without `fprime` and `x1` the exact derivative is used. If `args` contain tensors, the roots
    are a tensor, differentiable in them.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import newton
    >>> cytape.grad(lambda a: newton(lambda x, a: x**2 - a, 1.0, args=(a,)))(4.0).round(12)
    np.float64(0.25)
    """
    given = separated(tuple_of(args), x1)
    packed = given.without_tensors().packed
    rules = held("newton", [func, fprime, fprime2], given)

    def solve(x0, *parameters):
        (args, x1), (func, fprime, fprime2) = packed(parameters), map(restored, rules)
        function, slope = _with(func, args), _with(fprime, args)
        if fprime is None and x1 is None:
            slope = _slope(func, args)
        root, *rest = scipys.newton(
            function, x0, slope, (), tol, maxiter, _with(fprime2, args), x1, rtol, True, disp)
        if np.ndim(root) == 0:
            return _described(rest[0], rest)
        return scipys.OptimizeResult(
            x=root, success=np.all(rest[0]), message="some roots have not converged", found=rest)

    x, rest = _solved("newton", rules, given, x0, solve)
    return (x, *rest) if full_output else x


def _bracketing(name: str, **defaults: Any) -> Callable:
    theirs = getattr(scipys, name)

    def solver(
        f: Callable, a: Any, b: Any, args: Any = (), *positional: Any, **options: Any
    ) -> Any:
        names = [*defaults, "xtol", "rtol", "maxiter", "full_output", "disp"]
        options.update(zip(names, positional, strict=False))
        full_output = options.pop("full_output", False)
        given = separated(tuple_of(args), (a, b))
        rules, packed = held(name, [f], given), given.without_tensors().packed

        def solve(_, *parameters):
            args, ends = packed(parameters)
            _, found = theirs(_with(restored(rules[0]), args), *ends, full_output=True, **options)
            return _described(found)

        x, found = _solved(name, rules, given, np.zeros(()), solve)
        return (x, found) if full_output else x

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = f"""Find a root in an interval, as `scipy.optimize.{name}`.

    If `args` contain tensors, the root is a tensor, differentiable in them.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import {name}
    >>> cytape.grad(lambda a: {name}(lambda x, a: x**2 - a, 0.0, 9.0, (a,)))(4.0).round(6)
    np.float64(0.25)
    """
    return solver


bisect = _bracketing("bisect")
brenth = _bracketing("brenth")
brentq = _bracketing("brentq")
ridder = _bracketing("ridder")
toms748 = _bracketing("toms748", k=1)


def fixed_point(
    func: Callable, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Find a fixed point of a function of an array, as `scipy.optimize.fixed_point`.

    If `args` contain tensors, it is a tensor, differentiable in them by the implicit function
    theorem.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.optimize import fixed_point
    >>> def root(a):
    ...     return fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, (a,))
    >>> cytape.grad(root)(4.0).round(12)
    np.float64(0.25)
    """
    given = separated(tuple_of(args))
    packed = given.without_tensors().packed
    rules = held("fixed_point", [func], given)

    def solve(x0, *parameters):
        args, = packed(parameters)
        return scipys.OptimizeResult(success=True, found=None, x=scipys.fixed_point(
            restored(rules[0]), x0, args, xtol, maxiter, method))

    return _solved("fixed_point", rules, given, x0, solve, elementwise=False)[0]


def _solved(
    name: str, rules: list, given: Arguments, start: Any, solve: Callable, is_pair: bool = False,
    elementwise: bool = True,
) -> tuple:
    """Return a root or fixed point of the first of the user's functions, and other results."""
    plain = given.without_tensors(copies=True)

    def residual(x, *parameters):
        value = rules[0](x, *plain.packed(parameters)[0])
        if name == "fixed_point":
            return x - cnp.asarray(value)
        return value[0] if is_pair else value

    if not given.tensors and not isinstance(start, Tensor):
        require_no_captures(name, residual, np.asarray(start, float)[()] + 0.5)
        result = run(name, solve, start)
        return result.x, result.found
    equation = Equation(name, residual, solve, elementwise=elementwise, rules=rules)
    x, is_solved = solution(equation, cnp.asarray(start), given.tensors)
    if x.graph is None:
        return x, equation.result.found
    return x, scipys.OptimizeResult(converged=is_solved)


def _described(found: Any, rest: Any = None) -> scipys.OptimizeResult:
    return scipys.OptimizeResult(
        x=found.root, success=found.converged, message=found.flag,
        found=found if rest is None else rest)


def _with(function: Any, args: tuple) -> Any:
    """Return a function with its additional arguments; other objects unchanged."""
    return (lambda x: function(x, *args)) if callable(function) else function


def _slope(user: Callable, args: tuple, order: int = 1) -> Callable:
    """Return a derivative of a function that acts on each element."""
    function = slope = _with(user, args)
    for _ in range(order):
        slope = grad(lambda x, inner=slope: cnp.sum(inner(x)))
    return forgetting(slope, function, identity_of(user))
