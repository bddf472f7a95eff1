"""Rules that are registered, disabled and found by the names of ops."""

import itertools

import numpy as np
import pytest

import cytape
import cytape.graph
from cytape.errors import NotDifferentiableError
from cytape.ops.engine.op_kinds import general
from cytape.ops.engine.user_rules import disable_gradient, gradient_rule, register_gradient
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.engine.test_op_kinds import gradient
from tests.ops.forward_mode import tangent_of
from tests.ways import taped

V3 = np.array([0.5, -1.0, 2.0])
COUNTER = itertools.count()


@pytest.fixture
def name():
    """A name of its own for the op of a test, which stays in the op table."""
    return f"DeclaredForRules{next(COUNTER)}"


# -- kinds -----------------------------------------------------------------------------------------

def test_a_gradient_may_be_registered_after_the_declaration(name):
    op = general(name, np.square)

    @cytape.register_gradient(name)
    def rule(op, g):
        return 2 * op.inputs[0] * g

    assert op.vjp is rule
    np.testing.assert_array_equal(gradient(op, V3), 2 * V3)


def test_a_gradient_may_be_registered_before_the_declaration(name):
    @cytape.register_gradient(name)
    def rule(op, g):
        return 2 * op.inputs[0] * g

    assert callable(rule)
    np.testing.assert_array_equal(gradient(general(name, np.square), V3), 2 * V3)


def test_a_gradient_may_be_registered_when_ops_were_recorded_already(name):
    """The tape keeps the op, not its rule."""
    op = general(name, np.square)
    x = cytape.constant(V3)
    tape, y = taped(op, x)
    cytape.register_gradient(name)(lambda op, g: 2 * op.inputs[0] * g)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * V3)


@pytest.mark.parametrize("declared_first", [True, False])
def test_a_jvp_may_be_registered_before_or_after(name, declared_first):
    def declare():
        return general(name, lambda x, factor: factor * x)

    op = declare() if declared_first else None

    @cytape.register_jvp(name)
    def rule(op, tangent):
        return op.attrs["factor"] * tangent

    op = op or declare()
    assert op.jvp is rule
    tangent = tangent_of(op, (V3, V3), factor=3.0)
    np.testing.assert_array_equal(tangent.numpy(), 3 * V3)
    with pytest.raises(NotDifferentiableError, match="register_gradient"):
        gradient(op, V3, factor=3.0)


@pytest.mark.parametrize("register", [cytape.register_gradient, cytape.register_jvp])
def test_a_rule_is_registered_once(name, register):
    register(name)(lambda op, g: g)
    with pytest.raises(ValueError, match=name):
        register(name)(lambda op, g: g)
    general(name, np.positive)
    with pytest.raises(ValueError, match=name):
        register(name)(lambda op, g: g)


@each("register", [cytape.register_gradient, cytape.register_jvp])
@each("op", ["Sin", "Sum", "Prod", "Floor", "Round", "MatMul"])
def test_rules_of_declared_ops_cannot_be_replaced(register, op):
    with pytest.raises(ValueError, match=op):
        register(op)(lambda op, g: g)


def test_a_rule_may_be_registered_for_each_mode(name):
    cytape.register_jvp(name)(lambda op, tangent: 3 * tangent)
    op = general(name, lambda x: 3 * x)
    cytape.register_gradient(name)(lambda op, g: 3 * g)
    check_grads(op, [V3])
    np.testing.assert_array_equal(tangent_of(op, (V3, V3)).numpy(), 3 * V3)


# -- without a rule --------------------------------------------------------------------------------


def test_a_gradient_rule_is_found_by_name():
    op = general("DeclaredRule", lambda x: x, vjp=lambda op, dy: dy)
    assert gradient_rule("DeclaredRule") is op.vjp
    rule = register_gradient("DeclaredOnlyRule")(lambda op, dy: dy)
    assert gradient_rule("DeclaredOnlyRule") is rule
    general("DeclaredWithoutRule", lambda x: x)
    for name in ("DeclaredWithoutRule", "DeclaredNoSuchRule"):
        with pytest.raises(LookupError, match=f"register_gradient\\('{name}'\\)"):
            gradient_rule(name)


@each("first", [True, False])
def test_a_disabled_gradient_is_an_error_where_it_arrives(first):
    name = f"DeclaredDisabled{first}"
    if first:
        disable_gradient(name, "no use")
    op = general(name, lambda x: 2 * x)
    if not first:
        disable_gradient(name)
    x = cytape.constant(3.0)
    tape, y = taped(op, x)
    with pytest.raises(LookupError, match=f"gradient of op '{name}' is disabled") as info:
        tape.gradient(y, x)
    assert ("no use" in str(info.value)) is first
    with pytest.raises(ValueError, match="has a vjp already"):
        disable_gradient(name)
