"""L-BFGS on variables and on arrays."""

import sys

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.optimizers import lbfgs
from tests.cases import each

pytest.importorskip("scipy")


def rosenbrock(x):
    return cnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@each(dtype=["float64", "float32"])
def test_variables_and_arrays(dtype):
    v, array = cytape.Variable(np.zeros(5, dtype)), {"x": np.zeros(5, dtype)}
    results = [lbfgs(lambda: rosenbrock(v), [v]), lbfgs(lambda p: rosenbrock(p["x"]), array)]
    for result, found in zip(results, (v.numpy(), array["x"]), strict=True):
        assert result.success or dtype == "float32"
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.ones(5), atol=1e-4 if dtype == "float64" else 2e-2)
    assert results[0].nfev == results[1].nfev


def test_parameters_without_a_gradient_and_sparse_ones():
    v, w, table = cytape.Variable(1.0), cytape.Variable(2.0), cytape.Variable(np.zeros((4, 2)))
    lbfgs(lambda: v * v + cnp.sum((cytape.gather(table, [1, 1, 3]) - 1) ** 2), [v, w, table])
    assert float(w) == 2.0
    assert abs(float(v)) < 1e-5
    np.testing.assert_allclose(table.numpy()[:, 0], [0, 1, 0, 1], atol=1e-5)


def test_callbacks_and_options():
    seen, v = [], cytape.Variable(np.zeros(5))
    result = lbfgs(lambda: rosenbrock(v), v, callback=lambda n, f: seen.append((n, f)) or n == 3)
    assert [n for n, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == float(rosenbrock(v)) < seen[0][1]
    assert result.nit == 3
    assert not lbfgs(lambda: rosenbrock(v), v, maxfun=1).success


def test_an_error_in_the_loss_restores_the_start():
    v, calls = cytape.Variable(np.zeros(3)), []

    def loss():
        calls.append(1)
        if len(calls) == 3:
            raise KeyError
        return rosenbrock(v)

    with pytest.raises(KeyError):
        lbfgs(loss, v)
    assert v.numpy().tolist() == [0, 0, 0]


def test_refused_arguments(monkeypatch):
    with pytest.raises(TypeError, match="not a mixture"):
        lbfgs(lambda: 0.0, [cytape.Variable(1.0), np.ones(1)])
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        lbfgs(lambda: 0.0, [cytape.Variable(1.0)])


def test_a_loss_that_is_not_a_number_is_no_success():
    with np.errstate(all="ignore"):
        result = lbfgs(lambda x: np.sum(np.log(x)), np.array([-1.0, 2.0]))
    assert not result.success
    assert result.message == "the loss is not a number"
