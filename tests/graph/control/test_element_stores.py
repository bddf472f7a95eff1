"""The two forms of a TensorArray."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cytape
from cytape.graph.control.element_stores import (
    Elements,
    Rows,
    as_index,
    has_value,
    is_known,
    merged,
    numbers,
)
from tests.cases import each


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=30))
def test_every_array_keeps_its_elements_whichever_is_written_next(writes):
    """Each write is to one of the arrays there are, picked by number."""
    arrays = [(Elements(6), {})]
    for value, (which, place) in enumerate(writes):
        array, expected = arrays[which % len(arrays)]
        x = cytape.constant(value)
        if place in expected:
            with pytest.raises(ValueError, match=f"index {place} is written a second time"):
                array.with_written([place], [x])
            continue
        arrays.append((array.with_written([place], [x]), {**expected, place: value}))
    for array, expected in arrays:
        assert {i: int(x) for i, x in array.by_index().items()} == expected
        assert [array.find(i) is not None for i in range(6)] == [i in expected for i in range(6)]


def test_the_newest_array_shares_its_history_and_others_copy_it():
    start = Elements(3)
    one = start.with_written([0], [cytape.constant(1)])
    two = one.with_written([1], [cytape.constant(2)])
    other = one.with_written([1], [cytape.constant(3)])
    assert one._history is two._history
    assert one._history is not other._history


def test_elements_that_do_not_fit():
    elements = Elements(2)
    for place in (2, -1):
        with pytest.raises(IndexError, match=f"index {place} is out of range for size 2"):
            elements.with_written([place], [cytape.constant(1)])
        with pytest.raises(IndexError, match="out of range"):
            elements.find(place)
    with pytest.raises(ValueError, match="index 1 is written a second time"):
        elements.with_written([1, 1], [cytape.constant(1)] * 2)
    assert elements.by_index() == {}
    grown = elements.with_written([4], [cytape.constant(1)], grows=True)
    assert (grown.size, elements.size) == (5, 2)


def rows(grows):
    return Rows(None, cytape.constant([False, False]), cytape.constant(2), grows)


@each("grows", [False, True])
def test_rows(grows):
    blank = rows(grows)
    written = blank.with_written(cytape.constant(1), cytape.constant([3.0]), (1,))
    assert (blank.tensor, written.all().numpy().tolist()) == (None, [[0.0], [3.0]])
    assert written.read(cytape.constant([1, 0])).numpy().tolist() == [[3.0], [0.0]]
    with pytest.raises(ValueError, match="second time"):
        written.with_written(cytape.constant(1), cytape.constant([3.0]), (1,))
    if grows:
        more = written.with_written(cytape.constant(4), cytape.constant([5.0]), (1,))
        assert (int(more.size), len(more.written.numpy()), more.all().shape) == (5, 8, (5, 1))
    else:
        with pytest.raises(IndexError, match="index 4 is out of range for size 2"):
            written.with_written(cytape.constant(4), cytape.constant([5.0]), (1,))


def test_indices():
    graph = cytape.Graph()
    symbolic = graph.placeholder("int32", ())
    assert [has_value(i) for i in (1, [1, 2], cytape.constant(1), symbolic, [1, symbolic])] == [
        True, True, True, False, False]
    assert as_index(symbolic).dtype == np.int64
    assert as_index([]).dtype == np.int64
    assert numbers(cytape.constant([3, 1])) == [3, 1]
    for wrong in (1.5, True, cytape.constant([0.5])):
        with pytest.raises(TypeError, match="must be an integer"):
            numbers(wrong)
    with pytest.raises(TypeError, match="must be an integer, got float64"):
        as_index(graph.placeholder("float64", ()))


def test_shapes():
    assert merged((None, 2), (3, None)) == (3, 2)
    assert merged(None, None) is None
    assert is_known(())
    assert not is_known((None,))
