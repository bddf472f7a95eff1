"""Kept arguments of functions with users' derivatives: the values at the call."""


import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each

SCALAR = cytape.Spec.of((), float)


def product_by_numpy(x, w):
    return cytape.numpy_function(
        lambda x, w: x * w, x, w, specs=SCALAR, grad_func=lambda x, w, dy: (dy * w, dy * x))


@cytape.custom_gradient
def product_by_gradient(x, w):
    return x * w, lambda dy: (dy * w, dy * x)


@cytape.custom_gradient
def product_called_when_run(x, w):
    def grad_fn(dy):
        return dy * w, dy * x

    return cytape.stop_gradient(x).numpy() * cytape.stop_gradient(w).numpy(), grad_fn


@cytape.custom_jvp
def product_by_jvp(x, w):
    return x * w


@product_by_jvp.defjvp
def product_rule(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    return x * w, dx * w + x * dw


PRODUCTS = [
    product_by_numpy, product_by_gradient, product_called_when_run, product_by_jvp,
    cytape.recompute_grad(lambda x, w: x * w),
    lambda x, w: cytape.recompute_grad(lambda x: x * w)(x),
    lambda x, w: cytape.recompute_grad(lambda x, *, w: x * w)(x, w=w)]
@each(f=PRODUCTS, place=["eager", "function", "branch", "graph"])
def test_variables_count_as_they_were_at_the_call(place, f):
    x, v = cytape.constant(2.0), cytape.Variable(3.0)
    if place == "graph":
        with cytape.Graph().as_default() as graph:
            p = cytape.placeholder("float64", ())
            y = f(p, v)
            with cytape.control_dependencies([y]):
                assigned = v.assign(10.0)
            with cytape.control_dependencies([assigned]):
                gradients = cytape.gradients(y, [p, v])
        assert cytape.Session(graph).run([*gradients, assigned], {p: 2.0})[:2] == [3.0, 2.0]
        return

    def called(x):
        y = cytape.cond(x > 0, lambda: f(x, v), lambda: x) if place == "branch" else f(x, v)
        v.assign(10.0)
        return y

    with ways.watching(x, persistent=True) as outer:
        with ways.watching(x, persistent=True) as tape:
            y = (called if place == "eager" else cytape.function(called))(x)
        v.assign(20.0)
        gradient = tape.gradient(y, x)
    assert float(gradient) == 3.0
    assert float(tape.gradient(y, v)) == 2.0
    assert tape.watched_variables() == (v,)
    assert float(outer.gradient(gradient, v)) == 1.0
    assert float(v) == 20.0


@each("f", PRODUCTS)
def test_gradients_in_a_function_that_assigns_in_between(f):
    v = cytape.Variable(3.0)

    @cytape.function
    def gradients(x):
        tape, y = ways.taped(lambda x: f(x, v), x)
        v.assign(10.0)
        return tape.gradient(y, [x, v])

    assert list(map(float, gradients(cytape.constant(2.0)))) == [3.0, 2.0]


def test_a_variable_that_the_function_also_reads_by_name_is_one_argument():
    v = cytape.Variable(2.0)

    @cytape.custom_gradient
    def cube(w):
        return w * w * v, lambda dy: dy * 3 * w**2

    for f in cube, cytape.function(lambda w: cube(v)):
        tape, y = ways.taped(lambda f=f: f(v))
        assert float(tape.gradient(y, v)) == 12.0


# ---- arrays ----------------------------------------------------------------------------------


def jvp_with_array(x, a):
    call = cytape.custom_jvp(lambda x, a: cnp.sum(x * a))
    call.defjvp(lambda p, t: (None, cnp.sum(t[0] * p[1])))
    return call(x, a)


def jvp_with_keyword(x, a):
    call = cytape.custom_jvp(lambda x, *, a: cnp.sum(x * a))
    call.defjvp(lambda p, t, a: (None, cnp.sum(t[0] * a)))
    return call(x, a=a)


def jvp_of_values(x, a):
    """A call that is made whenever a graph runs, with a rule that is called then, too."""
    call = cytape.custom_jvp(lambda x, *, a: np.sum(x.numpy() * a))
    call.defjvp(lambda p, t, a: (None, cnp.sum(t[0] * a * (p[0].numpy() == p[0].numpy()))))
    return call(x, a=a)


def gradient_with_array(x, a):
    return cytape.custom_gradient(lambda x, a: (cnp.sum(x * a), lambda dy: (dy * a, None)))(x, a)


def gradient_with_keyword(x, a):
    return cytape.custom_gradient(lambda x, *, a: (cnp.sum(x * a), lambda dy: dy * a))(x, a=a)


def gradient_of_values(x, a):
    def f(x, *, a):
        y = np.sum(cytape.stop_gradient(x).numpy() * a)
        return y, lambda dy: dy.numpy() * a

    return cytape.custom_gradient(f)(x, a=a)


def gradient_by_values(x, a):
    def f(x, a):
        return cnp.sum(x * a), lambda dy: (dy.numpy() * a, None)

    return cytape.custom_gradient(f)(x, a)


def recomputed_with_array(x, a):
    return cytape.recompute_grad(lambda x, a: cnp.sum(x * a))(x, a)


def recomputed_with_keyword(x, a):
    return cytape.recompute_grad(lambda x, *, a: cnp.sum(x * a))(x, a=[a])


def by_numpy_function(x, a):
    return cytape.numpy_function(
        lambda x, a: np.sum(x * a), x, a, specs=SCALAR, grad_func=lambda x, a, dy: (dy * a, None))


@each(f=[
    jvp_with_array, jvp_with_keyword, jvp_of_values, gradient_with_array, gradient_with_keyword,
    gradient_of_values, gradient_by_values, recomputed_with_array, recomputed_with_keyword,
    by_numpy_function], place=["eager", "function", "graph"])
def test_arrays_count_as_they_were_at_the_call(place, f):
    a = np.array([1.0, 2.0])
    x = cytape.constant([3.0, 4.0])
    if place == "graph":
        with cytape.Graph().as_default() as graph:
            p = cytape.placeholder("float64", (2,))
            y = f(p, a)
            a[:] = 100.0
            dy = cytape.gradients(y, p)[0]
        y, dy = cytape.Session(graph).run([y, dy], {p: x.numpy()})
    else:
        call = f if place == "eager" else cytape.function(lambda x: f(x, a))
        with ways.watching(x) as tape:
            y = f(x, a) if place == "eager" else call(x)
            a[:] = 100.0
        dy = tape.gradient(y, x)
        if place == "function":
            assert float(call(x)) == 11.0
    assert float(y) == 11.0
    assert np.asarray(dy).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("wrap", [cytape.custom_gradient, cytape.recompute_grad])
def test_arrays_count_as_at_the_call_if_only_a_variable_in_a_closure_is_followed(wrap, mode, given):
    v = cytape.Variable(2.0)

    def f(a, *, b):
        return v * a * b

    def with_gradient(a, *, b):
        return v * a * b, lambda dy, variables: (None, [cnp.sum(dy * a * b)])

    call = wrap(f if wrap is cytape.recompute_grad else with_gradient)
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    if mode == "reverse":
        with cytape.GradientTape(watch_accessed_variables=given) as tape:
            tape.watch(v)
            y = call(a, b=b)
            a[:] = b[:] = 0.0
        assert float(tape.gradient(y, v)) == 321.0
    else:
        with cytape.ForwardAccumulator(v, 1.0) as accumulator:
            y = call(a, b=b)
            a[:] = b[:] = 0.0
        assert accumulator.jvp(y).numpy().tolist() == [1.0, 20.0, 300.0]


def test_arrays_are_passed_unchanged_without_recorders():
    seen = []

    def f(x, a, b):
        seen.extend([a, b])
        return x, lambda dy: (dy, None)

    a, b = np.zeros(2), np.zeros(3)
    cytape.custom_gradient(f)(cytape.constant(1.0), a, b=b)
    assert seen[0] is a and seen[1] is b


# ---- arrays that are written to ----------------------------------------------------------------


def tripled(x, out):
    np.multiply(x.numpy(), 3.0, out=out)
    return cytape.constant(out.copy())


@cytape.custom_gradient
def writing_with_gradient(x, *, out):
    y = tripled(cytape.stop_gradient(x), out)
    return y, lambda dy: dy * out / x


@cytape.custom_gradient
def writing_for_a_gradient(x, *, out):
    def grad_fn(dy):
        np.multiply(dy.numpy(), 3.0, out=out)
        return out.copy()

    return tripled(cytape.stop_gradient(x), out), grad_fn


@cytape.custom_jvp
def writing_with_jvp(x, out):
    return tripled(x, out)


@writing_with_jvp.defjvp
def rule_that_writes(primals, tangents):
    (x, out), (dx, _) = primals, tangents
    return tripled(x, out), 3.0 * dx


WRITING = [writing_with_gradient, writing_for_a_gradient, writing_with_jvp]


@pytest.mark.filterwarnings("ignore:the gradient is None")
@each("f", WRITING, ids=["gradient", "in gradient", "jvp"])
@each("recorded", ["no", "tape", "both"])
def test_functions_may_write_to_their_arrays(recorded, f):
    x, out = cytape.constant([2.0, 2.0]), np.zeros(2)
    with cytape.GradientTape(persistent=True) as tape:
        if recorded != "no":
            tape.watch(x)
        y = f(x, out=out)
        assert y.numpy().tolist() == [6.0, 6.0]
        assert out.tolist() == [6.0, 6.0]
        if recorded == "both":
            out[:] = 50.0
    for _ in range(2):
        gradient = tape.gradient(y, x)
        if recorded == "no":
            assert gradient is None
        else:
            assert np.asarray(gradient).tolist() == [3.0, 3.0]
    assert out.tolist() == ([50.0] * 2 if recorded == "both" else [6.0, 6.0])


def under_a_tape(f, *args, **kwargs):
    x = cytape.constant(1.0)
    with ways.watching(x):
        return cytape.custom_gradient(lambda x, *args, **kwargs: (
            f(*args, **kwargs), lambda dy: None))(x, *args, **kwargs)


def test_writes_stay_after_an_error():
    def f(a):
        a[0] = 5.0
        raise KeyError

    a = np.zeros(2)
    with pytest.raises(KeyError):
        under_a_tape(f, a)
    assert a.tolist() == [5.0, 0.0]


def test_one_array_at_two_places_is_one():
    def f(a, c, *, b):
        assert a is b and c is not a and c.tolist() == [1.0, 0.0]
        a[0] = b[0] + 1.0
        a[1] = -0.0
        return a.sum()

    a, c = np.zeros(2), np.array([1.0, 0.0])
    assert float(under_a_tape(f, a, c, b=a)) == 1.0
    assert a.tolist() == [1.0, 0.0] and np.signbit(a[1])


def test_arrays_that_others_write_to_meanwhile_are_left_alone():
    a, nan = np.zeros(2), np.full(2, np.nan)

    def f(x, y):
        a[:] = 7.0
        nan[0] = 7.0
        return x.sum()

    under_a_tape(f, a, nan)
    assert a.tolist() == [7.0, 7.0]
    assert nan[0] == 7.0 and np.isnan(nan[1])


def test_arrays_that_cannot_be_written_to_stay_so_and_order_is_kept():
    def f(a, b, c):
        assert not a.flags.writeable and b.flags.writeable
        assert b.flags.f_contiguous and not b.flags.c_contiguous
        c[:] = [None, a]
        return 0.0

    a, b, c = np.zeros(2), np.zeros((2, 3), order="F"), np.array([1, "a"], dtype=object)
    a.setflags(write=False)
    under_a_tape(f, a, b, c)
    assert c[0] is None and c[1].tolist() == [0.0, 0.0]
