import doctest
import operator
import random
import shutil
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import examples
from tests.outside import compiled

FOLDER = Path(*examples.__path__) / "intervals"
X, Y = Fraction(3, 4), Fraction(-5, 3)


@pytest.fixture(scope="module")
def intervals(tmp_path_factory):
    """The package, built from a copy of its folder, as a user would build it."""
    folder = tmp_path_factory.mktemp("outside") / "intervals"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.c", "*.so", "build"))
    return compiled(folder, "intervals")


class Dual:
    """An exact number and its derivatives in two variables."""

    def __init__(self, value, *slopes):
        self.value, self.slopes = value, slopes or (0, 0)

    def __add__(self, other):
        return Dual(self.value + other.value, *map(operator.add, self.slopes, other.slopes))

    def __mul__(self, other):
        return Dual(self.value * other.value, *(
            self.value * b + a * other.value
            for a, b in zip(self.slopes, other.slopes, strict=True)))

    def __sub__(self, other):
        return self + other * Dual(-1)

    def __truediv__(self, other):
        return self * other ** -1

    def __pow__(self, n):
        return Dual(self.value ** n, *(n * self.value ** (n - 1) * a for a in self.slopes))


def program(rng):
    """Return a random function of two numbers and of a function that makes constants."""
    ops = [rng.choice(["add", "sub", "mul", "truediv", "square", "cube"]) for _ in range(8)]
    chosen = [(rng.random(), rng.random()) for _ in ops]

    def function(x, y, constant):
        known = [x, y, constant(3), constant(-2)]
        for op, (i, j) in zip(ops, chosen, strict=True):
            a, b = known[int(i * len(known))], known[int(j * len(known))]
            if op in ("square", "cube"):
                known.append(a ** (2 if op == "square" else 3))
            else:
                known.append(getattr(operator, op)(a, b))
        return known[-1]

    return function


def test_bounds_contain_exact_values_and_slopes(intervals):
    checked = 0
    for seed in range(300):
        function = program(random.Random(seed))
        box = [intervals.Interval(0.5, 1.0), intervals.Interval(-2.0, -1.5)]
        try:
            value, slopes = intervals.value_and_gradient(
                lambda x, y, function=function: function(x, y, intervals.Interval), *box)
        except ZeroDivisionError:
            continue
        exact = function(Dual(X, 1, 0), Dual(Y, 0, 1), Dual)
        for bounds, number in zip(
                [value, *slopes], [exact.value, *exact.slopes], strict=True):
            assert Fraction(bounds.low) <= number <= Fraction(bounds.high), seed
            checked += 1
    assert checked > 500


def test_bounds_of_points_are_tight(intervals):
    value, (dx, dy) = intervals.value_and_gradient(lambda x, y: x * x / y - 2 * x, 3.0, 7.0)
    assert 9 / 7 - 6 in value and 6 / 7 - 2 in dx and -9 / 49 in dy
    assert max(x.high - x.low for x in (value, dx, dy)) < 1e-14
    value, (dx,) = intervals.value_and_gradient(lambda x: intervals.exp(2 * x), 0.5)
    assert 2.718281828459045 in value and 2 * 2.718281828459045 in dx
    square = intervals.Interval(-1, 2) ** 2
    assert 0 in square and -1e-300 not in square and 4 in square


def test_slopes_in_arguments_without_use_are_zero(intervals):
    value, (slope,) = intervals.value_and_gradient(lambda x: 3, 1.0)
    assert (value.low, slope.low, slope.high) == (3, 0, 0)
    _, slopes = intervals.value_and_gradient(lambda x, y: x, 1.0, 2.0)
    assert [x.low for x in slopes] == [1, 0]


def test_saved_slopes_are_released(intervals):
    constant = intervals.Interval(3.0)
    before = sys.getrefcount(constant)

    def function(x):
        for _ in range(10):
            x * constant  # dropped at once
        return x * constant * constant

    for _ in range(3):
        intervals.value_and_gradient(function, 2.0)
        with pytest.raises(ValueError, match="stop"):
            intervals.value_and_gradient(lambda x: failing(x * constant), 2.0)
    assert sys.getrefcount(constant) == before


def failing(x):
    raise ValueError("stop")


def test_errors(intervals):
    x = intervals.Interval(1, 2)
    for low, high in ((2, 1), (float("nan"), None), (float("inf"), None)):
        with pytest.raises(ValueError, match="low <= high"):
            intervals.Interval(low, high)
    with pytest.raises(ZeroDivisionError, match="contains 0"):
        1 / intervals.Interval(-1, 1)
    with pytest.raises(TypeError):
        x ** 0.5
    with pytest.raises(RuntimeError, match="gradient of a gradient"):
        intervals.value_and_gradient(
            lambda x: intervals.value_and_gradient(lambda y: y * x, x)[0], x)


def test_the_minimum_of_the_camel_function(intervals, monkeypatch):
    monkeypatch.setitem(sys.modules, "intervals", intervals)
    monkeypatch.syspath_prepend(FOLDER)
    import camel

    square = [intervals.Interval(-2, 2), intervals.Interval(-1, 1)]
    bounds, tried = camel.minimum(camel.camel, square)
    assert -1.0316284534898774 in bounds and bounds.high - bounds.low < 1e-9
    assert tried < 1000


def test_examples_of_the_page(intervals, monkeypatch):
    monkeypatch.setitem(sys.modules, "intervals", intervals)
    text = (FOLDER / "README.md").read_text().replace("```\n", "\n")
    examples_there = doctest.DocTestParser().get_doctest(text, {}, "README.md", None, 0)
    assert doctest.DocTestRunner().run(examples_there).failed == 0
    assert len(examples_there.examples) == 2
