"""Sums of many tensors, and several identities in one op."""

from functools import partial

import numpy as np
import pytest

import cytape
from cytape.ops.adjoints.identity_groups import add_n, add_n_op, identity_n, may_agree, tuple_op
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each, sampled
from tests.ways import run_in_graph, tangent, taped, watching


def test_add_n_adds():
    a, b, c = (np.array([1.0, 2.0]) * 10**i for i in range(3))
    np.testing.assert_array_equal(add_n([a, b, c]), [111.0, 222.0])
    assert isinstance(add_n([a, b]), np.ndarray)
    total = add_n([a, cytape.constant(b), c])
    assert isinstance(total, cytape.Tensor)
    np.testing.assert_array_equal(total.numpy(), [111.0, 222.0])
    np.testing.assert_array_equal(add_n([a]), a)


@each("group", [add_n, lambda inputs: identity_n(*inputs)])
def test_masked_arrays_are_refused(group):
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match="mask"):
        group([cytape.constant([1.0, 2.0]), masked])


def test_add_n_leaves_its_inputs_as_they_are():
    terms = [np.ones(3), np.ones(3), np.ones(3)]
    add_n(terms)
    for term in terms:
        np.testing.assert_array_equal(term, np.ones(3))


@each("dtype", ["float32", "int64", "complex128"])
def test_add_n_keeps_the_dtype(dtype):
    assert add_n([np.ones(2, dtype)] * 3).dtype == dtype


@each(("inputs", "match"), [
    ([], "at least one input"),
    ([np.ones(2), np.ones(3)], r"one shape and dtype, got float64\(2,\), float64\(3,\)"),
    ([np.ones(2), np.ones((1, 2))], "one shape"), ([np.ones(2), np.ones(2, "float32")], "dtype")])
def test_add_n_does_not_broadcast_or_convert(inputs, match):
    with pytest.raises(ValueError, match=match):
        add_n(inputs)


def test_add_n_knows_the_shape_if_one_input_does():
    graph = cytape.Graph()
    x, y = graph.placeholder("float64", (None,)), graph.placeholder("float64", (2,))
    assert add_n([x, y]).shape == (2,)
    assert add_n([x, x]).shape == (None,)
    with pytest.raises(ValueError, match="one shape"):
        add_n([y, graph.placeholder("float64", (None, None))])


def test_each_term_has_the_gradient_of_the_sum():
    xs = [cytape.constant([1.0, 2.0]) for _ in range(3)]
    tape, y = taped(lambda xs: np.sum(add_n_op(*xs) ** 2), xs)
    for gradient in tape.gradient(y, xs):
        np.testing.assert_array_equal(gradient.numpy(), [6.0, 12.0])


def test_identity_n_is_one_op():
    graph = cytape.Graph()
    a, b = graph.placeholder("float64", ()), graph.placeholder("int64", (2,))
    c, d = identity_n(a, b)
    assert c.op == d.op
    assert (c.value_index, d.value_index) == (0, 1)
    assert (d.dtype, d.shape) == (np.dtype("int64"), (2,))


def test_identity_n_of_arrays():
    a, b = identity_n(np.ones(2), 3.0)
    np.testing.assert_array_equal(a, np.ones(2))
    assert b == 3.0


def test_unused_outputs_have_zeros_for_a_gradient():
    a, b = cytape.constant(1.0), cytape.constant([1.0, 2.0])
    with watching(a, b) as tape:
        c, _ = identity_n(a, b)
    da, db = tape.gradient(c, [a, b])
    assert float(da) == 1.0
    np.testing.assert_array_equal(db.numpy(), [0.0, 0.0])


def test_only_the_second_of_a_tuple_is_used_under_an_accumulator():
    """Nothing arrives for the first one, which the tuple takes as None."""
    x = cytape.constant([1.0, 2.0])
    with cytape.ForwardAccumulator(x, np.array([1.0, 0.5])) as accumulator:
        with watching(x) as tape:
            _, y = tuple_op(x, x * x)
        gradient = tape.gradient(y, x)
    np.testing.assert_array_equal(gradient.numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(accumulator.jvp(gradient).numpy(), [2.0, 1.0])


@each(("shape", "other", "expected"), [
    ((2, 3), (2, 3), True), ((2, None), (2, 3), True), (None, (2,), True), ((2,), (3,), False),
    ((2,), (2, 1), False), ((), (), True)])
def test_may_agree(shape, other, expected):
    assert may_agree(shape, other) is expected
    assert may_agree(other, shape) is expected


@each(inside=[lambda f: f, cytape.function], written=[0, 1])
def test_an_identity_is_written_to_as_a_copy(inside, written):
    def f(x):
        x = cytape.identity(x)
        both = x, identity_n(x, x)[0]
        both[written][0] = 9.0
        return both

    found = inside(f)(cytape.constant([1.0, 2.0]))
    np.testing.assert_array_equal(found[written], [9.0, 2.0])
    np.testing.assert_array_equal(found[1 - written], [1.0, 2.0])


WAYS_OF_SUMS = {
    "tape": ways.gradient,
    "recorded tape": partial(ways.gradient, recorded=True),
    "function": lambda f, x: cytape.function(lambda x: ways.gradient(f, x))(x),
    "beside an accumulator": lambda f, x: tangent(lambda x: ways.gradient(f, x) * x, x),
    "graph": lambda f, x: run_in_graph(lambda x: cytape.gradients(f(x), x)[0], x),
}


@sampled(4, way=WAYS_OF_SUMS, shape=[(), (2,), (5000,)], in_the_middle=[False, True])
def test_many_terms_of_half_precision_are_rounded_once(way, shape, in_the_middle):
    factors = np.random.default_rng(0).uniform(0.0, 1.0, 1000).astype("float16")
    x = cytape.constant(np.ones(shape, "float16"))
    before = live_tensors()

    def f(x):
        used = x * np.float16(2.0) if in_the_middle else x
        return [used * factor for factor in factors]

    gradient = WAYS_OF_SUMS[way](f, x)
    expected = np.float16(factors.astype(float).sum()) * np.float16(1 + in_the_middle)
    np.testing.assert_array_equal(gradient, np.full(shape, expected), strict=True)
    del gradient
    assert live_tensors() == before or way in ("function", "graph")
