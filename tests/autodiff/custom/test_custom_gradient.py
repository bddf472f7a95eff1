"""custom_gradient, recompute_grad, stop_gradient."""

import copy
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each


def gradient_of(f, *args, output_gradients=None):
    """Return a function's gradients, and those of its gradients' sum."""
    args = [arg if isinstance(arg, cytape.Variable) else cytape.constant(arg) for arg in args]
    with ways.watching(args) as outer:
        inner, y = ways.taped(f, *args)
        first = inner.gradient(y, args, output_gradients)
    return first, outer.gradient([g for g in first if g is not None], args)


@cytape.custom_gradient
def tripled(x):
    """Return x, with three times its gradient."""

    def grad_fn(dy):
        return 3.0 * dy

    return x, grad_fn


@cytape.custom_gradient
def two_and_two(pair, c):
    """Return two outputs of three leaves."""
    a, b = pair["a"], pair["b"]

    def grad_fn(dx, dy):
        return {"a": dx * 10, "b": [dy * 100]}, None

    return (a * c, [b * c]), grad_fn


# -- custom_gradient -------------------------------------------------------------------------------


def test_D_2_30_grad_fn_gets_a_gradient_per_output_and_returns_one_per_leaf():
    a, b, c = (cytape.constant(float(i)) for i in (2, 3, 5))
    with ways.watching(a, b, c, persistent=True) as tape:
        x, [y] = two_and_two({"a": a, "b": b}, c)
        z = x + 2 * y
    assert (float(x), float(y)) == (10.0, 15.0)
    gradients = tape.gradient(z, [a, b, c])
    assert [float(g) for g in gradients[:2]] == [10.0, 200.0]
    assert gradients[2] is None
    assert [float(g) for g in tape.gradient(y, [a, b])] == [0.0, 100.0]  # zeros for the unused one


@each("returned", [[], [1.0], [1.0, 2.0, 3.0]])
def test_D_2_30_the_wrong_number_of_gradients(returned):
    @cytape.custom_gradient
    def f(x, y):
        return x * y, lambda dz: returned

    with pytest.raises(ValueError, match=f"f must return 2 gradients.* got {len(returned)}"):
        gradient_of(f, 2.0, 3.0)


@each("returned", [np.ones(3), np.ones((1, 2)), 1.0])
def test_D_2_30_a_gradient_of_the_wrong_shape(returned):
    @cytape.custom_gradient
    def f(x):
        return np.sum(x), lambda dy: returned

    with pytest.raises(InvalidGradientError, match="shape"):
        gradient_of(f, np.ones(2))


def test_D_2_30_plain_arrays_are_fine_as_gradients():
    @cytape.custom_gradient
    def f(x):
        return np.sum(x), lambda dy: np.array([3, 4])

    (first,), _ = gradient_of(f, np.ones(2, np.float32))
    assert first.dtype == np.float32
    assert first.numpy().tolist() == [3.0, 4.0]


@each("returned", [None, 1.0, (1.0,), (1.0, 2.0), (1.0, 2.0, 3.0)])
def test_D_2_30_a_function_that_returns_no_pair(returned):
    f = cytape.custom_gradient(lambda x: returned)
    with pytest.raises(TypeError, match="pair"):
        f(cytape.constant(1.0))


def _reads(v, grad_fn):
    @cytape.custom_gradient
    def f(x):
        return x * v, grad_fn

    return f


def test_D_2_31_gradients_of_variables_that_are_read_inside():
    v, w = cytape.Variable(3.0), cytape.Variable(5.0)
    received = []

    @cytape.custom_gradient
    def f(x):
        y = x * w * v

        def grad_fn(dy, variables=None):
            received.append(variables)
            return dy * 10, [dy * 20, dy * 30]

        return y, grad_fn

    x = cytape.constant(2.0)
    with ways.watching(x) as tape:
        y = f(x)
        assert tape.watched_variables() == (v, w)
    assert float(y) == 30.0
    assert [float(g) for g in tape.gradient(y, [x, v, w])] == [10.0, 20.0, 30.0]
    assert [variable is other for variable, other in zip(received[0], (v, w), strict=True)] == [
        True, True,
    ]


@each("grad_fn", [
    lambda dy, variables: (dy, [2 * dy]), lambda dy, *, variables: (dy, [2 * dy]),
    lambda dy, *, variables=None: ([dy], 2 * dy),
    lambda dy, **options: (dy, [2 * dy for _ in options["variables"]]),
])
def test_D_2_31_ways_to_accept_variables(grad_fn):
    v = cytape.Variable(3.0)
    (by_x, by_v), _ = gradient_of(lambda x, v: _reads(v, grad_fn)(x), 2.0, v)
    assert (float(by_x), float(by_v)) == (1.0, 2.0)


def test_D_2_31_grad_fn_must_accept_variables():
    v = cytape.Variable(3.0)
    with cytape.GradientTape():
        with pytest.raises(TypeError, match="`variables`"):
            _reads(v, lambda dy: dy)(cytape.constant(2.0))


@each("count", [0, 2])
def test_D_2_31_the_wrong_number_of_variable_gradients(count):
    v = cytape.Variable(3.0)
    f = _reads(v, lambda dy, variables: (dy, [dy] * count))
    with pytest.raises(ValueError, match=f"1 gradients for its variables.* got {count}"):
        gradient_of(f, 2.0)


def test_D_2_31_gradients_must_be_a_pair_where_variables_are_read():
    v = cytape.Variable(3.0)
    with pytest.raises(ValueError, match="pair"):
        gradient_of(_reads(v, lambda dy, variables: dy), 2.0)


def test_D_2_31_variables_among_the_arguments_are_not_passed_again():
    v = cytape.Variable(3.0)

    @cytape.custom_gradient
    def f(v):
        return v * v, lambda dy: dy * 7

    (first,), _ = gradient_of(f, v)
    assert float(first) == 7.0


def test_D_2_32_it_nests():
    x = cytape.constant(1.0)
    tape, y = ways.taped(lambda x: tripled(tripled(x)), x)
    assert float(y) == 1.0
    assert float(tape.gradient(y, x)) == 9.0

    @cytape.custom_gradient
    def outer(x):
        return tripled(x) * 2, lambda dy: tripled(dy) * 5

    first, second = gradient_of(lambda x: outer(x) ** 2, 1.0)
    assert float(first[0]) == 20.0  # 2 y * 5 with y = 2
    assert float(second[0]) == 2 * 5 * 3 * 5  # dy/dx is 5, d tripled is 3


def test_D_2_32_it_works_as_a_method():
    class Layer:
        scale = 4.0

        @cytape.custom_gradient
        def apply(self, x):
            """Scale."""
            return x * self.scale, lambda dy: dy * (self.scale + 1)

    (first,), _ = gradient_of(Layer().apply, 2.0)
    assert float(first) == 5.0
    assert Layer.apply.__doc__ == "Scale."
    assert float(Layer().apply(cytape.constant(2.0))) == 8.0


def test_D_2_32_arrays_in_arrays_out():
    x = np.array([1.0, 2.0])
    assert type(tripled(x)) is np.ndarray
    assert tripled(2.0) == 2.0
    v = cytape.Variable(1.0)
    tape, y = ways.taped(lambda: _reads(v, lambda dy, variables: (dy, [np.sum(dy)]))(x))
    assert isinstance(y, cytape.Tensor)
    assert float(tape.gradient(y, v)) == 2.0


def test_D_2_32_foreign_code_computes_on_arrays():
    @cytape.custom_gradient
    def f(x):
        array = x.numpy()
        return np.outer(array, array), lambda dy: (dy + dy.T) @ array

    x = np.array([1.0, 2.0])
    assert isinstance(f(cytape.constant([1.0])), cytape.Tensor)
    np.testing.assert_allclose(cytape.grad(lambda x: np.sum(f(x)))(x), [6.0, 6.0])


def test_D_2_32_grad_fn_is_differentiable():
    @cytape.custom_gradient
    def sin(x):
        return np.sin(x), lambda dy: dy * np.cos(x)

    first, second = gradient_of(sin, 0.7)
    assert float(first[0]) == pytest.approx(np.cos(0.7))
    assert float(second[0]) == pytest.approx(-np.sin(0.7))


def test_D_2_32_grad_fn_may_use_what_the_body_computed():
    @cytape.custom_gradient
    def exp(x):
        y = np.exp(x)
        return y, lambda dy: dy * y

    first, second = gradient_of(exp, 0.7)
    assert float(first[0]) == pytest.approx(np.exp(0.7))
    assert float(second[0]) == pytest.approx(np.exp(0.7))


def test_second_order_where_grad_fn_has_a_custom_gradient():
    @cytape.custom_gradient
    def f(x):
        @cytape.custom_gradient
        def grad_fn(dy):
            return dy * cytape.stop_gradient(x) * 2, lambda ddy: ddy * 100

        return x * x, grad_fn

    first, _ = gradient_of(f, 3.0)
    assert float(first[0]) == 6.0


def test_non_differentiable_arguments():
    @cytape.custom_gradient
    def f(x, n, text, options=None):
        return x * n, lambda dy: (dy * 7, dy, dy, dy)

    n = cytape.constant(3)
    x = cytape.constant(2.0)
    tape, y = ways.taped(lambda x: f(x, n, "text", None), x)
    assert float(y) == 6.0
    gradients = tape.gradient(y, [x, n])
    assert float(gradients[0]) == 7.0
    assert gradients[1] is None


def test_integer_outputs():
    @cytape.custom_gradient
    def f(x):
        return (x * 2, np.argmax(x)), lambda dy, _: dy * 5

    x = cytape.constant([1.0, 2.0])
    tape, (y, index) = ways.taped(f, x)
    assert int(index) == 1
    assert tape.gradient(y, x).numpy().tolist() == [5.0, 5.0]


def test_tensors_must_be_passed_by_position():
    x = cytape.constant(1.0)
    assert float(tripled(x)) == 1.0
    with pytest.raises(TypeError, match="by position"):
        tripled(x=x)
    assert tripled(x=1.0) == 1.0


def test_an_error_in_the_body_leaves_no_tape_behind():
    @cytape.custom_gradient
    def f(x):
        raise KeyError("body")

    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        with pytest.raises(KeyError, match="body"):
            f(v)
        y = v * v
    assert float(tape.gradient(y, v)) == 6.0


def test_it_looks_and_pickles_like_the_function():
    assert tripled.__name__ == "tripled"
    assert tripled.__doc__ == "Return x, with three times its gradient."
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    assert copy.deepcopy(tripled) is tripled


def test_a_complex_gradient_arrives_in_the_convention_of_the_tape():
    received = []

    @cytape.custom_gradient
    def f(z):
        def grad_fn(dy):
            received.append(complex(dy))
            return dy * np.conj(2 * z)

        return z * z, grad_fn

    (first,), _ = gradient_of(f, 7 + 3j, output_gradients=1j)
    assert received == [1j]
    assert complex(first) == 1j * (14 - 6j)


def test_a_dropped_result_frees_what_its_gradient_would_need():
    x = cytape.constant(np.ones(3))

    @cytape.custom_gradient
    def exp(x):
        y = np.exp(x)
        return y, lambda dy: dy * y

    with ways.watching(x) as tape:
        before = live_tensors()
        y = exp(exp(x))
        del y
        assert live_tensors() == before
        assert tape.gradient(x, x) is not None


@each("within", [lambda f: f, cytape.function], ids=["eager", "traced"])
@each("derive", [
    cytape.grad, lambda f: lambda x: cytape.jvp(f, (x,), (1.0,)), cytape.hessian,
], ids=["reverse", "forward", "second order"])  # fmt: skip
def test_a_gradient_function_that_differentiates_itself(derive, within):
    @cytape.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * cytape.grad(f)(x)

    for _ in range(2):
        with pytest.raises(RecursionError, match="the grad_fn of .*f needs its own derivative"):
            derive(within(f))(3.0)
    assert float(cytape.grad(cytape.custom_gradient(lambda x: (x, lambda dy: 2 * dy)))(1.0)) == 2.0


def test_a_gradient_function_may_differentiate_itself_for_other_arguments():
    @cytape.custom_gradient
    def power(x, n):
        def grad_fn(dy):
            return dy * (power(x, n - 1) + x * cytape.grad(power)(x, n - 1) if n else 0.0 * x), None

        return x**n, grad_fn

    assert float(cytape.grad(power)(1.5, 4)) == 4 * 1.5**3


@each("depth", [5.0, 25.0, 40.0])
def test_a_gradient_function_that_differentiates_itself_may_end_by_values(depth):
    @cytape.custom_gradient
    def f(x):
        return x, lambda dy: dy * (cytape.grad(f)(x - 1.0) + 1 if x > 0 else 0.0)

    assert float(cytape.grad(f)(depth)) == depth


# -- stop_gradient ---------------------------------------------------------------------------------


def test_stop_gradient_is_a_constant_to_every_tape():
    x = cytape.constant(3.0)
    with ways.watching(x, persistent=True) as tape:
        stopped = cytape.stop_gradient(x)
        y = stopped * x
    assert float(stopped) == 3.0
    assert tape.gradient(stopped, x) is None
    assert float(tape.gradient(y, x)) == 3.0
    assert tape.gradient(y, stopped) is None


def test_stop_gradient_of_arrays_and_variables():
    assert type(cytape.stop_gradient(np.ones(2))) is np.ndarray
    v = cytape.Variable(2.0)
    tape, y = ways.taped(lambda: cytape.stop_gradient(v) * v)
    assert float(tape.gradient(y, v)) == 2.0


def test_softmax_with_a_stopped_maximum():
    x = np.array([1.0, 2.0, 4.0])

    def logsumexp(x):
        top = cytape.stop_gradient(cnp.max(x))
        return cnp.log(cnp.sum(cnp.exp(x - top))) + top

    np.testing.assert_allclose(cytape.grad(logsumexp)(x), np.exp(x) / np.sum(np.exp(x)))


@each("place", [lambda f: f, cytape.function])
def test_a_function_may_change_what_it_is_given_unseen(place):
    @cytape.custom_gradient
    def doubled(x):
        x *= 2.0
        return x, lambda g: 3.0 * g

    def outer(v):
        given = v * 1.0
        result = doubled(given)
        return given, result

    v = np.array([1.0, 2.0])
    given, result = place(outer)(cytape.constant(v))
    np.testing.assert_array_equal(given, v)
    np.testing.assert_array_equal(result, 2 * v)
    found = place(cytape.grad(lambda v: sum(cnp.sum(x * x) for x in outer(v))))(v)
    np.testing.assert_array_equal(found, 2 * v + 3 * 2 * 2 * v)


def test_a_backward_function_may_write_into_what_it_returned_before():
    buffer = np.empty(3)

    @cytape.custom_gradient
    def double(x):
        def backward(upstream):
            buffer[:] = 2 * upstream.numpy()
            return buffer
        return 2 * x, backward

    x = cytape.constant(np.ones(3))
    gradient = ways.gradient(lambda x: double(x) + 3 * double(x), x)
    buffer[:] = 0.0
    assert gradient.numpy().tolist() == [8.0, 8.0, 8.0]


@each("place", [lambda f: f, cytape.function])
def test_a_function_is_no_gradient(place):
    calls = []

    def gradient():
        calls.append(1)
        return 5.0

    f = place(cytape.custom_gradient(lambda x: (x * 2.0, lambda dy: gradient)))
    g = place(lambda x: cytape.numpy_function(
        lambda x: x * 2.0, x, specs=x.spec, grad_func=lambda x, dy: gradient))
    for function in f, g:
        with pytest.raises(TypeError, match="function"):
            cytape.grad(function)(cytape.constant(1.0))
    assert not calls


def test_rules_write_to_arrays_of_their_closure():
    log, seen = np.zeros(1), np.zeros(2)

    @cytape.custom_gradient
    def doubled(x):
        def gradient(dy):
            log[0] += 1
            seen[int(log[0]) - 1:] = dy
            return 2 * dy

        return 2 * x, gradient

    assert cytape.grad(lambda x: doubled(doubled(x)))(1.0) == 4.0
    np.testing.assert_array_equal(log, [2.0])
    np.testing.assert_array_equal(seen, [1.0, 2.0])
