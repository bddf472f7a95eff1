import weakref

import numpy as np

from bench import reference_ops as ops
from bench.reference_ops import ReferenceGradientTape, ReferenceTensor
from tests.cases import each

X = np.array([[0.5, 1.5, 0.7], [2.0, 0.3, 1.1]])
Y = np.array([[1.2, 0.4, 2.1], [0.9, 1.7, 0.6]])
ROW = np.array([0.8, 1.3, 0.5])
COLUMN = np.array([[0.6], [1.4]])
LABELS = np.array([2, 0])


def central_differences(f, arrays, step=1e-6):
    gradients = []
    for array in arrays:
        gradient = np.zeros_like(array)
        for i in np.ndindex(array.shape):
            value = array[i]
            array[i] = value + step
            above = f(*arrays)
            array[i] = value - step
            below = f(*arrays)
            array[i] = value
            gradient[i] = (above - below) / (2 * step)
        gradients.append(gradient)
    return gradients


def gradients(f, arrays):
    tensors = [ReferenceTensor(array) for array in arrays]
    with ReferenceGradientTape() as tape:
        tape.watch(tensors)
        target = f(*tensors)
    return tape.gradient(target, tensors)


@each(
    ("f", "arrays"),
    [
        (lambda x: -x, [X]),
        (lambda x, y: x + y, [X, Y]),
        (lambda x, y: x - y, [X, Y]),
        (lambda x, y: x * y, [X, Y]),
        (lambda x, y: x / y, [X, Y]),
        (lambda x, y: x**y, [X, Y]),
        (lambda x, row: x * row, [X, ROW]),
        (lambda column, x: column - x, [COLUMN, X]),
        (lambda column, row: column / row, [COLUMN, ROW]),
        (lambda x, scalar: x**scalar, [X, np.array(1.5)]),
        (lambda x: 2.0 * x + 1.0, [X]),
        (lambda x: (1.0 - x) / 4.0, [X]),
        (lambda x: 3.0 / x - 2.0, [X]),
        (lambda x: x**3 + 2.0**x, [X]),
        (lambda x: ROW + x * Y - Y / x, [X]),
        (lambda x, y: ops.matmul(x, y), [X, Y.T.copy()]),
        (lambda x: Y @ (x @ Y), [X.T.copy()]),
        (lambda x: ops.tanh(x), [X]),
        (lambda x: ops.sin(x), [X]),
        (lambda x: ops.exp(x), [X]),
        (lambda x: ops.log(x), [X]),
        (lambda x: ops.sum(x, axis=0), [X]),
        (lambda x: ops.sum(x, axis=1, keepdims=True) * x, [X]),
        (lambda x: ops.mean(x), [X]),
        (lambda x: ops.mean(x, axis=1), [X]),
        (lambda x: ops.sparse_softmax_cross_entropy_with_logits(LABELS, x), [X]),
        (lambda x, y: ops.tanh(x * y) * x + ops.exp(x * y), [X, Y]),  # values used several times
    ],
)
def test_gradient_agrees_with_central_differences(f, arrays):
    arrays = [array.copy() for array in arrays]
    weights = np.cos(np.arange(np.size(f(*map(ReferenceTensor, arrays)).value)))

    def weighted(*tensors):
        y = f(*tensors)
        return ops.sum(y * weights.reshape(y.value.shape))

    def value(*arrays):
        return weighted(*map(ReferenceTensor, arrays)).value

    for actual, expected in zip(
        gradients(weighted, arrays), central_differences(value, arrays), strict=True
    ):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8)


def test_python_numbers_keep_float32():
    (gradient,) = gradients(lambda x: ops.sum((2.0 * x - 1.0) ** 2 / 3.0), [X.astype(np.float32)])
    assert gradient.dtype == np.float32


def test_unconnected_source_gets_none():
    x, y = ReferenceTensor(X), ReferenceTensor(Y)
    with ReferenceGradientTape() as tape:
        tape.watch([x, y])
        target = ops.sum(x)
    assert tape.gradient(target, [y]) == [None]


def test_dropped_result_releases_what_its_ops_saved():
    x = ReferenceTensor(X)
    constant = Y.copy()
    saved = weakref.ref(constant)
    with ReferenceGradientTape() as tape:
        tape.watch([x])
        y = ops.sum(x * constant)
        del constant
        assert saved() is not None
        del y
        assert saved() is None
