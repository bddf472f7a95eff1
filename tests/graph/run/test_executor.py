"""Running plans: variables, Python in between, errors, threads."""

import io
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as ops
from cytape.errors import GraphError
from cytape.graph.model.graph import Graph
from cytape.ops.engine.op_kinds import general
from cytape.tensor.values.spec import Spec
from tests.cases import each
from tests.graph.plans import plan_of
from tests.graph.programs import new_graph


@each("n", [1, 8, 1000])
def test_results_outlive_later_runs(n):
    graph, x = new_graph((n,))
    y = np.sin(x) * 2.0
    plan = plan_of(graph, [x], [y, y.reshape((n, 1)), y])
    first = plan.run([np.ones(n)])
    second = plan.run([np.zeros(n)])
    for result in first:
        np.testing.assert_array_equal(result.numpy().ravel(), np.full(n, 2 * np.sin(1.0)))
    for result in second:
        np.testing.assert_array_equal(result.numpy().ravel(), np.zeros(n))
    assert len({result.id for result in first + second}) == 6


def test_repeated_results_are_not_written_out():
    graph, x = new_graph((300,))
    item = graph.placeholder("float64", ())
    repeated = ops.broadcast_to(item, (4, 300))
    plan = plan_of(graph, [x, item], [repeated + x, repeated, repeated, ops.transpose(repeated)])
    first = plan.run([np.arange(300.0), 5.0])
    plan.run([np.ones(300), 7.0])
    np.testing.assert_array_equal(first[0], np.tile(5.0 + np.arange(300.0), (4, 1)))
    for result, shape in zip(first[1:], [(4, 300), (4, 300), (300, 4)], strict=True):
        np.testing.assert_array_equal(result, np.full(shape, 5.0))
        assert not any(result.numpy().strides)
        assert not result.numpy().flags.writeable


def test_fed_values_are_shown_unless_they_are_writable_arrays():
    graph, x = new_graph((300, 2))
    fetched = [x, x.reshape((600,)), x[100:], ops.transpose(x)]
    plan = plan_of(graph, [x], [*fetched, np.sin(x)])
    array = np.arange(600.0).reshape(300, 2)
    expected = [array.copy(), array.reshape(600).copy(), array[100:].copy(), array.T.copy()]
    tensor = cytape.constant(array)
    for fed, is_shown in ((tensor, True), (array, False)):
        for _ in range(2):
            results = plan.run([fed])[:4]
            for result, values in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, values)
                assert not result.numpy().flags.writeable
            data = fed.numpy() if is_shown else fed
            assert [np.shares_memory(y.numpy(), data) for y in results] == [is_shown] * 3 + [False]
            assert len({y.id for y in (*results, tensor)}) == 5
    array += 1.0
    np.testing.assert_array_equal(results[0], expected[0])


def test_fed_values_stay_when_a_variable_is_assigned():
    variable = cytape.Variable(np.arange(300.0))
    call = cytape.function(lambda x: (x, np.sum(x)))
    for _ in range(3):
        x, _ = call(variable)
    variable.assign_add(np.ones(300))
    np.testing.assert_array_equal(x, np.arange(300.0))


def test_unknown_shapes():
    graph, x = new_graph((None, 3))
    y = np.sum(np.sin(x) * 2.0, axis=0)
    plan = plan_of(graph, [x], [y, x, y * np.ones(3)])
    for n in (2, 5, 0):
        array = np.random.default_rng(n).normal(size=(n, 3))
        total, fetched, product = plan.run([array])
        np.testing.assert_array_equal(total.numpy(), np.sum(np.sin(array) * 2.0, axis=0))
        np.testing.assert_array_equal(fetched.numpy(), array)
        np.testing.assert_array_equal(product.numpy(), total.numpy())
    with pytest.raises(GraphError):
        plan.run([np.ones((2, 4))])


def test_variables_are_read_when_the_plan_runs():
    variable = cytape.Variable(np.arange(200.0))
    scalar = cytape.Variable(2.0)
    graph = Graph()
    with graph.as_default():
        y = variable * scalar
    plan = plan_of(graph, [], [y])
    np.testing.assert_array_equal(plan.run([])[0].numpy(), 2 * np.arange(200.0))
    variable.assign(np.ones(200))
    scalar.assign(5.0)
    np.testing.assert_array_equal(plan.run([])[0].numpy(), np.full(200, 5.0))


def test_assignments_happen_in_order():
    variable = cytape.Variable(1.0)
    graph = Graph()
    with graph.as_default():
        before = variable + 0.0
        assigned = graph.assign(variable, before * 3.0, "assign_add")
        after = variable + 0.0
    plan = plan_of(graph, [], [before, after, assigned])
    for expected in ([1, 4, 4], [4, 16, 16]):
        assert [float(x) for x in plan.run([])] == expected


def test_errors_say_where_the_op_was_built():
    explode = [True]

    def forward(x):
        if explode[0]:
            raise ZeroDivisionError("no")
        return x

    op = general("DeclaredPlanBomb", forward, shape_rule=lambda x: x)
    graph, x = new_graph((300,))
    y = op(x * 2.0) + 1.0
    plan = plan_of(graph, [x], [y])
    with pytest.raises(ZeroDivisionError) as caught:
        plan.run([np.ones(300)])
    note = caught.value.__notes__[0]
    assert "DeclaredPlanBomb" in note
    line = test_errors_say_where_the_op_was_built.__code__.co_firstlineno + 10
    assert f"{__file__}:{line}" in note
    explode[0] = False
    np.testing.assert_array_equal(plan.run([np.ones(300)])[0].numpy(), np.full(300, 3.0))


@each("rule, told", [
    (lambda x: x, "but the op's shape_rule told"), (None, "but a call with ones told")])
def test_a_result_that_is_not_as_inferred_is_an_error(rule, told):
    op = general(
        f"DeclaredPlanLiar{rule is None}", lambda x: x if x.all() else x[:1], shape_rule=rule)
    graph, x = new_graph((3,))
    with pytest.raises(GraphError, match=rf"{told} \(3,\)"):
        plan_of(graph, [x], [op(x) + 1.0]).run([np.zeros(3)])


@each(with_call=[False, True], n=[1, 5, 5000])
def test_warnings_are_numpys(n, with_call):
    graph, x = new_graph((n,))
    z = x * 2.0
    if with_call:
        z = np.cumsum(z) * 0.0 + z
    y = 1.0 / z + np.exp(z) - np.sum(z)
    plan = plan_of(graph, [x], [y])
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        plan.run([np.zeros(n)])
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        plan.run([np.full(n, 1e3)])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        plan.run([np.zeros(n)])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="by zero") as error:
        plan.run([np.zeros(n)])
    assert "Divide" in error.value.__notes__[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.run([np.ones(n)])
        plan.run([np.full(n, -400.0)])  # underflow, which NumPy ignores


def test_warnings_go_where_numpys_go(capsys):
    graph, x = new_graph((3,))
    plan = plan_of(graph, [x], [1.0 / x])
    calls, log = [], io.StringIO()
    with np.errstate(all="call", call=lambda *call: calls.append(call)):
        plan.run([np.zeros(3)])
        1.0 / np.zeros(3)
    with np.errstate(all="log", call=log):
        plan.run([np.zeros(3)])
    with np.errstate(all="print"):
        plan.run([np.zeros(3)])
    assert calls == [("divide by zero", 1)] * 2
    assert log.getvalue() == "Warning: divide by zero encountered in divide\n"
    assert capsys.readouterr().err == log.getvalue()


@each("shape", [(), (5,), (3000,)])
def test_ops_that_warn_compute_the_right_values(shape):
    graph = Graph()
    x, y = graph.placeholder("float64", shape), graph.placeholder("float64", shape)
    z = np.negative(x) * 3.0 + 1.0  # may be written over what is fed
    plan = plan_of(graph, [x, y], [y / z])
    fed = np.full(shape, 1 / 3)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        (result,) = plan.run([fed, np.full(shape, -2.0)])
    np.testing.assert_array_equal(result.numpy(), np.full(shape, -np.inf))


def test_calls_that_keep_their_argument_keep_its_value():
    kept = []

    def forward(x):
        kept.append(x)
        return x[::2]

    op = general("DeclaredPlanKeeper", forward,
                 shape_rule=lambda x: Spec.of((x.shape[0] // 2,), x.dtype))
    graph, x = new_graph((8,))
    y = x + 1.0
    half = op(y)
    z = half * 2.0
    plan = plan_of(graph, [x], [z + half, half])
    results = plan.run([np.zeros(8)])
    plan.run([np.ones(8)])
    np.testing.assert_array_equal(kept[0], np.ones(8))
    np.testing.assert_array_equal(results[0].numpy(), np.full(4, 3.0))
    np.testing.assert_array_equal(results[1].numpy(), np.ones(4))


def test_interrupts_stop_a_run():
    def forward(x):
        raise KeyboardInterrupt

    op = general("DeclaredPlanInterrupt", forward, shape_rule=lambda x: x)
    graph, x = new_graph()
    plan = plan_of(graph, [x], [op(x)])
    with pytest.raises(KeyboardInterrupt):
        plan.run([np.array(1.0)])
    with pytest.raises(KeyboardInterrupt):
        plan.run([np.array(1.0)])


def test_plans_run_from_several_threads():
    graph, x = new_graph((20_000,))
    y = x
    for _ in range(20):
        y = np.sin(y) + x
    plan = plan_of(graph, [x], [y, np.sum(y)])
    arrays = [np.full(20_000, float(i)) for i in range(4)]
    expected = [plan.run([array])[0].numpy() for array in arrays]
    failures = []

    def work(i):
        for _ in range(10):
            if not np.array_equal(plan.run([arrays[i]])[0].numpy(), expected[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_plan_may_run_inside_itself():
    plans = []

    def forward(x):
        return plans[0].run([x - 1.0])[0].numpy() + 1.0 if x > 0 else x

    op = general("DeclaredPlanRecursion", forward, shape_rule=lambda x: x)
    graph, x = new_graph()
    y = op(x * 1.0) + x
    plans.append(plan_of(graph, [x], [y]))
    assert float(plans[0].run([np.array(4.0)])[0]) == 4 + 3 + 2 + 1 + 4


def test_large_runs_let_other_threads_go_on():
    graph, x = new_graph((500_000,))
    y = x
    for _ in range(20):
        y = np.sin(y)
    plan = plan_of(graph, [x], [np.sum(y)])
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    plan.run([np.ones(500_000)])
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) >= 3


@pytest.mark.signals
def test_signals_are_handled_between_instructions():
    graph, x = new_graph((100_000,))
    y = x
    for _ in range(3000):
        y = np.sin(y)
    plan = plan_of(graph, [x], [y])

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    start = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            plan.run([np.ones(100_000)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < 1.0


def test_results_of_calls_that_hand_back_their_argument_are_copied():
    op = general("DeclaredPlanSame", lambda x: x, shape_rule=lambda x: x)
    graph, x = new_graph((1000,))
    plan = plan_of(graph, [x], [op(x), op(np.sin(x))])
    fed = np.arange(1000.0)
    results = plan.run([fed])
    kept = fed.copy()
    fed[:] = -1
    plan.run([fed])
    np.testing.assert_array_equal(results[0].numpy(), kept)
    np.testing.assert_array_equal(results[1].numpy(), np.sin(kept))


@each("n", [3, 1000])
def test_calls_that_show_their_argument_keep_its_value(n):
    graph, x = new_graph((n,))
    shown = ops.real(np.sin(x))  # NumPy returns the array itself
    others = [np.cos(x * k) for k in range(5)]
    plan = plan_of(graph, [x], [shown + 0.0, *[np.sum(y) for y in others], shown])
    array = np.arange(float(n))
    for result in [plan.run([array])[i] for i in (0, -1)]:
        np.testing.assert_array_equal(result.numpy(), np.sin(array))


def test_errors_leave_the_plan_usable():
    op = general("DeclaredPlanPicky", lambda x: 1 / 0 if x[0] < 0 else x, shape_rule=lambda x: x)
    graph, x = new_graph((500,))
    plan = plan_of(graph, [x], [op(np.sin(x)) + x])
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            plan.run([np.full(500, -1.0)])
        np.testing.assert_array_equal(plan.run([np.ones(500)])[0].numpy(), np.sin(np.ones(500)) + 1)
