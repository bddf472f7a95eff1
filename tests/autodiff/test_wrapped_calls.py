"""Arguments of functions with users' derivatives."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.autodiff.wrapped_calls import Arguments, own_leaf, value_of
from tests import ways
from tests.cases import each


def test_tensors_are_told_from_what_stays():
    x, v = cytape.constant(1.0), cytape.Variable(2.0)
    args = ({"b": x, "a": 5}, [v, "word"])
    arguments = Arguments(args, [5, x, v, "word"])
    assert arguments.is_tensor == [False, True, True, False]
    assert [tensor is expected for tensor, expected in zip(arguments.tensors, [x, v], strict=True)]
    assert arguments.packed([10, 20]) == ({"b": 10, "a": 5}, [20, "word"])
    assert arguments.packed([10, 20], str) == ({"b": 10, "a": "5"}, [20, "word"])
    kept = arguments.without_tensors()
    assert kept.packed([10, 20]) == ({"b": 10, "a": 5}, [20, "word"])
    assert kept.tensors == []


def test_arguments_become_parts_of_a_graph():
    graph = cytape.Graph()
    array = np.ones(2)
    v = cytape.Variable(3.0)
    with graph.as_default():
        p = graph.placeholder("float64", ())
        assert own_leaf(graph, p) is p
        assert own_leaf(graph, cytape.constant(1.0)).graph is graph
        assert own_leaf(graph, v).graph is graph
        kept = own_leaf(graph, array)
    array[:] = 5.0
    assert kept.tolist() == [1.0, 1.0]
    assert not kept.flags.writeable
    assert own_leaf(graph, "word") == "word"
    assert float(value_of(v)) == 3.0


def doubled(x):
    x *= 2
    return x, lambda g: 2 * g


def doubled_backward(x):
    def backward(g):
        g *= 2
        return g

    return 2 * x, backward


@each("f", [doubled, doubled_backward])
def test_functions_that_change_their_arguments_are_differentiated_alike_everywhere(f):
    f = cytape.custom_gradient(f)
    gradient = cytape.grad(f)
    found = [gradient(3.0), cytape.function(gradient)(3.0), cytape.grad(cytape.function(f))(3.0),
             cytape.vmap(gradient)(np.array([3.0]))[0]]
    assert found == [2.0] * 4


X, WEIGHTS = np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])


def with_gradient(x):
    return cytape.custom_gradient(lambda x: (x * 1.0, doubled_in_place))(x)


def doubled_in_place(*args):
    *_, g = args
    g *= 2.0
    return g


def with_array_gradient(x):
    return cytape.numpy_function(
        lambda x: x * 1.0, x, specs=cytape.Spec.of((3,), float), grad_func=doubled_in_place)


def square_by_arguments(x, g):
    x *= 2.0
    g *= x
    return g


def square_by_call(op, g):
    (x,), (y,) = op.inputs, op.outputs
    y *= 0.0
    return square_by_arguments(x, g) + y


with_grad_func = cytape.function(lambda x: x * 1.0, grad_func=doubled_in_place)
with_python_grad_func = cytape.function(lambda x: x * 1.0, python_grad_func=doubled_in_place)
with_jvp = cytape.custom_jvp(lambda x: x * 1.0)
with_jvp_of_primals = cytape.custom_jvp(lambda x: x * 1.0)


@with_jvp.defjvp
def doubled_tangent(primals, tangents):
    dx, = tangents
    dx *= 2.0
    return primals[0] * 1.0, dx


@with_jvp_of_primals.defjvp
def changed_primal(primals, tangents):
    (x,), (dx,) = primals, tangents
    x *= 0.0
    x += 2.0
    return x, dx * x


@each("f", [
    with_gradient, with_array_gradient, with_grad_func, with_python_grad_func, with_jvp,
    with_jvp_of_primals])
def test_rules_that_change_gradients_or_tangents_in_place_change_no_others(f):
    def loss(x):
        return cnp.sum((f(x) + x + f(x * 1.0)) * WEIGHTS)

    gradient = 5 * WEIGHTS
    for found in (cytape.grad(loss), cytape.function(cytape.grad(loss)),
                  cytape.grad(cytape.function(loss)), cytape.grad(cytape.recompute_grad(loss))):
        np.testing.assert_allclose(found(X), gradient)
    if f is not with_array_gradient:
        np.testing.assert_allclose(
            cytape.vmap(cytape.grad(loss))(np.stack([X, X])), np.stack([gradient, gradient]))
    v = np.array([1.0, -1.0, 2.0])
    for tangent in (
            cytape.jvp(loss, (X,), (v,)), cytape.jvp(cytape.function(loss), (X,), (v,)),
            cytape.function(lambda x, v: cytape.jvp(loss, (x,), (v,)))(X, v)):
        assert float(tangent[1]) == gradient @ v


@each("f", [with_gradient, with_array_gradient, with_grad_func, with_python_grad_func, with_jvp])
def test_the_gradients_that_a_user_starts_from_stay_what_they_are(f):
    x, seed = cytape.constant(X), cytape.constant(WEIGHTS)
    tape, y = ways.taped(f, x, persistent=True)
    for _ in range(2):
        of_x, of_y = tape.gradient(y, [x, y], output_gradients=seed)
        np.testing.assert_array_equal(of_x.numpy(), 2 * WEIGHTS)
        np.testing.assert_array_equal(of_y.numpy(), WEIGHTS)
        np.testing.assert_array_equal(seed.numpy(), WEIGHTS)


@each("way", [lambda f: f, cytape.function], ids=["eager", "traced"])
def test_gradients_that_a_user_changes_in_place_are_not_shared(way):
    @way
    def several(x):
        tape, y = ways.taped(lambda x: x * 1.0, x, persistent=True)
        seed = x * WEIGHTS
        of_y = tape.gradient(y, y, output_gradients=seed)
        of_y *= 5.0
        return of_y, tape.gradient(y, x, output_gradients=seed), seed

    of_y, of_x, seed = several(cytape.constant(X))
    np.testing.assert_array_equal(of_y.numpy(), 5 * X * WEIGHTS)
    np.testing.assert_array_equal(of_x.numpy(), X * WEIGHTS)
    np.testing.assert_array_equal(seed.numpy(), X * WEIGHTS)


@each("way", [lambda f: f, cytape.function], ids=["eager", "traced"])
def test_tangents_that_a_user_changes_in_place_are_not_shared(way):
    @way
    def several(x):
        dx = x * 1.0
        with cytape.ForwardAccumulator(x, dx) as accumulator:
            y = x * x
            dx *= 100.0
            z = y + x
        dy = accumulator.jvp(y)
        dy *= 7.0
        return dy, accumulator.jvp(y), accumulator.jvp(z), accumulator.jvp(x), dx

    found = several(cytape.constant(X))
    expected = 14 * X**2, 2 * X**2, 2 * X**2 + X, X, 100 * X
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


@each("f", [
    cytape.function(lambda x: x * x, grad_func=square_by_arguments),
    cytape.function(lambda x: x * x, python_grad_func=square_by_call),
], ids=["grad_func", "python_grad_func"])
def test_gradient_functions_of_traces_may_change_their_arguments_in_place(f):
    def loss(x):
        return cnp.sum(f(x) * WEIGHTS) + cnp.sum(f(x[::-1]))

    gradient = 2 * X * WEIGHTS + 2 * X
    for found in (cytape.grad(loss), cytape.function(cytape.grad(loss)),
                  cytape.grad(cytape.function(loss))):
        np.testing.assert_allclose(found(X), gradient)
    for tangent in (cytape.jvp(loss, (X,), (X,)), cytape.jvp(cytape.function(loss), (X,), (X,))):
        np.testing.assert_allclose(tangent[1], gradient @ X)
    x = cytape.constant(X)
    tape, y = ways.taped(f, x, persistent=True)
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * X)
    np.testing.assert_array_equal(y.numpy(), X**2)
