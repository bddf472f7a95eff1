"""Padding: forms of widths, modes in functions, and what NumPy refuses."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each

X = np.array([[0.5, -1.2, 0.8, 1.9], [1.1, 0.7, -1.4, 0.6], [-0.9, 1.3, 1.7, 1.0]])
MODES = {
    "constant": {"constant_values": ((1.0, 2.0), (3.0, 4.0))}, "edge": {}, "linear_ramp": {},
    "maximum": {}, "mean": {"stat_length": 2}, "median": {"stat_length": 3}, "minimum": {},
    "reflect": {"reflect_type": "odd"}, "symmetric": {"reflect_type": "odd"}, "wrap": {}}


@each("mode", MODES)
def test_modes_in_functions(mode):
    f = cytape.function(lambda x: cnp.pad(x, ((1, 4), (6, 0)), mode, **MODES[mode]))
    np.testing.assert_allclose(f(X), np.pad(X, ((1, 4), (6, 0)), mode, **MODES[mode]))
    check_grads(f, [X], order=2)


def _fill(line, width, axis, options):
    line[:width[0]] = line[width[0]] * options["factor"] + axis
    line[len(line) - width[1]:] = line[-width[1] - 1] ** 2


@each("width", [2, ((1, 0), (0, 3)), 0])
def test_a_function_as_the_mode_fills_each_line(width):
    def f(x, factor):
        return cnp.pad(x, width, _fill, factor=factor)

    expected = np.pad(X, width, _fill, factor=1.5)
    for found in (np.pad(cytape.constant(X), width, _fill, factor=1.5), f(X, 1.5),
                  f(X, cytape.constant(1.5)), cytape.function(f)(X, np.array(1.5))):
        np.testing.assert_allclose(found, expected)
    check_grads(f, [X, np.array(1.5)], order=2)
    check_grads(cytape.function(f), [X, np.array(1.5)], order=2)


def test_a_function_as_the_mode_needs_to_know_how_many_lines_there_are():
    signature = [cytape.Spec.of((None, 3), float)]
    f = cytape.function(lambda x: cnp.pad(x, 1, lambda *_: None), input_signature=signature)
    with pytest.raises(SymbolicTensorError, match="how many there are is not known"):
        f(np.ones((2, 3)))


@each(dtype=["int64", "uint8", "int8"], mode=MODES)
def test_integers_are_rounded_as_in_numpy(mode, dtype):
    x = (X * 5 + 20).astype(dtype)
    found = cnp.pad(cytape.constant(x), (2, 3), mode, **MODES[mode])
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.pad(x, (2, 3), mode, **MODES[mode]))


def test_a_median_that_has_nan_is_nan():
    x = np.array([1.0, np.nan, 3.0, 4.0])
    for length in (1, 2, 4):
        np.testing.assert_array_equal(cnp.pad(cytape.constant(x), 1, "median", stat_length=length),
                                      np.pad(x, 1, "median", stat_length=length))


def test_lists_of_tensors_are_values():
    def f(x, v):
        return cnp.pad(x, 1, constant_values=[[v, 2.0], [3.0, v * v]])

    np.testing.assert_array_equal(
        f(X, cytape.constant(5.0)), np.pad(X, 1, constant_values=[[5.0, 2.0], [3.0, 25.0]]))
    check_grads(f, [X, np.float64(1.5)], order=2)


def test_undefined_padding_is_zero():
    np.testing.assert_array_equal(cnp.pad(cytape.constant(X), 1, "empty"), np.pad(X, 1))


@each("mode", MODES)
def test_an_extent_that_only_a_run_tells(mode):
    signature = [cytape.Spec.of((None, 4), float)]
    f = cytape.function(lambda x: cnp.pad(x, 1, mode, **MODES[mode]), input_signature=signature)
    if mode in ("median", "reflect", "symmetric"):
        with pytest.raises(SymbolicTensorError, match="needs to know the extent of axis 0"):
            f(X)
    else:
        np.testing.assert_allclose(f(X), np.pad(X, 1, mode, **MODES[mode]))
