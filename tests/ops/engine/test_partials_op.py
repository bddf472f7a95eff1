"""Derivatives from partial derivatives: gradients and tangents in both modes."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ops.forward_mode import tangent_of
from tests.ways import gradients, taped, watching

V3 = np.array([0.5, -1.0, 2.0])


# -- gradients of several inputs, made together, and of one number -------------------------------


@each(size=[3, 40, 700, 20_000], op=[
    cnp.multiply, cnp.divide, cnp.power, cnp.arctan2, cnp.hypot, cnp.maximum, cnp.fmin,
    cnp.logaddexp, cnp.fmod, cnp.subtract])
def test_gradients_made_together_are_those_made_one_by_one(op, size):
    rng = np.random.default_rng(size)
    x, y, c = map(cytape.constant, rng.uniform(0.5, 2, (3, size)))

    def gradients(sources):
        with watching(sources) as tape:
            total = cnp.sum(op(x, y) * c)  # the gradient of the op is the tape's own
        return tape.gradient(total, sources)

    expected = gradients([x]) + gradients([y])
    for found, alone in zip(gradients([x, y]), expected, strict=True):
        np.testing.assert_array_equal(found.numpy(), alone.numpy())


@each(layout=[lambda x: x, lambda x: x[:1], lambda x: x[::2].repeat(2, 0), lambda x: x[:, :1]], op=[
    cnp.multiply, cnp.divide, cnp.power, cnp.arctan2, cnp.maximum, cnp.fmin, cnp.logaddexp,
    cnp.subtract, cnp.hypot])
def test_gradients_of_a_sum_are_those_of_ones_to_the_bit(op, layout):
    rng = np.random.default_rng(0)
    x, y = cytape.constant(rng.uniform(0.5, 2, (80, 60))), cytape.constant(
        layout(rng.uniform(0.5, 2, (80, 60))))
    for sources in [x], [y], [x, y], [x, x]:
        with watching(sources, persistent=True) as tape:
            result = op(x, sources[-1] if sources[-1] is x and len(sources) == 2 else y)
            total = cnp.sum(result)
        expected = tape.gradient(result, sources, output_gradients=np.ones((80, 60)))
        for found, gradient in zip(tape.gradient(total, sources), expected, strict=True):
            np.testing.assert_allclose(found, gradient, 1e-13)
            if gradient.shape == (80, 60):
                np.testing.assert_array_equal(found, gradient)


def test_a_factor_is_shown_as_the_gradient_of_the_other_and_does_not_change():
    x, y = cytape.constant(np.arange(5000.0)), cytape.Variable(np.arange(5000.0) + 1)
    tape, total = taped(lambda x: cnp.sum(x * y), x)
    of_x, of_y = tape.gradient(total, [x, y])
    assert np.shares_memory(of_x.numpy(), y.numpy()) and np.shares_memory(of_y.numpy(), x.numpy())
    assert len({x.id, y.id, of_x.id, of_y.id}) == 4
    y.assign_add(np.ones(5000))
    np.testing.assert_array_equal(of_x, np.arange(5000.0) + 1)


def test_a_factor_shown_as_a_gradient_is_not_added_to():
    x, y = map(cytape.constant, np.random.default_rng(0).uniform(0.5, 2, (2, 5000)))
    before = y.numpy().copy()
    with watching(x) as tape:
        total = cnp.sum(cnp.sin(x)) + cnp.sum(x * y) + cnp.sum(x * y) + cnp.sum(x * x)
    found = tape.gradient(total, x)
    np.testing.assert_allclose(found, np.cos(x.numpy()) + 2 * before + 2 * x.numpy(), 1e-13)
    np.testing.assert_array_equal(y, before)


def test_gradients_made_together_leave_what_a_user_passed_in():
    x, y, seed = map(cytape.constant, np.random.default_rng(0).uniform(0.5, 2, (3, 1000)))
    before = seed.numpy().copy()
    gradients(lambda x, y: x / y, x, y, output_gradients=seed)
    np.testing.assert_array_equal(seed.numpy(), before)


def test_an_operand_that_is_used_twice_gets_both_gradients():
    x = cytape.constant(np.linspace(0.5, 2, 3000))
    with watching(x, persistent=True) as tape:
        quotient, product = x / x, x * x + cnp.arctan2(x, 1 / x)
    np.testing.assert_allclose(tape.gradient(quotient, x).numpy(), 0 * x.numpy(), atol=1e-15)
    np.testing.assert_allclose(
        tape.gradient(product, x).numpy(), 2 * x.numpy() + 2 * x.numpy() / (1 + x.numpy() ** 4))


@each("shape", [(5000,), (70, 80), (1, 5000)])
def test_the_gradient_of_a_sum_times_a_number_is_one_number(shape):
    x = cytape.constant(np.ones(shape))
    with watching(x, persistent=True) as tape:
        scaled, added_to = cnp.sum(-cnp.radians(x)), cnp.sum(-x) + cnp.sum(x * x) + cnp.sum(-x)
    gradient = tape.gradient(scaled, x).numpy()
    assert gradient.strides == tuple(0 for _ in shape)
    np.testing.assert_array_equal(gradient, np.full(shape, -np.pi / 180))
    np.testing.assert_array_equal(tape.gradient(added_to, x).numpy(), np.zeros(shape))


# -- gradients that fit ----------------------------------------------------------------------------


def test_an_integer_result_is_not_recorded():
    x = cytape.constant(V3)
    with watching(x) as tape:
        y = (x > 0) * x
        z = cnp.floor_divide(x, 1.0)
    np.testing.assert_array_equal(tape.gradient([y, z], x).numpy(), V3 > 0)


# -- forward mode ----------------------------------------------------------------------------------


def test_a_tangent_sums_the_terms_of_the_inputs_that_have_a_tangent():
    x, y = V3, 2 * V3
    for dx, dy, expected in [
        (np.ones(3), None, 2 * V3), (None, np.ones(3), V3), (np.ones(3), np.ones(3), 3 * V3),
    ]:
        tangent = tangent_of(cnp.multiply, (x, dx), (y, dy))
        np.testing.assert_array_equal(tangent.numpy(), expected)
    assert tangent_of(cnp.multiply, (x, None), (y, None)) is None
    assert tangent_of(cnp.floor, (x, x)) is None
    assert tangent_of(cnp.copysign, (x, None), (y, y)) is None


def test_a_tangent_has_the_shape_and_dtype_of_the_output():
    for op in (cnp.add, cnp.multiply):
        tangent = tangent_of(op, (np.float32(2), np.float32(1)), (np.ones((2, 3)), None))
        assert (tangent.shape, tangent.dtype) == ((2, 3), np.float64)


def test_a_tangent_can_be_differentiated():
    x, v = cytape.constant(V3), cytape.constant([1.0, 2.0, 3.0])
    tape, tangent = taped(lambda x: tangent_of(cnp.sin, (x, v)), x)
    np.testing.assert_allclose(tape.gradient(tangent, x).numpy(), -np.sin(V3) * [1, 2, 3])


@each(shape=[(), (3,), (40, 30)], dtype=["float32", "float64", "complex128"])
def test_the_tangent_of_a_gradient_is_the_same_by_programs_and_on_tensors(dtype, shape):
    """A second accumulator, that follows nothing, takes the way by programs away."""
    rng = np.random.default_rng(0)
    x, y, dx, dy = [rng.normal(size=shape).astype(dtype) for _ in range(4)]
    x, y = cytape.constant(x), cytape.constant(y[:1] if shape else y)

    def products():
        with cytape.ForwardAccumulator([x, y], [dx, dy[:1] if shape else dy]) as accumulator:
            tape, z = taped(lambda x, y: cnp.exp(x * y) / (x + cnp.sin(y) * cnp.sin(y) + 3), x, y)
            gradients = tape.gradient(z, [x, y])
        return accumulator.jvp(gradients)

    by_programs = products()
    with cytape.ForwardAccumulator(cytape.constant(1.0), 1.0):
        on_tensors = products()
    for ours, theirs, primal in zip(by_programs, on_tensors, (x, y), strict=True):
        assert (ours.dtype, ours.shape) == (primal.dtype, primal.shape)
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)
