"""Buffers that a function fills with values that left their tensors, told from constants."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from tests.cases import each

x = np.array([1.0, 4.0])


FILL = {
    "copyto": lambda buffer, y: np.copyto(buffer, y),
    "put": lambda buffer, y: np.put(buffer, np.arange(y.size), y),
    "put method": lambda buffer, y: buffer.put(np.arange(y.size), y),
    "place": lambda buffer, y: np.place(buffer, np.ones(buffer.shape, bool), y),
    "putmask": lambda buffer, y: np.putmask(buffer, np.ones(buffer.shape, bool), y),
    "ufunc": lambda buffer, y: np.sqrt(y * y, buffer),
    "fill": lambda buffer, y: (buffer.fill(0.0), np.add.at(buffer, np.arange(y.size), y)),
    "setfield": lambda buffer, y: buffer.setfield(y, buffer.dtype),
}


@each("fill", FILL.values(), ids=FILL)
@each(size=[2, 1 << 18], called_before=[False, True])
def test_a_buffer_that_numpy_fills_does_not_hold_constants(called_before, size, fill):
    buffer = np.zeros(size)
    part = buffer[:2]

    @cytape.custom_gradient
    def root(a):
        y = np.sqrt(np.asarray(cytape.stop_gradient(a)))
        fill(part, y)
        return y, lambda dy: dy * 0.5 / buffer[:2]

    if called_before:
        root(x)
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(root(a)))(x), 0.5 / np.sqrt(x))
    with pytest.raises(DetachedError, match="grad_fn of root"):
        cytape.hessian(lambda a: np.sum(root(a)))(x)
