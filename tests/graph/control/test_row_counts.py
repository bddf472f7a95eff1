"""Row counts of stacks in bodies: which are known, and which agree in each iteration."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.control.control_ops import CondOp, LoopOp
from cytape.graph.control.row_counts import row_count
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.replay import kept_by
from tests.cases import each, sampled


def repeated(n, step, x):
    return cytape.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, step(i, y)),
                             (cytape.constant(0), x))[1]


def loops_with_other_counts(x, n):
    """Loops whose numbers of iterations differ, 0 among them, and that leave several stacks."""
    def outer(i, y):
        first = repeated(i, lambda j, z: cnp.sin(repeated(j, lambda k, u: u * cnp.cos(u), z)), y)
        return first * cnp.exp(-repeated(2 - i, lambda j, z: cnp.tanh(z) * z, first))

    return repeated(n, outer, x)


def branches_between(x, n):
    def outer(i, y):
        return cytape.cond(
            i % 2 == 0,
            lambda: repeated(i, lambda j, z: cnp.sin(z) * cnp.cos(z), y),
            lambda: cnp.tanh(repeated(i + 1, lambda j, z: z * cnp.exp(-z), y)))

    return repeated(n, lambda i, y: repeated(i, lambda j, z: outer(j, z), y), x)


def branches_with_other_loops(x, n):
    """One branch has a loop that leaves two stacks, the other one two loops that leave one each."""
    def outer(i, y):
        return cytape.cond(
            i % 2 == 0,
            lambda: repeated(i + 2, lambda j, z: cnp.sin(cnp.cos(z)), y),
            lambda: repeated(i, lambda j, z: cnp.sin(z), repeated(4, lambda j, z: cnp.cos(z), y)))

    return repeated(n, lambda i, y: repeated(2, lambda j, z: outer(i + j, z), y), x)


def scans_within(x, n):
    def outer(i, y):
        return cytape.scan(
            lambda total, e: repeated(i, lambda j, z: cnp.sin(z) * e, total), y, y[0])

    return repeated(n, outer, x)


def calls_that_share_a_body(x, n):
    """Calls of one function: the nodes of its scan have one body, whose inner loop reads n."""
    @cytape.function
    def scanned(x, n):
        return cytape.scan(
            lambda total, e: repeated(n, lambda j, z: cnp.sin(z) * e, total), x, x[0])

    return repeated(n, lambda i, y: scanned(y, i) * scanned(cnp.cos(y), 2 * i + 1), x)


def changing_rows(x, n):
    """A loop variable that grows: neither its rows nor those of what is made of it are known."""
    def outer(i, y):
        total, _ = cytape.while_loop(
            lambda total, z: cnp.size(z) < i + 3,
            lambda total, z: (total + cnp.sum(cnp.sin(z) * cnp.cos(z)),
                              cnp.concatenate([z, z[:1] * 0.5])),
            (cnp.sum(y), y), [cytape.Spec.of((), float), cytape.Spec.of((None,), float)])
        return y * cnp.tanh(total)

    return repeated(n, outer, x)


def stopped_early(x, n):
    def outer(i, y):
        return cytape.while_loop(
            lambda j, z: j < i, lambda j, z: (j + 1, cnp.sin(z) * cnp.cos(z)),
            (cytape.constant(0), y), maximum_iterations=3)[1]

    return repeated(n, lambda i, y: repeated(2, lambda j, z: outer(i + j, z), y), x)


PROGRAMS = [
    loops_with_other_counts, branches_between, branches_with_other_loops, scans_within,
    calls_that_share_a_body, changing_rows, stopped_early]
MODES = {
    "reverse": cytape.grad,
    "second order": lambda f: cytape.grad(lambda x: cnp.sum(cytape.grad(f)(x) ** 2)),
    "forward over reverse": lambda f: lambda x: cytape.jvp(cytape.grad(f), (x,), (x,))[1],
    "reverse over forward": lambda f: cytape.grad(lambda x: cytape.jvp(f, (x,), (x,))[1]),
}


@sampled(4, program=PROGRAMS, mode=MODES)
def test_iterations_that_leave_other_numbers_of_rows(program, mode):
    def derivative(x, n):
        return MODES[mode](lambda x: cnp.sum(program(x, n) * x))(x)

    x = np.array([0.7, 0.4])
    of_known, of_unknown = (
        cytape.function(derivative, input_signature=[
            cytape.Spec.of((extent,), float), cytape.Spec.of((), int)]) for extent in (2, None))
    for n in 0, 1, 3, 4:
        wanted = derivative(x, n)
        for traced in (of_known, of_unknown) * 2:
            np.testing.assert_allclose(traced(x, n), wanted, rtol=1e-11, atol=1e-300)


def nodes_of(graph, kinds):
    return [node for node, op in enumerate(graph.ops) if isinstance(op, kinds)]


def bodies_of(trace):
    found = [trace.graph]
    for graph in found:
        found += [body.graph for body in kept_by(graph, ConcreteFunction)[1]]
    return found


def test_stacks_of_one_loop_share_their_row_count():
    def f(x, n):
        return repeated(n, lambda i, y: cnp.sin(cnp.exp(-y)) * cnp.cos(y), x)

    trace = cytape.function(lambda x, n: cytape.grad(lambda x: cnp.sum(f(x, n)))(x)) \
        .get_concrete_function(np.ones(2), np.array(3))
    graph = trace.graph
    stacks = [symbol for node in nodes_of(graph, LoopOp) for symbol in graph.outputs_of(node)
              if graph.spec_of(symbol).shape == (None, 2)]
    assert len(stacks) > 1
    assert len({row_count(graph, symbol) for symbol in stacks}) == 1


@each("fold", [cytape.scan, cytape.foldl])
def test_a_number_of_iterations_that_is_constant_is_known(fold):
    trace = cytape.function(cytape.grad(
        lambda x: cnp.sum(fold(lambda y, e: cnp.sin(y) * e, x, x[0])))
    ).get_concrete_function(np.ones((4, 2)))
    graph = trace.graph
    counts = {row_count(graph, symbol)
              for node in nodes_of(graph, LoopOp) for symbol in graph.outputs_of(node)
              if graph.spec_of(symbol).shape == (None, 2)}
    assert counts == {4}


@each("extent", [2, None])
def test_lengths_are_read_once_for_all_stacks_with_as_many_rows(extent):
    def f(x, n):
        return repeated(n, lambda i, y: repeated(
            i, lambda j, z: cnp.sin(cnp.exp(-z)) * cnp.cos(z), y), x)

    trace = cytape.function(lambda x, n: cytape.grad(lambda x: cnp.sum(f(x, n)))(x)) \
        .get_concrete_function(cytape.Spec.of((extent,), float), np.array(3))
    ragged = 0
    for graph in bodies_of(trace):
        for node in nodes_of(graph, LoopOp):
            attrs = graph.attrs[node]
            first = 1 + attrs["n_variables"] + attrs["n_stacks"]
            n = len(attrs["ragged_stacks"])
            ragged = max(ragged, n)
            assert len(set(graph.inputs_of(node)[first:first + n])) <= (1 if extent else 2)
    assert ragged > 1


def test_results_of_branches_agree_if_they_do_in_each_branch():
    def f(x, n):
        def step(i, y):
            return cytape.cond(
                i > 1, lambda: repeated(i, lambda j, z: cnp.sin(z) * cnp.cos(z), y), lambda: y * y)

        return repeated(n, step, x)

    trace = cytape.function(lambda x, n: cytape.grad(lambda x: cnp.sum(f(x, n)))(x)) \
        .get_concrete_function(np.ones(2), np.array(3))
    counts = []
    for graph in bodies_of(trace):
        for node in nodes_of(graph, CondOp):
            stacks = [symbol for symbol in graph.outputs_of(node)
                      if graph.spec_of(symbol).shape == (None, 2)]
            if len(stacks) > 1:
                counts.append(len({row_count(graph, symbol) for symbol in stacks}))
    assert counts and set(counts) == {1}


def test_snapshots_of_a_loop_do_not_have_a_row_per_iteration():
    def outer(i, y):
        return cytape.cond(
            i % 2 == 0,
            lambda: cytape.while_loop(
                lambda j, z: j < 3, lambda j, z: (j + 1, cnp.sin(z) * y), (0, y),
                checkpoints=2)[1],
            lambda: cnp.cos(y))

    def twice(x):
        slope = cytape.grad(lambda x: cnp.sum(repeated(2, outer, x) * x))
        return cytape.grad(lambda x: cnp.sum(slope(x) ** 2))(x)

    x = np.array([0.7, 0.4, 0.2])
    function = cytape.function(twice, input_signature=[cytape.Spec.of((None,), float)])
    for _ in range(2):
        np.testing.assert_allclose(function(x), twice(x), rtol=1e-11)
