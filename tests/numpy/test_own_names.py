"""Names of NumPy's modules here: the type of arrays, and errors of names that do not exist."""

import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each


@each("wrapped", [
    lambda f: f, cytape.function, cytape.grad, lambda f: lambda x: cytape.jvp(f, (x,), (1.0,))[0]])
def test_tensors_are_instances_of_the_type_of_arrays(wrapped):
    seen = []

    def f(x):
        seen.append(isinstance(x, cnp.ndarray) and not isinstance(x, np.ndarray))
        return x * 2.0

    wrapped(f)(cytape.constant(1.0))
    assert seen == [True]


def test_instances_of_ndarray():
    class Kind(cnp.ndarray):
        pass

    variable, array = cytape.Variable(1.0), np.ones(2)
    for x in (variable, array, array.view(np.ma.MaskedArray), cytape.constant(1)):
        assert isinstance(x, cnp.ndarray) and issubclass(type(x), cnp.ndarray)
    for x in (1.0, np.float64(1.0), [1.0], None):
        assert not isinstance(x, cnp.ndarray) and not issubclass(type(x), cnp.ndarray)
    assert isinstance(array.view(Kind), Kind) and not isinstance(array, Kind)
    assert not isinstance(variable, Kind) and issubclass(Kind, np.ndarray)
    assert type(Kind((2,))) is Kind
    assert type(cnp.ndarray((2, 3))) is np.ndarray
    assert cnp.ndarray.sum is np.ndarray.sum
    assert pickle.loads(pickle.dumps(cnp.ndarray)) is cnp.ndarray


@each("module", [cnp, cnp.linalg, cnp.fft, cnp.random])
def test_a_name_that_does_not_exist_is_missing_in_the_module_that_was_asked(module):
    says = f"^module '{module.__name__}' has no .*'sinn'"
    with pytest.raises(AttributeError, match=says) as error:
        module.sinn  # noqa: B018
    assert error.value.name == "sinn" and error.value.obj is module


def test_errors_for_removed_names_are_those_of_numpy():
    with pytest.raises(AttributeError, match="(?s)^module 'cytape.numpy' has no.*`float`"):
        cnp.float  # noqa: B018
