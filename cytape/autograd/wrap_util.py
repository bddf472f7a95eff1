"""Operators on functions, such as `grad`: argument numbers, and names of the results.

A *rule* takes a function, its arguments and the numbers of those to differentiate.
"""

import functools
from collections.abc import Callable
from typing import Any

from cytape.autodiff.transform_arguments import Transformed, checked_argnums
from cytape.autograd.util import subvals


def get_name(f):
    """Return the name of a function, or a text in its place."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f):
    """Return the docstring of a function, or an empty one."""
    return getattr(f, "__doc__", "")


def wraps(fun, namestr="{fun}", docstr="{doc}", **kwargs):
    """Make a decorator that gives a function a name and a docstring made of another's.

    Examples
    --------
    >>> @wraps(abs, "{fun}_of_{what}", what="x")
    ... def f(x):
    ...     return abs(x)
    >>> f.__name__
    'abs_of_x'
    """
    def named(f):
        f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
        doc = get_doc(fun) if "{doc}" in docstr else ""
        f.__doc__ = docstr.format(fun=get_name(fun), doc=doc, **kwargs)
        return f

    return named


def wrap_nary_f(fun, op, argnum):
    """Make the decorator that names the result of an operator."""
    return wraps(
        fun, "{op}_of_{fun}_wrt_argnum_{argnum}",
        "    {op} of function {fun} with respect to argument number {argnum}. Takes the same\n"
        "    arguments as {fun} but returns the {op}.\n    ",
        op=get_name(op), argnum=argnum)


class _Operated(Transformed):
    """A function to which an operator was applied; pickled by the operator's name."""

    def __init__(self, operator, rule, fun, argnum, options, named):
        super().__init__(
            functools.partial(rule, **named) if named else rule, fun, checked_argnums(argnum),
            *options)
        wrap_nary_f(fun, operator, argnum)(self)
        self._made_by = functools.partial(operator, **named), (fun, argnum, *options)

    def __reduce__(self):
        return self._made_by


def nary(rule: Callable) -> Callable[..., Any]:
    """Make the operator of a rule.

    Parameters
    ----------
    rule : callable
        Takes a function, the tuple and the dict of its arguments, the number of the argument to
        differentiate or a tuple of numbers, and options of the operator.

    Returns
    -------
    callable
        Takes a function, `argnum` (or `argnums`), an integer, tuple or list, and options. Its
        result takes the arguments of the function.

    Examples
    --------
    >>> @nary
    ... def halved(fun, args, kwargs, argnum):
    ...     return fun(*subvals(args, [(argnum, args[argnum] / 2)]), **kwargs)
    >>> halved(divmod, 1)(7, 4.0)
    (3.0, 1.0)
    """
    def operator(fun, argnum=0, *options, argnums=None, **named):
        return _Operated(
            operator, rule, fun, argnum if argnums is None else argnums, options, named)

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(operator, name, getattr(rule, name))
    return operator


def unary_to_nary(unary_operator: Callable) -> Callable[..., Any]:
    """Make an operator on functions of many arguments from one on functions of one argument.

    Parameters
    ----------
    unary_operator : callable
        Takes a function of one argument, the argument, and options. If several arguments are
        chosen, the argument is the tuple of them.

    Returns
    -------
    callable
        Takes a function, `argnum`, an integer, tuple or list, and options. Its result takes the
        arguments of the function.

    Examples
    --------
    >>> @unary_to_nary
    ... def slope(f, x, step=1e-3):
    ...     return (f(x + step) - f(x)) / step
    >>> round(slope(pow)(3.0, 2), 2), round(slope(pow, 0, step=1e-6)(3.0, 2), 2)
    (6.0, 6.0)
    >>> slope(pow, 1).__name__
    'slope_of_pow_wrt_argnum_1'
    """
    @functools.wraps(unary_operator)
    def rule(fun, args, kwargs, argnum, *options, **named):
        single = isinstance(argnum, int)

        @wraps(fun)
        def unary(x):
            replaced = [(argnum, x)] if single else zip(argnum, x, strict=True)
            return fun(*subvals(args, replaced), **kwargs)

        x = args[argnum] if single else tuple([args[i] for i in argnum])
        return unary_operator(unary, x, *options, **named)

    return nary(rule)
