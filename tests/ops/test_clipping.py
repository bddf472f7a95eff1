"""Values limited to an interval or to finite numbers."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each

inf, nan = np.inf, np.nan


class TestClip:
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])

    @pytest.mark.parametrize(("args", "kwargs"), [
        ((0, 1), {}), ((), {"min": 0, "max": 1}), ((), {"a_min": 0, "a_max": 1})])
    def test_array_gets_the_gradient_inside_and_on_the_bounds(self, args, kwargs):
        gradient = cytape.grad(lambda x: cnp.sum(cnp.clip(x, *args, **kwargs)))(self.x)
        assert gradient.tolist() == [0, 1, 1, 1, 0]

    def test_bounds_get_the_rest(self):
        total = cytape.grad(lambda *args: cnp.sum(cnp.clip(*args)), (1, 2))
        low, high = total(self.x, 0.0, 1.0)
        assert (low, high) == (1, 1)

    def test_no_bound(self):
        for bounds, expected in ((None, 1), [1, 1, 1, 1, 0]), ((), [1] * 5):
            gradient = cytape.grad(lambda x, bounds=bounds: cnp.sum(cnp.clip(x, *bounds)))(self.x)
            assert gradient.tolist() == expected

    def test_crossed_bounds_give_the_upper_one(self):
        np.testing.assert_array_equal(
            cnp.clip(cytape.constant(self.x), 1, 0), np.clip(self.x, 1, 0))

    @pytest.mark.parametrize(("low", "high"), [
        (-300, 300), (None, 300), (-1, None), (-5, 100), (10, 256), (300, 10), (10, -1)])
    def test_numbers_that_no_element_can_reach_are_no_bounds(self, low, high):
        x = np.array([0, 100, 200], np.uint8)
        for clip in (lambda x: np.clip(x, low, high), lambda x: cnp.clip(x, low, high)):
            for called in (clip, cytape.function(clip)):
                try:
                    expected = clip(x)
                except OverflowError:
                    with pytest.raises(OverflowError):
                        called(cytape.constant(x))
                    continue
                found = np.asarray(called(cytape.constant(x)))
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)

    def test_bad_calls(self):
        x = cytape.constant(self.x)
        with pytest.raises(TypeError, match="a_min and a_max"):
            cnp.clip(x, 0)
        with pytest.raises(ValueError, match="not both"):
            cnp.clip(x, 0, 1, min=0)


def test_nan_to_num_of_complex_parts():
    z = np.array([complex(nan, 2.0), complex(1.0, inf)])
    expected = np.nan_to_num(z, nan=7.0, posinf=5.0)
    actual = cnp.nan_to_num(cytape.constant(z), nan=7.0, posinf=5.0)
    np.testing.assert_array_equal(actual.numpy(), expected)

    def parts(z):
        finite = cnp.nan_to_num(z)
        return cnp.sum(cnp.real(finite) + cnp.imag(finite))

    np.testing.assert_array_equal(cytape.grad(parts)(z), [1j, 1])


@each(("x", "low", "high"), [
    (np.array([0.3, 0.7], np.float16), np.array([0.1, 0.1]), 0.2),
    (np.array([np.inf], np.float32), np.array([0.0]), 1e300),
    (np.array([0, 3, 255], np.uint8), 0.5, 300),
    (np.array([0, 3], np.int32), np.float64(0.5), 2**40),
    (np.array([0.3, 0.7], np.float32), 0.5, 0.6)])
def test_bounds_of_clip_have_the_dtype_of_the_result(x, low, high):
    expected = np.clip(x, low, high)
    for f in (lambda x: cnp.clip(x, low, high), cytape.function(lambda x: cnp.clip(x, low, high))):
        found = f(cytape.constant(x)).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
