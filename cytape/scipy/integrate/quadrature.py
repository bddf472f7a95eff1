"""Integrals of functions: `quad`, `quad_vec`, `nquad` and the like."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate as _scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import bound, restored
from cytape.autodiff.wrapped_calls import copied, followed
from cytape.ops.calls.operands import is_tensor
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.python.python_ops import LEAVES_CYTAPE
from cytape.scipy.integrate.graph_calls import reads_others
from cytape.scipy.integrate.leibniz_rule import Integrand, Rule, with_tensors
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.tensor import data_of


def quad(
    func: Callable, a: Any, b: Any, args: Any = (), full_output: Any = 0, *further: Any,
    **options: Any,
) -> Any:
    """Integrate a function, as `scipy.integrate.quad`.

    Has derivatives in the limits and in the tensors in `args`, which may be any structures. Tensors
    that `func` reads must be among `args`. The derivative in an infinite limit is 0. Only the
    integral is a tensor.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.integrate import quad
    >>> def f(rate, end):
    ...     return quad(lambda x, rate: np.exp(-rate * x), 0, end, (rate,))[0]
    >>> of_rate, of_end = cytape.grad(f, argnums=(0, 1))(1.0, 2.0)
    >>> of_rate.round(9), of_end.round(9)  # 3 exp(-2) - 1, exp(-2)
    (np.float64(-0.59399415), np.float64(0.135335283))
    """
    names = ("epsabs", "epsrel", "limit", "points", "weight", "wvar", "wopts", "maxp1", "limlst",
             "complex_func")
    options = {**dict(zip(names, further, strict=False)), **options}

    def integrate(function: Callable, a: Any, b: Any, tensors: list) -> tuple:
        if options.get("complex_func"):
            if full_output:
                raise TypeError("quad of tensors takes no full_output with complex_func")
            parts = {**options, "complex_func": False}
            found = [
                Rule("quad", partial(call, options=parts), weight, True).integrate(
                    lambda *given, part=part: part(cnp.asarray(function(*given))), a, b, tensors)
                for part in (cnp.real, cnp.imag)]
            return found[0][0] + 1j * found[1][0], found[0][1] + 1j * found[1][1]
        return Rule("quad", partial(call, options=options), weight, True).integrate(
            function, a, b, tensors)

    def call(function: Callable, a: float, b: float, options: dict) -> tuple:
        return _scipys.quad(function, a, b, (), full_output, **options)

    kind, variable = options.get("weight"), options.get("wvar")

    def weight(x: Any) -> Any:
        if kind is None:
            return 1.0
        if kind == "cauchy":
            return 1 / (x - variable)
        return {"cos": cnp.cos, "sin": cnp.sin}[kind](variable * x)

    if any(map(is_tensor, (a, b))) and kind not in (None, "cos", "sin", "cauchy"):
        raise TypeError(
            f"quad: the weight {kind!r} depends on the limits, which must be no tensors then")
    if is_tensor(variable):
        raise TypeError("quad has no derivative in wvar: pass an array")
    if is_tensor(options.get("points")):  # on which the integral does not depend
        options["points"] = data_of(convert_to_tensor(options["points"]))
    found = with_tensors(
        "quad", func, args, (a, b), integrate, bool(options.get("complex_func")))
    if found is None:
        return _detached("quad", lambda: _scipys.quad(func, a, b, args, full_output, **options))
    return found


def quad_vec(
    f: Callable, a: Any, b: Any, *further: Any, args: Any = (), **options: Any,
) -> Any:
    """Integrate a function that returns arrays, as `scipy.integrate.quad_vec`.

    Has derivatives as `quad` has.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.integrate import quad_vec
    >>> cytape.jacobian(lambda rates: quad_vec(
    ...     lambda x, rates: rates * x, 0, 1, args=(rates,))[0])(np.ones(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    def call(function: Callable, a: float, b: float) -> tuple:
        return _scipys.quad_vec(function, a, b, *further, **options)

    def integrate(function: Callable, a: Any, b: Any, tensors: list) -> tuple:
        return Rule("quad_vec", call, lambda x: 1.0, False).integrate(function, a, b, tensors)

    if graph_for([x for x in (a, b, *nest.flatten(args)) if is_tensor(x)]) is not None:
        raise TypeError(
            "quad_vec does not work in graphs and traced functions, where the shape of its result "
            "must be known: call it by cytape.custom_jvp, or use quad")
    found = with_tensors("quad_vec", f, args, (a, b), integrate)
    if found is None:
        return _detached(
            "quad_vec", lambda: _scipys.quad_vec(f, a, b, *further, args=args, **options))
    return found


def nquad(
    func: Callable, ranges: Any, args: Any = (), opts: Any = None, full_output: bool = False,
) -> Any:
    """Integrate over several variables, as `scipy.integrate.nquad`.

    Has derivatives in the tensors in `args` and in limits, as `quad` has. With tensors, `opts` is
    one dict for all variables, and there is no `full_output`.
    """
    args = args if isinstance(args, tuple) else (args,)
    limits = [x for pair in ranges if not callable(pair) for x in pair]
    if not any(map(is_tensor, (*limits, *nest.flatten(args)))):
        return _detached("nquad", lambda: _scipys.nquad(func, ranges, args, opts, full_output))
    if full_output or not (opts is None or isinstance(opts, dict)):
        raise TypeError("nquad of tensors takes one dict as opts, and no full_output")
    opts = dict(opts or {})
    ranges = [bound("a range of nquad", x) if callable(x) else copied(x) for x in ranges]
    if any(map(is_tensor, limits)):
        return _nested(bound("the function of nquad", func), ranges, args, opts)

    def integrate(function: Integrand, a: Any, b: Any, tensors: list) -> tuple:
        def call(f: Callable, a: float, b: float) -> Any:
            return _scipys.nquad(lambda *x: f(x), constant, opts=opts)

        constant = [_constant(restored(x), function.packed(tensors)) if callable(x) else x
                    for x in ranges]
        try:
            return Rule("nquad", call, lambda x: 1.0, True).integrate(function, a, b, tensors)
        except MovingLimitsError:
            return _nested(
                lambda *given: function.function(given[:n], *given[n:]), ranges,
                function.packed(tensors), opts)

    n = len(ranges)
    return with_tensors(
        "nquad", lambda x, *args: func(*[x[i] for i in range(n)], *args), args, (0.0, 0.0),
        integrate)


class MovingLimitsError(Exception):
    """Limits depend on tensors."""


def _constant(limits: Callable, args: tuple) -> Callable:
    def at(*x: Any) -> Any:
        pair = limits(*x, *args)
        if any(map(is_tensor, pair)):
            raise MovingLimitsError
        return pair

    return at


def _nested(func: Callable, ranges: list, args: tuple, opts: dict) -> tuple:
    """Integrate over one variable after the other, with derivatives in the limits."""
    errors = [0.0]

    def inner(level: int, *given: Any) -> Any:
        """Integrate over the variables up to a level; the others, `args` and limits are given."""
        *before, limits = given
        if level < 0:
            return func(*before)
        pair = ranges[level]
        a, b = pair(*before) if callable(pair) else limits[level]
        value, error = quad(partial(inner, level - 1), a, b, given, **opts)[:2]
        if not is_tensor(error):
            errors[0] = max(errors[0], error)
        return value

    limits = [None if callable(x) else x for x in ranges]
    return inner(len(ranges) - 1, *args, limits), errors[0]


def dblquad(
    func: Callable, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:
    """Integrate over two variables, as `scipy.integrate.dblquad`, with the derivatives of `nquad`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.integrate import dblquad
    >>> def f(c):
    ...     return dblquad(lambda y, x, c: c * c * x * y, 0, 1, 0, lambda x: x, (c,))[0]
    >>> cytape.grad(f)(2.0).round(9)  # c / 4
    np.float64(0.5)
    """
    return nquad(
        func, [_range((gfun, hfun), 1), [a, b]], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Callable, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:
    """Integrate over three variables, as `scipy.integrate.tplquad`, with derivatives of `nquad`."""
    return nquad(
        func, [_range((qfun, rfun), 2), _range((gfun, hfun), 1), [a, b]], args,
        {"epsabs": epsabs, "epsrel": epsrel})


def _range(ends: tuple, n: int) -> Any:
    """Return a range for `nquad` from limits that may be functions of the n outer variables."""
    if not any(map(callable, ends)):
        return list(ends)

    def limits(*given: Any) -> list:
        outer = given[:n][::-1]
        pair = [end(*outer) if callable(end) else end for end in ends]
        lost = [x for x in pair if is_tensor(x) and not any(map(is_tensor, given))]
        if any(x.graph is not None for x in lost) or followed(lost):
            raise TypeError(
                "dblquad and tplquad: a limit depends on a tensor that is not among its arguments: "
                "call nquad, whose functions of limits take `args`")
        return pair

    return limits


def fixed_quad(func: Callable, a: Any, b: Any, args: tuple = (), n: int = 5) -> tuple:
    """Integrate by Gauss's quadrature of fixed order, as `scipy.integrate.fixed_quad`.

    Has derivatives in the limits and in everything that `func` reads.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.integrate import fixed_quad
    >>> cytape.grad(lambda c: fixed_quad(lambda x: c * x, 0, 1)[0])(1.0).round(9)
    np.float64(0.5)
    """
    if not any(map(is_tensor, (a, b))) and (np.isinf(a) or np.isinf(b)):
        return _scipys.fixed_quad(func, a, b, args, n)  # raises
    nodes, weights = np.polynomial.legendre.leggauss(n)
    value = (b - a) / 2.0 * cnp.sum(
        weights * func((b - a) * (nodes + 1) / 2.0 + a, *args), axis=-1)
    return value, None


def _detached(name: str, call: Callable) -> Any:
    try:
        return call()
    except LEAVES_CYTAPE as error:
        raise reads_others(name, error) from None  # its advice is wrong here
