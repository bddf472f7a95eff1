"""Programs of tangents of outputs and of gradients."""

import contextlib

import numpy as np
import pytest

import cytape
from cytape.ops.kernels.partial_program import trace, trace_gradient_tangent, trace_tangent
from tests import ways
from tests.ops.forward_mode import followed
from tests.ops.kernels.test_partial_program import (
    CANCELLING,
    FIRST,
    NO_UFUNCS,
    SECOND,
    TABLE,
    check,
    draw,
    inputs_of,
    made_op,
    rtol_of,
)
from tests.tables import table


def outer_tape(observed):
    """A recorder that sees how tangents are computed: then it is not by programs."""
    return cytape.GradientTape(persistent=True) if observed else contextlib.nullcontext()


def subsets(op, inputs):
    """All ways to choose inputs that have a tangent, at least one."""
    movable = [i for i, x in enumerate(inputs) if op.partials[i] and x.dtype.kind == "f"]
    for bits in range(1, 1 << len(movable)):
        yield [i for k, i in enumerate(movable) if bits >> k & 1]


def assert_same(ours, theirs, rtol):
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        ours, theirs = ours.numpy(), theirs.numpy()
        # Terms may cancel when they are added.
        np.testing.assert_allclose(ours, theirs, rtol, rtol * np.abs(theirs).max(initial=0))


def tangents_for(inputs, moving):
    return [draw(x.dtype, *x.shape, seed=7 + i) if i in moving else None
            for i, x in enumerate(inputs)]


SHAPES = [
    [(1500,), (1500,)], [(3, 50), (3, 50)], [(3, 50), (50,)], [(3, 1), (50,)], [(), (3, 50)],
    [(0, 3), (3,)], [(), ()],
]  # of two inputs; a third has the first one's


@pytest.mark.parametrize("use_batch", [False, True])
@pytest.mark.parametrize("dtype", table(["float64"], ["float32"]))
@pytest.mark.parametrize("name", TABLE)
def test_every_op_of_the_table_gets_the_same_tangents_both_ways(name, dtype, use_batch):
    op = TABLE[name]
    for shapes in SHAPES:
        inputs = inputs_of(name, dtype, *(shapes + shapes[:1])[:op.n_inputs])
        tensors = [cytape.constant(x) for x in inputs]
        for moving in subsets(op, inputs):
            tangents = tangents_for(inputs, moving)
            if use_batch:
                tangents = [t if t is None else np.stack([t, 2 * t, t - 1]) for t in tangents]
            found = []
            for observed in (False, True):
                with outer_tape(observed), np.errstate(all="ignore"):
                    found.append(followed(op, tensors, tangents, use_batch)[1][0])
            assert_same(*found, CANCELLING.get(name, 1) * rtol_of(dtype))


def gradients_and_tangents(op, tensors, moving, tangents, seed, seed_tangent, observed):
    seed = cytape.constant(seed)
    primals, directions = [tensors[i] for i in moving], [tangents[i] for i in moving]
    if seed_tangent is not None:
        primals.append(seed)
        directions.append(seed_tangent)
    with outer_tape(observed), np.errstate(all="ignore"):
        with cytape.ForwardAccumulator(primals, directions) as accumulator:
            with ways.watching([t for t in tensors if t.spec.trainable]) as tape:
                y = op(*tensors)
            gradients = tape.gradient(y, tensors, output_gradients=seed)
    return gradients, [None if g is None else accumulator.jvp(g) for g in gradients]


@pytest.mark.parametrize("dtype", table(["float64"], ["float32"]))
@pytest.mark.parametrize("name", TABLE)
def test_every_op_of_the_table_gets_the_same_tangents_of_gradients_both_ways(name, dtype):
    op = TABLE[name]
    rtol = 4 * CANCELLING.get(name, 1) * rtol_of(dtype)
    for shapes in SHAPES:
        inputs = inputs_of(name, dtype, *(shapes + shapes[:1])[:op.n_inputs])
        tensors = [cytape.constant(x) for x in inputs]
        shape = np.broadcast_shapes(*map(np.shape, inputs))
        seed, seed_tangent = draw(dtype, *shape, seed=11), draw(dtype, *shape, seed=12)
        for moving in [[], *subsets(op, inputs)]:
            tangents = tangents_for(inputs, moving)
            for of_seed in (None, seed_tangent):
                if not moving and of_seed is None:
                    continue
                ours, theirs = (
                    gradients_and_tangents(op, tensors, moving, tangents, seed, of_seed, observed)
                    for observed in (False, True))
                for mine, others in zip(ours, theirs, strict=True):
                    for a, b in zip(mine, others, strict=True):
                        assert_same(a, b, rtol)


def test_the_programs_of_tangents_fit():
    """Partials too long, or too unlike a list of kernel calls, fall back to arrays."""
    no_tangent, no_gradient_tangent = set(), set()
    for name, op in TABLE.items():
        for present in range(1, 1 << op.n_inputs):
            if trace_tangent(op.partials, present) is None:
                no_tangent.add(name)
        for partial in op.partials:
            for present in range(1, 1 << (2 + op.n_inputs) if partial else 0):
                if trace_gradient_tangent(partial, op.n_inputs, present) is None:
                    no_gradient_tangent.add(name)
    assert no_tangent - NO_UFUNCS == set()
    assert no_gradient_tangent - NO_UFUNCS == {
        "MishSlope", "Sinc"}  # a long formula that does not cancel; a series, differentiated twice


GRADIENT_BIT, OUTPUT_BIT, FIRST_BIT, SECOND_BIT = 1, 2, 4, 8  # of `trace_gradient_tangent`


def test_a_program_of_a_tangent_reads_what_it_needs():
    product = (lambda z, x, y: y, lambda z, x, y: x)
    assert [trace_tangent(product, present).reads for present in (1, 2, 3)] == [
        SECOND, FIRST, FIRST | SECOND]
    first = product[0]
    for present, reads in [
        (GRADIENT_BIT, SECOND), (FIRST_BIT, 0), (SECOND_BIT, 0), (OUTPUT_BIT, 0),
        (GRADIENT_BIT | SECOND_BIT, SECOND),
    ]:
        assert trace_gradient_tangent(first, 2, present).reads == reads


def test_steps_that_lead_nowhere_are_left_out():
    def roundabout(z, x):
        for i in range(60):
            np.sin(x + i * z)
        return 2.0 * x

    assert trace(roundabout, 1).reads == FIRST
    assert trace_tangent((roundabout,), 1).reads == FIRST
    assert trace_gradient_tangent(roundabout, 1, GRADIENT_BIT | FIRST_BIT).reads == FIRST


def test_a_step_that_comes_twice_is_taken_once():
    def doubling(x, depth):
        return x if depth == 0 else np.sin(doubling(x, depth - 1)) + np.sin(doubling(x, depth - 1))

    op = made_op(lambda z, x: doubling(x, 8))
    assert trace(op.partials[0], 1) is not None
    check(op, draw("float64", 700), rtol=1e-14)


def test_the_tangent_of_a_boolean_is_nothing():
    """It selects what has a tangent; the one that is not selected may be infinite."""
    partial = lambda z, x: np.where(x > 0.5, x, 1 / (x - x))  # noqa: E731
    op = made_op(partial)
    x, ones = np.array([0.75, 0.875]), np.ones(2)
    for observed in (False, True):
        with outer_tape(observed), np.errstate(all="ignore"):
            _, (tangent,) = followed(op, [cytape.constant(x)], [ones])
            np.testing.assert_array_equal(tangent.numpy(), x)
    _, (tangent,) = gradients_and_tangents(
        op, [cytape.constant(x)], [0], [ones], ones, None, observed=False)
    np.testing.assert_array_equal(tangent.numpy(), ones)


def test_an_op_that_passes_its_tangent_on():
    x, y = cytape.constant(draw("float64", 4)), cytape.constant(draw("float64", 3, 4))
    for use_batch in (False, True):
        v = draw("float64", *(2, 4) if use_batch else (4,))
        _, (tangent,) = followed(np.add, [x, y], [v, None], use_batch)
        expected = np.broadcast_to(v[:, None] if use_batch else v, v.shape[:-1] + (3, 4))
        np.testing.assert_array_equal(tangent.numpy(), expected)
        _, (tangent,) = followed(np.subtract, [y, x], [None, v], use_batch)
        np.testing.assert_array_equal(tangent.numpy(), -expected)
