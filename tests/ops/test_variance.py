"""Special cases of variance and standard deviation; more of them are among the reductions'."""

import numpy as np
import pytest

import cytape
import cytape.numpy as ops
from tests.cases import each
from tests.ops.test_reductions import gradient


def test_std_where_only_one_row_has_no_variance():
    x = np.array([[1.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(gradient(lambda t: ops.std(t, axis=1), x), [[0, 0], [-0.5, 0.5]])


@pytest.mark.filterwarnings("ignore")
@each("function", [ops.var, ops.std])
def test_no_degrees_of_freedom_is_nan_as_in_numpy(function):
    assert np.isnan(function(cytape.constant([1.0]), ddof=1).numpy())
    assert np.isnan(gradient(lambda t: function(t, ddof=1), [1.0])).all()


def test_correction_is_ddof():
    x = np.array([1.0, 2.0, 4.0])
    assert ops.var(cytape.constant(x), correction=1).numpy() == np.var(x, correction=1)
    np.testing.assert_array_equal(
        gradient(lambda t: ops.std(t, correction=1), x), gradient(lambda t: ops.std(t, ddof=1), x))
    for given in (x, cytape.constant(x)):
        with pytest.raises(ValueError, match="ddof and correction can't be provided"):
            ops.var(given, ddof=1, correction=1)


@each("function, message", [
    (np.mean, "Mean of empty slice"), (np.var, "Degrees of freedom"),
    (np.std, "Degrees of freedom")])
def test_a_mask_that_selects_nothing_warns_as_in_numpy(function, message):
    x, mask = np.ones((2, 2)), np.array([[True, False], [True, False]])
    for given in (x, cytape.constant(x)):
        with pytest.warns(RuntimeWarning) as caught:
            function(given, axis=0, where=mask)
        assert message in str(caught[0].message)
