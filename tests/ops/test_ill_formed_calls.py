"""Calls that NumPy refuses raise errors of NumPy's types, wherever tensors may be passed."""

import functools
import inspect
import warnings

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, SymbolicTensorError
from tests.cases import case, each
from tests.ops.ill_formed_calls import (
    ACCEPTED,
    ACCEPTED_OF_X,
    ARRAYS,
    REFUSED,
    REFUSED_IN_EAGER_CODE,
    REFUSED_IN_NUMPYS_WORDS,
    REFUSED_OF_X,
)
from tests.ops.op_coverage import peers

# Shapes of these depend on values, or rules differ: a graph of unknown extents raises other errors.
MORE_ERRORS = {"recorded": DetachedError, "of unknown extents": SymbolicTensorError}
UNTRACED = {"arange", "kaiser", "trim_zeros", "polymul"}
UNTRACED_OF_X = ("trim_zeros", "polymul", "polydiv", "roots")


def function_of(namespace, name):
    return functools.reduce(getattr, name.split("."), namespace)


def outcome(function):
    """Return what a function returns, or the exception that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return error


class Call:
    """A call of a function by name, with arrays or whatever is made of them."""

    def __init__(self, name, arguments):
        self.name = name
        self.code = compile(f"f({arguments})", "<call>", "eval")
        self.moving = [name for name in ARRAYS if name in self.code.co_names
                       and ARRAYS[name].dtype.kind in "fc"]

    def of(self, namespace, *values):
        names = {**ARRAYS, **dict(zip(self.moving, values, strict=True)), "np": np}
        names["f"] = function_of(namespace, self.name)
        return eval(self.code, names)

    def by_numpy(self):
        return outcome(lambda: self.of(np, *[ARRAYS[name].copy() for name in self.moving]))

    def eager(self, namespace):
        return outcome(lambda: self.of(
            namespace, *[cytape.constant(ARRAYS[name]) for name in self.moving]))

    def recorded(self, namespace):
        tensors = [cytape.constant(ARRAYS[name]) for name in self.moving]
        with cytape.GradientTape() as tape:
            tape.watch([x for x in tensors if x.spec.trainable])
            return outcome(lambda: self.of(namespace, *tensors))

    def traced(self, namespace, unknown=False):
        arrays = [ARRAYS[name] for name in self.moving]
        signature = [cytape.Spec.of((None,) * x.ndim, x.dtype) for x in arrays] if unknown else None
        traced = cytape.function(functools.partial(self.of, namespace), input_signature=signature)
        return outcome(lambda: traced(*arrays))


class Names(dict):
    """Names in an expression of x: arrays, else what a namespace has."""

    def __init__(self, namespace, x):
        super().__init__(ARRAYS, np=np, x=x)
        self.namespace = namespace

    def __missing__(self, name):
        if hasattr(self.namespace, name):
            return getattr(self.namespace, name)
        raise KeyError(name)


class ExpressionOfX(Call):
    """An expression of an array, or of whatever is made of it."""

    def __init__(self, array, expression):
        self.name, self.moving = expression, [array]
        self.code = compile(expression, "<expression>", "eval")

    def of(self, namespace, x):
        return eval(self.code, {}, Names(namespace, x))


def expressions(table):
    for arrays, text in table.items():
        for array in arrays.split():
            for expression in text.split(";"):
                yield ExpressionOfX(array, " ".join(expression.split()))


def calls(table):
    for names, rows in table.items():
        for name in names.split():
            for arguments in rows:
                yield name, arguments


def routes_of_x(call):
    """Return what each way to compute an expression leads to."""
    for namespace in np, cytape.numpy:
        yield "eager", call.eager(namespace)
        yield "recorded", call.recorded(namespace)
        if not call.name.startswith(UNTRACED_OF_X) and call.name not in REFUSED_IN_EAGER_CODE:
            yield "in a function", call.traced(namespace)
    if call.name not in REFUSED_IN_EAGER_CODE:
        yield "of unknown extents", call.traced(cytape.numpy, unknown=True)


def of_each(table):
    return each("call", expressions(table), ids=lambda call: f"{call.name}, x={call.moving[0]}")


def refuses(call, words=False):
    expected = call.by_numpy()
    assert isinstance(expected, Exception)
    for route, found in routes_of_x(call):
        assert isinstance(found, (type(expected), MORE_ERRORS.get(route, ()))), (route, found)
        assert not words or route != "eager" or str(found).split() == str(expected).split()


@of_each(REFUSED_OF_X)
def test_expressions_that_numpy_refuses_are_refused_with_its_type_of_error(call):
    refuses(call)


@of_each(REFUSED_IN_NUMPYS_WORDS)
def test_expressions_that_numpy_refuses_are_refused_in_its_words(call):
    refuses(call, words=True)


@of_each(ACCEPTED_OF_X)
def test_expressions_that_numpy_takes_have_its_values(call):
    expected = call.by_numpy()
    assert not isinstance(expected, Exception), expected
    for route, found in routes_of_x(call):
        if not isinstance(found, SymbolicTensorError) or route != "of unknown extents":
            assert not isinstance(found, Exception), (route, found)
            same(found, expected)


def routes(name, arguments):
    """Return what each way to call a function with tensors leads to."""
    call = Call(name, arguments)
    namespaces = [cytape.numpy] if name in ("arange", "full", "kaiser") or name.startswith((
        "array", "as", "require")) and name not in ("asin", "asinh", "astype", "array_split") else [
        np, cytape.numpy]
    for namespace in namespaces:
        yield "eager", call.eager(namespace)
        yield "recorded", call.recorded(namespace)
        if name not in UNTRACED:
            yield "in a function", call.traced(namespace)
    if name not in UNTRACED:
        yield "of unknown extents", call.traced(cytape.numpy, unknown=True)


@each("part", range(4))
def test_calls_that_numpy_refuses_raise_its_type_of_error(part):
    for name, arguments in list(calls(REFUSED))[part::4]:
        expected = Call(name, arguments).by_numpy()
        with case(lambda name=name, arguments=arguments: f"{name}({arguments})"):
            assert isinstance(expected, Exception)
            for route, found in routes(name, arguments):
                allowed = type(expected), MORE_ERRORS.get(route, ())
                assert isinstance(found, allowed), f"{route}: {found!r}"
                assert str(found), route


def same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
        return
    found, expected = values_of(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    rtol = {"e": 1e-2, "f": 1e-5, "F": 1e-5}.get(found.dtype.char, 1e-7)
    np.testing.assert_allclose(found, expected, rtol, atol=1e-12)


def values_of(x):
    return x.numpy() if isinstance(x, cytape.Tensor) else np.asarray(x)


def test_calls_that_numpy_accepts_are_accepted():
    for name, arguments in calls(ACCEPTED):
        call = Call(name, arguments)
        expected = call.by_numpy()
        with case(lambda name=name, arguments=arguments: f"{name}({arguments})"):
            assert not isinstance(expected, Exception), expected
            for route, found in routes(name, arguments):
                if isinstance(found, SymbolicTensorError):
                    assert route == "of unknown extents"
                    continue
                assert not isinstance(found, Exception), f"{route}: {found!r}"
                same(found, expected)


def test_parameters_that_there_are_not_and_too_many_arguments_are_errors():
    for name in peers():
        name = name.removeprefix("numpy.")
        x = cytape.constant(ARRAYS["M33"])
        function = function_of(cytape.numpy, name)
        with case(lambda name=name: name):
            n = 2 if not isinstance(function_of(np, name), np.ufunc) else (
                function_of(np, name).nin)
            try:
                parameters = inspect.signature(function_of(np, name)).parameters.values()
                n = sum(p.default is p.empty and p.kind in (
                    p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
            except ValueError:  # NumPy does not know
                pass
            with pytest.raises((TypeError, ValueError)):
                function(*[x] * max(n, 1), bogus=1)
            if name == "broadcast_arrays":  # takes any number of objects
                continue
            with pytest.raises((TypeError, ValueError, IndexError)):
                function(*[x] * max(n, 1), *[None] * 12)
