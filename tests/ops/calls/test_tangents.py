"""Forward mode: what an accumulator does with an op, and with what its rules return."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError, NotDifferentiableError
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.custom_op import custom_call, record_custom
from cytape.ops.engine.general_op import GeneralOp
from tests.cases import each
from tests.ops.forward_mode import followed, recorder_of, tangent_of
from tests.ways import watching

V3 = np.array([0.5, -1.0, 2.0])
ONES = np.ones(3)


def op_with(jvp=None, vjp=None, forward=np.square, **options):
    """An op outside the op table."""
    return GeneralOp("Made", forward, vjp, jvp, **options)




# -- results of rules ------------------------------------------------------------------------------


@each("n", [0, 1, 3])
def test_the_wrong_number_of_tangents(n):
    op = op_with(lambda op, t: n * [t], forward=lambda x: (x + 1, x + 2))
    with pytest.raises(InvalidGradientError, match=f"'Made'.*expected 2, got {n}"):
        tangent_of(op, (V3, ONES))


def test_a_rule_that_returns_not_implemented_leaves_it_to_the_vjp():
    op = op_with(lambda op, t: NotImplemented, lambda op, g: 2 * g * op.inputs[0])
    np.testing.assert_array_equal(cytape.jvp(op, (V3,), (ONES,))[1], 2 * V3)
    np.testing.assert_array_equal(cytape.jacfwd(op)(V3), np.diag(2 * V3))
    np.testing.assert_array_equal(cytape.hessian(lambda x: np.sum(op(x)))(V3), 2 * np.eye(3))
    traced = cytape.function(lambda x: cytape.jvp(op, (x,), (ONES,))[1])
    np.testing.assert_array_equal(traced(V3), 2 * V3)


@each(returned=[np.ones(2), np.ones((1, 3)), 1.0, cytape.constant([1.0])], observed=[False, True])
def test_a_tangent_of_the_wrong_shape(returned, observed):
    op, x = op_with(lambda op, t: returned), cytape.constant(V3)
    with cytape.GradientTape() if observed else cytape.stop_recording():
        with pytest.raises(InvalidGradientError, match=r"'Made'.*must be \(3,\)"):
            followed(op, [x], [ONES])


def test_a_batch_of_tangents_of_the_wrong_shape():
    op = op_with(lambda op, t: t, batched=lambda op, t: t[0])
    with pytest.raises(InvalidGradientError, match=r"'Made'.*must be \(2, 3\)"):
        followed(op, [cytape.constant(V3)], [np.ones((2, 3))], use_batch=True)


@each(observed=[False, True], dtype=["float32", "float64", "complex64"])
def test_a_tangent_is_cast_to_the_dtype_of_its_primal(dtype, observed):
    op = op_with(lambda op, t: t.astype("complex128") if dtype == "float64" else t * np.float64(2))
    x = cytape.constant(V3.astype(dtype))
    with cytape.GradientTape(persistent=True) if observed else cytape.stop_recording():
        outputs, (tangent,) = followed(op, [x], [ONES.astype(dtype)])
    assert tangent.dtype == outputs[0].dtype == dtype


def test_a_rule_may_return_slices():
    def jvp(op, t):
        return cytape.IndexedSlices(cytape.constant([5.0, 7.0]), cytape.constant([2, 2]), (3,))

    np.testing.assert_array_equal(tangent_of(op_with(jvp), (V3, ONES)).numpy(), [0, 0, 12])


def test_a_rule_may_return_none_for_an_output():
    op = op_with(lambda op, t: (None, t), forward=lambda x: (x + 1, x + 2))
    (first, second), (of_first, of_second) = followed(op, [cytape.constant(V3)], [ONES])
    assert of_first is None
    np.testing.assert_array_equal(of_second.numpy(), ONES)


def test_an_integer_output_has_no_tangent():
    op = op_with(lambda op, t: (t[0], t), forward=lambda x: (x.argmax(), x + 2))
    _, tangents = followed(op, [cytape.constant(V3)], [ONES])
    assert tangents[0] is None
    np.testing.assert_array_equal(tangents[1].numpy(), ONES)


@each("use_batch", [False, True])
def test_transposed_ops_may_have_integer_outputs(use_batch):
    def vjp(op, g_index, g):
        np.testing.assert_array_equal(np.shape(g_index), ())
        return g * 3.0

    op = op_with(vjp=vjp, forward=lambda x: (x.argmax(), 3 * x))
    tangents = np.stack([V3, ONES]) if use_batch else V3
    _, found = followed(op, [cytape.constant(V3)], [tangents], use_batch)
    assert found[0] is None
    np.testing.assert_array_equal(found[1].numpy(), 3 * tangents)


# -- ops with fewer rules --------------------------------------------------------------------------


@each("use_batch", [False, True])
def test_an_op_without_a_jvp_has_its_vjp_transposed(use_batch):
    op = op_with(vjp=lambda op, g: 2 * op.inputs[0] * g)
    tangents = np.stack([V3, ONES]) if use_batch else ONES
    _, (tangent,) = followed(op, [cytape.constant(V3)], [tangents], use_batch)
    np.testing.assert_array_equal(tangent.numpy(), 2 * V3 * tangents)


def test_an_op_with_neither_rule():
    op = op_with()
    with pytest.raises(NotDifferentiableError, match="'Made'"):
        tangent_of(op, (V3, ONES))


def test_an_op_with_neither_rule_is_no_trouble_where_nothing_moves():
    assert tangent_of(op_with(), (V3, None)) is None


def test_by_transposition_a_jvp_is_left_alone():
    def jvp(op, t):
        raise AssertionError

    op = op_with(jvp, lambda op, g: 2 * op.inputs[0] * g)
    _, (tangent,) = followed(op, [cytape.constant(V3)], [ONES], by_transposition=True)
    np.testing.assert_array_equal(tangent.numpy(), 2 * V3)


def test_a_closure_is_transposed_or_has_a_rule():
    x = cytape.constant(V3)
    for jvp in (None, lambda t: [t * 3.0]):
        def custom(x, jvp=jvp):
            y = cytape.constant(3 * x.numpy())
            [y] = custom_call("Custom", [y], [x], lambda g: [g * 3.0], jvp)
            return y

        for use_batch in (False, True):
            tangents = np.stack([V3, ONES]) if use_batch else V3
            _, (tangent,) = followed(custom, [x], [tangents], use_batch)
            np.testing.assert_array_equal(tangent.numpy(), 3 * tangents)


# -- batches ---------------------------------------------------------------------------------------


def test_a_batched_rule_is_called_once_and_may_decline():
    calls = []

    def batched(op, t):
        calls.append(t.shape)
        return NotImplemented if op.attrs["declines"] else 2 * op.inputs[0] * t

    op = op_with(lambda op, t: 2 * op.inputs[0] * t, batched=batched,
                 forward=lambda x, declines: x * x)
    batch = np.arange(12.0).reshape(4, 3)
    for declines in (False, True):
        _, (tangent,) = followed(
            lambda x, declines=declines: op(x, declines=declines),
            [cytape.constant(V3)], [batch], use_batch=True)
        np.testing.assert_array_equal(tangent.numpy(), 2 * V3 * batch)
    assert calls == [(4, 3), (4, 3)]


def test_inputs_without_tangents_get_batches_of_zeros():
    received = []

    def batched(op, dx, dy, dn):
        received.extend([dx, dy, dn])
        return dx

    op = op_with(lambda op, *tangents: tangents[0], batched=batched,
                 forward=lambda x, y, n: x + 0.0)
    inputs = [cytape.constant(x) for x in (V3, V3[:2], np.arange(2))]
    followed(op, inputs, [np.ones((4, 3)), None, None], use_batch=True)
    assert [np.shape(t) for t in received[:2]] == [(4, 3), (4, 2)]
    assert received[2] is None


@each("a, b", [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)), ((4, 1, 2, 3), (5, 3, 2)),
    ((0, 3), (3, 2)), ((2, 0), (0, 3))])
@each(which=["left", "right", "both"], observed=[False, True], layout=["plain", "strided"])
def test_products_of_batches(a, b, which, observed, layout):
    """In C, by the loop behind `matmul`, or by the rule, as one direction after another."""
    def batch(shape, seed):
        values = np.random.default_rng(seed).normal(size=(4, *shape))
        return np.asfortranarray(values) if layout == "strided" else values

    inputs = [cytape.constant(batch(shape, seed)[0]) for seed, shape in enumerate((a, b))]
    tangents = [batch(a, 2) if which != "right" else None, batch(b, 3) if which != "left" else None]
    with cytape.GradientTape() if observed else cytape.stop_recording():
        _, (found,) = followed(cnp.matmul, inputs, tangents, use_batch=True)
    for k in range(4):
        one = [None if t is None else t[k] for t in tangents]
        _, (expected,) = followed(cnp.matmul, inputs, one)
        np.testing.assert_allclose(found.numpy()[k], expected.numpy(), rtol=1e-13, atol=1e-13)


def test_a_network_follows_many_directions_at_once():
    rng = np.random.default_rng(0)
    x, w, b = (cytape.constant(rng.normal(size=shape)) for shape in [(8, 5), (5, 4), (4,)])

    def network(w, b):
        return cnp.sum(cnp.tanh(x @ w + b))

    batches = [rng.normal(size=(16, *t.shape)) for t in (w, b)]
    _, (found,) = followed(network, [w, b], batches, use_batch=True)
    pairs = zip(*batches, strict=True)
    expected = [followed(network, [w, b], pair)[1][0].numpy() for pair in pairs]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


# -- the accumulators of a thread ------------------------------------------------------------------


def test_an_output_that_has_a_tangent_keeps_it():
    x = cytape.constant(V3)
    y = cytape.constant(3 * V3)
    recorder = recorder_of([x, y], [ONES, V3])
    recorder.push()
    record_custom("Custom", [y], [x], lambda g: [g * 3.0])
    recorder.pop()
    np.testing.assert_array_equal(fetch(recorder, y.id).numpy(), V3)


def failing(op, *tangents):
    raise ZeroDivisionError


@each("op", [
    op_with(failing), op_with(vjp=failing), op_with(), op_with(lambda op, t: (t, t)),
    op_with(lambda op, t: t[0]), op_with(lambda op, t: t, batched=failing),
], ids=["jvp", "vjp", "no rule", "too many", "wrong shape", "batched"])
@each("use_batch", [False, True])
def test_an_error_leaves_the_recorders_as_they_were(op, use_batch):
    x = cytape.constant(V3)
    lead = (2,) if use_batch else ()
    inner = recorder_of([x], [np.ones((*lead, 3))], use_batch)
    with watching(x) as tape:
        inner.push()
        with watching(x) as last:
            try:
                op(x)
            except (ZeroDivisionError, InvalidGradientError, NotDifferentiableError):
                failed = True
            else:
                failed = False
            assert failed == (use_batch or op.batched is not failing)
            y = x * x
        inner.pop()
        tangent = fetch(inner, y.id)
    np.testing.assert_array_equal(tangent.numpy(), np.broadcast_to(2 * V3, (*lead, 3)))
    assert not inner.busy_accumulating
    for recorder in (tape, last):
        np.testing.assert_array_equal(recorder.gradient(y, x).numpy(), 2 * V3)


def test_tangents_are_seen_by_those_entered_before_only():
    x = cytape.constant(V3)
    outer, inner = (recorder_of([x], [ONES]) for _ in range(2))
    outer.push()
    inner.push()
    y = x * x * x
    inner.pop()
    outer.pop()
    first, other = fetch(inner, y.id), fetch(outer, y.id)
    np.testing.assert_allclose(fetch(outer, first.id).numpy(), 6 * V3)
    assert fetch(inner, other.id) is None


def test_a_tangent_of_a_batch_is_recorded_by_an_outer_tape():
    x = cytape.constant(V3)
    batch = np.stack([V3, ONES])
    with watching(x) as tape:
        _, (tangent,) = followed(lambda x: cnp.sum(x * x * x), [x], [batch], use_batch=True)
    np.testing.assert_allclose(tape.jacobian(tangent, x).numpy(), 6 * V3 * batch)
