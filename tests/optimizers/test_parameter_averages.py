"""Averages against their formulas, swaps, states."""

import numpy as np
import pytest

import cytape
from cytape.optimizers import ParameterAverage
from tests.cases import each


@each(decay=[None, 0.5], dtype=["float64", "float32", "float16"])
def test_averages(decay, dtype):
    values = np.random.default_rng(0).normal(size=(5, 3)).astype(dtype)
    weights = np.ones(5) if decay is None else decay ** np.arange(4, -1, -1)
    expected = np.average(values.astype(float), axis=0, weights=weights)
    v, array, average = cytape.Variable(values[0]), values[0].copy(), ParameterAverage(decay)
    for value in values:
        v.assign(value)
        array[:] = value
        average.update([v, array])
    for found in average.values([v, array]):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=5e-3 if dtype == "float16" else 1e-5)
    before = v.value()
    with pytest.raises(KeyError), average.swapped([v, array]):
        np.testing.assert_array_equal(v.numpy(), average.values([v, array])[0])
        np.testing.assert_array_equal(array, v.numpy())
        raise KeyError
    np.testing.assert_array_equal(v.numpy(), values[-1])
    np.testing.assert_array_equal(array, values[-1])
    np.testing.assert_array_equal(before, values[-1])


def test_functions_average_the_values_of_each_run():
    v, average = cytape.Variable(1.0), ParameterAverage()

    @cytape.function
    def step():
        v.assign(2 * v)
        average.update(v)
        return v.value()

    assert [float(step()) for _ in range(3)] == [2.0, 4.0, 8.0]
    assert (average.updates, float(average.values(v))) == (3, pytest.approx(14 / 3))
    with average.swapped(v):
        assert float(step()) == pytest.approx(28 / 3)
    assert float(v) == 8.0
    with pytest.raises(TypeError, match="is an array, which a graph keeps as a constant"):
        cytape.function(lambda: average.update(np.array(1.0)))()
    for refused in (average.values, lambda v: average.swapped(v).__enter__()):
        with pytest.raises(cytape.errors.TapeStateError, match="outside of functions and graphs"):
            cytape.function(lambda refused=refused: refused(v))()


def test_states():
    first, second = ParameterAverage(), ParameterAverage()
    for value in (1.0, 3.0):
        first.update(np.full(2, value))
    second.load_state_dict(first.state_dict())
    for average in (first, second):
        average.update(np.full(2, 8.0))
        assert average.values(np.zeros(2)).tolist() == [4, 4]
    with pytest.raises(ValueError, match="have the shapes"):
        first.load_state_dict({"updates": 1, "mean[0]": np.zeros(3)})
    with pytest.raises(ValueError, match="expected the keys"):
        first.load_state_dict({"updates": 1, "square": np.zeros(2)})


def test_refused_arguments():
    with pytest.raises(ValueError, match="between 0 and 1"):
        ParameterAverage(1.0)
    average = ParameterAverage()
    with pytest.raises(ValueError, match="no averages yet"):
        average.values(np.zeros(2))
    average.update(np.zeros(2))
    with pytest.raises(ValueError, match="parameters of the shapes"):
        average.update(np.zeros(3))
    with pytest.raises(TypeError, match="cannot be changed"):
        average.update(cytape.constant([1.0]))


def test_averages_belong_to_the_names_of_parameters():
    average = ParameterAverage()
    average.update({"a": np.zeros(2), "b": np.ones(2)})
    with pytest.raises(ValueError, match="averages are those of the parameters"):
        average.values({"a": np.zeros(2), "c": np.ones(2)})
    with pytest.raises(ValueError, match="the state has -1 updates"):
        average.load_state_dict({"updates": -1, "mean[0]": np.zeros(2), "mean[1]": np.zeros(2)})


def test_averages_are_those_of_the_same_variables():
    first, second = cytape.Variable(np.zeros(2)), cytape.Variable(np.ones(2))
    average = ParameterAverage()
    average.update([first, second])
    with pytest.raises(ValueError, match="at another place"):
        average.values([second, first])
    copies = [cytape.Variable(np.zeros(2)), cytape.Variable(np.zeros(2))]
    np.testing.assert_array_equal(average.values(copies), [[0, 0], [1, 1]])
