"""The loop that writes outer products, or adds them: as rounded sums of rounded products."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import tensor_of
from tests.cases import each
from tests.ops.forward_mode import followed

SIZES = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 17), (300, 54), (54, 300), (1, 5000), (5000, 1)]
LAYOUTS = {
    "contiguous": lambda x: x, "every other": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape)}


def draw(n, dtype, seed):
    return np.random.default_rng(seed).normal(size=n).astype(dtype)


@each(dtype=["float64", "float32"], left=LAYOUTS, right=LAYOUTS)
@each("rows, columns", SIZES)
def test_each_element_is_one_rounded_product(rows, columns, left, right, dtype):
    a, b = LAYOUTS[left](draw(rows, dtype, 0)), LAYOUTS[right](draw(columns, dtype, 1))
    found = tensor_of(a[:, None]) @ tensor_of(b[None])
    np.testing.assert_array_equal(found.numpy(), a[:, None] * b)


@each("dtype", ["float64", "float32"])
@each("rows, columns", SIZES)
def test_addends_are_rounded_before_the_sum(rows, columns, dtype):
    """So that it does not matter whether a product finds a gradient to be added to."""
    x, w = draw(rows * columns, dtype, 0).reshape(rows, columns), draw(columns, dtype, 1)
    g = draw(rows, dtype, 2)
    tensor = cytape.constant(x)
    for order in (1, -1):
        with cytape.GradientTape() as tape:
            tape.watch(tensor)
            terms = [lambda: cnp.sum(cnp.matmul(tensor, w) * g), lambda: cnp.sum(tensor * tensor)]
            y = sum(term() for term in terms[::order])
        found = tape.gradient(y, tensor).numpy()
        np.testing.assert_array_equal(found, g[:, None] * w + (x + x))


def test_infinity_and_nan_stay_where_they_stand():
    a, b = np.array([1.0, np.inf, np.nan, -0.0]), np.array([0.0, 2.0, -3.0])
    with np.errstate(invalid="ignore"):
        found = (cytape.constant(a[:, None]) @ cytape.constant(b[None])).numpy()
        expected = a[:, None] @ b[None]
    np.testing.assert_array_equal(found, expected)


def test_many_products():
    """One after the other, of one operand with many."""
    a, tangents = draw(6, "float64", 0).reshape(6, 1), draw(60, "float64", 1).reshape(5, 1, 12)
    x, y = cytape.constant(a), cytape.constant(np.ones((1, 12)))
    _, (tangent,) = followed(lambda y: x @ y, [y], [tangents], use_batch=True)
    np.testing.assert_array_equal(tangent.numpy(), a * tangents)
