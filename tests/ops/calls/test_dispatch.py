"""Common behaviour of all kinds of ops: recording of calls, their recorders, their results."""

import threading

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError
from cytape.ops.calls.dispatch import Op, install_conform
from cytape.ops.engine.custom_op import custom_call
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.recording.state import Recorder
from cytape.tensor.tensor import Tensor
from tests.cases import each
from tests.ways import gradient, taped, watching

V3 = np.array([0.5, -1.0, 2.0])


def closure(x):
    """An op that is a Python closure, of something that may be a plain array."""
    if not isinstance(x, Tensor):
        return np.square(x)
    y = cytape.constant(np.square(x.numpy()))
    [y] = custom_call("ClosureSquare", [y], [x], lambda g: [2.0 * cytape.stop_gradient(x) * g])
    return y


# One op of each kind, all of them squares.
SQUARES = {
    "elementwise": cnp.square, "elementwise of two": lambda x: cnp.multiply(x, x),
    "elementwise, no ufunc": cytape.ops.engine.op_kinds.elementwise(
        "DispatchSquare", lambda x: np.square(x), lambda y, x: 2 * x),
    "general": GeneralOp("GeneralSquare", np.square, lambda op, g: 2 * op.inputs[0] * g),
    "closure": closure}
squares = pytest.mark.parametrize("square", SQUARES.values(), ids=SQUARES)


@pytest.fixture
def recorder():
    recorder = Recorder()
    recorder.push()
    yield recorder
    if recorder.active:
        recorder.pop()


# -- an op -----------------------------------------------------------------------------------------


@each("name", ["Sin", "Sum", "Where", "Round"])
def test_an_op_says_what_it_is(name):
    op = OPS[name]
    assert isinstance(op, Op)
    assert op.name == name
    assert repr(op) == f"<op {name}>"
    assert callable(op.forward)
    for attribute in ("name", "forward"):
        with pytest.raises(AttributeError):
            setattr(op, attribute, None)


# -- results ---------------------------------------------------------------------------------------


@squares
@pytest.mark.parametrize("x", [V3, np.float32(2), 3.0, 2, [1.0, 2.0]])
def test_without_tensors_the_result_is_numpys(square, x):
    result, expected = square(x), np.square(x)
    assert type(result) is type(expected)
    np.testing.assert_array_equal(result, expected)


@squares
@pytest.mark.parametrize("convert", [cytape.constant, cytape.Variable])
@pytest.mark.parametrize("x", [V3, np.float32(2), np.arange(4), np.zeros((0, 2)), np.array(1j)])
def test_with_a_tensor_the_result_is_a_tensor(square, convert, x):
    result, expected = square(convert(x)), np.asarray(np.square(x))
    assert type(result) is Tensor
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result.numpy(), expected)


@each("function", ["add", "hypot", "matmul", "allclose"])
@each("operand", [object(), np.array([None, 1.0, 2.0]), {"a": 1.0}, "text"])
def test_operands_that_are_no_numbers_are_numpys_error(function, operand):
    for i in range(2):
        with pytest.raises(Exception) as expected:
            getattr(np, function)(*[V3, operand][:: 1 - 2 * i])
        with pytest.raises((expected.type, TypeError)):
            getattr(cnp, function)(*[cytape.constant(V3), operand][:: 1 - 2 * i])


# -- when it is recorded ---------------------------------------------------------------------------


@squares
def test_a_call_is_recorded_if_a_tape_follows_its_input(square, recorder):
    x, stranger = cytape.constant(V3), cytape.constant(V3)
    recorder.watch(x.id)
    results = [square(x), square(stranger), square(x)]
    assert [recorder.is_known(y.id) for y in results] == [True, False, True]
    assert recorder.num_ops == 2
    results.append(square(results[0]))
    assert recorder.is_known(results[3].id)


@squares
def test_a_call_is_not_recorded_without_recorders(square, recorder):
    x = cytape.constant(V3)
    recorder.watch(x.id)
    with cytape.stop_recording():
        square(x)
    thread = threading.Thread(target=lambda: square(x))
    thread.start()
    thread.join()
    recorder.pop()
    y = square(x)
    assert recorder.num_ops == 0
    assert not recorder.is_known(y.id)


@squares
def test_integers_are_not_recorded(square, recorder):
    n = cytape.constant([1, 2, 3])
    recorder.watch(n.id)
    y = square(n)
    assert recorder.num_ops == 0
    assert y.dtype == np.int64


@squares
def test_variables_are_followed_when_an_op_reads_them(square, recorder):
    v, fixed = cytape.Variable(V3), cytape.Variable(V3, trainable=False)
    results = [square(v), square(fixed)]
    assert [recorder.is_known(y.id) for y in results] == [True, False]
    assert [w.id for w in recorder.variables] == [v.id]


@pytest.mark.filterwarnings("ignore:the gradient is None")
@squares
@pytest.mark.parametrize("persistent", [False, True])
def test_every_tape_has_an_entry_of_its_own(square, persistent):
    x = cytape.constant(V3)
    tapes = [cytape.GradientTape(persistent) for _ in range(3)]
    with tapes[0], tapes[1], tapes[2]:
        for tape in tapes[:2]:
            tape.watch(x)
        y = square(x)
    np.testing.assert_array_equal(tapes[0].gradient(y, x).numpy(), 2 * V3)
    del tapes[0]
    np.testing.assert_array_equal(tapes[0].gradient(y, x).numpy(), 2 * V3)
    assert tapes[1].gradient(y, x) is None


def test_threads_that_use_an_op_for_the_first_time_at_once():
    """Partials are traced at first use."""
    op = cytape.ops.engine.op_kinds.elementwise("DispatchThreads", np.sin, lambda y, x: np.cos(x))
    barrier = threading.Barrier(4)
    results = []

    def work():
        x = cytape.constant(V3)
        barrier.wait()
        results.append(gradient(op, x).numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(results, 4 * [np.cos(V3)])


# -- the way back ----------------------------------------------------------------------------------


@squares
def test_the_way_back_can_be_recorded(square):
    x = cytape.constant(V3)
    outer, first = taped(lambda x: gradient(lambda x: square(x) * x, x), x)
    np.testing.assert_allclose(first.numpy(), 3 * V3**2)
    second = outer.gradient(first, x)
    # The closure says that its own gradient does not depend on x.
    np.testing.assert_allclose(second.numpy(), (4 if square is closure else 6) * V3)


@squares
@pytest.mark.parametrize("seed", [
    np.array([1.0, 10.0, 100.0]), cytape.constant([1.0, 10.0, 100.0]),
    np.repeat([1.0, 10.0, 100.0], 2)[::2],
    cytape.IndexedSlices(cytape.constant([1.0, 10.0, 100.0]), cytape.constant([0, 1, 2]), (3,)),
], ids=["array", "tensor", "strided", "slices"])
def test_output_gradients_of_any_form(square, seed):
    x = cytape.constant(V3)
    tape, y = taped(square, x)
    gradient = tape.gradient(y, x, output_gradients=seed)
    np.testing.assert_array_equal(gradient.numpy(), 2 * V3 * [1, 10, 100])


@squares
def test_nan_and_infinity_pass_through(square):
    x = cytape.constant([np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(gradient(square, x).numpy(), [np.nan, np.inf, -np.inf])


@each("gradient, words", [
    (np.ones(2), r"'Wrong'.*input 0.*\(2,\).*\(3,\)"), (2.0, r"input 0 has shape \(\)")])
@each("recorded", [False, True])
def test_a_gradient_of_another_shape_is_an_error_that_names_op_input_and_shapes(
        gradient, words, recorded):
    op = GeneralOp("Wrong", np.positive, lambda op, g: gradient)
    x = cytape.constant(V3)
    with watching(x, persistent=True) as tape:
        y = op(x)
        if recorded:
            with pytest.raises(InvalidGradientError, match=words):
                tape.gradient(y, x)
    with pytest.raises(InvalidGradientError, match=words):
        tape.gradient(y, x)


def test_only_what_the_engine_asks_for_is_installed():
    with pytest.raises(AttributeError, match="sum_too"):
        install_conform(sum_too=np.sum)
    with pytest.raises(TypeError):
        install_conform(sum_to_op=np.sum)
