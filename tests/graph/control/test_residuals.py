"""Residuals of loops and branches, and the number of runs of their bodies."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.control.control_ops import LoopOp
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.replay import kept_by
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.engine.op_kinds import general
from tests.cases import each, sampled

runs = {"forward": 0}


def counting_sin(x):
    runs["forward"] += 1
    return np.sin(x)


counted = general(
    "DeclaredCountedSin", counting_sin, vjp=lambda op, g: g * cnp.cos(op.inputs[0]),
    jvp=lambda op, t: t * cnp.cos(op.inputs[0]), shape_rule=lambda x: x)


def nested(x, depth, n, step):
    if not depth:
        return step(x)
    _, y = cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, nested(y, depth - 1, n, step)),
        (cytape.constant(0), x))
    return y


@each("depth", [1, 2, 3])
def test_a_body_runs_twice_at_most(depth):
    n = 4
    f = cytape.function(lambda x: nested(x, depth, n, counted))
    x = np.array(0.7)
    expected = slope = None
    y, slope = 0.7, 1.0
    for _ in range(n**depth):
        y, slope = np.sin(y), slope * np.cos(y)
    for inside in (True, False):
        gradient = cytape.function(cytape.grad(f)) if inside else cytape.grad(f)
        for _ in range(2):
            gradient(x)
        runs["forward"] = 0
        expected = gradient(x)
        np.testing.assert_allclose(expected, slope, rtol=1e-12)
        assert runs["forward"] == n**depth * (1 if inside else 2)


def twice(x):
    return counted(counted(x) * 1.5)


def looped(x, step, n=4):
    _, y = cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, step(i, y)), (cytape.constant(0), x))
    return y


# Each with how often it takes the sine, of a positive and of a negative number.
BRANCHING = {
    "cond": (lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: twice(x) * x, lambda: counted(x)), 2, 1),
    "one branch keeps nothing": (lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: twice(x), lambda: x * 2.0), 2, 0),
    "case": (lambda x: cytape.case(
        [(cnp.sum(x) > 0, lambda: twice(x)), (cnp.sum(x) > -9, lambda: counted(x))],
        default=lambda: x), 2, 1),
    "switch_case": (lambda x: cytape.switch_case(
        cnp.where(cnp.sum(x) < 0, 1, 0),
        [lambda: twice(x), lambda: twice(counted(x)), lambda: x]), 2, 3),
    "branch in a branch": (lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: counted(cytape.cond(x[0] > 5, lambda: x, lambda: twice(x))),
        lambda: x * 2.0), 3, 0),
    "branch in a loop": (lambda x: looped(x, lambda i, y: cytape.cond(
        i % 4 == 0, lambda: twice(y) * x, lambda: counted(y) + x)), 5, 5),
    "loop in a branch": (lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: looped(x, lambda i, y: twice(y)), lambda: counted(x)), 8, 1),
    "loop in a branch in a loop": (lambda x: looped(x, lambda i, y: cytape.cond(
        i % 2 == 0, lambda: looped(y, lambda j, z: counted(z) * x, i + 1),
        lambda: twice(y))), 8, 8),
    "loop in a branch of a branch": (lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: cytape.cond(x[0] < 5, lambda: looped(x, lambda i, y: counted(y)),
                                            lambda: x), lambda: x), 4, 0),
}


@each(extent=[2, None], name=BRANCHING)
def test_a_branch_runs_once_in_a_traced_gradient(name, extent):
    f, *counts = BRANCHING[name]
    signature = [cytape.Spec.of((extent,), float)]
    inside = cytape.function(cytape.grad(lambda x: cnp.sum(f(x) ** 2)), input_signature=signature)
    outside = cytape.grad(cytape.function(lambda x: cnp.sum(f(x) ** 2), input_signature=signature))
    for sign, count in zip((1, -1), counts, strict=True):
        x = sign * np.array([0.4, 0.7])
        expected = cytape.grad(lambda x: cnp.sum(f(x) ** 2))(x)
        for gradient, times in ((inside, 1), (outside, 2)):
            for _ in range(2):
                gradient(x)
            runs["forward"] = 0
            np.testing.assert_allclose(gradient(x), expected, rtol=1e-12)
            assert runs["forward"] == times * count


@each("name", BRANCHING)
def test_higher_orders_of_branches(name):
    f, *_ = BRANCHING[name]

    def slope(x):
        return cnp.sum(cytape.grad(lambda x: cnp.sum(f(x) ** 2))(x) ** 2)

    for x in (np.array([0.4, 0.7]), -np.array([0.4, 0.7])):
        expected = cytape.grad(slope)(x)
        found = [cytape.function(cytape.grad(slope))(x), cytape.grad(cytape.function(slope))(x),
                 cytape.function(cytape.jacfwd(slope))(x)]
        for other in found:
            np.testing.assert_allclose(other, expected, rtol=1e-10)


def test_branches_keep_in_one_place_what_has_one_shape():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (3,))
        y = cytape.cond(x[0] > 0, lambda: cnp.sin(cnp.exp(x)), lambda: cnp.tanh(cnp.tanh(x)))
        cytape.gradients(y, [x])
    kept = [attrs["branches"] for attrs in graph.attrs if "branches" in attrs]
    returned = [[branch.graph.spec_of(symbol).shape for symbol in branch.output_symbols[1:]]
                for branch in kept[1]]
    # Of the first exp(x); of the second both results of tanh.
    assert returned == [[(3,), (3,)]] * 2


@each("shown", [
    lambda x: ensure_shape(x, (3,)), lambda x: cytape.identity_n(x)[0], cytape.stop_gradient,
    lambda x: cnp.expand_dims(x, 0), lambda x: x.astype("int64")])
def test_branches_keep_the_operands_of_identities_and_casts(shown):
    """So a value that is read in several forms is kept once."""
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (3,))
        y = cytape.cond(x[0] > 0, lambda: x * shown(cnp.exp(x)), lambda: x)
        cytape.gradients(y, [x])
    branch = [attrs["branches"] for attrs in graph.attrs if "branches" in attrs][1][0]
    assert [branch.graph.ops[branch.graph.node_of(symbol)].name
            for symbol in branch.output_symbols[1:]] == ["Exp"]


def histories(graph):
    """The attributes of the loops that keep something, inner ones included."""
    found = []
    for attrs in graph.attrs:
        for value in attrs.values():
            if hasattr(value, "graph") and hasattr(value, "output_symbols"):
                found += histories(value.graph)
        if "body" in attrs and len(attrs["body"].output_symbols) > attrs["n_variables"]:
            found.append(attrs)
    return found


def kept_specs(f, *arrays):
    with cytape.Graph().as_default() as graph:
        inputs = [graph.placeholder(x.dtype, x.shape) for x in arrays]
        cytape.gradients(f(*inputs), inputs)
    (attrs,) = histories(graph)
    body = attrs["body"]
    return sorted(body.graph.spec_of(symbol).shape
                  for symbol in body.output_symbols[attrs["n_variables"] :])


def loop_of(step):
    def f(*inputs):
        x, *others = inputs
        _, y = cytape.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, step(y, *others)), (cytape.constant(0), x))
        return cnp.sum(y)

    return f


def test_only_what_is_read_is_kept():
    x, a = np.ones(3), np.ones((3, 3))
    assert kept_specs(loop_of(lambda y: cnp.sin(y)), x) == [(3,)]
    # The result of tanh is what its derivative is made of; a product by what is the same keeps
    # the other factor, for that one's gradient.
    assert kept_specs(loop_of(lambda y, a: cnp.tanh(y)), x, a) == [(3,)]
    assert kept_specs(loop_of(lambda y, a: a @ y), x, a) == [(3,)]
    # Numbers that are spread, and what is shown in another way, are kept as they were.
    assert kept_specs(
        loop_of(lambda y: cnp.broadcast_to(cnp.sum(y), (3,)) * cnp.reshape(y, (3, 1))[:, 0]), x
    ) == [(), (3,)]


@each("inner", [
    lambda z: cnp.tanh(cnp.exp(z)),
    lambda z: cytape.cond(cnp.sum(z) > 0, lambda: cnp.tanh(cnp.exp(z)), lambda: z)])
def test_of_what_is_recomputed_the_inputs_are_kept(inner):
    assert kept_specs(loop_of(cytape.recompute_grad(inner)), np.ones(3)) == [(3,)]


def test_of_several_blocks_and_by_policies():
    def two(block):
        return loop_of(lambda y: block(block(y)))

    def block(z):
        return cnp.tanh(cnp.exp(cnp.sin(z)))

    x = np.ones(3)
    assert len(kept_specs(two(block), x)) > 4
    assert kept_specs(two(cytape.recompute_grad(block)), x) == [(3,)] * 2
    assert kept_specs(two(cytape.checkpoint(block, policy="Exp")), x) == [(3,)] * 4
    assert kept_specs(two(cytape.function(block, checkpoints=["Exp"])), x) == [(3,)] * 4


def test_linear_bodies_keep_nothing():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (3,))
        cytape.gradients(loop_of(lambda y: y * 2.0 + 1.0)(x), [x])
    assert histories(graph) == []


def ragged(x, rounds):
    """Loops within a loop, of as many iterations as the outer one has counted."""
    def outer(i, y):
        _, y = cytape.while_loop(
            lambda j, y: j < i, lambda j, y: (j + 1, cnp.sin(y) * 1.2), (cytape.constant(0), y))
        return i + 1, y * x

    _, y = cytape.while_loop(lambda i, y: i < rounds, outer, (cytape.constant(0), x))
    return cnp.sum(y)


@each("size", [1, 3, 200])
def test_inner_loops_leave_stacks_of_several_lengths(size):
    x = np.linspace(0.5, 1.5, size)
    f = cytape.function(lambda x: ragged(x, 5))
    np.testing.assert_allclose(f(x), ragged(x, 5), rtol=1e-13)
    gradients = [cytape.grad(lambda x: ragged(x, 5)), cytape.grad(f),
                 cytape.function(cytape.grad(f))]
    seconds = [cytape.grad(lambda x, g=g: cnp.sum(g(x) ** 2)) for g in gradients]
    for group in (gradients, seconds):
        expected, *found = [g(x) for g in group]
        for other in found:
            np.testing.assert_allclose(other, expected, rtol=1e-10)


def test_branches_and_loops_within_loops_keep_what_they_read():
    def step(y, a):
        return cytape.cond(cnp.sum(y) > 0.0, lambda: cnp.sin(y) * a, lambda: y - a)

    f = loop_of(step)
    x, a = np.array([0.3, -0.2]), np.array([1.1, 0.7])
    for order in (cytape.grad(f), cytape.grad(lambda x, a: cnp.sum(cytape.grad(f)(x, a) ** 2))):
        np.testing.assert_allclose(
            cytape.function(order)(x, a), order(cytape.constant(x), cytape.constant(a)),
            rtol=1e-12)


def doubled(axis, invariant, options=()):
    """A loop whose variable grows along an axis."""
    def f(x, n):
        _, y = cytape.while_loop(
            lambda i, y: i < n,
            lambda i, y: (i + 1, cnp.sin(cnp.concatenate([y, y], axis=axis) * 1.1)),
            (cytape.constant(0), x), shape_invariants=((), invariant), **dict(options))
        return cnp.sum(y * y)

    return f


def doubled_in_turn(x, n):
    """The same along an axis by an inner loop of several trip counts, and along the other."""
    def outer(i, y):
        _, y = cytape.while_loop(
            lambda j, z: j < i, lambda j, z: (j + 1, cnp.sin(cnp.concatenate([z, z], axis=1))),
            (cytape.constant(0), y), shape_invariants=((), (None, None)))
        return i + 1, cnp.concatenate([y, y], axis=0)

    _, y = cytape.while_loop(lambda i, y: i < n, outer, (cytape.constant(0), x),
                             shape_invariants=((), (None, None)))
    return cnp.sum(y * y)


def of_any_rank(x, n):
    _, y = cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, cnp.sin(y) * 1.5), (cytape.constant(0), x),
        shape_invariants=((), cytape.Spec.of(None, float)))
    return cnp.sum(y * y)


GROWING = {
    "rows": doubled(0, (None, 2)),
    "columns": doubled(1, (2, None)),
    "columns where nothing is known": doubled(1, (None, None)),
    "columns and few states": doubled(1, (2, None), [("checkpoints", 2)]),
    "both": doubled_in_turn,
    "any rank": of_any_rank,
}


@sampled(3, n=[0, 1, 3], name=GROWING)
def test_values_without_a_stack_are_kept_as_elements_and_shapes(name, n):
    def f(x):
        return GROWING[name](x, n)

    def second(x):
        return cnp.sum(cytape.grad(f)(x) ** 2)

    def plain(x):
        return GROWING[name.replace(" and few states", "")](x, n)

    x = np.linspace(0.1, 1.0, 4).reshape(2, 2)
    expected = cytape.grad(plain)(x), cytape.grad(lambda x: cnp.sum(cytape.grad(plain)(x) ** 2))(x)
    for order, right in zip((f, second), expected, strict=True):
        for found in (cytape.function(cytape.grad(order))(x),
                      cytape.grad(cytape.function(order))(x)):
            np.testing.assert_allclose(found, right, rtol=1e-10)
    direction = np.ones((2, 2))
    np.testing.assert_allclose(
        cytape.function(lambda x: cytape.jvp(cytape.grad(f), (x,), (direction,)))(x)[1],
        cytape.jvp(cytape.grad(plain), (x,), (direction,))[1], rtol=1e-10)


def graphs_of(trace):
    graphs = [trace.graph]
    for graph in graphs:
        graphs += [body.graph for body in kept_by(graph, ConcreteFunction)[1]]
    return graphs


@each("fold", [cytape.scan, cytape.foldl, cytape.foldr])
def test_inner_loops_of_a_constant_number_of_iterations_leave_no_lengths(fold):
    def inner(y, e):
        return fold(lambda z, e: cnp.sin(z) * e, np.linspace(0.5, 1.0, 3), y * e)

    def f(x):
        return cnp.sum(fold(lambda y, e: cnp.sum(inner(y, e)), x, x[0]))

    trace = cytape.function(cytape.grad(f)).get_concrete_function(np.ones(4))
    loops = [attrs for graph in graphs_of(trace)
             for op, attrs in zip(graph.ops, graph.attrs, strict=True) if isinstance(op, LoopOp)]
    assert len(loops) > 4
    assert [attrs["ragged_stacks"] for attrs in loops] == [()] * len(loops)


def test_tensors_of_one_shape_leave_it_once():
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, cnp.concatenate([cnp.sin(cnp.exp(-y)) * cnp.cos(y), y[:, :1]], 1)),
            (cytape.constant(0), x), [cytape.Spec.of((), int), cytape.Spec.of((2, None), float)])
        return cnp.sum(y)

    trace = cytape.function(cytape.grad(f)).get_concrete_function(np.ones((2, 2)))
    types = [[op.type for op in graph.get_operations()] for graph in graphs_of(trace)]
    left = next(t for t in types if t.count("Elements") > 1)
    assert left.count("Shape") < left.count("Elements")
