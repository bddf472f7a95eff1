"""Bindings of functions, kept for later repetitions of a call."""

import functools

import numpy as np
import pytest

import cytape
from cytape.ops.python.bound_names import Bindings
from tests.cases import each

here = 1.0


def test_a_function_that_finds_the_same_is_itself():
    k = 1.0

    def f(x):
        return k * x + here

    assert Bindings(f).function() is f
    assert Bindings(np.sin).function() is np.sin


def test_cells_and_those_of_functions_in_cells_are_as_they_were():
    k = 1.0

    def inner(x):
        return k * x

    def f(x):
        return inner(x) + k

    bindings = Bindings(f)
    k = 10.0
    assert (bindings.function()(2.0), f(2.0)) == (3.0, 30.0)
    inner = abs  # noqa: F811
    assert (bindings.function()(2.0), f(2.0)) == (3.0, 12.0)


def test_globals_are_as_they_were(monkeypatch):
    bindings = Bindings(lambda x: here * x)
    monkeypatch.setitem(globals(), "here", 5.0)
    assert bindings.function()(2.0) == 2.0
    assert here == 5.0


def test_functions_may_find_themselves():
    k = 1.0

    def factorial(n):
        return k if n == 0 else n * factorial(n - 1)

    bindings = Bindings(factorial)
    k = 2.0
    assert (bindings.function()(3), factorial(3)) == (6.0, 12.0)


def test_assignments_to_outer_names_are_left_to_the_function():
    k, count = 1.0, 0

    def f():
        nonlocal count
        count += 1
        return k, count

    bindings = Bindings(f)
    assert f() == (1.0, 1)
    assert bindings.function() is f
    k = 2.0
    assert (bindings.function()(), bindings.function()(), count) == ((1.0, 2), (1.0, 3), 3)


def test_small_arrays_are_as_they_were():
    a, b, log = np.ones(2), np.zeros(2), np.zeros(1)
    c = np.ones((1 << 13) + 1)  # more than is copied

    def inner():
        return a

    def f():
        log[0] += 1.0
        assert inner() is a
        return a[0] + b[0] + c[0]

    bindings = Bindings(f)
    a.flags.writeable = False
    assert bindings.function() is f
    a.flags.writeable = True
    a[0], c[0] = 5.0, 7.0
    again = bindings.function()
    assert (again(), f()) == (8.0, 12.0)
    assert log[0] == 2.0
    a[0] = np.nan
    assert (again(), bindings.function()()) == (8.0, 8.0)


def test_arrays_that_a_function_writes_to_begin_as_they_did():
    count = np.zeros(1)

    def f():
        count[0] += 1.0
        return float(count[0])

    bindings = Bindings(f)
    assert [f(), f(), bindings.function()(), bindings.function()()] == [1.0, 2.0, 1.0, 1.0]
    assert count[0] == 2.0


def test_a_tensor_that_a_function_changes_is_as_it_was():
    c = cytape.constant([1.0, 2.0])

    def f():
        c[0] += 1.0
        return c * 1.0

    bindings = Bindings(f)
    for _ in range(2):
        np.testing.assert_array_equal(bindings.function()(), [2.0, 2.0])
        f()


def test_an_empty_cell_stays_what_it_is():
    def f():
        return later

    bindings = Bindings(f)
    with pytest.raises(NameError):
        bindings.function()()
    later = 3
    assert f() == 3


@each("place", [
    lambda c: lambda x: x * c, lambda c: lambda x, c=c: x * c, lambda c: lambda x, *, c=c: x * c,
    lambda c: functools.partial(np.multiply, c),
    lambda c: functools.partial(lambda x, c: x * c, c=c),
], ids=["cell", "default", "keyword", "partial", "partial-keyword"])
def test_tensors_are_as_they_were(place):
    c = cytape.constant([1.0, 2.0])
    f = place(c)
    bindings = Bindings(f)
    assert bindings.function() is f
    c[0] = 9.0
    for _ in range(2):
        np.testing.assert_array_equal(bindings.function()(1.0), [1.0, 2.0])
    np.testing.assert_array_equal(f(1.0), [9.0, 2.0])


def test_methods_have_their_object():
    c = cytape.constant([1.0, 2.0])

    class Layer:
        def scaled(self, x):
            return self.by * x * c

    layer = Layer()
    layer.by = 3.0
    bindings = Bindings(layer.scaled)
    c[0] = 9.0
    np.testing.assert_array_equal(bindings.function()(1.0), [3.0, 6.0])


def test_a_copy_is_called_the_same():
    k = 1.0

    def f(x: float, y: float = 2.0, *, z: float = 3.0) -> float:
        """Add up."""
        return k + x + y + z

    f.note = "noted"
    bindings = Bindings(f)
    k = 2.0
    copy = bindings.function()
    assert copy(1.0) == 7.0
    assert (copy.__name__, copy.__qualname__, copy.__doc__, copy.note) == (
        f.__name__, f.__qualname__, f.__doc__, "noted")
