"""Tensor types that the tape has never heard of: exact ones in Python, C structs in Cython."""

import itertools
from fractions import Fraction
from pathlib import Path

import pytest

from tests.outside import compiled

# ---- vectors of fractions, in pure Python


class Vector:
    """A vector of fractions that records itself on the active tapes."""

    tapes = []
    new_id = itertools.count().__next__

    def __init__(self, *entries):
        self.entries = tuple(map(Fraction, entries))
        self.id = Vector.new_id()

    def __del__(self):
        for tape in Vector.tapes:
            tape.delete_trace(self.id)

    def __add__(self, other):
        return apply("Add", lambda a, b: a + b, lambda dz: [dz, dz], self, other)

    def __mul__(self, other):
        x, y = self.saved(), other.saved()
        return apply("Multiply", lambda a, b: a * b, lambda dz: [dz * y, dz * x], self, other)

    def inverse(self):
        x = self.saved()
        return apply("Inverse", lambda a: 1 / a,
                     lambda dy: [dy * (x * x).inverse() * Vector(*[-1] * len(x.entries))], self)

    def saved(self):
        """The same value under the same id, with no say in how long the trace lives."""
        return Saved(self)


class Saved(Vector):
    def __init__(self, vector):
        self.entries, self.id = vector.entries, vector.id

    def __del__(self):
        pass


def apply(name, function, backward, *inputs):
    output = Vector(*map(function, *(x.entries for x in inputs)))
    ids = [x.id for x in inputs]
    for tape in Vector.tapes:
        tape.record(name, [Saved(output)], ids, ["float64"] * len(ids), lambda: backward)
    return output


def vector_space(core):
    class VectorSpace(core.VSpace):
        def num_elements(self, gradient):
            return len(gradient.entries)

        def aggregate_gradients(self, gradients):
            return sum(gradients[1:], start=gradients[0])

        def ones_like(self, info):
            return Vector(*[1] * len(info.entries))

        def zeros_like(self, info):
            return Vector(*[0] * len(info.entries))

        def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
            return backward(*output_gradients)

    return VectorSpace()


@pytest.fixture
def tape(core):
    Vector.tapes = [core.Tape(persistent=True)]
    yield Vector.tapes[0]
    Vector.tapes = []


def test_gradients_of_fractions_are_exact(core, tape):
    x = Vector(Fraction(1, 3), -2)
    tape.watch(x.id)
    y = x * x * x + x.inverse()
    space = vector_space(core)
    derivatives = []
    for _ in range(3):
        y, = tape.compute_gradient(space, [y.id], [x.id])
        derivatives.append(y.entries)
    assert derivatives == [
        (3 * Fraction(1, 9) - 9, 12 - Fraction(1, 4)), (2 + 54, -12 - Fraction(1, 4)),
        (6 - 6 * 81, 6 - Fraction(6, 16))]


def test_a_dead_vector_takes_its_trace_along(core, tape):
    x = Vector(2)
    tape.watch(x.id)
    y = x * x
    z = (y + x) * y
    assert tape.num_ops == 3
    del y
    assert tape.num_ops == 3
    dx, = tape.compute_gradient(vector_space(core), [z.id], [x.id])
    assert dx.entries == (4 * 8 + 3 * 4,)
    del z, dx
    assert (tape.num_ops, tape.num_known) == (0, 1)


# ---- C structs, in a module compiled against the .pxd files

SOURCE = Path(__file__).with_name("foreign_scalars.pyx")


@pytest.fixture(scope="module")
def scalars(tmp_path_factory):
    """The module foreign_scalars, built like anybody's who depends on cytape."""
    folder = tmp_path_factory.mktemp("foreign")
    (folder / SOURCE.name).write_text(SOURCE.read_text())
    module = compiled(folder, "foreign_scalars")
    yield module
    assert module.alive() == (0, 0)


def test_a_c_library_differentiates(cython_core, scalars):
    tape = cython_core.Tape()
    tape.watch(0)
    for i in range(50):
        scalars.record(tape, i + 1, i, i, 1, 1)
    assert scalars.alive() == (0, 50)
    assert scalars.gradient(tape, scalars.Scalars(), 50, 0) == 2.0 ** 50
    assert scalars.alive() == (0, 0)
    assert tape.num_ops == 0


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("how", ["delete", "drop", "fail", "unconnected"])
def test_a_c_library_gets_everything_back(cython_core, scalars, persistent, how):
    tape = cython_core.Tape(persistent)
    tape.watch(0)
    for i in range(20):
        scalars.record(tape, i + 1, i, max(i - 3, 0), 2, 3)
    space = scalars.Scalars()
    if how == "delete":
        for i in range(20):
            tape.delete_trace(i + 1)
        assert scalars.alive() == (0, 0)
    elif how == "fail":
        space.fails_at = 2.0 ** 2
        with pytest.raises(ArithmeticError):
            scalars.gradient(tape, space, 20, 0)
    elif how == "unconnected":
        assert scalars.gradient(tape, space, 77, 0) is None
    del tape
    assert scalars.alive() == (0, 0)


def test_a_c_space_differentiates_a_million_ops(cython_core, scalars):
    tape = cython_core.Tape()
    tape.watch(0)
    tape.watch(1)
    for i in range(2, 1_000_002):
        scalars.record(tape, i, i - 1, i - 2, 0.5, 0.5)
    assert tape.nbytes <= 150 * 1_000_000
    assert 0.3 < scalars.gradient(tape, scalars.Scalars(), 1_000_001, 0) < 0.7
    assert (tape.num_ops, scalars.alive()) == (0, (0, 0))
