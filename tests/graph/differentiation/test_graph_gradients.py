"""gradients(): what is differentiated, with what seeds, and what comes back."""

import itertools

import numpy as np
import pytest

import cytape
from cytape.errors import UnconnectedGradientWarning
from cytape.ops.engine.op_kinds import general
from tests.cases import each
from tests.graph.programs import evaluate, new_graph, types_of

# ---- D-4A-01: arguments and results


def test_d_4a_01_returns_a_list_with_an_entry_per_x(graph):
    x, y = cytape.constant(3.0), cytape.constant(5.0)
    assert evaluate(cytape.gradients(x * y, [x, y])) == [5.0, 3.0]


def test_d_4a_01_single_tensors_are_accepted(graph):
    x = cytape.constant(3.0)
    assert evaluate(cytape.gradients(x * x, x)) == [6.0]
    assert evaluate(cytape.gradients((x * x, x), (x,))) == [7.0]


def test_d_4a_01_duplicates_are_allowed_on_both_sides(graph):
    x = cytape.constant(3.0)
    y = x * x
    assert evaluate(cytape.gradients([y, y, y], [x, x])) == [18.0, 18.0]


def test_d_4a_01_of_a_tensor_with_respect_to_itself_is_one(graph):
    x = cytape.constant([3.0, 4.0])
    [gradient] = cytape.gradients(x, x)
    np.testing.assert_array_equal(evaluate(gradient), [1.0, 1.0])


def test_d_4a_01_in_eager_mode_is_a_runtime_error():
    x = cytape.constant(3.0)
    with pytest.raises(RuntimeError, match="GradientTape"):
        cytape.gradients(x * x, x)


@each("of_xs", [True, False])
def test_d_4a_01_a_tensor_with_a_value_is_a_runtime_error_in_a_graph_too(of_xs):
    eager = cytape.constant(3.0)
    with cytape.Graph().as_default():
        y = cytape.constant(2.0) * 2.0
        with pytest.raises(RuntimeError, match=r"(xs|ys) must be .*GradientTape"):
            cytape.gradients(y, eager) if of_xs else cytape.gradients(eager, y)


def test_no_graph_needs_to_be_the_default_one():
    graph, x = new_graph()
    [gradient] = cytape.gradients(x * x, x)
    assert gradient.graph is graph
    assert cytape.Session(graph).run(gradient, {x: 3.0}) == 6.0


def test_a_tensor_of_another_graph_is_an_error(graph):
    other = cytape.Graph().placeholder("float64", ())
    x = cytape.constant(1.0)
    with pytest.raises(ValueError, match="xs must belong to the graph being built"):
        cytape.gradients(x * 2.0, other)
    with pytest.raises(ValueError, match="ys must belong"):
        cytape.gradients(other, x)
    with pytest.raises(ValueError, match="stop_gradients must belong"):
        cytape.gradients(x * 2.0, x, stop_gradients=other)


@pytest.mark.parametrize("wrong", [1.0, "x", np.ones(3), object()])
def test_an_argument_that_is_not_a_tensor_is_an_error(graph, wrong):
    x = cytape.constant(1.0)
    with pytest.raises(TypeError, match="xs must be tensors or variables"):
        cytape.gradients(x, wrong)
    with pytest.raises(TypeError, match="ys must be tensors or variables"):
        cytape.gradients(wrong, x)


def test_of_nothing_and_with_respect_to_nothing(graph):
    x = cytape.constant(1.0)
    assert cytape.gradients([], x) == [None]
    assert cytape.gradients(x, []) == []


# ---- D-4A-02 and 03: ys and xs that depend on each other


def test_d_4a_02_ys_that_depend_on_each_other(graph):
    x = cytape.constant(3.0)
    y = x * x
    y1 = y * y
    y2 = y1 * y1
    # 2 x + 8 x**7
    assert evaluate(cytape.gradients([y, y2], x)) == [17502.0]
    assert evaluate(cytape.gradients([y2, y], x)) == [17502.0]
    assert evaluate(cytape.gradients([y2, y], y)) == [1.0 + 4 * 9.0**3]


def test_d_4a_03_xs_that_depend_on_each_other(graph):
    x = cytape.constant(1.0)
    y = 2.0 * x
    z = 3.0 * y
    assert evaluate(cytape.gradients(z, [x, y])) == [6.0, 3.0]
    assert evaluate(cytape.gradients(z, [y, x, z])) == [3.0, 6.0, 1.0]


opaque = general("DeclaredOpaque", lambda x: 2 * x, shape_rule=lambda x: x)


def test_d_4a_03_ops_before_an_x_are_not_differentiated(graph):
    x = opaque(cytape.constant(3.0))
    assert evaluate(cytape.gradients(x * x, x)) == [12.0]


# ---- D-4A-04: stop_gradients


def diamond():
    x = cytape.constant(1.0)
    y = 2.0 * x
    return [x, y, x + y]


def test_d_4a_04_stopped_tensors_count_as_constants(graph):
    x, y, z = diamond()
    assert evaluate(cytape.gradients(z, [x, y])) == [3.0, 1.0]
    assert evaluate(cytape.gradients(z, [x, y], stop_gradients=[x, y])) == [1.0, 1.0]
    assert evaluate(cytape.gradients(z, [x, y], stop_gradients=y)) == [1.0, 1.0]


def chain(stopped=()):
    """Compute five tensors from each other, with gradients stopped behind those of given numbers.

    Returns the tensors as they were computed and the last one.
    """
    tensors = [cytape.constant(1.5)]
    passed = [cytape.stop_gradient(tensors[0]) if 0 in stopped else tensors[0]]
    for i, f in enumerate([np.sin, np.exp, lambda y: y * passed[0], lambda y: y + passed[1]], 1):
        tensors.append(f(passed[-1]))
        passed.append(cytape.stop_gradient(tensors[-1]) if i in stopped else tensors[-1])
    return tensors, passed[-1] * passed[2]


@pytest.mark.parametrize(
    "stopped", [c for n in range(6) for c in itertools.combinations(range(5), n)])
def test_d_4a_04_equals_stop_gradient_at_those_tensors(graph, stopped):
    tensors, y = chain()
    got = cytape.gradients(y, tensors, stop_gradients=[tensors[i] for i in stopped])
    # Where the gradient is stopped behind a tensor, its own is that behind which it is stopped.
    tensors, y = chain()
    expected = []
    for i in range(5):
        at, then = chain([j for j in stopped if j != i])
        expected += cytape.gradients(then, at[i])
    assert [g is None for g in got] == [g is None for g in expected]
    present = [g for g in got if g is not None]
    np.testing.assert_allclose(
        evaluate(present), evaluate([g for g in expected if g is not None]), rtol=1e-14)


def test_d_4a_04_one_output_is_stopped_the_other_is_not(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    c, d = cytape.identity_n(a, b)
    assert evaluate(cytape.gradients(c * d, [a, b, c], stop_gradients=c)) == [0.0, 2.0, 3.0]


# ---- D-4A-05: trainable tensors only


def test_d_4a_05_a_path_through_integers_does_not_count(graph):
    x = cytape.constant(3.0)
    y = x.astype("int32").astype("float64") * x
    assert evaluate(cytape.gradients(y, x)) == [3.0]
    assert cytape.gradients(x.astype("int32").astype("float64"), x) == [None]


def test_d_4a_05_integers_have_no_gradient(graph):
    n, x = cytape.constant(3), cytape.constant(2.0)
    for y in (n.astype("float64") * x, n):
        with pytest.warns(UnconnectedGradientWarning, match="int64"):
            assert cytape.gradients(y, n) == [None]
    assert evaluate(cytape.gradients([n, x * x], x)) == [4.0]


# ---- D-4A-06: unconnected_gradients


def test_d_4a_06_unconnected_is_none(graph):
    x, y = cytape.constant(1.0), cytape.constant([1.0, 2.0])
    assert cytape.gradients(x * 2.0, y) == [None]
    assert cytape.gradients(x * 2.0, y, unconnected_gradients="none") == [None]


@pytest.mark.parametrize("zero", ["zero", cytape.UnconnectedGradients.ZERO])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_d_4a_06_unconnected_is_zeros_on_demand(graph, zero, dtype):
    x, y = cytape.constant(1.0), cytape.constant(np.ones((2, 3), dtype))
    dx, dy = cytape.gradients(x * 2.0, [x, y], unconnected_gradients=zero)
    assert (dy.dtype, dy.shape) == (np.dtype(dtype), (2, 3))
    np.testing.assert_array_equal(evaluate(dy), np.zeros((2, 3)))
    assert evaluate(dx) == 2.0


def test_d_4a_06_zeros_take_their_shape_when_the_graph_runs(graph):
    x, y = cytape.constant(1.0), cytape.placeholder("float64", (None, 2))
    z = cytape.placeholder("float32")
    dy, dz = cytape.gradients(x * 2.0, [y, z], unconnected_gradients="zero")
    dy, dz = cytape.Session(graph).run([dy, dz], {y: np.ones((3, 2)), z: np.ones(4)})
    np.testing.assert_array_equal(dy, np.zeros((3, 2)))
    np.testing.assert_array_equal(dz, np.zeros(4))
    assert dz.dtype == np.float32


def test_d_4a_06_another_value_is_quoted(graph):
    x = cytape.constant(1.0)
    with pytest.raises(ValueError, match="'nonsense'"):
        cytape.gradients(x, x, unconnected_gradients="nonsense")


# ---- D-4A-08 and 09: grad_ys


def test_d_4a_08_none_means_ones(graph):
    x = cytape.constant([1.0, 2.0])
    y, z = x * 2.0, x * 5.0
    [dx] = cytape.gradients([y, z], x, grad_ys=[cytape.constant([10.0, 20.0]), None])
    np.testing.assert_array_equal(evaluate(dx), [25.0, 45.0])


@pytest.mark.parametrize("convert", [cytape.constant, np.asarray, list])
def test_d_4a_08_gradients_are_what_converts_to_tensors(graph, convert):
    x = cytape.constant([1.0, 2.0])
    [dx] = cytape.gradients([x * 2.0], [x], grad_ys=[convert([10.0, 20.0])])
    np.testing.assert_array_equal(evaluate(dx), [20.0, 40.0])


def test_d_4a_08_a_single_one_is_accepted_also_one_with_a_value_and_one_of_another_dtype():
    seed = cytape.constant(3)
    with cytape.Graph().as_default():
        x = cytape.constant(np.float32(2.0))
        [dx] = cytape.gradients(x * 2, x, seed)
        assert dx.dtype == np.float32
        assert evaluate(dx) == 6.0


def test_d_4a_08_another_length_is_an_error(graph):
    x = cytape.constant(1.0)
    with pytest.raises(ValueError, match="each of the 2 ys, got 1"):
        cytape.gradients([x, x], x, grad_ys=[x])


@pytest.mark.parametrize(
    ("y", "grad_y", "match"),
    [(1.0, 1j, "complex128, but must be real or integer"),
     (1, 1j, "must be real or integer"), (1j, 1.0, "float64, but must be complex"),
     (1.0, True, "bool, but must be real")])
def test_d_4a_08_complex_for_real_or_real_for_complex_is_an_error(graph, y, grad_y, match):
    x = cytape.constant(y)
    with pytest.raises(TypeError, match=match):
        cytape.gradients(x * x, x, grad_ys=cytape.constant(grad_y))


def test_d_4a_08_another_shape_is_an_error(graph):
    x = cytape.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"grad_ys\[0\] has shape \(3,\), its y \(2,\)"):
        cytape.gradients(x, x, grad_ys=np.ones(3))


def test_d_4a_08_ys_that_are_no_numbers_are_an_error(graph):
    x = cytape.constant(1.0)
    for y in (x > 0.0, cytape.constant("text")):
        with pytest.raises(TypeError, match="must be numeric"):
            cytape.gradients(y, x)


def test_d_4a_09_complex_ys_need_grad_ys(graph):
    x = cytape.constant(7.0 + 3.0j)
    with pytest.raises(TypeError, match="set grad_ys"):
        cytape.gradients(x * x, x)
    with pytest.raises(TypeError, match="set grad_ys"):
        cytape.gradients([x * x, x], x, grad_ys=[x, None])


def test_d_4a_09_the_gradient_of_a_complex_tensor_is_the_conjugate_of_the_derivative(graph):
    x = cytape.constant(7.0 + 3.0j)
    [dx] = cytape.gradients(x * x, x, grad_ys=cytape.constant(1.0 + 0.0j))
    assert evaluate(dx) == 14.0 - 6.0j


# ---- D-4A-14: gates


def test_d_4a_14_gradients_of_several_inputs_pass_a_gate(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    y = a * b
    before = graph.n_nodes
    gradients = cytape.gradients(y, [a, b], gate_gradients=True)
    assert types_of(graph, before).count("Tuple") == 1
    [gate] = {gradient.op for gradient in gradients}
    assert (gate.type, len(gate.inputs)) == ("Tuple", 2)
    assert evaluate(gradients) == [3.0, 2.0]


def test_d_4a_14_nothing_is_added_for_one_gradient(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    y = np.sin(a) * b
    before = graph.n_nodes
    gradients = cytape.gradients(y, a, gate_gradients=True)
    assert "Tuple" not in types_of(graph, before)
    np.testing.assert_allclose(evaluate(gradients), [3.0 * np.cos(2.0)])


def test_d_4a_14_slices_pass_a_gate_too(graph):
    table, scale = cytape.constant([1.0, 2.0, 3.0]), cytape.constant(2.0)
    gradients = cytape.gradients(two_slices(table, scale), [table, scale], gate_gradients=True)
    assert isinstance(gradients[0], cytape.IndexedSlices)
    assert gradients[0].values.op == gradients[0].indices.op == gradients[1].op
    np.testing.assert_array_equal(evaluate(gradients[0].to_tensor()), [0.0, 5.0, 0.0])


two_slices = general(
    "DeclaredSlices", lambda table, scale: table[1] * scale,
    vjp=lambda op, dy: (
        cytape.IndexedSlices(np.reshape(dy * 5.0, (1,)), cytape.constant([1]), (3,)), dy))


def test_d_4a_14_a_gate_can_be_differentiated(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    da, db = cytape.gradients(a * a * b, [a, b], gate_gradients=True)
    assert evaluate(cytape.gradients(da, [a, b])) == [6.0, 4.0]
    assert evaluate(cytape.gradients(db, [a, b], unconnected_gradients="zero")) == [4.0, 0.0]


# ---- D-4A-15: scopes


def test_d_4a_15_new_ops_live_in_a_scope_of_their_own(graph):
    x = cytape.constant(3.0)
    y = np.sin(x)
    for name, scope in [(None, "gradients"), (None, "gradients_1"), ("back", "back")]:
        before = graph.n_nodes
        cytape.gradients(y * y, x, **({} if name is None else {"name": name}))
        names = [op.name for op in graph.get_operations()[before:] if op.type != "Multiply"]
        assert names
        assert all(op.startswith(f"{scope}/") for op in names), names


def test_d_4a_15_ops_of_a_gradient_function_are_called_after_the_op(graph):
    x = cytape.constant(3.0)
    with graph.name_scope("layer"):
        y = np.sin(x)
    [dx] = cytape.gradients(y, x)
    assert dx.op.name.startswith("gradients/layer/Sin_grad/")
    assert dx.op.original_op == y.op


# ---- order, structures, variables


def test_gradients_of_gradients(graph):
    x = cytape.constant(2.0)
    first = cytape.gradients(x * x * x * x, x)
    second = cytape.gradients(first, x)
    third = cytape.gradients(second, x)
    assert evaluate([first[0], second[0], third[0]]) == [32.0, 48.0, 48.0]


def test_with_respect_to_an_intermediate_tensor_and_what_it_depends_on(graph):
    x = cytape.constant(2.0)
    y = x * x
    z = np.exp(y)
    dx, dy, dz = evaluate(cytape.gradients(z * y, [x, y, z]))
    np.testing.assert_allclose([dx, dy, dz], [20 * np.exp(4.0), 5 * np.exp(4.0), 4.0])


def test_with_respect_to_a_variable(graph):
    v, w = cytape.Variable([1.0, 2.0]), cytape.Variable(3.0)
    dv, dw = cytape.gradients(np.sum(v * v), [v, w])
    assert dw is None
    np.testing.assert_array_equal(evaluate(dv), [2.0, 4.0])


def test_d_4a_06_zeros_for_a_variable(graph):
    v, x = cytape.Variable(np.ones((2, 3), "float32")), cytape.constant(1.0)
    [dv] = cytape.gradients(x * 2.0, v, unconnected_gradients="zero")
    assert (dv.shape, dv.dtype) == ((2, 3), np.dtype("float32"))
    np.testing.assert_array_equal(evaluate(dv), np.zeros((2, 3)))


def test_a_variable_as_a_y_and_as_a_stop(graph):
    v = cytape.Variable(3.0)
    assert evaluate(cytape.gradients(v, v)) == [1.0]
    x = cytape.constant(2.0)
    assert evaluate(cytape.gradients(v * x, [v, x], stop_gradients=v)) == [2.0, 3.0]


def test_a_gradient_of_a_variable_does_not_end_at_an_assignment(graph):
    v = cytape.Variable(3.0)
    before = v * 2.0
    v.assign(10.0)
    after = v * 5.0
    assert evaluate(cytape.gradients([before, after], v)) == [7.0]


def test_the_ops_of_the_forward_program_are_left_alone(graph):
    x = cytape.constant(2.0)
    y = np.sin(x)
    before = [(op.name, op.inputs) for op in graph.get_operations()]
    cytape.gradients(y, x)
    after = [(op.name, op.inputs) for op in graph.get_operations()[: len(before)]]
    assert [name for name, _ in after] == [name for name, _ in before]


def test_only_what_is_between_is_differentiated(graph):
    x, other = cytape.constant(2.0), cytape.constant(3.0)
    y = np.sin(x) * np.exp(other)
    before = graph.n_nodes
    cytape.gradients(y, x)
    assert types_of(graph, before) == ["Constant", "Multiply", "Cos", "Multiply"]


def test_a_long_chain_needs_no_stack_and_a_number_of_ops_in_proportion():
    counts = []
    for n in (1000, 2000, 20000):
        graph, x = new_graph()
        y = x
        for _ in range(n):
            y = np.sin(y)
        before = graph.n_nodes
        cytape.gradients(y, x)
        counts.append(graph.n_nodes - before)
    assert counts[1] - counts[0] == 2 * 1000
    assert counts[2] - counts[1] == 2 * 18000


def test_a_name_of_none_is_the_default(graph):
    x = cytape.constant(2.0)
    y = np.sin(x)
    [dx] = cytape.gradients(y, x, name=None)
    assert dx.op.name.startswith("gradients/")


def test_shapes_that_are_not_known_at_all(graph):
    x = cytape.placeholder("float64")
    [dx] = cytape.gradients(np.sin(x) * x + x, x)
    value = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(
        cytape.Session(graph).run(dx, {x: value}), np.cos(value) * value + np.sin(value) + 1)


def test_a_placeholder_of_integers_draws_a_warning():
    graph = cytape.Graph()
    p, q = graph.placeholder("int64", (), name="p"), graph.placeholder("float64", ())
    with pytest.warns(UnconnectedGradientWarning, match="'p:0' is None.*int64"):
        found = cytape.gradients(q * p, [p, q])
    assert found[0] is None
    assert cytape.Session(graph).run(found[1], {p: 3, q: 1.0}) == 3.0


def test_new_constants_of_a_gradient_stand_under_its_scope():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (2,), name="x")
        with cytape.name_scope("forward"), graph.device("cpu:1"):
            y = cytape.numpy.tanh(x) ** 3 * cytape.numpy.sin(x) / x
        n = graph.n_nodes
        cytape.gradients(y, x, name="slope")
        names = [graph.name_of(node) for node in range(n, graph.n_nodes)]
        assert [name for name in names if not name.startswith("slope/")] == []
        constants = [op for op in graph.get_operations()[n:] if op.type == "Constant"]
        assert len(constants) > 1 and {op.device for op in constants} <= {"", "cpu:1"}
        n = graph.n_nodes
        again = cytape.numpy.cos(x) * 3.0 + 7.0  # ops outside gradients keep their place
    assert again.op.type == "Add"
    assert "Constant" in {graph.name_of(node).split("_")[0] for node in range(n, graph.n_nodes)}
