"""cytape.function: tracing, signatures, what a trace may use, and its derivatives."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests import ways
from tests.cases import each

X = np.array([0.3, -1.2, 2.0])


def polynomial(x, b):
    return x * x + b


def traced(f=None, **options):
    """A function, and a list that grows by one with each trace."""
    traces = []

    def counted(*args, **kwargs):
        traces.append(args)
        return f(*args, **kwargs)

    return cytape.function(counted, **options), traces


# ---- behaviours


def test_d_4b_01_a_function_and_a_function_of_a_function():
    f = cytape.function(polynomial)
    x, b = cytape.constant(2.0), cytape.constant(0.0)
    assert [float(g) for g in ways.gradients(f, x, b)] == [4.0, 1.0]
    b1, b2 = cytape.constant(1.0), cytape.constant(0.0)
    tape, y = ways.taped(lambda x, b1: f(f(x, b1), b2), x, b1)
    gradients = tape.gradient(y, [x, b1])
    assert [float(y), *map(float, gradients)] == [25.0, 40.0, 10.0]


def test_d_4b_01_by_gradients_in_a_graph():
    f = cytape.function(polynomial)
    assert ways.run_in_graph(
        lambda x, b1, b2: cytape.gradients(f(f(x, b1), b2), [x, b1]), 2.0, 1.0, 0.0) == [40.0, 10.0]


def test_d_4b_02_a_gradient_that_is_another_function():
    of_gradient = cytape.function(lambda x, b, g: (6 * x * g, 3 * g))
    f = cytape.function(polynomial, grad_func=of_gradient)
    x, b = cytape.constant(2.0), cytape.constant(0.0)
    assert [float(g) for g in ways.gradients(f, x, b)] == [12.0, 3.0]


def test_d_4b_02_a_gradient_that_is_called_with_the_op():
    def thrice(op, g):
        x, _ = op.inputs
        assert float(op.outputs[0]) == 4.0 and op.type == "polynomial"
        return 3 * 2 * x * g, 3 * g

    f = cytape.function(polynomial, python_grad_func=thrice)
    x, b = cytape.constant(2.0), cytape.constant(0.0)
    for _ in range(2):
        assert [float(g) for g in ways.gradients(f, x, b)] == [12.0, 3.0]
    assert f.experimental_get_tracing_count() == 1


@each("option", ["grad_func", "python_grad_func"])
def test_d_4b_02_own_gradients_hold_in_graphs(option):
    def own(*args):
        x, _ = args[0].inputs if option == "python_grad_func" else args[:2]
        return 3 * 2 * x * args[-1], 3 * args[-1]

    f = cytape.function(polynomial, **{option: own})
    outer = cytape.function(cytape.grad(lambda x, b: f(x, b) * 2.0, argnums=(0, 1)))
    assert [float(g) for g in outer(np.array(2.0), np.array(0.0))] == [24.0, 6.0]
    assert ways.run_in_graph(
        lambda x, b: cytape.gradients(f(x, b), [x, b]), 2.0, 0.0) == [12.0, 3.0]


def test_d_4b_02_two_own_gradients_are_one_too_many():
    with pytest.raises(ValueError, match="not both"):
        cytape.function(polynomial, grad_func=polynomial, python_grad_func=polynomial)


def test_d_4b_02_variables_are_read_when_a_call_runs():
    v = cytape.Variable(3.0)
    f, traces = traced(lambda x: x * v)
    for value in 3.0, 5.0:
        v.assign(value)
        tape, y = ways.taped(lambda: f(cytape.constant(2.0)))
        assert float(y) == 2.0 * value
        assert float(tape.gradient(y, v)) == 2.0
    assert len(traces) == 1


def test_d_4b_03_captures_stand_for_the_originals_through_any_depth():
    x, unused = cytape.constant(2.0), cytape.constant(7.0)
    scale = cytape.constant(10.0)

    @cytape.function
    def outer():
        @cytape.function
        def middle():
            @cytape.function
            def inner():
                return x * x * scale
            return inner() * x
        return middle()

    tape, y = ways.taped(lambda x, unused: outer(), x, unused)
    assert float(y) == 80.0
    dx, none = tape.gradient(y, [x, unused])
    assert float(dx) == 120.0 and none is None


def test_d_4b_03_gradients_inside_a_function_with_respect_to_a_capture():
    x = cytape.constant(3.0)

    @cytape.function
    def slope():
        return ways.gradient(lambda x: x * x * 2.0, x)

    @cytape.function
    def graph_slope():
        y = x * x * 2.0
        return cytape.gradients(y, x)[0]

    assert float(slope()) == float(graph_slope()) == 12.0


# ---- tracing and signatures


def test_a_function_is_traced_once_per_signature():
    f, traces = traced(lambda x, scale=1.0: x * scale)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), X)
        np.testing.assert_array_equal(f(cytape.constant(X)), X)  # the same spec
        np.testing.assert_array_equal(f(X, 2.0), 2 * X)
        np.testing.assert_array_equal(f(X, scale=2.0), 2 * X)
        assert f(X[:2].astype("float32")).dtype == "float32"
    assert len(traces) == f.experimental_get_tracing_count() == 4


def test_captures_of_one_trace_do_not_serve_in_another():
    taken = {}
    inner = cytape.function(lambda x: x * taken["scale"])

    @cytape.function
    def outer(x, scale):
        taken["scale"] = scale * 1.0
        return inner(x)

    assert float(outer(np.array(2.0), np.array(3.0))) == 6.0
    assert outer(np.array(2.0), np.ones(2)).shape == (2,)
    assert float(cytape.grad(outer)(2.0, np.array(5.0))) == 5.0
    taken["scale"] = 7.0
    assert float(inner(np.array(2.0))) == 14.0


def test_containers_of_values_are_told_apart_by_what_they_hold():
    f, traces = traced(lambda x, table: x * max(table))
    table = {1, 2}
    assert float(f(np.array(1.0), table)) == float(f(np.array(1.0), {2, 1})) == 2.0
    assert len(traces) == 1
    table.add(5)
    assert float(f(np.array(1.0), table)) == 5.0


def test_side_effects_of_python_happen_when_traced():
    seen = []

    @cytape.function
    def f(x):
        seen.append(x)
        return x + 1

    f(X), f(X)
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="trace of f.*Return it instead"):
        seen[0] + 1
    f(X)


def test_many_traces_draw_a_warning_that_says_why():
    f = cytape.function(lambda x, n: x * n)
    for n in range(4):
        f(X, n)
    with pytest.warns(UserWarning, match=r"5th time.*4 where it was . before.*arrays or tensors"):
        f(X, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X, 5)


def test_an_input_signature_is_traced_once_for_all_extents():
    f, traces = traced(
        lambda x: cnp.sum(cnp.tanh(x) * x), input_signature=[cytape.Spec.of((None,), float)])
    for n in 3, 5, 1:
        x = np.linspace(-1, 1, n)
        np.testing.assert_allclose(float(f(x)), np.sum(np.tanh(x) * x), rtol=1e-15)
        np.testing.assert_allclose(
            cytape.grad(f)(x), cytape.grad(lambda x: cnp.sum(cnp.tanh(x) * x))(x), rtol=1e-14)
    assert len(traces) == 1
    for wrong in np.zeros((2, 2)), np.zeros(2, "float32"):
        with pytest.raises(TypeError, match="input signature"):
            f(wrong)
    for arguments in ([X],), (), ({"x": X},):
        with pytest.raises(TypeError, match="do not match its input signature"):
            f(*arguments)


@each("words", [("w", "s"), ("s", "w")])
def test_an_input_signature_with_a_dict_in_any_order(words):
    given = {"w": np.arange(6.0).reshape(2, 3), "s": np.float64(2.0)}
    specs = {"w": cytape.Spec.of((2, None), float), "s": cytape.Spec.of((), float)}
    f = cytape.function(
        lambda b: cnp.sum(b["w"]) * b["s"], input_signature=[{word: specs[word] for word in words}])
    assert f(given).item() == f(dict(reversed(given.items()))).item() == 30.0


def test_an_input_signature_of_a_method_and_by_keyword():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @cytape.function(input_signature=[cytape.Spec.of((None,), float)])
        def apply(self, x):
            return x * self.factor

    for scale in Scale(2.0), Scale(3.0):
        for x in np.ones(2), np.ones(3):
            np.testing.assert_array_equal(scale.apply(x), x * scale.factor)
            np.testing.assert_array_equal(scale.apply(x=x), x * scale.factor)


def test_slices_are_passed_as_tensors():
    f, traces = traced(lambda slices: slices.to_tensor() * 2.0)
    for i in range(3):
        slices = cytape.IndexedSlices(
            cytape.constant([[1.0 + i]]), cytape.constant([i]), dense_shape=(3, 1))
        np.testing.assert_array_equal(f(slices), 2 * slices.to_tensor().numpy())
    assert len(traces) == 1


def test_extents_that_differ_can_be_taken_as_unknown():
    f, traces = traced(lambda x: cnp.sum(x * x), reduce_retracing=True)
    for n in range(1, 8):
        assert float(f(np.ones((n, 2)))) == 2 * n
    assert len(traces) == 2
    f(np.ones(3))
    assert len(traces) == 3


def test_a_trace_for_some_arguments():
    f, traces = traced(lambda x, scale: {"y": x * scale})
    trace = f.get_concrete_function(X, 3.0)
    assert trace is f.get_concrete_function(cytape.constant(X), 3.0)
    np.testing.assert_array_equal(trace(X)["y"], 3 * X)
    assert trace.structured_outputs["y"].graph is trace.graph
    assert [x.shape for x in trace.inputs] == [(3,)] and len(trace.outputs) == 1
    for wrong in (), (X, X):
        with pytest.raises(TypeError, match="traced with 1 tensors"):
            trace(*wrong)
    with pytest.raises(TypeError, match=r"shape \(3,\), got float64 and \(2,\)"):
        trace(X[:2])
    unknown = f.get_concrete_function(cytape.Spec.of((None, 2), float), 2.0)
    np.testing.assert_array_equal(unknown(np.ones((4, 2)))["y"], np.full((4, 2), 2.0))


def test_methods_are_traced_for_each_object_and_do_not_keep_it():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @cytape.function
        def __call__(self, x):
            return x * self.factor

    first, second = Scale(2.0), Scale(3.0)
    assert float(first(np.array(1.0))) == 2.0
    assert float(second(np.array(1.0))) == 3.0
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_derivatives_of_plain_numbers_inside_a_trace():
    square = cytape.grad(lambda x: x * x)
    assert float(cytape.function(square)(3.0)) == 6.0
    f = cytape.function(lambda a: cytape.grad(lambda x: cnp.sum(a * x * x))(np.ones(3)))
    np.testing.assert_array_equal(f(np.array(2.0)), [4.0, 4.0, 4.0])
    _, hessian = cytape.function(lambda: (None, cytape.hessian(lambda x: x**3)(2.0)))()
    assert float(hessian) == 12.0


# ---- errors


@each("call", [
    lambda x: x + None, lambda x: None - x, lambda x: x**None, lambda x: np.arctan2(x, None),
    lambda x: x < None, lambda x: x / x.shape[0], lambda x: cnp.maximum(x, x.size),
])
def test_none_is_no_operand(call):
    f = cytape.function(call, input_signature=[cytape.Spec.of((None,), float)])
    with pytest.raises(TypeError, match="None.*cytape.numpy.size"):
        f(np.ones(3))


@each("f, advice", [
    (lambda x: x if x > 0 else -x, "where"),
    (lambda x: sum(x for _ in range(x.astype(int))), "while_loop"),
    (lambda x: float(x), "float"),
    (lambda x: np.zeros(3)[x.astype(int)], "cytape.constant(array)[i] or cytape.gather(array, i)"),
    (lambda x: np.zeros(3)[np.stack([x, x]).astype(int)], "cytape.gather(array, i)"),
    (lambda x: np.zeros(3).sum(axis=x.astype(int)), "what wants an integer"),
    (lambda x: np.array([x, x]), "cytape.numpy.stack"),
    (lambda x: np.zeros(3).dot(x), "not a method of an array"),
    (lambda x: f"{x:.3f}", "return it from the function"),
    (lambda x: x.numpy(), "Session.run"), (lambda x: cytape.Variable(x), "its value"),
])
def test_a_tensor_has_no_value_while_it_is_traced(f, advice):
    with pytest.raises(SymbolicTensorError, match=r"test_functions.py, line \d+: ") as raised:
        cytape.function(f)(np.array(1.0))
    assert advice in str(raised.value)


def test_only_functions_can_be_traced():
    with pytest.raises(TypeError, match="only functions can be traced, got int"):
        cytape.function(3)


# ---- variables


def test_an_untrainable_variable_and_an_argument_that_is_one():
    v, w = cytape.Variable(2.0, trainable=False), cytape.Variable(3.0)
    f = cytape.function(lambda w, x: w * x * v)
    tape, y = ways.taped(lambda: f(w, np.array(5.0)))
    assert float(y) == 30.0
    assert float(tape.gradient(y, w)) == 10.0


def test_assignments_of_a_function_happen_in_graphs():
    v = cytape.Variable(0.0)

    @cytape.function
    def counted(x):
        v.assign_add(1.0)
        return x * 2.0, x

    with cytape.Graph().as_default() as graph:
        twice, same = counted(cytape.constant(3.0))
    session = cytape.Session(graph)
    assert session.run(twice) == 6.0 and float(v) == 1.0
    assert session.run(same) == 3.0 and float(v) == 2.0


def test_contexts_of_a_body_hold_where_it_is_called():
    cytape.register_gradient("HundredfoldOfTests")(lambda op, g: 100.0 * g)

    @cytape.function
    def f(x):
        graph = cytape.get_default_graph()
        before = cytape.identity(x)
        with graph.gradient_override_map({"Sin": "HundredfoldOfTests"}), graph.device("here"):
            with graph.control_dependencies([before]):
                return np.sin(x)

    with cytape.Graph().as_default() as graph, graph.device("there"):
        x = cytape.placeholder("float64", ())
        y = f(x)
        (slope,) = cytape.gradients(y, x)
    assert (y.device, x.device) == ("here", "there")
    assert [op.type for op in y.op.control_inputs] == ["Identity"]
    assert cytape.Session(graph).run(slope, {x: 0.0}) == 100.0


def test_draws_of_a_body_are_its_calls_own():
    f = cytape.function(lambda: cytape.numpy.random.uniform(size=()))

    def draws():
        graph = cytape.Graph()
        graph.seed = 7
        with graph.as_default():
            drawn = [f(), f(), cytape.numpy.random.uniform(size=())]
        return cytape.Session(graph).run(drawn)

    first = draws()
    assert len(set(map(float, first))) == 3
    f()
    np.testing.assert_array_equal(draws(), first)
