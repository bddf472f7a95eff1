"""Updates of parts in plans: in the memory of what is not read any more."""

import time

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each

ROWS = 64
X = np.array([0.3, 0.5, -0.2])


def filled(x, n=ROWS):
    found = cnp.zeros((n, 100))
    found[0, :3] = x
    for i in range(1, n):
        found[i] = found[i - 1] * 0.9 + cnp.sin(found[i - 1])
    return found


def test_operands_read_later_are_copied_first():
    @cytape.function
    def f(x):
        found = cnp.zeros((4, 3))
        found[0] = x
        before, row, rows = found.copy(), found[0].copy(), found[:2].copy()
        found[0] = x * 2.0
        found[1] = row
        return before, rows, found, cnp.sum(before * found)

    before, rows, found, total = f(cytape.constant(X))
    np.testing.assert_array_equal(before.numpy(), [X, *np.zeros((3, 3))])
    np.testing.assert_array_equal(rows.numpy(), [X, np.zeros(3)])
    np.testing.assert_array_equal(found.numpy(), [2 * X, X, *np.zeros((2, 3))])
    np.testing.assert_allclose(float(total), np.sum(2 * X * X))


@each("index", [
    0, -1, slice(None), slice(1, 4, 2), (slice(None), 1), (slice(None, None, -2), slice(1)),
    (0, 1), slice(2, 2), (Ellipsis, 0), (None, 1)], ids=str)
@each("value", ["part", "row", "number"])
def test_regions(index, value):
    x = np.arange(15.0).reshape(5, 3)
    part = x[index] * 2.0 + 1.0
    row = part[..., :1] if part.ndim else part
    part = {"part": part, "row": row, "number": np.array(7.0)}[value]
    expected = x.copy()
    expected[index] = part

    def f(x, part):
        y = x * 1.0
        y[index] = part
        return y

    np.testing.assert_array_equal(
        cytape.function(f)(cytape.constant(x), cytape.constant(part)).numpy(), expected)
    weights = np.arange(15.0).reshape(5, 3) + 1.0
    gradient = cytape.grad(lambda x, part: cnp.sum(f(x, part) * weights), (0, 1))
    for found, wanted in zip(cytape.function(gradient)(x, part), gradient(x, part), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_gradients_of_rows_that_are_read_are_added_where_they_belong():
    gradient = cytape.grad(lambda x: cnp.sum(filled(x) ** 2))
    np.testing.assert_allclose(cytape.function(gradient)(X), gradient(X), rtol=1e-12)


def test_the_time_of_a_gradient_is_in_proportion_to_the_rows():
    def seconds(n):
        f = cytape.function(cytape.grad(lambda x: cnp.sum(filled(x, n))))
        x, times = cytape.constant(X), []
        for _ in range(6):
            start = time.process_time()  # whatever else the machine does
            f(x)
            times.append(time.process_time() - start)
        return min(times[1:])

    assert seconds(800) < 20 * seconds(100)  # 64 times, if whole arrays were copied
