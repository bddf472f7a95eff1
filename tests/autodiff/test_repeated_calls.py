"""State of a repeated call: a function that runs again for its gradient reads the first values."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from tests.cases import each

MATRICES = [np.random.default_rng(k).normal(size=(3, 3)) for k in range(3)]
X = np.array([0.3, -0.2, 0.5])
WRAPPERS = {
    "nothing": cytape.checkpoint,
    "recompute_grad": cytape.recompute_grad,
    "dots": lambda f: cytape.checkpoint(f, policy="dots"),
    "everything": lambda f: cytape.checkpoint(f, policy="everything"),
}
wrappers = each("wrapper", WRAPPERS.values(), ids=WRAPPERS)


def plain(x):
    for k, w in enumerate(MATRICES):
        x = cnp.tanh(x @ w) * (k + 1)
    return cnp.sum(x)


def check(f):
    np.testing.assert_allclose(cytape.grad(f)(X), cytape.grad(plain)(X), rtol=1e-12)
    tangent = np.ones(3)
    np.testing.assert_allclose(
        cytape.jvp(f, (X,), (tangent,))[1], cytape.jvp(plain, (X,), (tangent,))[1], rtol=1e-12)


@wrappers
def test_each_layer_has_the_closure_of_its_call(wrapper):
    def layers(x):
        for k, w in enumerate(MATRICES):
            x = wrapper(lambda x: cnp.tanh(x @ w) * (k + 1))(x)  # noqa: B023
        return cnp.sum(x)

    check(layers)


@wrappers
def test_one_layer_has_the_closure_of_each_call(wrapper):
    def layers(x):
        layer = wrapper(lambda x: cnp.tanh(x @ w) * (k + 1))
        for k, w in enumerate(MATRICES):  # noqa: B007
            x = layer(x)
        return cnp.sum(x)

    check(layers)


@wrappers
def test_functions_in_closures_have_theirs(wrapper):
    def layers(x):
        def product(x):
            return cnp.tanh(x @ w)

        layer = wrapper(lambda x: product(x) * (k + 1))
        for k, w in enumerate(MATRICES):  # noqa: B007
            x = layer(x)
        return cnp.sum(x)

    check(layers)


@wrappers
def test_globals_are_those_of_the_call(wrapper):
    names = {"cnp": cnp, "MATRICES": MATRICES, "wrapper": wrapper}
    exec("def layers(x):\n"
         "    global w, k\n"
         "    for k, w in enumerate(MATRICES):\n"
         "        x = wrapper(lambda x: cnp.tanh(x @ w) * (k + 1))(x)\n"
         "    return cnp.sum(x)\n", names)
    check(names["layers"])


@each("policy", ["dots", "everything"])
def test_a_policy_leaves_what_python_does_to_each_call(policy):
    data, calls = {}, []

    class Layer:
        def __call__(self, x):
            calls.append(None)
            return cnp.tanh(x @ data["w"]) * self.factor

    layer = Layer()
    kept = cytape.checkpoint(layer.__call__, policy=policy)

    def layers(x):
        for k, w in enumerate(MATRICES):
            data["w"], layer.factor = w, k + 1
            x = kept(x)
        return cnp.sum(x)

    check(layers)
    assert len(calls) == 6


@wrappers
def test_captured_tensors_are_those_of_the_call(wrapper):
    def f(w):
        c = w * 2.0
        y = wrapper(lambda q: q * c)(w * 1.0)
        c[0] = 9.0
        return cnp.sum(y)

    np.testing.assert_allclose(cytape.grad(f)(np.array([1.0, 2.0, 3.0])), [4.0, 8.0, 12.0])


@wrappers
def test_draws_are_those_without_a_policy(wrapper):
    def layer(x):
        x = cytape.nn.dropout(x, 0.5) * cnp.random.normal(1.0, 2.0, size=8)
        return cytape.nn.dropout(x, 0.5) + cnp.random.uniform(size=8) * cnp.random.rand(8)

    def summed(layer):
        def f(x):
            cnp.random.seed(0)
            return cnp.sum(layer(x) * x)

        return f

    x = np.arange(1.0, 9.0)
    expected = cytape.value_and_grad(summed(layer))(x)
    following = cnp.random.normal()
    for _ in range(2):
        found = cytape.value_and_grad(summed(wrapper(layer)))(x)
        assert cnp.random.normal() == following
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)


@pytest.mark.filterwarnings("error")
def test_a_policy_takes_what_numpy_draws_of_each_call():
    def layer(x):
        return x * np.random.normal()  # noqa: NPY002

    np.random.seed(0)  # noqa: NPY002
    expected = [cytape.grad(layer)(1.0) for _ in range(2)]
    np.random.seed(0)  # noqa: NPY002
    kept = cytape.checkpoint(layer, policy="dots")
    assert [cytape.grad(kept)(1.0) for _ in range(2)] == expected


@pytest.mark.filterwarnings("error")
def test_a_policy_takes_any_numbers():
    layer = cytape.checkpoint(lambda x, k: cnp.tanh(x) * k, policy="dots")
    x = cytape.constant(0.5)
    for k in range(8):
        assert cytape.grad(layer)(x, k / 2) == pytest.approx((1 - np.tanh(0.5) ** 2) * k / 2)


@wrappers
def test_a_function_gets_its_arguments_alone_without_recorders(wrapper):
    def f(x, *, y):
        x[0], y[1] = 9.0, 8.0
        return x * y

    x, y = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    np.testing.assert_array_equal(wrapper(f)(x, y=y), [27.0, 16.0])
    np.testing.assert_array_equal([x, y], [[1.0, 2.0], [3.0, 4.0]])


@each(in_place=[False, True], wrapper=[cytape.checkpoint, cytape.recompute_grad])
def test_tensors_in_objects_that_are_others_by_now_raise(wrapper, in_place):
    class Layer:
        pass

    def f(w):
        layer = Layer()
        layer.c = w * 2.0
        y = wrapper(lambda q: q * layer.c)(w * 1.0)
        if in_place:
            layer.c[0] = 9.0
        else:
            layer.c = w * 3.0
        return cnp.sum(y)

    message = "not find .* any more.*attribute, was replaced" if in_place else "reads 'c', which"
    with pytest.raises(TapeStateError, match=message):
        cytape.grad(f)(np.array([1.0, 2.0, 3.0]))


class Data:
    """An array as an attribute."""

    def __init__(self, array):
        self.array = array


@each(
    wrapper=[cytape.checkpoint, cytape.recompute_grad,
             lambda f: lambda q: cytape.checkpointed_scan(f, q, 3, 1),
             lambda f: lambda q: cytape.checkpoint_sequential([f, lambda q: q], 2, q)],
    reads=["closure", "attribute", "list"])
def test_buffers_that_are_filled_again_before_the_derivative_raise(wrapper, reads):
    buffer = np.ones((100, 100) if reads == "closure" else 3)
    data, arrays = Data(buffer), [buffer]
    layer = wrapper({
        "closure": lambda q: q + cnp.sum(q * buffer),
        "attribute": lambda q: q + cnp.sum(q * data.array),
        "list": lambda q: q + cnp.sum(q * arrays[0]),
    }[reads])

    def f(w):
        y = layer(w)
        buffer[0] = 2.0
        return y

    with pytest.raises(TapeStateError, match="which was replaced or changed in place since"):
        cytape.grad(f)(1.0)
    assert float(cytape.grad(layer)(1.0)) > 1.0


@wrappers
def test_a_function_may_write_to_what_it_reads(wrapper):
    data, seen = Data(np.zeros(20_000)), []

    def f(q):
        seen.append(1)
        data.array[0] += 1.0
        data.n = len(seen)
        return cnp.sin(q)

    assert cytape.grad(lambda w: wrapper(f)(wrapper(f)(w)))(0.5) == pytest.approx(
        np.cos(np.sin(0.5)) * np.cos(0.5))


def test_tensors_in_objects_may_have_no_gradient():
    def f(w):
        data = [w * 2.0, w * 3.0]

        def block(q):
            return q * data[0], cytape.stop_gradient(data[1]) * 2.0, data[1]

        y, z, _ = cytape.recompute_grad(block)(w * 1.0)
        return cnp.sum(y * z)

    w = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(cytape.grad(f)(w), 2 * 2 * w * 6 * w)
