"""Random programs as traced functions: the gradients of the eager tape, and of plain Python's."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

import cytape
import cytape.numpy as cnp
from bench import reference_ops
from tests.graph.test_random_programs import (
    Program,
    dense,
    in_range,
    positions,
    programs,
    several_positions,
)


def arrays_of(program):
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape) for shape in program.shapes]


def gradients_by_tape(f, inputs):
    with cytape.GradientTape() as tape:
        tape.watch(inputs)
        targets = f(*inputs)
    gradients = tape.gradient(targets, inputs, unconnected_gradients="zero")
    return [gradient.to_tensor() if isinstance(gradient, cytape.IndexedSlices) else gradient
            for gradient in gradients]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs, several_positions)
def test_a_tape_outside_and_inside_a_function(program, ys):
    program = Program(program.shapes, program.instructions)

    def f(*inputs):
        tensors = program.run(list(inputs))
        return [tensors[y] for y in in_range(ys, tensors)]

    inputs = [cytape.constant(array) for array in arrays_of(program)]
    expected = gradients_by_tape(f, inputs)
    around, inside = cytape.function(f), cytape.function(lambda *xs: gradients_by_tape(f, list(xs)))
    for _ in range(3):  # the trace, what it is optimised to, and that once more
        for gradients in gradients_by_tape(around, inputs), inside(*inputs):
            for got, want in zip(gradients, expected, strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(got, dense(want).numpy(), rtol=1e-9, atol=1e-9)


ARITHMETIC = ["add", "subtract", "multiply"]
FUNCTIONS = ["sin", "tanh", "negative", "exp of square"]
instructions = st.one_of(
    st.tuples(st.sampled_from(ARITHMETIC), positions, positions),
    st.tuples(st.sampled_from(FUNCTIONS), positions),
)


def run(namespace, instructions, inputs):
    """Run a program of ops that the plain-Python tape has, too; return the sum of its last tensor.
    """
    tensors = list(inputs)
    for name, *operands in instructions:
        operands = [tensors[operand % len(tensors)] for operand in operands]
        if name == "exp of square":
            (x,) = operands
            tensors.append(namespace.exp(namespace.negative(x * x)))
        else:
            tensors.append(getattr(namespace, name)(*operands))
    return namespace.sum(tensors[-1] * tensors[0])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([(), (3,), (2, 3), (1, 3)]), min_size=1, max_size=3),
       st.lists(instructions, min_size=1, max_size=25))
def test_four_ways_agree(shapes, instructions):
    rng = np.random.default_rng(7)
    arrays = [rng.normal(size=shape) for shape in shapes]

    inputs = [reference_ops.ReferenceTensor(array) for array in arrays]
    with reference_ops.ReferenceGradientTape() as tape:
        tape.watch(inputs)
        target = run(reference_ops, instructions, inputs)
    expected = [np.zeros(array.shape) if gradient is None else gradient for gradient, array in
                zip(tape.gradient(target, inputs), arrays, strict=True)]

    def f(*xs):
        return run(cnp, instructions, xs)

    inputs = [cytape.constant(array) for array in arrays]
    function = cytape.function(f)
    graph = cytape.Graph()
    with graph.as_default():
        placeholders = [cytape.placeholder("float64", array.shape) for array in arrays]
        in_graph = cytape.gradients(f(*placeholders), placeholders, unconnected_gradients="zero")
    feeds = list(zip(placeholders, arrays, strict=True))
    for found in (gradients_by_tape(f, inputs), gradients_by_tape(function, inputs),
                  gradients_by_tape(function, inputs), cytape.Session(graph).run(in_graph, feeds)):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
