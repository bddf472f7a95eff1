"""Variables that bodies assign to, in traces and derivatives: they do what eager code does."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor import nest
from tests import ways
from tests.cases import each
from tests.tables import table
from tests.ways import ALL_MODES

ROWS = np.array([0.5, -1.0, 2.0])


def in_cond(a, v):
    y = cytape.cond(a > 0, lambda: (v.assign_add(1.0), a * v)[1], lambda: a * 2.0)
    return y * v


def in_the_other_branch(a, v):
    y = cytape.cond(a < 0, lambda: a * 2.0, lambda: v.assign_add(a * v) * a * a)
    return y * v


def in_switch_case(a, v):
    y = cytape.switch_case(
        cnp.sum(a > 0) + 1,
        [lambda: a * 2.0, lambda: v.assign(7.0) * a, lambda: v.assign_sub(0.5) * a * v])
    return y * v


def in_while_loop(a, v):
    def body(i, y):
        y = y * v
        v.assign_add(0.25)
        return i + 1, y * a + v

    _, y = cytape.while_loop(lambda i, y: i < 3, body, (0, a * 1.0))
    return y * v


def in_the_condition_of_a_loop(a, v):
    [y] = cytape.while_loop(lambda y: v.assign_add(1.0) < 4.0, lambda y: [y * a], [a * 1.0])
    return y * v


def in_a_loop_whose_condition_reads_it(a, v):
    _, y = cytape.while_loop(
        lambda i, y: cnp.logical_and(i < 3, v < 8.0),
        lambda i, y: (i + 1, y + v * 0.0 * v.assign_add(2.0) + a * v), (0, a * 1.0))
    return y * v


def in_a_loop_with_checkpoints(a, v):
    def body(i, y):
        v.assign_add(0.25)
        return i + 1, y * a * v

    _, y = cytape.while_loop(lambda i, y: i < 4, body, (0, a * 1.0), checkpoints=2)
    return y * v


def in_scan(a, v):
    ys = cytape.scan(lambda y, x: y * v.assign_add(x * x), cytape.constant(ROWS), a * a)
    return cnp.sum(ys) * v


def in_foldl(a, v):
    y = cytape.foldl(lambda y, x: y * x + v.assign_sub(x), cytape.constant(ROWS), a * a)
    return y * a * v


def in_map_fn(a, v):
    ys = cytape.map_fn(lambda x: v.assign_add(x) * x * a * a, cytape.constant(ROWS))
    return cnp.sum(ys) * v


def in_a_branch_of_a_loop(a, v):
    def body(i, y):
        return i + 1, cytape.cond(
            i % 2 == 0, lambda: v.assign_add(0.5) * y * a, lambda: (v.assign_sub(a), y * v)[1])

    _, y = cytape.while_loop(lambda i, y: i < 3, body, (0, a * 1.0))
    return y * v


def in_a_loop_of_a_branch(a, v):
    y = cytape.cond(a > 0, lambda: in_while_loop(a, v), lambda: a)
    return y * v


def in_a_function(a, v):
    return cytape.function(lambda b: v.assign_add(1.0) * b * b)(a) * v


def in_a_function_in_a_loop(a, v):
    f = cytape.function(lambda b: v.assign_add(b) * b)
    _, y = cytape.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, f(y * a)), (0, a * 1.0))
    return y * v


def in_a_recomputed_function(a, v):
    f = cytape.recompute_grad(lambda b: v.assign_add(1.0) * b * b * v)
    return f(a) * v


def in_a_gradient(a, v):
    return cytape.grad(lambda b: v.assign_add(1.0) * b * b * b)(a) * v


def in_a_product_of_a_jacobian(a, v):
    return cytape.jvp(lambda b: cytape.cond(
        b > 0, lambda: v.assign_add(1.0) * b * b * b, lambda: b), (a,), (a,))[1] * v


def alone(a, v):
    return v.assign(a * 3.0) * a * a


def in_a_chain(a, v):
    return v.assign_add(1.0).assign_sub(a) * v * a * a


def in_an_exchange(a, v):
    old = v.value()
    v.assign(a)
    return old * a * a * v


def seen_by_the_handle(a, v):
    handle = v.assign_add(1.0)
    y = handle * a * a
    v.assign(a * 5.0)
    return y * handle * handle.assign_sub(1.0)


PROGRAMS = [
    in_cond, in_the_other_branch, in_switch_case, in_while_loop, in_the_condition_of_a_loop,
    in_a_loop_whose_condition_reads_it, in_a_loop_with_checkpoints, in_scan, in_foldl, in_map_fn,
    in_a_branch_of_a_loop, in_a_loop_of_a_branch, in_a_function, in_a_function_in_a_loop,
    in_a_recomputed_function, in_a_gradient, in_a_product_of_a_jacobian, alone, in_a_chain,
    in_an_exchange, seen_by_the_handle,
]  # fmt: skip


MODES = {
    **{name: lambda f, a, v, mode=mode: mode(lambda a, _: f(a), [a, v], [1.0, 2.0])
       for name, mode in ALL_MODES.items()},
    "jvp": lambda f, a, v: cytape.jvp(f, (a,), (1.5,)),
    "jacfwd": lambda f, a, v: cytape.jacfwd(f)(a),
    "hessian": lambda f, a, v: cytape.hessian(f)(a),
    "hessian-vector product": lambda f, a, v: cytape.hessian_vector_product(f)(a, 1.5),
    "jet": lambda f, a, v: cytape.jet(f, (a,), ([1.5, 0.5, 2.0],)),
}
PLACES = {
    "eager": lambda mode, f, a, v: mode(f, a, v),
    "around a function": lambda mode, f, a, v: mode(cytape.function(f), a, v),
    "in a function": lambda mode, f, a, v: cytape.function(lambda a: mode(f, a, v))(a),
    "in a branch": lambda mode, f, a, v: cytape.function(lambda a: cytape.cond(
        a > -9.0, lambda: mode(f, a, v), lambda: mode(lambda a: a * v, a, v)))(a),
}


def outcome(program, mode, place):
    """Run a program twice on a variable of its own: what is returned, and what is stored."""
    found = []
    v = cytape.Variable(1.0)
    for a in 0.75, -1.25:
        result = PLACES[place](MODES[mode], lambda a: program(a, v), cytape.constant(a), v)
        found += [float(x) for x in nest.flatten(result)] + [float(v)]
        v.assign(v * 10.0)
        found.append(float(v))
    return found


@pytest.mark.parametrize("place", table(["around a function", "in a function"], ["in a branch"]))
@pytest.mark.parametrize("mode", table(
    ["reverse", "forward_over_reverse", "jacfwd"],
    [name for name in MODES if name not in ("reverse", "forward_over_reverse", "jacfwd")]))
@pytest.mark.parametrize("program", PROGRAMS)
def test_assignments_in_traces_do_what_eager_ones_do(program, mode, place):
    np.testing.assert_allclose(
        outcome(program, mode, place), outcome(program, mode, "eager"), rtol=1e-9)


# ---- results of assignments


def of_each_row(a, v):
    return cytape.map_fn(lambda x: v.assign_add(x * a), cytape.constant(ROWS))


def of_a_branch(a, v):
    return cytape.cond(a > 0, lambda: v.assign_add(a), lambda: a)


def of_a_case(a, v):
    return cytape.switch_case(1, [lambda: a, lambda: v.assign_add(a)])


def of_a_loop(a, v):
    return cytape.while_loop(lambda y: y < 5.0, lambda y: [v.assign_add(a)], [a])[0]


@each(f=[of_each_row, of_a_branch, of_a_case, of_a_loop], traced=[False, True])
def test_results_of_a_body_do_not_change_later(f, traced):
    v = cytape.Variable(1.0)

    def program(a):
        y = f(a, v)
        v.assign(100.0)
        return y

    found = (cytape.function(program) if traced else program)(cytape.constant(2.0))
    expected = {of_each_row: [2.0, 0.0, 4.0], of_a_loop: 5.0}.get(f, 3.0)
    np.testing.assert_array_equal(found, expected)


def test_the_variable_itself_is_returned():
    v = cytape.Variable(1.0)
    handles = []

    @cytape.function
    def f(a):
        handles.append(v.assign(a))
        handles.append(cytape.cond(a > 0, lambda: kept(v.assign_add(a)), lambda: a))
        return handles[0]

    def kept(handle):
        handles.append(handle)
        return handle

    assert float(f(cytape.constant(2.0))) == 4.0
    assert handles[0] is v and handles[1] is v


def test_slices_are_assigned_in_functions():
    v = cytape.Variable([[1.0], [2.0]])
    slices = cytape.IndexedSlices(cytape.constant([[5.0]]), cytape.constant([1]), (2, 1))
    f = cytape.function(lambda a: v.assign_sub(slices) * a)
    np.testing.assert_array_equal(f(2.0), [[2.0], [-6.0]])


# ---- values of variables that recorders follow

VARIABLE = cytape.Variable(2.0)


def in_a_function_of_its_own(f):
    return cytape.function(f)()


@each("call", [
    lambda f: f(), in_a_function_of_its_own, lambda f: cytape.recompute_grad(f)(),
    lambda f: in_a_function_of_its_own(lambda: cytape.cond(VARIABLE > 0, f, f)),
])  # fmt: skip
def test_a_recorder_of_a_value_follows_reads_of_the_variable(call):
    value = VARIABLE.value()
    with cytape.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(value)
        with cytape.ForwardAccumulator(value, 3.0) as accumulator:
            y = call(lambda: VARIABLE * VARIABLE)
    assert float(accumulator.jvp(y)) == 12.0
    assert float(tape.gradient(y, value)) == 4.0


def test_a_recomputed_function_may_call_one_whose_result_it_does_not_use():
    v, x = cytape.Variable(2.0), cytape.constant(3.0)

    def f():
        cytape.function(lambda a: v * a)(x)
        return 0.5 * x

    assert [float(g) for g in ways.gradients(
        lambda x: cytape.recompute_grad(f)() + cytape.recompute_grad(f)(), x)] == [1.0]


@each(trainable=[True, False], method=["assign_add", "assign"])
def test_recomputed_functions_in_each_other_assign_once(method, trainable):
    v, x = cytape.Variable(1.0, trainable=trainable), cytape.constant(2.0)

    def inner(a):
        y = a * v
        return getattr(v, method)(2.0) * y

    def outer(a):
        return cytape.recompute_grad(inner)(a) * v * cytape.recompute_grad(inner)(a)

    def program(a, recompute):
        v.assign(1.0)
        return (cytape.recompute_grad(outer) if recompute else outer)(a) * v

    found = []
    for recompute in False, True:
        with ways.watching(x, v) as tape:
            with cytape.ForwardAccumulator(x, 1.0) as accumulator:
                y = program(x, recompute)
        found.append([float(z) for z in (y, accumulator.jvp(y), *tape.gradient(y, [x, v]), v)])
    assert found[0] == found[1]
