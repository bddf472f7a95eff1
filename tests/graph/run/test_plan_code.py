"""Programs put together at random: views, memory that is used again, sums in place."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cytape
from cytape.graph.model.graph import Graph
from cytape.graph.run import interpreter
from tests.graph.plans import assert_as_reference, plan_of
from tests.graph.programs import new_graph
from tests.ways import watching

VECTOR = (6,)
MATRIX = (3, 6)
STEPS = [
    ("add", 2, lambda x, y: x + y), ("multiply", 2, lambda x, y: x * y),
    ("subtract", 2, lambda x, y: x - y), ("sin", 1, np.sin), ("negative", 1, lambda x: -x),
    ("square", 1, np.square), ("reverse", 1, lambda x: x[..., ::-1]),
    ("part", 1, lambda x: np.concatenate([x[..., 2:], x[..., :2]], axis=-1)),
    ("widen", 1, lambda x: np.broadcast_to(x[..., 2:3], x.shape)),
    ("fold", 1, lambda x: x.reshape((-1, 2)).T.reshape(x.shape)),
    ("twice", 1, lambda x: np.transpose(np.transpose(x))),
    ("sum", 1, lambda x: x + np.sum(x, axis=-1, keepdims=True)),
    ("mean", 1, lambda x: x - np.mean(x)), ("max", 1, lambda x: x - np.max(x, axis=0)),
    ("product", 1, lambda x: x @ np.ones((6, 6))),
    ("choose", 2, lambda x, y: np.where(x > y, x, y)),
    ("less", 2, lambda x, y: x * (x < y)),
    ("narrow", 1, lambda x: x.astype(np.float32).astype(np.float64)),
    ("insert", 1, lambda x: x[..., None, :][..., 0, :]),
    ("clip", 1, lambda x: np.clip(x, -1.0, 1.0)),
    ("roll", 1, lambda x: np.roll(x, 1, axis=-1)),
]


@st.composite
def programs(draw):
    """Draw (step, operands), where operands count back; the fetches; and what is fed besides."""
    n_steps = draw(st.integers(1, 25))
    steps = [(draw(st.sampled_from(STEPS)), draw(st.integers(1, 4)), draw(st.integers(1, 4)))
             for _ in range(n_steps)]
    fetches = draw(st.lists(st.integers(0, n_steps + 1), min_size=1, max_size=4))
    overfed = draw(st.sets(st.integers(2, n_steps + 1), max_size=2))
    return steps, fetches, overfed, draw(st.sampled_from([VECTOR, MATRIX, (40, 6)])), draw(
        st.booleans())


@settings(max_examples=75, deadline=None)
@given(programs())
def test_random_programs(program):
    steps, fetches, overfed, shape, with_gradient = program
    rng = np.random.default_rng(0)
    graph = Graph()
    with graph.as_default(), np.errstate(all="ignore"), cytape.GradientTape() as tape:
        values = [graph.placeholder("float64", shape) for _ in range(2)]
        tape.watch(values[0])
        for (_, n_operands, step), first, second in steps:
            operands = [values[-min(k, len(values))] for k in (first, second)[:n_operands]]
            values.append(step(*operands))
        fetched = [values[i] for i in fetches]
        if with_gradient:
            with tape.stop_recording():
                gradient = tape.gradient(values[-1], values[0])
            fetched += [] if gradient is None else [gradient]
        fed = values[:2] + [values[i] for i in sorted(overfed) if values[i] is not None]
        fed = list({graph.symbol_of(x): x for x in fed}.values())
        arrays = [rng.normal(size=x.shape) for x in fed]
        # Of all that is computed, so that what cancels in a gradient is among it.
        computed = interpreter.run(
            graph, [s for node in range(graph.n_nodes) for s in graph.outputs_of(node)],
            {graph.symbol_of(x): array for x, array in zip(fed, arrays, strict=True)})
        finite = [x for x in computed if x.size and np.isfinite(x).all()]
        scale = max([1.0, *[np.max(np.abs(x)) for x in finite]])
        assert_as_reference(graph, fed, fetched, arrays, scale=scale, any_condition=True)


def test_an_operand_that_dies_is_written_over():
    graph, x = new_graph((1000,))
    y = x * 2.0
    for _ in range(10):
        y = np.sin(y) + 1.0
    plan = plan_of(graph, [x], [np.sum(y)])
    assert plan.peak_bytes == 8000 + 8


def test_an_operand_that_is_seen_elsewhere_is_not_written_over():
    graph, x = new_graph((1000,))
    y = x * 2.0
    part = y[::2]
    z = np.sin(y)
    assert_as_reference(graph, [x], [np.sum(z), part * 1.0, z + y[0]], [np.arange(1000.0)])


def test_temporaries_of_one_op_do_not_haunt_another():
    graph, x = new_graph((6,))
    y = x
    for _ in range(40):
        y = y * (y < x) + x
        y = (y > 0.0) * y
    plan = assert_as_reference(graph, [x], [y], [np.linspace(-1.0, 1.0, 6)])
    assert plan.peak_bytes < 5 * 48


def test_gradients_of_parts_are_added_where_they_belong():
    graph, x = new_graph((1000,))
    with watching(x) as tape:
        y = 0.0
        for i in range(50):
            y = y + x[i] * x[i + 7]
    gradient = tape.gradient(y, x)
    plan = assert_as_reference(graph, [x], [gradient], [np.arange(1000.0)])
    assert plan.n_instructions < 50 * 9


def test_several_gradients_of_parts_alone():
    graph, x = new_graph((4, 5))
    with watching(x, persistent=True) as tape:
        y = np.sum(x[1:, ::2]) + np.sum(x[:, 1] * x[:, 2]) + x[3, 4]
        z = np.sum(x[0] * 2.0)
    assert_as_reference(graph, [x], [tape.gradient(y, x), tape.gradient(z, x)],
                        [np.arange(20.0).reshape(4, 5)])
