import gc
import importlib
import sys
from collections import Counter

import pytest

from tests.core.accumulating import accumulator_type, host_type


@pytest.fixture(params=["cytape.core", "cytape.core.reference"], ids=["cython", "python"])
def core(request):
    """Both tapes: what a test asks of one it asks of the other."""
    return importlib.import_module(request.param)


@pytest.fixture
def cython_core():
    return importlib.import_module("cytape.core")


@pytest.fixture
def tape(core):
    return core.Tape()


class Numbers:
    """The methods of a VSpace whose gradients are numbers. Writes down what it was asked."""

    def __init__(self):
        self.calls = []
        self.unneeded = []
        self.output_gradients = []
        self.aggregated = []
        self.zeros = []
        self.marked = []
        self.deleted = []

    def num_elements(self, gradient):
        return 1

    def aggregate_gradients(self, gradients):
        self.aggregated.append(len(gradients))
        return sum(gradients)

    def ones_like(self, info):
        return 1

    def zeros_like(self, info):
        self.zeros.append(info)
        return 0

    def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
        self.calls.append(op_type)
        self.unneeded.append(unneeded_gradients)
        self.output_gradients.append(output_gradients)
        return backward(*output_gradients)

    def mark_as_result(self, gradient):
        self.marked.append(gradient)

    def delete_gradient(self, gradient):
        self.deleted.append(gradient)


@pytest.fixture
def numbers_type(core):
    """A VSpace class to instantiate or to override further."""
    return type("Numbers", (Numbers, core.VSpace), {})


@pytest.fixture
def numbers(numbers_type):
    return numbers_type()


class Recorder:
    """Records float ops whose backward functions are plain functions; counts their releases."""

    def __init__(self):
        self.released = []

    def __call__(self, tape, name, inputs, outputs, backward=None):
        """Record, under `name`, an op that multiplies (or treats as `backward` says) gradients."""
        return tape.record(name, outputs, inputs, ["float64"] * len(inputs), lambda: backward,
                           lambda _: self.released.append(getattr(name, "name", name)))

    @property
    def counts(self):
        return Counter(self.released)


@pytest.fixture
def record():
    return Recorder()


@pytest.fixture
def chain(record):
    """Make a chain of ops on a tape: op i (named "op<i>") doubles tensor i to tensor i + 1."""

    def chain(tape, length, backward=lambda dy: [2 * dy]):
        tape.watch(0)
        for i in range(length):
            record(tape, f"op{i}", [i], [i + 1], backward)

    return chain


@pytest.fixture
def unraisable(monkeypatch):
    """Collect the errors that Python can only report."""
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: errors.append(args.exc_value))
    return errors


@pytest.fixture
def no_garbage():
    """Check that the test leaves nothing for the garbage collector."""
    gc.collect()
    yield
    assert gc.collect() == 0


# ---- accumulators


@pytest.fixture
def forward_accumulator(core):
    return accumulator_type(core)


@pytest.fixture
def accumulator(forward_accumulator, numbers):
    return forward_accumulator(numbers)


@pytest.fixture
def host(core):
    """A host whose values are all dropped in the end, and whose backward objects are released."""
    host = host_type(core)()
    yield host
    gc.collect()  # cycles through a test's closures hold tangents
    host.check_end()


@pytest.fixture
def new_accumulator(forward_accumulator, host):
    """Make an accumulator, innermost, of which the host knows."""
    def new_accumulator(use_batch=False):
        host.accumulators.append(forward_accumulator(host, use_batch))
        return host.accumulators[-1]

    return new_accumulator


@pytest.fixture
def watched(host, new_accumulator):
    """Make an accumulator and a value of 3 that it gives the tangent 2."""
    def watched():
        accumulator, x = new_accumulator(), host.value(3)
        accumulator.watch(x.id, host.value(2))
        return accumulator, x

    return watched


@pytest.fixture(params=[True, False], ids=["forward", "transposed"])
def both_ways(host, request):
    """Ops with forward functions, and the same without."""
    host.forward = request.param
