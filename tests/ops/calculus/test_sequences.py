"""Sequences: of no numbers and of one, of integers, and their errors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each
from tests.ops.refusals import refuses


@each("call", [
    lambda x: np.linspace(x, 3, 0), lambda x: np.linspace(x, 3, 1, retstep=True)[0],
    lambda x: np.linspace(x, 9, 4, dtype=int), lambda x: np.linspace(0, x, 3, axis=-1),
    lambda x: np.logspace(0, x, 3, dtype="float32"), lambda x: np.geomspace(x, 8.0, 1),
    lambda x: np.geomspace(x, 8, 3, dtype="float32"),
])  # fmt: skip
def test_values_are_numpys(call):
    for x in (np.array(2.0), np.array([1.0, 2.5])):
        found = call(cytape.constant(x))
        assert found.dtype == call(x).dtype
        np.testing.assert_allclose(found, call(x), rtol=1e-6)


@each("arguments", [(0.5, 3.0), (0.5, 3.0, 0.7), (3.5,)])
def test_a_range_starts_and_steps_by_tensors(arguments):
    tensors = list(map(cytape.constant, arguments))
    np.testing.assert_allclose(cnp.arange(*tensors), np.arange(*arguments))
    if len(arguments) == 3:
        found = cytape.grad(lambda a, d: cnp.arange(a, 3.0, d)[2], argnums=(0, 1))(0.5, 0.7)
        assert found == (1.0, 2.0)


def test_a_range_in_a_graph_is_an_error():
    with pytest.raises(SymbolicTensorError, match="arange: how many"):
        cytape.function(lambda n: cnp.arange(0.0, n))(np.array(3.0))


@each("call", [lambda x: np.linspace(x, 1, -1), lambda x: np.linspace(x, 1, 2.5),
               lambda x: np.geomspace(0 * x, 1), lambda x: np.linspace(x, 1, 3, axis=4)])
def test_what_numpy_does_not_take_is_its_error(call):
    refuses(call, np.array(2.0))
