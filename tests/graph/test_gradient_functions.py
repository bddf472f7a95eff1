"""How gradients() calls the gradient functions of ops, and what these may return."""

import numpy as np
import pytest

import cytape
from cytape.errors import InvalidGradientError, NotDifferentiableError
from cytape.ops.engine.op_kinds import general, nondifferentiable
from tests.graph.programs import evaluate, types_of

# ---- D-4A-07: ops with several outputs

seen = []


def _note(op, *output_gradients):
    seen.append(output_gradients)
    return output_gradients[0]


three_outputs = general("DeclaredThreeOutputs", lambda x: (x, 2 * x, np.array(7)), vjp=_note)


def test_d_4a_07_unused_outputs_have_zeros_or_none_for_a_gradient(graph):
    seen.clear()
    x = cytape.placeholder("float64", (None,))
    y, _, _ = three_outputs(x)
    cytape.gradients(y * 3.0, x)
    [(dy, dz, dn)] = seen
    dy, dz = cytape.Session(graph).run([dy, dz], {x: [1.0, 2.0]})
    np.testing.assert_array_equal(dy, [3.0, 3.0])
    np.testing.assert_array_equal(dz, [0.0, 0.0])
    assert dn is None


def test_d_4a_07_the_gradient_of_an_unused_input_is_zero_not_none(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    c, d = cytape.identity_n(a, b)
    assert evaluate(cytape.gradients(d, a)) == [0.0]
    assert evaluate(cytape.gradients(d, [a, b])) == [0.0, 1.0]


def test_an_identity_costs_nothing(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    c, d = cytape.identity_n(cytape.identity(a), b)
    before = graph.n_nodes
    assert evaluate(cytape.gradients(c, a)) == [1.0]
    assert types_of(graph, before) == ["Constant"]
    assert evaluate(cytape.gradients([c, d], [b], gate_gradients=True)) == [1.0]
    assert "Tuple" not in types_of(graph, before)


def test_d_4a_07_another_output_of_the_op_is_unconnected(graph):
    a, b = cytape.constant(2.0), cytape.constant(3.0)
    c, d = cytape.identity_n(a, b)
    e = cytape.identity(c)
    assert cytape.gradients(e, d) == [None]
    assert evaluate(cytape.gradients(e, d, unconnected_gradients="zero")) == [0.0]


# ---- D-4A-12 and 13: gradient functions

opaque = general("DeclaredOpaqueOp", lambda x: 2 * x, shape_rule=lambda x: x)


def test_d_4a_12_an_op_without_a_gradient_function_is_named(graph):
    x = cytape.constant(3.0)
    with graph.name_scope("layer"):
        y = opaque(x)
    message = "'layer/DeclaredOpaqueOp'.*type 'DeclaredOpaqueOp'"
    with pytest.raises(LookupError, match=message) as info:
        cytape.gradients(y, x)
    assert info.type is NotDifferentiableError
    assert "register_gradient" in str(info.value)
    assert "stop_gradient" in str(info.value)


def test_d_4a_12_only_if_a_gradient_arrives_there(graph):
    x = cytape.constant(3.0)
    y = opaque(x)
    assert cytape.gradients(cytape.stop_gradient(y), x) == [None]
    assert evaluate(cytape.gradients([y, x * x], x, stop_gradients=y)) == [6.0]
    assert evaluate(cytape.gradients(y * 5.0, y)) == [5.0]
    assert cytape.gradients(opaque(cytape.constant(1.0)), x) == [None]


no_gradient_back = general("DeclaredNoneBack", lambda x: x, vjp=lambda op, dy: None)


def test_d_4a_12_none_from_a_gradient_function_does_not_arrive(graph):
    x = cytape.constant(3.0)
    assert cytape.gradients(no_gradient_back(opaque(x)), x) == [None]


disabled = general("DeclaredDisabled", lambda x: x)
cytape.disable_gradient("DeclaredDisabled", "ask for it differently")


def test_d_4a_12_a_disabled_gradient_is_an_error(graph):
    x = cytape.constant(3.0)
    y = disabled(x)
    with pytest.raises(LookupError, match="'DeclaredDisabled'.*disabled: ask for it differently"):
        cytape.gradients(y, x)
    assert cytape.gradients(y, x, stop_gradients=y) == [None]
    assert evaluate(cytape.gradients(y * y, y)) == [6.0]


stepwise = nondifferentiable("DeclaredStepwise", np.floor)


def test_d_4a_12_at_an_op_that_is_constant_in_pieces_gradients_end(graph):
    x = cytape.constant(3.0)
    assert evaluate(cytape.gradients(stepwise(x) * x, x)) == [3.0]


two_gradients = general("DeclaredTwoGradients", lambda x: x, vjp=lambda op, dy: (dy, dy))
wrong_shape = general(
    "DeclaredWrongShape", lambda x, y: x, vjp=lambda op, dy: (dy, cytape.constant([1.0, 2.0, 3.0])))
no_gradient_at_all = general("DeclaredNoGradient", lambda x: x, vjp=lambda op, dy: "a gradient")
nothing_known = general("DeclaredObject", lambda x: x, vjp=lambda op, dy: object())


def test_d_4a_13_a_wrong_number_of_gradients_is_an_error(graph):
    x = cytape.constant(3.0)
    with pytest.raises(ValueError, match="expected 1, got 2.*'DeclaredTwoGradients'") as info:
        cytape.gradients(two_gradients(x), x)
    assert info.type is InvalidGradientError


def test_d_4a_13_a_wrong_shape_is_an_error(graph):
    x, y = cytape.constant([1.0, 2.0]), cytape.constant([1.0, 2.0])
    message = r"input 1 has shape \(3,\), but the input has shape \(2,\).*'DeclaredWrongShape'"
    with pytest.raises(ValueError, match=message):
        cytape.gradients(wrong_shape(x, y), [x, y])


@pytest.mark.parametrize("op", [no_gradient_at_all, nothing_known])
def test_d_4a_11_gradients_of_another_type_are_an_error(graph, op):
    x = cytape.constant(3.0)
    with pytest.raises(TypeError):
        cytape.gradients(op(x), x)


# ---- other gradient functions for ops


@cytape.register_gradient("DeclaredStraightThrough")
def straight_through(op, dy):
    return dy


@cytape.register_gradient("DeclaredWithOutput")
def with_output(op, dy):
    return dy * op.outputs[0] * op.inputs[0]


def test_a_graph_may_give_an_op_type_another_gradient_function(graph):
    x = cytape.constant(2.0)
    with graph.gradient_override_map({"Floor": "DeclaredStraightThrough"}):
        y = np.floor(x)
    assert evaluate(cytape.gradients(y * x, x)) == [4.0]
    assert evaluate(cytape.gradients(np.floor(x) * x, x)) == [2.0]


def test_such_a_gradient_function_sees_all_inputs_and_outputs(graph):
    x = cytape.constant(2.0)
    with graph.gradient_override_map({"Exp": "DeclaredWithOutput"}):
        y = np.exp(x)
    np.testing.assert_allclose(evaluate(cytape.gradients(y, x)), [2.0 * np.exp(2.0)])


def test_a_name_without_a_gradient_function_is_an_error(graph):
    x = cytape.constant(2.0)
    with graph.gradient_override_map({"Exp": "DeclaredNowhere"}):
        y = np.exp(x)
    with pytest.raises(LookupError, match="'DeclaredNowhere'"):
        cytape.gradients(y, x)


# ---- functions with a gradient of their own


def test_a_custom_gradient_is_used(graph):
    calls = []

    @cytape.custom_gradient
    def halved(x, y):
        def grad_fn(dz):
            calls.append(dz)
            return dz * y * 0.5, dz * x * 0.25

        return x * y, grad_fn

    x, y = cytape.constant(3.0), cytape.constant(5.0)
    z = halved(x, y) * 2.0
    assert evaluate(cytape.gradients(z, [x, y])) == [5.0, 1.5]
    assert len(calls) == 1


def test_a_custom_gradient_with_several_outputs_and_a_variable(graph):
    v = cytape.Variable(3.0)

    @cytape.custom_gradient
    def scaled(x):
        def grad_fn(dy, dz, variables):
            return dy * 10.0 + dz * 100.0, [dy * 1000.0]

        return (x * v, x + v), grad_fn

    x = cytape.constant(2.0)
    y, _ = scaled(x)
    assert evaluate(cytape.gradients(y, [x, v])) == [10.0, 1000.0]


def test_recomputed_functions_have_their_gradient(graph):
    x = cytape.constant(0.5)
    y = cytape.recompute_grad(lambda x: np.tanh(np.tanh(x)))(x)
    expected = (1 - np.tanh(np.tanh(0.5)) ** 2) * (1 - np.tanh(0.5) ** 2)
    np.testing.assert_allclose(evaluate(cytape.gradients(y, x)), [expected])
