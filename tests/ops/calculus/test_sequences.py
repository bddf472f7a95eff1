"""Sequences: of no numbers and of one, of integers, and their errors."""


import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each
from tests.ways import taped


@each("start, stop", [(1e-200, 1e200), (1e200, -1e-200), (-1e-200, -1e200), (0.3, 7.1)])
def test_a_geometric_sequence_does_not_overflow_between_its_ends(start, stop):
    with np.errstate(invalid="ignore"):
        found = np.geomspace(cytape.constant(start), stop, 5)
        expected = np.geomspace(start, stop, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[0].item(), found[-1].item()) == (start, stop)


def test_a_geometric_sequence_of_single_precision_does_not_overflow():
    ends = np.float32(1e-20), np.float32(1e20)
    found = np.geomspace(cytape.constant(ends[0]), ends[1], 3, dtype="float32")
    np.testing.assert_allclose(found, [1e-20, 1, 1e20], rtol=1e-6)


@each(ends=[(0.0, 2.0), (2.0, 0.0), (np.array([1.0, 0.0]), 2.0)], num=[1, 3])
def test_a_geometric_sequence_has_no_end_at_zero(ends, num):
    ends = [np.array(end) for end in ends]
    tensors = list(map(cytape.constant, ends))
    for given in (ends, tensors, [tensors[0], ends[1]], [ends[0], tensors[1]]):
        with pytest.raises(ValueError, match="cannot include zero"):
            np.geomspace(*given, num)
    with pytest.raises(ValueError, match="cannot include zero"):
        cytape.function(lambda *ends: np.geomspace(*ends, num))(*ends)


def test_gradients_of_a_geometric_sequence_do_not_overflow():
    gradient = cytape.grad(lambda *ends: np.geomspace(*ends, 3)[1], argnums=(0, 1))(1e-200, 1e200)
    np.testing.assert_allclose(gradient, [5e199, 5e-201])


@each("arguments, options", [((3.0, None), {}), ((3.0, None, 2.0), {}), ((3.0,), {"step": 2.0}),
                             ((3.0, None), {"dtype": "float32"}), ((1.0, 3.0, None), {}),
                             ((), {"stop": 3.0})])
def test_none_in_a_range_means_the_default(arguments, options):
    tensors = [x if x is None else cytape.constant(x) for x in arguments]
    named = {name: x if name == "dtype" else cytape.constant(x) for name, x in options.items()}
    found, expected = cnp.arange(*tensors, **named), np.arange(*arguments, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@each("arguments", [(0.5, 3.0), (0.5, 3.0, 0.7), (3.5,)])
def test_a_range_starts_and_steps_by_tensors(arguments):
    tensors = list(map(cytape.constant, arguments))
    np.testing.assert_allclose(cnp.arange(*tensors), np.arange(*arguments))
    if len(arguments) == 3:
        found = cytape.grad(lambda a, d: cnp.arange(a, 3.0, d)[2], argnums=(0, 1))(0.5, 0.7)
        assert found == (1.0, 2.0)


@each("call", [cnp.arange, lambda n: cnp.arange(n, None), lambda n: cnp.arange(stop=n),
               lambda n: cnp.arange(n, None, 1.0), lambda n: cnp.arange(0.0, n)])
def test_a_range_does_not_depend_smoothly_on_where_it_stops(call):
    n = cytape.constant(3.0)
    tape, y = taped(lambda n: np.sum(call(n)), n)
    assert (float(y), tape.gradient(y, n)) == (3.0, None)


@each("arguments, options", [
    ((1.0, 7.0), {"stop": 6.0}), ((1.0,), {"start": 6.0}), ((), {"step": 1.0, "device": "cpu"}),
    ((), {"start": 1.0}), ((1.0, 2.0, 1.0), {"step": 1.0}), ((1.0,), {"device": "there"}),
    ((1.0,), {"count": 3}), ((1.0, 2.0, 1.0, float, None), {}), ((None, None, 2.0), {}),
    ((1.0, 2.0, 1.0, "no dtype"), {})])
def test_invalid_ranges_raise_the_error_of_numpy(arguments, options):
    def tensor_if_number(x):
        return cytape.constant(x) if isinstance(x, float) else x

    with pytest.raises((TypeError, ValueError)) as expected:
        np.arange(*arguments, **options)
    with pytest.raises(type(expected.value)) as found:
        cnp.arange(*map(tensor_if_number, arguments),
                   **{name: tensor_if_number(x) for name, x in options.items()})
    assert str(found.value) == str(expected.value)


def test_a_range_in_a_graph_is_an_error():
    with pytest.raises(SymbolicTensorError, match="arange: how many"):
        cytape.function(lambda n: cnp.arange(0.0, n))(np.array(3.0))


@each("start", [5e-324, 1e-310])
def test_geometric_sequences_from_a_subnormal_number(start):
    for ends in ((start, 1.0), (-start, -1.0)):
        slopes = cytape.jacrev(lambda *ends: np.geomspace(*ends, 3), argnums=(0, 1))(*ends)
        middle = 0.5 / np.sqrt(start)
        np.testing.assert_allclose(slopes[0], [1, middle, 0], rtol=1e-6)
        np.testing.assert_allclose(slopes[1], [0, 0.5 * np.sqrt(start), 1], rtol=1e-6)


def test_ends_of_many_single_numbers_have_exact_gradients():
    """A product would add them up in sequence."""
    ends = [cytape.constant(np.float32(1)), cytape.constant(np.float32(2))]
    tape, y = taped(lambda ends: np.sum(np.linspace(*ends, 100_000)), ends)
    np.testing.assert_allclose(tape.gradient(y, ends), 50_000, rtol=1e-6)
