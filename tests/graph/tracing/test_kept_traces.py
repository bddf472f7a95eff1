"""Kept traces: reused while all that a function reads is the same."""

import functools
import gc
import math
import weakref

import numpy as np
import numpy.random as of_numpy
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing import kept_traces
from cytape.graph.tracing.kept_traces import CALLS_BEFORE, identity_of, kept
from tests.cases import each

LEVEL = 1.0


def doubled(function, x):
    return cnp.asarray(function(x)) * 2


def call(function, x=3.0, reads=None):
    reads = reads or identity_of(function)
    return kept(functools.partial(doubled, function), reads, ())(np.array(x))


def traced(function):
    """Call a function until it would be traced; return whether it was."""
    for _ in range(CALLS_BEFORE + 2):
        call(function)
    identity = identity_of(function)
    return identity is not None and kept(
        functools.partial(doubled, function), identity, ()).func._traced is not None


def of_cell(k):
    return lambda x: k * x


def of_global(k):
    global LEVEL
    LEVEL = k
    return read_global


def read_global(x):
    return LEVEL * x


ARRAY, ITEMS, TABLE = np.zeros(1), [0.0], {"k": 0.0}


def of_array(k):
    ARRAY[0] = k
    return lambda x: ARRAY[0] * x


def of_list(k):
    ITEMS[0] = k
    return lambda x: ITEMS[0] * x


def of_item(items):
    return lambda x: items[0] * x


def of_dict(k):
    TABLE["k"] = k
    return lambda x: TABLE["k"] * x


def of_default(k):
    return lambda x, k=k: k * x


def of_partial(k):
    return functools.partial(lambda k, x: k * x, k)


def of_inner_function(k):
    return lambda x: of_cell(k)(x)


def of_function_in_cell(k):
    f = of_cell(k)
    return lambda x: f(x)


def of_gradient(k):
    return cytape.grad(lambda x: k * x * x / 2)


MADE = [of_cell, of_global, of_array, of_list, of_dict, of_default, of_partial, of_inner_function,
        of_function_in_cell, of_gradient]


@each("make", MADE)
def test_values_that_change_are_seen(make):
    for k in (2.0, 5.0, 2.0, -0.0, 0.0):
        for _ in range(CALLS_BEFORE + 2):
            np.testing.assert_allclose(call(make(k)), 2 * k * 3.0)
    assert np.signbit(call(make(-0.0))) and not np.signbit(call(make(0.0)))


def test_functions_of_the_same_code_are_told_apart():
    double, triple = of_cell(2.0), of_cell(3.0)
    for last in [double] * (CALLS_BEFORE + 2) + [triple] * 2:
        items = double, triple, last
        assert call(lambda x, items=items: items[2](x)) == 2 * last(3.0)


def test_closures_of_earlier_functions_may_change():
    first = [7.5]
    for _ in range(CALLS_BEFORE + 1):
        call(of_item(first))
    first[0] = 9.0
    assert call(of_item([7.5])) == 2 * 7.5 * 3
    np.testing.assert_array_equal(call(of_item([7.5]), np.ones(2)), [15, 15])  # traced again


def test_values_that_change_between_the_comparison_and_the_trace():
    items = [2.0]
    function = of_item(items)
    for _ in range(CALLS_BEFORE):
        call(function)
    reads = identity_of(function)
    items[0] = 9.0  # by a callback, or another thread
    assert call(function, reads=reads) == 2 * 9 * 3
    items[0] = 2.0
    for _ in range(2):
        assert call(function) == 2 * 2 * 3
    assert traced(function)


def test_traces_keep_no_functions_alive():
    function = of_cell(3.5)
    assert traced(function)
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


def test_traces_are_kept_for_functions_made_anew():
    calls = kept_traces.MOST_KEPT
    for _ in range(calls):
        call(of_cell(7.0))
    found = kept(functools.partial(doubled, of_cell(7.0)), identity_of(of_cell(7.0)), ()).func
    assert found._count >= calls and found._traced.experimental_get_tracing_count() == 1
    assert traced(lambda x: np.sin(x) + math.pi + cnp.exp(np.add(x, 1)))


class Model:
    k = 2.0

    def rate(self, x):
        return self.k * x


COUNT = 0


def counted(x):
    global COUNT
    COUNT += 1
    return x * COUNT


def imported(x):
    import math as module

    return x * module.pi


def logged(x):
    ITEMS.append(1.0)
    ITEMS.pop()
    return x


MODEL, VECTORIZED, draw = Model(), np.vectorize(lambda x: MODEL.k * x), cnp.random.random
OF_PYTHON = np.frompyfunc(lambda x: MODEL.k * x, 1, 1)


@each("function", [
    MODEL.rate, logged, lambda x: MODEL.k * x, counted, imported, lambda x: x * np.random.random(),
    lambda x: x * draw(), lambda x: x * of_numpy.normal(), lambda x: VECTORIZED(x),
    lambda x: x * float(OF_PYTHON(2.0)),
    lambda x: print(end="") or x, lambda x: x if x > 0 else -x,
    lambda x: cytape.numpy_function(np.sin, x, specs=cytape.Spec.of((), float))])
def test_functions_that_are_called_each_time(function):
    assert not traced(function)


def test_a_list_that_contains_itself():
    items = [2.0]
    items.append(items)
    assert not traced(lambda x: items[0] * x)


def test_a_large_array_is_read_each_time():
    large = np.ones(kept_traces.MOST_BYTES)
    assert not traced(lambda x: x * large[0])


def test_errors_of_the_function_are_its_own():
    def failing(x):
        raise ValueError("of the user")

    for _ in range(CALLS_BEFORE + 2):
        with pytest.raises(ValueError, match="of the user"):
            call(failing)


class OfUserError(Exception):
    pass


def raising(error, x):
    if isinstance(x, cytape.Tensor):
        raise error
    return x


def chained(x):
    try:
        return float(x)
    except TypeError as error:
        raise OfUserError from error


@pytest.mark.parametrize("error", [TimeoutError("limit"), OfUserError()])
def test_errors_that_tracing_does_not_raise(error):
    plain, reads = functools.partial(raising, error), identity_of("raising", type(error).__name__)
    for _ in range(CALLS_BEFORE):
        kept(plain, reads, ())(np.array(1.0))
    with pytest.raises(type(error)):  # say of a signal handler
        kept(plain, reads, ())(np.array(1.0))
    assert not traced(chained)


def test_traces_are_dropped_in_the_order_of_their_use():
    for k in range(kept_traces.MOST_KEPT + 5):
        call(of_cell(float(k)))
    assert len(kept_traces._kept) <= kept_traces.MOST_KEPT
