"""Tensors and ops on the plain-Python tape: cytape without Cython.

Values are NumPy arrays, the tape is `cytape.core.reference.Tape`. As in cytape, an op saves values
and no tensors, unneeded gradients are not computed, and the death of a tensor drops its trace. The
backward object of an op, made only if the op is recorded, is a tuple of functions:
one per input, from the gradient of the output to the gradient of that input.
"""

import functools
import itertools
import operator

import numpy as np

from cytape.core.reference import Tape, VSpace

_new_id = itertools.count().__next__
_active_tapes = []


class ReferenceTensor:
    """An immutable value with an id; Python numbers stay weakly typed, as in NumPy."""

    __slots__ = ("dtype", "id", "value")
    __array_ufunc__ = None  # an ndarray on the left leaves the operator to us

    def __init__(self, value):
        self.value = value
        self.id = _new_id()
        scalar_type = value.dtype.type if hasattr(value, "dtype") else type(value)
        self.dtype = scalar_type.__name__

    def __del__(self, tapes=_active_tapes):  # bound here: at exit the module may be gone first
        for tape in tapes:
            tape.delete_trace(self.id)

    def __repr__(self):
        return f"ReferenceTensor({self.value!r})"

    def __neg__(self):
        return negative(self)

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(other, self)

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(other, self)

    def __matmul__(self, other):
        return matmul(self, other)

    def __rmatmul__(self, other):
        return matmul(other, self)


class ReferenceGradientTape:
    """Record the ops on watched tensors inside a ``with`` block; serves one gradient."""

    def __init__(self):
        self._tape = Tape()

    def __enter__(self):
        _active_tapes.append(self._tape)
        return self

    def __exit__(self, *exc_info):
        _active_tapes.remove(self._tape)

    def watch(self, tensors):
        for tensor in tensors:
            self._tape.watch(tensor.id)

    def gradient(self, target, sources):
        """Return the gradient of `target` as one ndarray per source, None where unconnected."""
        return self._tape.compute_gradient(
            _ARRAYS,
            [target.id],
            [source.id for source in sources],
            output_gradients=[np.ones_like(target.value)],
        )


class _ArrayVSpace(VSpace):
    # Every op has one output and every target a seed, so neither ones nor zeros are asked for.

    def num_elements(self, gradient):
        return gradient.size

    def aggregate_gradients(self, gradients):
        return functools.reduce(operator.add, gradients)

    def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
        (g,) = output_gradients
        return [None if i in unneeded_gradients else vjp(g) for i, vjp in enumerate(backward)]


_ARRAYS = _ArrayVSpace()


def _as_tensor(x):
    return x if isinstance(x, ReferenceTensor) else ReferenceTensor(x)


def _record(op_type, value, inputs, make_vjps):
    output = ReferenceTensor(value)
    for tape in _active_tapes:
        dtypes = [x.dtype for x in inputs]
        tape.record(op_type, [output.id], [x.id for x in inputs], dtypes, make_vjps)
    return output


def _sum_to(g, x):
    """Sum a gradient over the dimensions along which the operand `x` was broadcast."""
    shape = np.shape(x)
    if g.shape == shape:
        return g
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)


def negative(x):
    x = _as_tensor(x)
    return _record("Negative", -x.value, (x,), lambda: (lambda g: -g,))


def add(x, y):
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    return _record("Add", a + b, (x, y), lambda: (
        lambda g: _sum_to(g, a),
        lambda g: _sum_to(g, b),
    ))


def subtract(x, y):
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    return _record("Subtract", a - b, (x, y), lambda: (
        lambda g: _sum_to(g, a),
        lambda g: _sum_to(-g, b),
    ))


def multiply(x, y):
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    return _record("Multiply", a * b, (x, y), lambda: (
        lambda g: _sum_to(g * b, a),
        lambda g: _sum_to(g * a, b),
    ))


def divide(x, y):
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    z = a / b
    return _record("Divide", z, (x, y), lambda: (
        lambda g: _sum_to(g / b, a),
        lambda g: _sum_to(-g * z / b, b),
    ))


def power(x, y):
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    z = a**b
    return _record("Power", z, (x, y), lambda: (
        lambda g: _sum_to(g * b * a ** (b - 1), a),
        lambda g: _sum_to(g * z * np.log(a), b),
    ))


def matmul(x, y):
    """Multiply two matrices."""
    x, y = _as_tensor(x), _as_tensor(y)
    a, b = x.value, y.value
    return _record("MatMul", a @ b, (x, y), lambda: (lambda g: g @ b.T, lambda g: a.T @ g))


def tanh(x):
    x = _as_tensor(x)
    y = np.tanh(x.value)
    return _record("Tanh", y, (x,), lambda: (lambda g: g * (1 - y * y),))


def sin(x):
    x = _as_tensor(x)
    a = x.value
    return _record("Sin", np.sin(a), (x,), lambda: (lambda g: g * np.cos(a),))


def exp(x):
    x = _as_tensor(x)
    y = np.exp(x.value)
    return _record("Exp", y, (x,), lambda: (lambda g: g * y,))


def log(x):
    x = _as_tensor(x)
    a = x.value
    return _record("Log", np.log(a), (x,), lambda: (lambda g: g / a,))


def sum(x, axis=None, keepdims=False):
    x = _as_tensor(x)
    a = x.value
    return _record("Sum", np.sum(a, axis=axis, keepdims=keepdims), (x,), lambda: (
        lambda g: _unreduce(g, a, axis, keepdims),
    ))


def mean(x, axis=None, keepdims=False):
    x = _as_tensor(x)
    a = x.value
    y = np.mean(a, axis=axis, keepdims=keepdims)
    return _record("Mean", y, (x,), lambda: (
        lambda g: _unreduce(g * (y.size / a.size), a, axis, keepdims),
    ))


def _unreduce(g, a, axis, keepdims):
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.broadcast_to(g, a.shape)


def sparse_softmax_cross_entropy_with_logits(labels, logits):
    """Return one loss per row of `logits`; `labels` is an ndarray of class numbers."""
    logits = _as_tensor(logits)
    shifted = logits.value - logits.value.max(axis=1, keepdims=True)
    exps = np.exp(shifted)
    norms = exps.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))

    def vjp(g):
        gradient = exps / norms
        gradient[rows, labels] -= 1
        gradient *= g[:, None]
        return gradient

    losses = np.log(norms[:, 0]) - shifted[rows, labels]
    return _record("SparseSoftmaxCrossEntropyWithLogits", losses, (logits,), lambda: (vjp,))
