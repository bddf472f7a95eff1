"""Calls on a tape of their own: what the function gets, and what may be asked of them."""

import numpy as np
import pytest

import cytape
from cytape.autodiff.recorded_call import RecordedCall
from cytape.errors import DetachedError, TapeStateError
from cytape.tensor.recording.state import anybody_records
from tests.cases import each


def call(fun, *args, argnums=0, has_aux=False, **kwargs):
    return RecordedCall(fun, args, kwargs, argnums, has_aux)


def test_chosen_arguments_are_new_tensors_and_others_are_the_functions_own():
    x, other = cytape.constant(3.0), np.ones(2)
    seen = []
    made = call(lambda *args: seen.extend(args) or args[0] * 2.0, x, other, x)
    assert isinstance(seen[0], cytape.Tensor) and seen[0] is not x
    assert seen[1] is not other and seen[1].tolist() == [1.0, 1.0]
    assert seen[2] is not x and seen[2].id == x.id
    assert float(made.value) == 6.0 and not made.arrays_out


@each("args, kwargs, arrays", [
    ((1.0,), {}, True), (([1.0, np.ones(2)],), {"y": 2.0}, True),
    ((1.0,), {"y": cytape.constant(1.0)}, False),
    ((1.0, {"w": cytape.constant(1.0)}), {}, False),
])
def test_arrays_come_out_where_no_tensor_went_in(args, kwargs, arrays):
    assert call(lambda *args, **kwargs: 0.0, *args, **kwargs).arrays_out == arrays


def test_auxiliary_results_go_to_the_caller():
    made = call(lambda x: (x * x, [x + 1.0, "text"]), np.ones(2), has_aux=True)
    array, text = made.aux
    np.testing.assert_array_equal(array, [2.0, 2.0])
    assert type(array) is np.ndarray and text == "text"
    assert call(lambda x: x, 1.0).aux is None


def test_gradients_are_packed_like_the_arguments():
    made = call(lambda p, y: p["w"] * p["b"] * y, {"w": 2.0, "b": 3.0}, 5.0, argnums=(1, 0))
    by_y, by_p = made.gradients([made.value])
    assert float(by_y) == 6.0
    assert {key: float(gradient) for key, gradient in by_p.items()} == {"w": 15.0, "b": 10.0}


def test_gradients_may_be_asked_again_if_that_was_said():
    made = call(lambda x: x * x, 3.0)
    assert [float(made.gradients([made.value], keep=True)) for _ in range(2)] == [6.0, 6.0]
    assert float(made.gradients([made.value], [cytape.constant(10.0)])) == 60.0
    with pytest.raises(TapeStateError):
        made.gradients([made.value])


@each("error", [ZeroDivisionError, KeyboardInterrupt])
def test_no_recorder_is_active_after_a_function_that_failed(error):
    def failing(x):
        assert anybody_records()
        raise error

    with pytest.raises(error):
        call(failing, 3.0)
    assert not anybody_records()


def test_sparse_gradients_come_out_dense():
    made = call(lambda table: cytape.gather(table, [1, 1]).sum(), np.ones((3, 2)))
    gradient = made.gradients([made.value])
    np.testing.assert_array_equal(gradient, [[0, 0], [2, 2], [0, 0]])
    assert isinstance(gradient, cytape.Tensor)


def test_a_derivative_that_was_lost_is_an_error_that_names_the_argument():
    made = call(lambda x, y: x * y.item(), 2.0, 3.0, argnums=(0, 1))
    with pytest.raises(DetachedError, match="does not depend on argument 1, because"):
        made.gradients([made.value])
