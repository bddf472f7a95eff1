"""Gradients that arrive for one tensor: summed as they come by hosts that can, else in one sum."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core import Tape, VSpace
from tests.cases import each


class Lists(VSpace):
    """Gradients are lists of where they came from; the tape must ask for one sum."""

    def __init__(self):
        self.sums = []

    def num_elements(self, gradient):
        return 1

    def aggregate_gradients(self, gradients):
        self.sums.append(list(gradients))
        return sum(gradients, [])

    def ones_like(self, info):
        return [info]

    def zeros_like(self, info):
        return []

    def call_backward_function(self, op_type, backward, unneeded, gradients):
        return [[backward]]


def test_a_host_that_cannot_sum_as_it_goes_is_asked_once_and_in_order_of_arrival():
    tape, space = Tape(), Lists()
    tape.watch(0)
    for output in range(1, 6):
        tape.record("Op", [output], [0], ["float64"], lambda output=output: f"op {output}")
    (gradient,) = tape.compute_gradient(space, [1, 2, 3, 4, 5], [0])
    expected = [["op 5"], ["op 4"], ["op 3"], ["op 2"], ["op 1"]]
    assert space.sums == [expected]
    assert gradient == sum(expected, [])


@each("size", [3, 5000, 100_000])
def test_the_sum_is_that_of_the_terms_latest_first(size):
    """Another order, or another grouping, would round otherwise."""
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=size) * 10.0**k for k in range(6)]
    x = cytape.constant(rng.normal(size=size))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = 0.0
        for factor in factors:
            y = y + cnp.sum(x * factor)
    total = factors[-1]
    for factor in factors[-2::-1]:
        total = total + factor
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), total)


def test_many_gradients_of_one_tensor_take_the_memory_of_one():
    tracemalloc = pytest.importorskip("tracemalloc")
    x = cytape.constant(np.ones(1000))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = cnp.stack([cnp.sum(x * float(k)) for k in range(200)])
    tracemalloc.start()
    tape.gradient(y, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * x.nbytes
