"""ForwardAccumulator, statement by statement, and what the statements leave open."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.autodiff import forward_accumulator
from cytape.errors import InvalidGradientError
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.op_kinds import general
from cytape.tensor.recording.state import is_recorded
from cytape.tensor.tensor import live_tensors
from tests.cases import each
from tests.ways import tangent, taped, watching

# -- statements ------------------------------------------------------------------------------------


def test_D_3_01_jvp_looks_up_and_computes_nothing():
    x, y = cytape.constant(2.0), cytape.constant(5.0)
    with cytape.ForwardAccumulator([x, y], [1.0, 0.0]) as accumulator:
        z = x * y + x * x
        alive = live_tensors()
        inside = accumulator.jvp(z)
    assert float(inside) == 9.0
    first, second = accumulator.jvp(z), accumulator.jvp(z)
    assert first.id == second.id == inside.id
    del first, second, inside
    assert live_tensors() == alive


def test_D_3_01_jvp_packs_its_result_like_its_argument():
    x = cytape.constant(3.0)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        square, cube = x * x, x**3
    packed = accumulator.jvp({"b": (square, [cube]), "a": x})
    assert list(packed) == ["b", "a"]
    assert isinstance(packed["b"], tuple) and isinstance(packed["b"][1], list)
    assert (float(packed["b"][0]), float(packed["b"][1][0]), float(packed["a"])) == (6.0, 27.0, 1.0)
    assert accumulator.jvp([]) == []


def test_D_3_02_tangents_take_the_dtype_of_their_primals():
    x, h = cytape.constant(2.0), cytape.constant(np.float16([1, 2]))
    accumulator = cytape.ForwardAccumulator([x, h], [5, np.ones(2)])
    of_x, of_h = accumulator.jvp([x, h])
    assert (float(of_x), of_x.dtype, of_h.dtype) == (5.0, np.float64, np.float16)
    of_bool = cytape.ForwardAccumulator(x, True).jvp(x)
    assert (float(of_bool), of_bool.dtype) == (1.0, np.float64)


def test_D_3_03_the_tangent_of_a_primal_is_there_before_entering():
    x, v = cytape.constant([1.0, 2.0]), cytape.Variable(3.0)
    accumulator = cytape.ForwardAccumulator((x, v), (np.array([5.0, 6.0]), 7.0))
    assert accumulator.jvp(x).numpy().tolist() == [5.0, 6.0]
    assert float(accumulator.jvp(v)) == 7.0


def test_D_3_03_only_ops_inside_the_block_are_followed():
    x = cytape.constant(3.0)
    accumulator = cytape.ForwardAccumulator(x, 1.0)
    before = 2.0 * x
    with accumulator:
        y = 2.0 * x
        of_before = 2.0 * before
    between = 4.0 * y
    with accumulator:
        z = 2.0 * y
        of_between = 2.0 * between
    after = 4.0 * z
    followed = [float(jvp) for jvp in accumulator.jvp([y, z])]
    assert followed == [2.0, 4.0]
    assert accumulator.jvp([before, of_before, between, of_between, after]) == 5 * [None]


def test_D_3_03_entering_while_active_is_an_error_and_changes_nothing():
    x = cytape.constant(3.0)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        with pytest.raises(ValueError, match="recording"):
            accumulator.__enter__()
        y = x * x
    assert not is_recorded(x.id)
    assert float(accumulator.jvp(y)) == 6.0
    accumulator.__exit__(None, None, None)  # as often as you like
    with accumulator:
        assert is_recorded(x.id)


def test_D_3_04_results_independent_of_the_primals_have_no_tangent():
    x, v = cytape.constant([3.0, 4.0]), cytape.Variable(np.float32([[1.0]]))
    with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
        y = v * 2.0
    assert accumulator.jvp([y, v]) == [None, None]
    of_y, of_v, of_x = accumulator.jvp([y, v, x], unconnected_gradients="zero")
    assert (of_y.numpy().tolist(), of_v.numpy().tolist()) == ([[0.0]], [[0.0]])
    assert (of_y.dtype, of_v.dtype) == (np.float32, np.float32)
    assert of_x.numpy().tolist() == [1.0, 1.0]
    zero = accumulator.jvp(v, cytape.UnconnectedGradients.ZERO)
    assert zero.numpy().tolist() == [[0.0]]
    with pytest.raises(ValueError, match="nothing"):
        accumulator.jvp(y, unconnected_gradients="nothing")


def test_D_3_04_the_zeros_of_a_batch_have_its_axis():
    x, other = cytape.constant([3.0, 4.0]), cytape.constant(np.float32(1.0))
    accumulator = cytape.ForwardAccumulator(x, np.ones((3, 2)), use_batch=True)
    zeros = accumulator.jvp(other, "zero")
    assert (zeros.shape, zeros.dtype) == ((3,), np.float32)


@each("cut", [
    np.zeros_like, np.ones_like, cytape.stop_gradient, np.sign, np.floor, np.argmax,
    lambda x: np.zeros_like(x) * 2.0,
    lambda x: x.astype(np.int64).astype(np.float64),
    lambda x: cytape.constant(x.numpy() * 2.0), lambda x: np.where(x > 0, 1.0, 0.0),
])
def test_D_3_04_ops_that_cut_the_path(cut):
    x = cytape.constant([1.5, 2.5])
    with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
        cut_off = cut(x)
        y = cut_off + x
    assert accumulator.jvp(cut_off) is None
    assert accumulator.jvp(y).numpy().tolist() == [1.0, 1.0]


def test_D_3_05_higher_orders_come_from_the_outer_accumulator():
    x = cytape.constant(1.1)
    with cytape.ForwardAccumulator(x, 1.0) as outer:
        with cytape.ForwardAccumulator(x, 1.0) as inner:
            y = x**3.5
    np.testing.assert_allclose(float(inner.jvp(y)), 4.4417057, rtol=1e-7)
    np.testing.assert_allclose(float(outer.jvp(inner.jvp(y))), 10.0947858, rtol=1e-7)
    assert float(outer.jvp(y)) == float(inner.jvp(y))
    assert inner.jvp(outer.jvp(y)) is None


def test_D_3_06_forward_over_reverse():
    v = cytape.Variable([1.0, 2.0])
    with cytape.ForwardAccumulator(v, np.array([1.0, 0.0])) as accumulator:
        tape, loss = taped(lambda: np.sum(v**3))
        gradient = tape.gradient(loss, v)
    assert gradient.numpy().tolist() == [3.0, 12.0]
    assert accumulator.jvp(gradient).numpy().tolist() == [6.0, 0.0]


def test_D_3_07_a_tape_inside_does_not_see_tangents():
    x = cytape.constant(1.5)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        with watching(x, persistent=True) as tape:
            y = np.sin(x)
            tangent = accumulator.jvp(y)
            made_of_it = tangent * 2.0
    np.testing.assert_allclose(float(tangent), np.cos(1.5))
    assert tape.gradient(tangent, x) is None
    assert tape.gradient(made_of_it, x) is None
    np.testing.assert_allclose(float(tape.gradient(y, x)), np.cos(1.5))


def test_D_3_08_a_tape_outside_sees_tangents():
    x = cytape.constant(1.0)
    with watching(x) as tape:
        slope = tangent(np.cos, x, 0.1)
    np.testing.assert_allclose(float(slope), -0.1 * np.sin(1.0))
    np.testing.assert_allclose(float(tape.gradient(slope, x)), -0.1 * np.cos(1.0))


@each(tape_outside=[True, False], tape_first=[True, False])
def test_D_3_08_the_order_of_entering_counts(tape_outside, tape_first):
    x = cytape.constant(1.0)
    tape = cytape.GradientTape() if tape_first else None
    accumulator = cytape.ForwardAccumulator(x, 0.1)
    tape = tape or cytape.GradientTape()
    outer, inner = (tape, accumulator) if tape_outside else (accumulator, tape)
    with outer, inner:
        tape.watch(x)
        tangent = accumulator.jvp(np.cos(x))
    gradient = tape.gradient(tangent, x)
    assert (gradient is not None) == tape_outside


def test_D_3_09_stop_recording_suspends_tapes_and_accumulators():
    x = cytape.constant(2.0)
    with watching(x, persistent=True) as tape:
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            with cytape.stop_recording():
                hidden = x * x
                with cytape.ForwardAccumulator(x, 10.0) as inside:
                    seen_inside = x * x
            seen = x * x
    assert accumulator.jvp(hidden) is None and tape.gradient(hidden, x) is None
    assert accumulator.jvp(seen_inside) is None and float(inside.jvp(seen_inside)) == 40.0
    assert float(accumulator.jvp(seen)) == float(tape.gradient(seen, x)) == 4.0


def test_D_3_09_stop_recording_of_a_tape_suspends_that_tape_only():
    x = cytape.constant(2.0)
    with cytape.ForwardAccumulator(x, 1.0) as outer:
        with watching(x, persistent=True) as tape:
            with cytape.ForwardAccumulator(x, 1.0) as inner:
                with tape.stop_recording():
                    y = x**3
    tangent = inner.jvp(y)
    assert float(tangent) == float(outer.jvp(y)) == 12.0
    assert float(outer.jvp(tangent)) == 12.0
    assert tape.gradient(y, x) is None and tape.gradient(tangent, x) is None


@each("registered", [False, True])
def test_D_3_10_a_registered_jvp_wins_over_transposition(registered):
    name = f"DeclaredSquare{registered}"
    square = general(name, np.square, vjp=lambda op, g: 2 * op.inputs[0] * g)
    if registered:  # tells a lie, so that one can see which it was
        cytape.register_jvp(name)(lambda op, t: 100.0 * t)
    x = cytape.constant([3.0, 4.0])
    tape, z = taped(square, x)
    expected = [100.0, 100.0] if registered else [6.0, 8.0]
    assert tangent(square, x, np.ones(2)).numpy().tolist() == expected
    assert tape.gradient(z, x).numpy().tolist() == [6.0, 8.0]


def test_D_3_12_a_batch_of_tangents():
    x, y = cytape.constant(2.0), cytape.constant(5.0)
    tangents = [np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])]
    with cytape.ForwardAccumulator([x, y], tangents, use_batch=True) as accumulator:
        z = x * y
    assert accumulator.jvp(z).numpy().tolist() == [5.0, 2.0, 7.0]


@each("shape", [(), (2,), (3,), (4, 3), (4, 2, 3, 1), (2, 3, 4)])
def test_D_3_12_batches_that_do_not_fit_their_primal(shape):
    x = cytape.constant(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"shape .*\(2, 3\).*one more leading axis"):
        cytape.ForwardAccumulator(x, np.ones(shape), use_batch=True)


def test_D_3_12_tangents_with_different_numbers_of_directions():
    x, y = cytape.constant(2.0), cytape.constant(5.0)
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        cytape.ForwardAccumulator([x, y], [np.ones(2), np.ones(3)], use_batch=True)


# -- errors of the constructor ---------------------------------------------------------------------

ONE, TWO = cytape.constant(np.ones(3)), cytape.constant(np.ones(3))
VARIABLE = cytape.Variable(np.ones(3))
COMPLEX = cytape.constant(np.ones(3) + 1j)
TANGENT = np.ones(3)

REFUSED = {
    "twice": ([ONE, ONE], [TANGENT, TANGENT], ValueError, "multiple times.*sum"),
    "twice, nested": ([ONE, {"a": ONE}], [TANGENT, {"a": TANGENT}], ValueError, "multiple times"),
    "a variable twice": ([VARIABLE, VARIABLE], [TANGENT, TANGENT], ValueError, "multiple times"),
    "a list for a leaf": (ONE, [TANGENT], ValueError, "structures differ"),
    "a leaf for a list": ([ONE], TANGENT, ValueError, "structures differ"),
    "too few": ([ONE, TWO], [TANGENT], ValueError, "structures differ"),
    "other keys": ({"a": ONE}, {"b": TANGENT}, ValueError, "structures differ"),
    "list and tuple": ([ONE], (TANGENT,), ValueError, "structures differ"),
    "shape": (ONE, np.ones(4), ValueError, r"primal 0 has shape \(4,\), the primal \(3,\)"),
    "a shape that broadcasts": ([TWO, ONE], [TANGENT, 1.0], ValueError, r"primal 1 has shape \(\)"),
    "complex": (ONE, 1j * TANGENT, TypeError, "primal 0 is complex128, the primal float64"),
    "text": (ONE, np.array(["a", "b", "c"]), TypeError, "primal 0"),
    "an ndarray": ([ONE, np.ones(3)], [TANGENT, TANGENT], TypeError, "primal 1 is a ndarray"),
    "a number": (1.0, 1.0, TypeError, "primal 0 is a float"),
    "a primal of None": (None, None, TypeError, "primal 0 is a NoneType"),
    "a tangent of None": ([TWO, ONE], [TANGENT, None], TypeError, "primal 1 is None"),
    "an object": (ONE, object(), TypeError, "holds numbers"),
}


@each("primals, tangents, error, text", REFUSED.values(), ids=REFUSED)
def test_arguments_that_the_constructor_refuses(primals, tangents, error, text):
    alive = live_tensors()
    with watching(ONE) as tape:
        with pytest.raises(error, match=text):
            cytape.ForwardAccumulator(primals, tangents)
        assert tape.watched_variables() == ()
        y = ONE * 2.0
    assert tape.gradient(y, ONE).numpy().tolist() == [2.0, 2.0, 2.0]
    del y, tape
    assert live_tensors() == alive
    assert not is_recorded(ONE.id)


def test_a_tangent_for_a_complex_primal_may_be_real():
    tangent = cytape.ForwardAccumulator(COMPLEX, TANGENT).jvp(COMPLEX)
    assert tangent.dtype == np.complex128


@pytest.mark.parametrize("primal", [
    cytape.constant([1, 2]), cytape.constant(True), cytape.Variable(np.int8([1])),
    cytape.constant("text"),
])
def test_primals_without_tangents_are_warned_of_a_few_times(primal, monkeypatch):
    monkeypatch.setattr(forward_accumulator, "_warned", 0)
    x = cytape.constant(3.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(20):
            accumulator = cytape.ForwardAccumulator([x, primal], [1.0, 1.0])
    assert 1 <= len(caught) <= 5
    assert f"primal 1 is of dtype {primal.dtype}" in str(caught[0].message)
    assert caught[0].filename == __file__  # it points at the caller
    assert accumulator.jvp(primal) is None
    with accumulator:
        y = x * x
    assert float(accumulator.jvp(y)) == 6.0


def test_nothing_to_follow_at_all():
    x = cytape.constant(3.0)
    with cytape.ForwardAccumulator([], []) as accumulator:
        y = x * x
    assert accumulator.jvp(y) is None


@each("wrong", [1.0, np.ones(2), "text", None, [None]])
def test_jvp_of_something_that_is_no_tensor(wrong):
    x = cytape.constant(3.0)
    accumulator = cytape.ForwardAccumulator(x, 1.0)
    name = type(wrong[0] if isinstance(wrong, list) else wrong).__name__
    with pytest.raises(TypeError, match=f"got {name}"):
        accumulator.jvp(wrong)


def test_changes_of_arguments_after_construction_have_no_effect():
    tangent, variable = np.ones(3), cytape.Variable(np.ones(3))
    x, y = cytape.constant(np.ones(3)), cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator([x, y], [tangent, variable]) as accumulator:
        tangent[:] = 7.0
        variable.assign(np.full(3, 7.0))
        z = x * 2.0 + y
    assert accumulator.jvp(z).numpy().tolist() == [3.0, 3.0, 3.0]


def test_a_tangent_that_is_the_primal_itself():
    x = cytape.constant([1.0, 2.0])
    with cytape.ForwardAccumulator(x, x) as accumulator:
        y = x * x
    assert accumulator.jvp(y).numpy().tolist() == [2.0, 8.0]
    assert accumulator.jvp(accumulator.jvp(x)).numpy().tolist() == [1.0, 2.0]


# -- rules that fail -------------------------------------------------------------------------------


def failing(jvp):
    """Make an op of one input with this jvp."""
    return GeneralOp("ForwardFailing", np.sin, vjp=lambda op, g: g, jvp=jvp)


def raise_arithmetic_error(op, tangent):
    # Nested computing has begun when this comes: the rule ran an op that others follow.
    np.cos(op.inputs[0]) * tangent
    raise ArithmeticError("planted")


@each("jvp, error, text", [
    (raise_arithmetic_error, ArithmeticError, "planted"),
    (lambda op, t: t[:1], InvalidGradientError, r"shape \(1,\).*must be \(2,\)"),
    (lambda op, t: (t, t), InvalidGradientError, "expected 1, got 2"),
    (lambda op, t: object(), InvalidGradientError, r"shape \(\)"),
])
def test_an_error_in_a_rule_leaves_all_as_it_was(jvp, error, text):
    op, x = failing(jvp), cytape.constant([1.0, 2.0])
    with watching(x, persistent=True) as tape:
        with cytape.ForwardAccumulator(x, np.ones(2)) as outer:
            with cytape.ForwardAccumulator(x, np.ones(2)) as inner:
                np.sin(x)  # fills the caches
                alive = live_tensors()
                with pytest.raises(error, match=text):
                    op(x)
                assert live_tensors() == alive
                y = x**3
    assert inner.jvp(y).numpy().tolist() == [3.0, 12.0]
    assert outer.jvp(inner.jvp(y)).numpy().tolist() == [6.0, 12.0]
    assert tape.gradient(inner.jvp(y), x).numpy().tolist() == [6.0, 12.0]
    assert not is_recorded(x.id)


def test_an_error_in_the_block_ends_the_recording():
    x = cytape.constant(3.0)
    accumulator = cytape.ForwardAccumulator(x, 1.0)
    with pytest.raises(ArithmeticError):
        with accumulator:
            y = x * x
            raise ArithmeticError
    assert not is_recorded(x.id)
    z = y * y
    assert float(accumulator.jvp(y)) == 6.0 and accumulator.jvp(z) is None


def test_an_error_in_an_op_changes_nothing():
    x = cytape.constant([1.0, 2.0])
    with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
        alive = live_tensors()
        for wrong in (lambda: x * np.ones(3), lambda: x @ np.ones((3, 3)), lambda: x[5]):
            with pytest.raises((ValueError, IndexError)):
                wrong()
        assert live_tensors() == alive
        y = x * x
    assert accumulator.jvp(y).numpy().tolist() == [2.0, 4.0]


def test_a_rule_that_leaves_its_accumulator():
    accumulators, x = [], cytape.constant(3.0)
    op = failing(lambda op, t: (accumulators[0].__exit__(), t)[1])
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        accumulators.append(accumulator)
        op(x)
        with cytape.GradientTape():  # something must be recording for the others to be looked at
            y = x * x
        assert accumulator.jvp(y) is None
    assert not is_recorded(x.id)


def test_a_rule_that_returns_a_variable():
    """The variable may change; its value then is the tangent."""
    x, v = cytape.constant([1.0, 2.0]), cytape.Variable([3.0, 4.0])
    op = failing(lambda op, t: v)
    outer = cytape.ForwardAccumulator(x, np.ones(2))
    outer.__enter__()
    with cytape.ForwardAccumulator(x, np.ones(2)) as inner:
        y = op(x)
        outer.__exit__()
        v.assign([0.0, 0.0])
        z = y * 2.0
    assert inner.jvp(y).numpy().tolist() == [3.0, 4.0]
    assert inner.jvp(z).numpy().tolist() == [6.0, 8.0]
