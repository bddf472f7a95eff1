"""Ops of functions of plain arrays: memory, lifetimes, and calls in C."""

import gc
import weakref

import numpy as np
import pytest

import cytape
from cytape.autograd.core import make_vjp
from cytape.autograd.extend import defvjp, defvjp_argnums, primitive
from cytape.tensor.tensor import live_tensors
from tests.cases import each


def with_rule(fun, *makers):
    op = primitive(fun)
    defvjp(op, *makers)
    return op


def doubled():
    return with_rule(lambda x: 2 * x, lambda ans, x: lambda g: 2 * g)


@each("n", [2, 100])
def test_arrays_of_the_user_are_copied(n):
    kept = np.arange(1.0, n + 1)
    returns_kept = with_rule(lambda x: kept, lambda ans, x: lambda g: g)
    same = with_rule(lambda x: x, lambda ans, x: lambda g: g)
    rule_returns_kept = with_rule(lambda x: 2 * x, lambda ans, x: lambda g: kept)
    y = returns_kept(cytape.constant(kept))
    vjp, value = make_vjp(lambda x: rule_returns_kept(same(x)) + same(x), kept)
    gradient = vjp(np.ones(n))
    kept[0] = 5
    assert y[0] == 1 and value[0] == 3 and gradient[1] == 3 and kept[1] == 2
    gradient[0] = 7
    assert vjp(np.ones(n))[0] == 6


def test_rules_get_plain_values_that_cannot_be_written_to():
    seen = []
    op = with_rule(
        lambda x, y: np.sum(x) * y,
        lambda ans, x, y: lambda g: [seen.extend([ans, x, y, g]), g * y * np.ones(2)][1])
    make_vjp(lambda x: op(x, 3.0), np.ones(2))[0](1.0)
    assert list(map(type, seen)) == [np.float64, np.ndarray, float, np.float64]
    with pytest.raises(ValueError, match="read-only"):
        seen[1][0] = 2


@each("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64, complex])
@each("shape", [(), (3,), (20, 2)])
def test_results_and_gradients_have_the_dtype_of_the_argument(dtype, shape):
    x = np.ones(shape, dtype)
    vjp, value = make_vjp(doubled(), x)
    assert value.dtype == vjp(x).dtype == dtype and np.all(vjp(x) == 2) and vjp(x).shape == shape


def test_keyword_arguments_reach_the_function_and_the_rule():
    op = with_rule(lambda x, power: x**power,
                   lambda ans, x, power: lambda g: g * power * x ** (power - 1))
    assert make_vjp(lambda x: op(x, power=3), 2.0)[0](1.0) == 12


def test_one_rule_for_all_arguments_gets_those_that_matter():
    asked = []
    op = primitive(lambda x, y, z: x * y * z)
    defvjp_argnums(op, lambda argnums, ans, args, kwargs: lambda g: [
        asked.append(argnums) or g * ans / args[i] for i in argnums])
    assert cytape.grad(lambda x, z: op(x, cytape.constant(3.0), z), (0, 1))(2.0, 5.0) == (15, 6)
    assert asked[0] == (0, 2)


@each("n", [9, 70])
def test_many_arguments(n):
    op = primitive(lambda *xs: sum(xs))
    defvjp_argnums(op, lambda argnums, ans, args, kwargs: lambda g: [g * i for i in argnums])
    assert cytape.grad(lambda *xs: op(*xs), n - 1)(*np.ones(n)) == n - 1


def test_an_error_of_the_function_or_its_rule_passes():
    def fails(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_vjp(with_rule(fails), 1.0)
    with pytest.raises(ZeroDivisionError):
        make_vjp(with_rule(lambda x: x, fails), 1.0)[0](1.0)
    with pytest.raises(cytape.errors.InvalidGradientError):
        make_vjp(with_rule(lambda x: x, lambda ans, x: lambda g: np.ones(2)), 1.0)[0](1.0)


@each("order", [1, 2])
@each("shape, found", [
    ((), [[2.0]]), ((1, 1), 2.0), ((3,), 2.0), ((3,), [[2.0]]), ((2, 1), [2.0, 2.0])])
def test_a_gradient_may_have_other_axes_of_length_one(order, shape, found):
    op = with_rule(lambda x: np.sum(x), lambda ans, x: lambda g: g * np.array(found))
    x = np.ones(shape)
    if order == 1:
        assert np.all(make_vjp(op, x)[0](1.0) == np.full(shape, 2.0))
    else:
        of_gradient = cytape.grad(lambda x: np.sum(make_vjp(lambda x: op(x * x), x)[0](1.0)))
        assert np.all(of_gradient(x) == np.full(shape, 4.0))


def test_an_entry_keeps_its_op_alive():
    vjp, _ = make_vjp(lambda x: doubled()(x), 3.0)
    gc.collect()
    assert vjp(1.0) == 2


def test_nothing_is_left():
    gc.collect()
    before = live_tensors()
    op = doubled()
    found = weakref.ref(op)

    def composed(x, op=op):
        return np.sum(op(op(x)))

    for x in (1.0, np.ones(3), np.ones(100)):
        cytape.grad(composed)(x)
        cytape.jvp(op, (x,), (x,))
    del op, x, composed
    gc.collect()
    assert live_tensors() == before and found() is None


def test_an_op_that_its_function_and_its_rule_call_is_collected():
    def run():
        op = primitive(lambda x: x * op(x - 1) if x > 1 else x)
        defvjp(op, lambda ans, x: lambda g: g * op(x))
        cytape.grad(op)(3.0)
        return weakref.ref(op)

    found = run()
    gc.collect()
    assert found() is None


class Model:
    @primitive
    def scaled(self, x):
        return 2 * x


defvjp(Model.scaled, None, lambda ans, self, x: lambda g: 2 * g)


@each("n_tapes", [1, 2])
def test_a_tape_among_the_arguments_is_collected(n_tapes):
    def run():
        model, x = Model(), cytape.constant(1.0)
        model.tapes = [cytape.GradientTape(persistent=True) for _ in range(n_tapes)]
        for tape in model.tapes:
            tape.__enter__()
            tape.watch(x)
        y = model.scaled(model.scaled(x))
        for tape in reversed(model.tapes):
            tape.__exit__(None, None, None)
        assert [float(tape.gradient(y, x)) for tape in model.tapes] == [4] * n_tapes
        return weakref.ref(model)

    found = run()
    gc.collect()
    assert found() is None


def test_other_arguments_live_as_long_as_the_entry():
    model = Model()
    found = weakref.ref(model)
    vjp, _ = make_vjp(lambda x, model=model: model.scaled(x), 1.0)
    del model
    gc.collect()
    assert found() is not None and vjp(1.0) == 2
    del vjp
    gc.collect()
    assert found() is None


def test_rules_of_complex_functions_get_autograds_gradients():
    op = with_rule(lambda z: z**2, lambda ans, z: lambda g: 2 * z * g)
    for z in (1 + 2j, np.array([1 + 2j, 3j])):
        assert np.all(make_vjp(op, z)[0](1j * np.ones_like(z)) == 2j * z)


def test_rules_of_second_order_depend_on_the_result_and_the_arguments():
    exponential = with_rule(np.exp, lambda ans, x: lambda g: g * ans)
    product = with_rule(lambda x, y: x * y, lambda ans, x, y: lambda g: g * y,
                        lambda ans, x, y: lambda g: g * x)
    assert cytape.grad(cytape.grad(exponential))(1.0) == np.e
    assert cytape.grad(cytape.grad(lambda x: product(x, exponential(x))))(0.0) == 2
