"""Tangents of a ForwardAccumulator: dtypes, complex numbers, batches, transposed vjps."""

import numpy as np

import cytape
from cytape.ops.engine.general_op import GeneralOp
from tests import ways
from tests.cases import each

# -- dtypes ----------------------------------------------------------------------------------------


@each(dtype=["float16", "float32", "float64", "complex64", "complex128"], use_batch=[False, True])
def test_a_jvp_has_the_shape_and_dtype_of_its_primal(dtype, use_batch):
    x = cytape.constant(np.array([[0.5, 1.5]]).astype(dtype))
    tangent = np.ones((3, 1, 2) if use_batch else (1, 2))
    with cytape.ForwardAccumulator(x, tangent, use_batch) as accumulator:
        results = [2 * x + 1.0, np.sin(x), np.sum(x), x @ x.T, x[0], x**2, np.mean(x),
                   np.exp(x) * np.ones(2, dtype), np.stack([x, x]), np.cumsum(x), x / 3,
                   np.sqrt(x), np.prod(x)]
    for y in results:
        jvp = accumulator.jvp(y)
        assert (jvp.shape, jvp.dtype) == ((3,) * use_batch + y.shape, y.dtype)
        assert y.dtype == dtype


def test_a_cast_in_the_middle():
    x = cytape.constant(np.float32([1.0, 2.0]))
    with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
        y = x.astype(np.float64) * np.array([1.0, 2.0])
        z = y.astype(np.complex64)
    assert [t.dtype for t in accumulator.jvp([y, z])] == [np.float64, np.complex64]
    assert accumulator.jvp(z).numpy().tolist() == [1.0, 2.0]


@each("f, derivative", [
    (np.exp, np.exp), (lambda z: z**3, lambda z: 3 * z**2), (np.sin, np.cos),
    (lambda z: 1 / z, lambda z: -1 / z**2), (lambda z: z * z * 1j, lambda z: 2j * z),
    (np.log, lambda z: 1 / z),
])
def test_a_holomorphic_derivative_times_the_tangent(f, derivative, rng):
    z, t = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    x = cytape.constant(z)
    np.testing.assert_allclose(ways.tangent(f, x, t).numpy(), derivative(z) * t)


@each("f, tangent", [
    (np.real, lambda z, t: t.real), (np.imag, lambda z, t: t.imag),
    (np.conj, lambda z, t: np.conj(t)),
    (np.abs, lambda z, t: (np.conj(z) * t).real / np.abs(z)),
    (lambda z: np.real(z * np.conj(z)), lambda z, t: 2 * (np.conj(z) * t).real),
    (lambda z: np.conj(z) * z**2, lambda z, t: np.conj(t) * z**2 + 2 * z * np.conj(z) * t),
    (np.angle, lambda z, t: (t / z).imag),
])
@each("nested", [False, True])
def test_maps_that_are_linear_over_the_reals_only(f, tangent, nested, rng):
    z, t = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    x, other = cytape.constant(z), cytape.constant(1.0)
    with cytape.ForwardAccumulator([x, other] if nested else other, [t, 1.0] if nested else 1.0):
        with cytape.ForwardAccumulator(x, t) as accumulator:
            y = f(x)
    jvp = accumulator.jvp(y).numpy()
    np.testing.assert_allclose(jvp, tangent(z, t), atol=1e-12)
    assert jvp.dtype == y.dtype


# -- batches ---------------------------------------------------------------------------------------


@each(outer_batch=[True, False], inner_batch=[True, False])
def test_batches_nest(outer_batch, inner_batch, rng):
    """Axes come in the order of taking the derivatives: the outer one's first."""
    value = rng.normal(size=3)
    x = cytape.constant(value)
    units = np.eye(3)
    t, u = (units if batch else units[1] for batch in (outer_batch, inner_batch))
    with cytape.ForwardAccumulator(x, t, outer_batch) as outer:
        with cytape.ForwardAccumulator(x, u, inner_batch) as inner:
            y = np.sum(x * x * x[::-1])
        jvp = inner.jvp(y)
    second = outer.jvp(jvp).numpy()
    hessian = np.array([
        [2 * value[2], 0.0, 2 * value[0] + 2 * value[2]],
        [0.0, 6 * value[1], 0.0],
        [2 * value[0] + 2 * value[2], 0.0, 2 * value[0]],
    ])
    np.testing.assert_allclose(second, hessian[slice(None) if outer_batch else 1,
                                               slice(None) if inner_batch else 1])


@each("k", [0, 1, 2])
def test_a_batch_of_sparse_gradients(k, rng):
    """A gather's gradient is sparse; in a batch its tangents come dense."""
    table = cytape.Variable(rng.normal(size=(4, 3)))
    tangents = rng.normal(size=(k, 4, 3))
    with cytape.ForwardAccumulator(table, tangents, use_batch=True) as accumulator:
        tape, y = ways.taped(lambda: np.sum(np.take(table, [1, 2, 1], axis=0) ** 3))
        gradient = tape.gradient(y, table)
    assert isinstance(gradient, cytape.IndexedSlices)
    times = np.array([0, 2, 1, 0])[:, None]
    jvp = accumulator.jvp(gradient)
    assert jvp.shape == (k, 4, 3)
    np.testing.assert_allclose(jvp.numpy(), 6 * times * table.numpy() * tangents)


def test_the_tangent_of_a_sparse_gradient_is_sparse(rng):
    table = cytape.Variable(rng.normal(size=(4, 3)))
    tangent = rng.normal(size=(4, 3))
    with cytape.ForwardAccumulator(table, tangent) as accumulator:
        tape, y = ways.taped(lambda: np.sum(np.take(table, [1, 2, 1], axis=0) ** 3))
        gradient = tape.gradient(y, table)
        linear = cytape.IndexedSlices(cytape.constant(np.ones((1, 3))), gradient.indices[:1],
                                      (4, 3))
    jvp = accumulator.jvp(gradient)
    assert isinstance(jvp, cytape.IndexedSlices)
    times = np.array([0, 2, 1, 0])[:, None]
    np.testing.assert_allclose(jvp.to_tensor().numpy(), 6 * times * table.numpy() * tangent)
    assert accumulator.jvp(linear) is None
    assert not accumulator.jvp(linear, "zero").to_tensor().numpy().any()


# -- rules by transposition ------------------------------------------------------------------------

ROTATE = np.array([2, 0, 1])


@each("nested", [False, True])
@each("name, forward, vjp, jvp", [
    ("square", np.square, lambda op, g: 2 * op.inputs[0] * g, lambda x, t: 2 * x * t),
    ("its gradient is sparse", lambda x: x[ROTATE],
     lambda op, g: np.take(g, np.argsort(ROTATE), axis=0), lambda x, t: t[ROTATE]),
    ("no gradient", np.square, lambda op, g: None, lambda x, t: None),
    ("the gradient as it is", lambda x: x * 1.0, lambda op, g: g, lambda x, t: t),
    ("not linear", np.square, lambda op, g: g * g, lambda x, t: 2 * t),
    ("a constant", np.square, lambda op, g: np.ones(3), lambda x, t: None),
])
def test_an_op_with_a_vjp_only(name, forward, vjp, jvp, nested, rng):
    """The vjp is transposed; one that is not linear counts with its slope at ones."""
    op = GeneralOp(name, forward, vjp)
    x, other = cytape.constant([3.0, 4.0, 5.0]), cytape.constant(1.0)
    tangents = rng.normal(size=(2, 3))
    expected = [jvp(x.numpy(), tangent) for tangent in tangents]
    with cytape.ForwardAccumulator([x, other] if nested else other,
                                   [np.ones(3), 1.0] if nested else 1.0) as outer:
        with cytape.ForwardAccumulator(x, tangents[0]) as accumulator:
            y = op(x)
        with cytape.ForwardAccumulator(x, tangents, use_batch=True) as batched:
            y = op(x)
            jvp = batched.jvp(y)
        y_again = op(x)
    assert accumulator.jvp(y) is None  # it had been left
    assert (outer.jvp(y_again) is not None) == (nested and expected[0] is not None)
    if expected[0] is None:
        assert jvp is None
    else:
        np.testing.assert_allclose(jvp.numpy(), expected)
