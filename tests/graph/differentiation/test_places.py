"""Where tensors are, in a graph and in those around it."""

import pytest

import cytape
from cytape.graph.differentiation.places import Places
from tests.graph.differentiation.test_graph_sweep import Inner


@pytest.fixture
def outer():
    return cytape.Graph()


def test_levels_count_from_the_graph_outwards(outer):
    middle = Inner(outer)
    inner = Inner(middle)
    assert Places(inner).graphs == [inner, middle, outer]
    assert Places(outer).graphs == [outer]


def test_a_tensor_is_where_it_was_built(outer):
    x = outer.placeholder("float64")
    inner = Inner(outer)
    y = inner.placeholder("float64")
    places = Places(inner)
    assert places.place_of("xs", x) == (1, outer.symbol_of(x))
    assert places.place_of("xs", y) == (0, inner.symbol_of(y))


def test_a_captured_tensor_with_a_value_is_where_its_placeholder_is(outer):
    eager = cytape.constant(1.0)
    inner = Inner(outer)
    captured = inner.capture(eager)
    assert Places(inner).place_of("xs", eager) == (0, inner.symbol_of(captured))
    assert Places(inner).captures_of(0) == {}


def test_captures_tell_where_they_come_from(outer):
    x = outer.placeholder("float64")
    middle = Inner(outer)
    inner = Inner(middle)
    places = Places(inner)
    assert places.captures_of(0) == {}
    here = inner.capture(x)
    there = middle.capture(x)
    assert places.captures_of(0) == {inner.symbol_of(here): (1, middle.symbol_of(there))}
    assert places.captures_of(1) == {middle.symbol_of(there): (2, outer.symbol_of(x))}


def test_a_variable_is_where_it_was_looked_at_first(outer):
    variable = cytape.Variable(1.0)
    handle = outer.variable_handle(variable)
    inner = Inner(outer)
    assert Places(inner).place_of_variable(variable) == (1, outer.symbol_of(handle))


def test_a_variable_that_no_graph_has_looked_at_gets_a_handle(outer):
    variable = cytape.Variable(1.0)
    level, symbol = Places(outer).place_of_variable(variable)
    assert (level, outer.tensor_at(symbol).op.type) == (0, "VariableHandle")


def test_a_place_that_does_not_exist_is_an_error(outer):
    with pytest.raises(RuntimeError, match="xs must be tensors of the graph.*GradientTape"):
        Places(outer).place_of("xs", cytape.constant(1.0))
    with pytest.raises(ValueError, match="ys must belong to the graph being built"):
        Places(outer).place_of("ys", cytape.Graph().placeholder("float64"))
