"""Random programs, differentiated on the eager tape and in a graph: the same gradients.

A program is a list of instructions on a growing list of tensors. Ops have one or several inputs and
outputs; gradients are stopped behind some of the tensors, asked for with respect to any of them,
of any of them, with any seeds.
"""

from dataclasses import dataclass, field

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

import cytape
from cytape import AggregationMethod
from cytape.ops import joining
from tests.ways import dense, watching

UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "square": np.square,
    "negative": np.negative,
    "exp": lambda x: np.exp(-x * x),
    "relu": lambda x: cytape.nn.relu(x),
    "cumsum": lambda x: np.cumsum(x, axis=0) if x.ndim else x + 1.0,
    "sum": np.sum,
    "mean": lambda x: np.mean(x, axis=-1, keepdims=True) if x.ndim else x,
    "max": np.max,
    "transpose": np.transpose,
    "ravel": np.ravel,
    "first": lambda x: x[:1] if x.ndim else x,
    "gather": lambda x: cytape.gather(x, np.array([0, 0])) if x.ndim else x,
    "through int": lambda x: x.astype("int64").astype("float64"),
    "stop": cytape.stop_gradient,
    "identity": cytape.identity,
    "float32": lambda x: x.astype("float32").astype("float64"),
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": lambda x, y: x / (1.0 + y * y),
    "maximum": np.maximum,
    "where": lambda x, y: np.where(x > y, x, 2.0 * y),
    "concatenate": lambda x, y: np.concatenate([np.ravel(x), np.ravel(y)]),
    "outer": lambda x, y: np.ravel(x)[:3, None] @ np.ravel(y)[None, :3],
}
SEVERAL = {
    "split": lambda x: joining.split(np.append(x, x), [1]),
    "unstack": lambda x: joining.unstack(np.reshape(np.ravel(x)[:1] * np.ones(2), (2, 1))),
    "identity_n": lambda x: cytape.identity_n(x, 3.0 * x),
    "pair": lambda x: cytape.identity_n(np.sum(x), x),
}


@dataclass(frozen=True)
class Program:
    shapes: list
    instructions: list
    stops: set = field(default_factory=set)

    def run(self, inputs, stop=None):
        """Return all tensors, each as later instructions see it: as `stop` returns it.

        To a tape nothing is a constant: what gradients do not pass it is told of by `stop`.
        """
        tensors = []

        def found(*results):
            for tensor in results:
                if any(tensor is other for other in tensors):
                    tensor = cytape.identity(tensor)
                stopped = len(tensors) in self.stops or name in ("stop", "through int")
                tensors.append(stop(tensor) if stopped and stop is not None else tensor)

        name = "input"
        found(*inputs)
        for name, *operands in self.instructions:
            operands = [tensors[operand % len(tensors)] for operand in operands]
            if name in SEVERAL:
                found(*SEVERAL[name](*operands))
            else:
                results = {**UNARY, **BINARY}[name](*broadcastable(operands))
                found(results)
        return tensors


def broadcastable(operands):
    """Cut operands to what can be broadcast together."""
    if len(operands) == 2:
        x, y = operands
        for a, b in zip(x.shape[::-1], y.shape[::-1], strict=False):
            if a != b and 1 not in (a, b):
                return np.sum(x), y
    return operands


positions = st.integers(0, 1000)
instructions = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), positions),
    st.tuples(st.sampled_from(sorted(BINARY)), positions, positions),
    st.tuples(st.sampled_from(sorted(SEVERAL)), positions))
programs = st.builds(
    Program,
    st.lists(st.sampled_from([(), (3,), (2, 3), (1, 3)]), min_size=1, max_size=3),
    st.lists(instructions, min_size=1, max_size=12),
    st.sets(st.integers(0, 12), max_size=4))


def in_range(numbers, tensors):
    return [number % len(tensors) for number in numbers]


def by_tape(program, arrays, ys, xs, seeds):
    def stop(tensor):
        tensor = cytape.stop_gradient(tensor)
        tape.watch(tensor)
        return tensor

    inputs = [cytape.constant(array) for array in arrays]
    with watching(inputs) as tape:
        tensors = program.run(inputs, stop)
    ys, xs = in_range(ys, tensors), in_range(xs, tensors)
    grad_ys = [None if seed is None else seed * np.ones(tensors[y].shape)
               for y, seed in zip(ys, seeds, strict=False)]
    return tape.gradient(
        [tensors[y] for y in ys], [tensors[x] for x in xs], output_gradients=grad_ys)


def in_graph(program, arrays, ys, xs, seeds, **options):
    with cytape.Graph().as_default() as graph:
        inputs = [cytape.placeholder("float64", array.shape) for array in arrays]
        tensors = program.run(inputs)
        ys, xs = in_range(ys, tensors), in_range(xs, tensors)
        grad_ys = [None if seed is None else seed * np.ones(tensors[y].shape)
                   for y, seed in zip(ys, seeds, strict=False)]
        gradients = cytape.gradients(
            [tensors[y] for y in ys], [tensors[x] for x in xs], grad_ys,
            stop_gradients=[tensors[i] for i in program.stops if i < len(tensors)], **options)
        gradients = list(map(dense, gradients))
    present = [gradient for gradient in gradients if gradient is not None]
    values = iter(cytape.Session(graph).run(present, list(zip(inputs, arrays, strict=True))))
    return [None if gradient is None else next(values) for gradient in gradients]


def assert_same(got, expected):
    assert [g is None for g in got] == [e is None for e in expected]
    for g, e in zip(got, expected, strict=True):
        if e is not None:
            e = dense(e).numpy()
            assert (g.shape, g.dtype) == (e.shape, e.dtype)
            np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-9)


several_positions = st.lists(positions, min_size=1, max_size=4)
seeds = st.lists(st.sampled_from([None, 1.0, -2.5]), min_size=4, max_size=4)
methods = st.sampled_from([AggregationMethod.ADD_N, AggregationMethod.EXPERIMENTAL_TREE])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs, several_positions, several_positions, seeds, methods, st.booleans())
def test_the_tape_and_the_graph_agree(program, ys, xs, seeds, method, gate):
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=shape) for shape in program.shapes]
    got = in_graph(program, arrays, ys, xs, seeds[: len(ys)],
                   aggregation_method=method, gate_gradients=gate)
    assert_same(got, by_tape(program, arrays, ys, xs, seeds[: len(ys)]))
