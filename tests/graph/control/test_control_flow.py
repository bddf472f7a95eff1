"""cytape.cond and cytape.while_loop: results, derivatives, and what is refused."""

import gc
import re
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import UnconnectedGradientWarning
from tests import ways
from tests.cases import each
from tests.graph.programs import run, scalar


def squared_until_8(x):
    return cytape.while_loop(lambda v: v < 8, lambda v: v * v, x)


# ---- behaviours


def test_d_4c_01_a_loop_its_gradient_and_higher_derivatives(graph):
    x = scalar()
    y = [squared_until_8(x)]
    for _ in range(3):
        y += cytape.gradients(y[-1], x)
    assert run(y, {x: 2.0}) == [16.0, 32.0, 48.0, 48.0]  # of x**4


def test_d_4c_02_invariants_get_the_sum_over_iterations(graph):
    v, a = scalar(), scalar()
    y = cytape.while_loop(lambda v: v < 100, lambda v: v * a, v)
    da, dv = cytape.gradients(y, [a, v])
    assert run([y, da, dv], {v: 2.0, a: 3.0}) == [162.0, 216.0, 81.0]


def test_d_4c_02_of_the_body_nothing_is_stacked_but_what_changes(graph):
    v, a = scalar(), cytape.placeholder("float64", (1000,))
    fixed = cytape.constant(np.ones(1000))
    y = cytape.while_loop(lambda v: v < 100, lambda v: v * cnp.sum(a * fixed) / 1000.0, v)
    cytape.gradients(y, [a, v])
    stacks = [
        graph.spec_of(symbol).shape
        for node in range(graph.n_nodes) if graph.ops[node].name == "While"
        for symbol in graph.outputs_of(node)[1 + graph.attrs[node]["n_variables"] :]
    ]
    assert stacks == [(None,)]


def test_d_4c_03_several_loop_variables(graph):
    x, y = scalar(), scalar()
    results = cytape.while_loop(lambda x, y: x < 45, lambda x, y: (x * y, x + y), [x, y])
    found = [
        *results, *cytape.gradients(results[0], [x, y]), *cytape.gradients(results[1], [x, y]),
        *cytape.gradients(results, [x, y]),
    ]
    assert run(found, {x: 5.0, y: 3.0}) == [120, 23, 39, 55, 4, 6, 43, 61]


def test_d_4c_04_no_iterations(graph):
    x, a = scalar(), scalar()
    y = cytape.while_loop(lambda v: v < 0, lambda v: v * a, x)
    dx, da = cytape.gradients(y, [x, a])
    found = [y, dx, da, *cytape.gradients(dx, [x, a])]
    assert run(found, {x: 2.0, a: 3.0}) == [2.0, 1.0, 0.0, 0.0, 0.0]
    assert run(found, {x: -2.0, a: -3.0}) == [6.0, -3.0, -2.0, 0.0, 1.0]


@pytest.mark.parametrize("with_counter", [False, True])
def test_d_4c_05_integer_counters(graph, with_counter):
    x = scalar()
    i, y = cytape.while_loop(
        lambda i, x: i < 10, lambda i, x: (i + 1, 2.0 * x), (cytape.constant(0), x))
    [dx] = cytape.gradients([i, y] if with_counter else y, x)
    assert run([i, y, dx], {x: 2.0}) == [10, 2048.0, 1024.0]


def test_d_4c_06_exits_that_are_not_used(graph):
    x, z = scalar(), scalar()
    used, unused = cytape.while_loop(lambda x, z: x < 10, lambda x, z: (x * 2.0, z * x), (x, z))
    dx, dz = cytape.gradients(used, [x, z])
    assert run([used, dx, dz], {x: 3.0, z: 1.0}) == [12.0, 4.0, 0.0]
    assert cytape.gradients(cnp.sin(scalar()), [x, z]) == [None, None]


@pytest.mark.parametrize(("x", "y", "expected"), [(1.0, 2.0, [4.0, 2.0]), (3.0, 2.0, [0.0, 0.0])])
def test_d_4c_07_a_branch_with_a_constant(graph, x, y, expected):
    a, b = scalar(), scalar()
    result = cytape.cond(a < b, lambda: 2.0 * a * b, lambda: 2.0)
    [da, db] = cytape.gradients(result, [a, b])
    [dab] = cytape.gradients(da, [b])
    found = run([da, db, dab], {a: x, b: y})
    assert found == [*expected, 2.0 if x < y else 0.0]


def test_d_4c_07_integer_branches_have_no_gradient(graph):
    n = scalar("int64")
    result = cytape.cond(n < 5, lambda: n + 1, lambda: n)
    with pytest.warns(UnconnectedGradientWarning, match="int64"):
        assert cytape.gradients(result, [n]) == [None]
    assert run([result], {n: 3}) == [4]


@pytest.mark.parametrize("both", [False, True])
def test_d_4c_07_gather_in_a_branch(graph, both):
    table, use = cytape.placeholder("float64", (4, 2)), scalar("bool")
    result = cytape.cond(
        use, lambda: cytape.gather(table, [1, 1, 3]),
        lambda: cytape.gather(table, [0, 0, 0]) if both else 2.0 * table[:3])
    [gradient] = cytape.gradients(result, table)
    if isinstance(gradient, cytape.IndexedSlices):
        gradient = gradient.to_tensor()
    data = np.arange(8.0).reshape(4, 2)
    rows, found = run([result, gradient], {table: data, use: np.True_})
    assert np.array_equal(rows, data[[1, 1, 3]])
    assert found[:, 0].tolist() == [0, 2, 0, 1]
    rows, found = run([result, gradient], {table: data, use: np.False_})
    assert found[:, 0].tolist() == ([3, 0, 0, 0] if both else [2, 2, 2, 0])


def powers_sum(n):
    """The sum of n**k, k = 0..5, the powers by loops in the loop."""
    def power(k):
        return cytape.while_loop(
            lambda i, p: i < k, lambda i, p: (i + 1, p * n),
            (cytape.constant(0), cnp.ones_like(n)))[1]

    return cytape.while_loop(
        lambda k, total: k < 6, lambda k, total: (k + 1, total + power(k)),
        (cytape.constant(0), cnp.zeros_like(n)))[1]


def test_d_4c_08_loop_in_loop(graph):
    n = scalar()
    total = powers_sum(n)
    [dn] = cytape.gradients(total, n)
    [d2n] = cytape.gradients(dn, n)
    assert run([total, dn, d2n], {n: 3.0}) == [364.0, 547.0, 2 + 18 + 108 + 540]


def test_d_4c_08_cond_in_loop(graph):
    x, a = scalar(), scalar()
    y = cytape.while_loop(
        lambda i, v: i < 4,
        lambda i, v: (i + 1, cytape.cond(i % 2 == 0, lambda: v * a, lambda: v + a)),
        (cytape.constant(0), x))[1]
    gradients = cytape.gradients(y, [x, a])
    # ((x a + a) a + a) = x a² + a² + a
    assert run([y, *gradients], {x: 2.0, a: 3.0}) == [30.0, 9.0, 2 * 2 * 3 + 2 * 3 + 1.0]


@pytest.mark.parametrize(("x", "expected"), [(2.0, [16.0, 32.0, 48.0]), (-2.0, [-6.0, 3.0, 0.0])])
def test_d_4c_08_loop_in_cond(graph, x, expected):
    p = scalar()
    y = cytape.cond(p > 0, lambda: squared_until_8(p), lambda: 3.0 * p)
    [first] = cytape.gradients(y, p)
    [second] = cytape.gradients(first, p)
    assert run([y, first, second], {p: x}) == expected


@pytest.mark.parametrize(
    ("x", "expected"), [(3.0, [27.0, 27.0]), (1.0, [1.0, 2.0]), (-1.0, [1, -1])])
def test_d_4c_08_cond_in_cond(graph, x, expected):
    p = scalar()
    y = cytape.cond(p > 0, lambda: cytape.cond(p > 2, lambda: p**3, lambda: p**2), lambda: -p)
    assert run([y, *cytape.gradients(y, p)], {p: x}) == expected


def test_d_4c_09_gradients_inside_a_body_with_respect_to_an_invariant(graph):
    x = scalar()
    numbers = cytape.constant([1.0, 2.0, 3.0])

    def body(i, total):
        [dx] = cytape.gradients(numbers * x**2, x)
        return i + 1, total + dx

    _, total = cytape.while_loop(
        lambda i, total: i < 10, body, (cytape.constant(0), cytape.constant(0.0)))
    [second] = cytape.gradients(total, x)
    assert run([total, second], {x: 5.0}) == [600.0, 120.0]


def test_d_4c_09_not_with_respect_to_the_start_value_of_a_loop_variable(graph):
    x = scalar()
    for start, source in ((x, x), (2.0 * x, x)):
        name = re.escape(repr(start.name))
        with pytest.raises(ValueError, match=f"with respect to {name}.*, the start value of"):
            cytape.while_loop(
                lambda v: v < 10,
                lambda v, s=source: v + cytape.gradients(v * v, s)[0],  # noqa: B023
                start)
    # With respect to the loop variable itself there is one.
    y = cytape.while_loop(lambda v: v < 10, lambda v: v + cytape.gradients(v * v, v)[0], x)
    assert run([y], {x: 2.0}) == [18.0]


@each("eager", [False, True])
def test_d_4c_10_refused_arguments(eager):
    graph = None if eager else cytape.Graph()
    x = cytape.constant([1.0, 2.0]) if eager else graph.placeholder("float64", (2,))
    i = cytape.constant(0) if eager else graph.placeholder("int64", ())
    true = i < 5
    with pytest.raises(TypeError, match="dtype of loop_vars from int64 to float64: .*astype"):
        cytape.while_loop(lambda i: i < 5, lambda i: i + 0.5, i)
    with pytest.raises(TypeError, match="dtype of loop_vars from int64 to float64: .*astype"):
        cytape.while_loop(lambda i: i < 5, lambda i: 0.5, i)
    with pytest.raises(ValueError, match=r"shape of loop_vars from .*invariants with \(None,\)"):
        cytape.while_loop(lambda x: cnp.sum(x) < 99, lambda x: cnp.concatenate([x, x]), x)
    with pytest.raises(ValueError, match="structure"):
        cytape.while_loop(lambda i, x: i < 5, lambda i, x: (i, x, x), (i, x))
    with pytest.raises(TypeError, match="must be boolean, got int64"):
        cytape.cond(i, lambda: x, lambda: x)
    with pytest.raises(ValueError, match="must be a scalar"):
        cytape.cond(x > 0, lambda: x, lambda: x)
    with pytest.raises(TypeError, match="true_fn must be a function, got Tensor"):
        cytape.cond(true, x, lambda: x)
    with pytest.raises(TypeError, match="name must be a string, got Tensor: .* no operands"):
        cytape.cond(true, lambda x: x, lambda x: -x, x)
    with pytest.raises(TypeError, match="body must be a function"):
        cytape.while_loop(lambda i: i < 5, None, i)
    with pytest.raises(ValueError, match=r"of cond must be a scalar, got shape \(2,\): .*all"):
        cytape.while_loop(lambda x: x > 0, lambda x: x, x)
    with pytest.raises(TypeError, match="the result of cond must be boolean, got int64"):
        cytape.while_loop(lambda i: 1, lambda i: i, i)
    with pytest.raises(TypeError, match="maximum_iterations must be an integer"):
        cytape.while_loop(lambda i: i < 5, lambda i: i, i, maximum_iterations=2.5)


def test_d_4c_10_branches_that_do_not_agree(graph):
    x, p = scalar(), scalar("bool")
    with pytest.raises(ValueError, match="agree in structure"):
        cytape.cond(p, lambda: (x, x), lambda: x)
    with pytest.raises(ValueError, match="agree in structure"):
        cytape.cond(p, lambda: {"a": x}, lambda: {"b": x})
    with pytest.raises(ValueError, match="is None"):
        cytape.cond(p, lambda: (x, None), lambda: (x, x))
    with pytest.raises(TypeError, match="float64 and int64"):
        cytape.cond(p, lambda: x, lambda: cytape.constant(1))


@each("eager", [False, True])
def test_d_4c_10_errors_say_which_variable_it_is(eager):
    graph = None if eager else cytape.Graph()
    x = cytape.constant([1.0, 2.0]) if eager else graph.placeholder("float64", (2,))
    loop_vars = {"count": 0, "state": (x, [x])}

    def changed(part, new):
        def body(v):
            state = {"a": (new(v), [x]), "b": (x, [new(v)])}.get(part, v["state"])
            return {"count": new(v) if part == "count" else v["count"] + 1, "state": state}
        return lambda: cytape.while_loop(lambda v: v["count"] < 3, body, loop_vars)

    with pytest.raises(TypeError, match=r"body changes the dtype of loop_vars\['count'\] "):
        changed("count", lambda v: v["count"] + 0.5)()
    with pytest.raises(TypeError, match=r"loop_vars\['state'\]\[0\] from float64 to bool"):
        changed("a", lambda v: v["state"][0] > 0)()
    with pytest.raises(ValueError, match=r"of loop_vars\['state'\]\[1\]\[0\] from \(2,\) to "
                       r"\(1, 2\): if that is meant, pass shape_invariants with None for it$"):
        changed("b", lambda v: x[None])()
    with pytest.raises(ValueError, match=r"returns None for loop_vars\['state'\]\[1\]\[0\]"):
        changed("b", lambda v: None)()
    with pytest.raises(ValueError, match="agree in structure.*the leaf .*the other has a tuple"):
        changed("b", lambda v: (x,))()


def test_d_4c_10_tensors_of_a_body_are_not_for_use_outside(graph):
    x, out = scalar(), []

    def leak(v):
        out.append(v * 2.0)
        return out[-1]

    y = cytape.while_loop(lambda v: v < 10, leak, x, name="grow")
    z = cytape.cond(x < 1, lambda: leak(x), lambda: x)
    for inner, name in zip(out, ("grow_body", "cond_true"), strict=True):
        for use in (lambda v: v + y, lambda v: z * v, lambda v: cnp.stack([x, v]), lambda v: -v):
            with pytest.raises(ValueError, match=f"belongs to {name}, .* return it from there"):
                use(inner)  # noqa: B023
        with pytest.raises(ValueError, match=f"belongs to {name}"):
            cytape.while_loop(lambda v: v < 1, lambda v, inner=inner: v + inner, x)
    with pytest.raises(ValueError, match="belongs to cond_true"):
        cytape.cond(x < 1, lambda: leak(x), lambda: out[-1])

    @cytape.function
    def f(x):
        return cytape.cond(x < 1, lambda: leak(x), lambda: x) + out[-1]

    with pytest.raises(ValueError, match="belongs to cond_true"):
        f(cytape.constant(1.0))


# ---- in graphs


def test_a_node_has_the_name_it_is_given(graph):
    x = scalar()
    y = cytape.while_loop(lambda v: v < 8, lambda v: v * v, x, name="squares")
    z = cytape.cond(x < 1, lambda: x, lambda: -x, name="choice")
    assert (y.op.name, z.op.name, y.op.type, z.op.type) == ("squares", "choice", "While", "Cond")


def test_only_one_branch_runs(graph):
    x, ran = scalar(), []
    note = cytape.ops.engine.op_kinds.general(
        "DeclaredNoteBranch", lambda x: ran.append(float(x)) or x, shape_rule=lambda x: x)
    y = cytape.cond(x > 0, lambda: note(x), lambda: note(10.0 * x))
    session = cytape.Session(graph)
    assert [float(session.run(y, {x: v})) for v in (2.0, -2.0, 3.0)] == [2.0, -20.0, 3.0]
    assert ran == [2.0, -20.0, 3.0]


def test_branches_may_differ_in_shape(graph):
    x, p = cytape.placeholder("float64", (3,)), scalar("bool")
    y = cytape.cond(p, lambda: x, lambda: x[:2])
    assert y.shape == (None,)
    [dx] = cytape.gradients(cnp.sum(y * y), x)
    assert run([dx], {x: [1.0, 2.0, 3.0], p: np.False_})[0].tolist() == [2.0, 4.0, 0.0]
    assert run([dx], {x: [1.0, 2.0, 3.0], p: np.True_})[0].tolist() == [2.0, 4.0, 6.0]


def test_shapes_that_are_not_known(graph):
    x, a = cytape.placeholder("float64", (None,)), cytape.placeholder("float64", (None,))
    y = cytape.while_loop(lambda v: cnp.sum(v) < 100, lambda v: v * a, x)
    z = cytape.cond(cnp.sum(y) > 130, lambda: y * a, lambda: x)
    gradients = cytape.gradients(z, [x, a])
    feeds = {x: [1.0, 2.0], a: [3.0, 5.0]}
    found = run([z, *gradients], feeds)  # 27, 250 after 3 iterations; then a fourth
    assert [list(x) for x in found] == [[81.0, 1250.0], [81.0, 625.0], [108.0, 1000.0]]
    found = run([z], {x: [1.0, 2.0, 0.0], a: [3.0, 5.0, 2.0]})
    assert found[0].tolist() == [81.0, 1250.0, 0.0]


def test_a_graph_with_a_loop_is_saved(graph, tmp_path):
    x = cytape.placeholder("float64", (), name="x")
    squared_until_8(x)
    graph.save(tmp_path / "loop.graph")
    loaded = cytape.Graph.load(tmp_path / "loop.graph")
    assert cytape.Session(loaded).run("While:1", {"x:0": 2.0}) == 16.0


def test_an_error_in_a_body_is_raised(graph):
    x = scalar("int64")
    fails = cytape.ops.engine.op_kinds.general(
        "DeclaredFailsAt3", lambda i: 1 // 0 if i == 3 else i, shape_rule=lambda i: i)
    y = cytape.while_loop(lambda i: i < 5, lambda i: fails(i) + 1, x)
    session = cytape.Session(graph)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            session.run(y, {x: 0})
    assert session.run(y, {x: 4}) == 5


def test_graphs_with_loops_and_branches_are_collected():
    def build(graph):
        x = graph.placeholder("float64", ())

        def body(v):
            return cytape.cond(v < 3, lambda: v * x, lambda: v + x)

        with graph.as_default():
            y = cytape.while_loop(lambda v: v < 8, body, x)
            found = run([y, *cytape.gradients(y, x)], {x: 2.0})
        assert found == [8.0, 6.0]  # x² + 2x

    graph = cytape.Graph()
    build(graph)
    alive = weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is None


@each("loop", [
    lambda x: cytape.while_loop(lambda i: None, lambda i: i + 1, [x]),
    lambda x: cytape.map_fn(lambda row: None, cytape.constant([1.0, 2.0])),
])
def test_a_return_statement_that_was_forgotten(loop):
    for call in (loop, cytape.function(loop)):
        with pytest.raises(ValueError, match="was the return statement forgotten"):
            call(cytape.constant(1.0))


def growing(x, **options):
    """Square what is doubled; a sum on the way, with or without what has grown."""
    return cytape.while_loop(
        lambda i, total, y: i < 2,
        lambda i, total, y: (i + 1, total + cnp.sum(y**2), cnp.concatenate([y, y**2])),
        (0, 0.0, x), shape_invariants=[(), (), (None,)], **options)[1:]


def repeated(n, step, *state):
    """Return the last state after n steps."""
    return cytape.while_loop(
        lambda i, *_: i < n, lambda i, *state: (i + 1, *step(*state)), (0, *state))[1:]


MATRIX = np.array([[0.5, 0.2], [-0.3, 0.8]])
# Functions of two numbers; outside of graphs their loops and branches are Python's.
PROGRAMS = {
    "squares": lambda x: squared_until_8(2.0 + x[0]),
    "loop in a loop": lambda x: powers_sum(x[1]),
    "products": lambda x: cnp.sum(repeated(5, lambda y: [cnp.tanh(MATRIX @ y)], x)[0]),
    "branch": lambda x: cnp.sum(cytape.cond(
        x[0] > x[1], lambda: cnp.sin(x) * x[::-1], lambda: x * x[::-1] ** 2)),
    "gather": lambda x: cytape.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, y + cytape.gather(x, i) ** 2), (0, 0.0))[1],
    "variables that change places": lambda x: sum(repeated(
        5, lambda a, b: (b, cnp.sin(a) + b), x[0], x[1])),
    "one start value twice and an invariant": lambda x: sum(repeated(
        3, lambda y, z: (y * x[0], z + y), x[0], x[0])),
    "structures": lambda x: cytape.while_loop(
        lambda s: s["i"] < 3, lambda s: {"i": s["i"] + 1, "x": (s["x"][0] * 2.0 * x[0],)},
        {"i": 0, "x": (x[1],)})["x"][0],
    **{f"variables that change their shape, {name}": lambda x, of=of, options=options: of(
        *growing(x, **options)) for options in ({}, {"checkpoints": 2}) for name, of in {
            "a sum on the way": lambda total, y: total, "the last": lambda total, y: cnp.sum(y),
            "both": lambda total, y: total * cnp.sum(y)}.items()},
}


@each("name", PROGRAMS)
def test_programs_everywhere(name):
    of = ways.OF_KNOWN_EXTENTS if name == "gather" else ways.WAYS  # of unknown ones it warns
    ways.check(PROGRAMS[name], PROGRAMS[name], [0.7, 0.4], ways=of)
