"""vmap: what it computes against a loop, wherever it is called and whatever is done with it."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError, SymbolicTensorError
from cytape.testing import check_grads
from tests import ways
from tests.cases import each, sampled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
W = RNG.normal(size=3)


def loss(w, x):
    return cnp.sum(cnp.tanh(w * x)) ** 2


def looped(f, *rows):
    return np.stack([np.asarray(f(*row)) for row in zip(*rows, strict=True)])


WAYS = {
    "eager": lambda f: f,
    "function": cytape.function,
    "graph": lambda f: partial(ways.run_in_graph, f),
    "graph of unknown extents": lambda f: partial(ways.run_in_graph, f, known=False),
}


@each("way", WAYS)
@each("f", [
    lambda x: cnp.sum(cnp.sin(x)) * x, lambda x: x @ W,
    lambda x: cytape.cond(cnp.sum(x) > 0, lambda: x * 2.0, lambda: -x),
    lambda x: cytape.while_loop(lambda y: cnp.sum(y) < 10, lambda y: y + cnp.exp(x), [x])[0],
    lambda x: cytape.scan(lambda total, y: total * y, x),
    lambda x: x[cnp.argmax(x)], lambda x: cnp.convolve(x, [1.0, 2.0]),
    cytape.grad(lambda x: loss(W, x)), cytape.hessian(lambda x: loss(W, x)),
    cytape.jacrev(lambda x: x * x[0]),
    lambda x: cytape.jvp(lambda y: loss(W, y), (x,), (x * x,))[1],
    cytape.vmap(lambda y: y**2 + 1.0), cytape.checkpoint(lambda x: loss(W, x)),
])  # fmt: skip
def test_it_is_a_loop(way, f):
    found = WAYS[way](cytape.vmap(f))(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, looped(f, X), rtol=1e-12)


@sampled(2, way=["eager", "function"], f=[
    lambda w, x: loss(w, x), lambda w, x: cytape.grad(loss)(w, x),
    lambda w, x: cytape.cond(cnp.sum(x) > 0, lambda: loss(w, x), lambda: cnp.sum(w)),
    lambda w, x: w[cnp.argmax(x)] * cnp.convolve(w, x),
])  # fmt: skip
def test_it_can_be_differentiated_in_both_modes_twice(way, f):
    check_grads(WAYS[way](cytape.vmap(f, (None, 0))), [W, X], order=2)


def test_gradients_of_each_example():
    gradients = cytape.vmap(cytape.grad(loss), (None, 0))(W, X)
    np.testing.assert_allclose(gradients, looped(lambda x: cytape.grad(loss)(W, x), X))
    params = {"w": W, "b": np.float64(0.5)}
    found = cytape.vmap(
        cytape.value_and_grad(lambda p, x: loss(p["w"], x) * p["b"]), (None, 0))(params, X)
    np.testing.assert_allclose(found[0], looped(lambda x: loss(W, x) * 0.5, X))
    np.testing.assert_allclose(found[1]["w"], 0.5 * gradients)
    np.testing.assert_allclose(found[1]["b"], looped(lambda x: loss(W, x), X))


def test_loss_of_labels_that_are_integers():
    logits, labels = RNG.normal(size=(4, 3)), np.array([2, 0, 1, 2])
    found = cytape.vmap(lambda z, y: cytape.nn.log_softmax(z)[y])(logits, labels)
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(found, expected[range(4), labels])
    gradients = cytape.vmap(cytape.grad(lambda z, y: cytape.nn.log_softmax(z)[y]))(logits, labels)
    np.testing.assert_allclose(gradients, np.eye(3)[labels] - np.exp(expected))


def set_first(x):
    x[0] = 5.0
    return x * 2.0


def add_five(x):
    x += 5.0
    return x * 2.0


def without_large(x):
    y = x.copy()
    y[x > 0.5] = 0.0
    return y


@each(way=WAYS, f=[set_first, add_five, without_large])
def test_members_may_be_changed_in_place(way, f):
    x = X.copy()
    np.testing.assert_array_equal(WAYS[way](cytape.vmap(f))(x), looped(f, X.copy()))
    np.testing.assert_array_equal(x, X)
    tensor = cytape.constant(X)
    cytape.vmap(f)(tensor)
    np.testing.assert_array_equal(tensor.numpy(), X)


@each("f", [
    lambda x: cytape.vmap(lambda row: row)(x),
    lambda x: cytape.vmap(lambda row, y: y, (0, None), None)(X, x),
    lambda x: cytape.vmap(lambda row: x, 0, None)(X),
])
def test_results_share_no_memory(f):
    x = cytape.constant(X)
    y = cytape.constant(np.asarray(f(x)) * 1.0) if isinstance(f(x), np.ndarray) else f(x)
    y[0] = 100.0
    np.testing.assert_array_equal(x.numpy(), X)


def halved(x):
    return cytape.while_loop(lambda y: y > 1.0, lambda y: y * y / 4.0, [x])[0]


doubled = cytape.custom_jvp(lambda x: x * 2.0)
doubled.defjvp(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 7.0))
tripled = cytape.custom_gradient(lambda x: (x * 3.0, lambda g: g * 5.0))


def unrecorded(x):
    with cytape.stop_recording():
        y = x[x > 0]
    return cnp.sum(x[x > 0] ** 2 * y)


OF_DIFFERENT_SHAPES = {
    "mask": lambda x: cnp.sum(x[x > 0] ** 3),
    "two": lambda x: cnp.sum(x[x > 0]) * cnp.sum(x[x < 0] ** 2),
    "back and forth": lambda x: cnp.sum(x[x > 0] * (2.0 * cnp.sum(x[x > 0]))) * x,
    "at": lambda x: cytape.grad(lambda y: cnp.sum(y**3))(x).at[x > 0].set(cnp.sum(x)),
    "added": lambda x: (x * x).at[x > 0].add(10.0 * x[x > 0]),
    "nonzero": lambda x: cnp.sum(cnp.nonzero(x > 0)[0]) * x,
    "unique": lambda x: cnp.sum(cnp.unique(cnp.round(x)) ** 2) * x,
    "vmap": lambda x: cytape.vmap(lambda y: cnp.sum(x[x > y]))(x),
    "its gradient": cytape.grad(lambda x: cnp.sum(x[x > 0] ** 3)),
    "a loop's gradient": cytape.grad(lambda x: halved(2.5 + cnp.sin(cnp.sum(x)))),
    "in a cond": lambda x: cytape.cond(
        x[0] > 0, lambda: cnp.sum(x[x > 0] ** 2), lambda: cnp.sum(x[x < 0] ** 3)),
    "own JVP": lambda x: cnp.sum(doubled(x[x > 0]) ** 2),
    "own gradient": lambda x: cnp.sum(tripled(x[x > 0]) ** 2),
    "not recorded": unrecorded,
}


@each(way=WAYS, name=OF_DIFFERENT_SHAPES)
def test_shapes_in_between_may_differ_from_member_to_member(way, name):
    f = OF_DIFFERENT_SHAPES[name]
    rows = [f(cytape.constant(x)) for x in X]
    np.testing.assert_allclose(WAYS[way](cytape.vmap(f))(X), np.stack(rows), rtol=1e-12)


@each(way=["eager", "function"], name=OF_DIFFERENT_SHAPES)
def test_derivatives_where_shapes_differ_are_those_of_members(way, name):
    f = OF_DIFFERENT_SHAPES[name]

    def total(x):
        return cnp.sum(cnp.sin(WAYS[way](cytape.vmap(f))(x)))

    def by_member(x):
        return cnp.sum(cnp.sin(cnp.stack([f(row) for row in x])))

    np.testing.assert_allclose(
        cytape.grad(total)(X), cytape.grad(by_member)(X), rtol=1e-10, atol=1e-12)
    tangent = np.cos(X)
    np.testing.assert_allclose(
        cytape.jvp(total, (X,), (tangent,))[1], cytape.jvp(by_member, (X,), (tangent,))[1],
        rtol=1e-10)


def test_iterations_may_differ_in_number():
    x = np.array([3.0, 3.9])
    expected = [cytape.grad(halved)(each) for each in x]
    np.testing.assert_allclose(cytape.vmap(cytape.grad(halved))(x), expected, rtol=1e-12)


def test_results_must_have_one_shape():
    words = r"members of vmap.* one shape to be stacked, got \[\(1,\), \(2,\)\]: arrays whose shape"
    with pytest.raises(GraphError, match=words):
        cytape.vmap(lambda x: x[x > 0])(np.array([[1.0, -1.0], [1.0, 2.0]]))
    np.testing.assert_array_equal(
        cytape.vmap(lambda x: x[x > 0])(np.array([[1.0, -1.0], [-1.0, 2.0]])), [[1.0], [2.0]])


@each("axes", [(0, 0), (1, 0), (-1, 1), (2, -1)])
def test_axes(axes):
    in_axis, out_axis = axes
    x = RNG.normal(size=(2, 3, 4))
    found = cytape.vmap(lambda m: m.T * 2.0, in_axis, out_axis)(x)
    rows = np.moveaxis(x, in_axis, 0)
    np.testing.assert_array_equal(found, np.moveaxis(looped(lambda m: m.T * 2, rows), 0, out_axis))


def test_axes_of_structures():
    def f(p, scale, *, shift):
        return {"y": p["a"] * p["b"][0] * scale + shift, "n": (scale,)}

    p = {"a": X, "b": [X.T, 7]}
    found = cytape.vmap(f, ({"a": 0, "b": [1, None]}, None), {"y": 1, "n": None})(p, 2.0, shift=W)
    np.testing.assert_allclose(found["y"], (X * X * 2 + W).T)
    assert found["n"] == (2.0,)
    assert type(found["n"][0]) is np.float64


@each("in_axes", [0, (0, None), [0, None]])
def test_in_axes_may_be_one_for_all_or_one_each(in_axes):
    found = cytape.vmap(lambda x, y: x * y, in_axes)(X, X if in_axes == 0 else W)
    np.testing.assert_array_equal(found, X * (X if in_axes == 0 else W))


@each("chunk_size", [1, 2, 4, 5, 100])
def test_chunks_are_the_whole(chunk_size):
    f = lambda w, x: (cytape.grad(loss)(w, x), w)  # noqa: E731
    chunked = cytape.vmap(f, (None, 0), (0, None), chunk_size)
    for actual, expected in zip(chunked(W, X), cytape.vmap(f, (None, 0), (0, None))(W, X),
                                strict=True):  # fmt: skip
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    check_grads(lambda w, x: chunked(w, x)[0], [W, X], order=1)
    np.testing.assert_allclose(cytape.function(chunked)(W, X)[0], chunked(W, X)[0], rtol=1e-14)


def test_functions_of_numpy_get_one_member_at_a_time():
    seen = []
    rule = cytape.custom_gradient(lambda x: (x, lambda g: g))

    def noted(x):
        seen.append(x.shape)
        return x

    def f(x):
        return rule(x) * cytape.numpy_function(noted, x, specs=cytape.Spec.of((3,), "float64"))

    np.testing.assert_array_equal(cytape.vmap(f, chunk_size=2)(X), X * X)
    assert seen == [(3,)] * 5


def test_vmap_of_vmap():
    outer = cytape.vmap(cytape.vmap(lambda a, b: a * b, (None, 0)), (0, None))
    np.testing.assert_array_equal(outer(W, X[:, 0]), np.outer(W, X[:, 0]))
    pairs = cytape.vmap(cytape.vmap(loss, (None, 0)), (0, None))
    np.testing.assert_allclose(pairs(X, X), [[loss(a, b) for b in X] for a in X])
    check_grads(pairs, [X[:2], X[:2]], order=2)


@each("captured", [cytape.constant(W), cytape.Variable(W), W])
def test_captured_values(captured):
    f = cytape.vmap(lambda x: loss(captured, x))
    np.testing.assert_allclose(f(X), looped(lambda x: loss(W, x), X))
    if isinstance(captured, cytape.Tensor):
        tape, total = ways.taped(lambda captured: cnp.sum(f(cytape.constant(X))), captured)
        expected = cytape.grad(lambda w: sum([loss(w, x) for x in X]))(W)
        np.testing.assert_allclose(tape.gradient(total, captured).numpy(), expected)


def test_variables_as_arguments():
    variable = cytape.Variable(X)
    tape, y = ways.taped(lambda: cytape.vmap(lambda x: cnp.sum(x**2))(variable))
    assert isinstance(y, cytape.Tensor)
    np.testing.assert_allclose(tape.gradient(y, variable).numpy(), 2 * X)


def test_arrays_for_arrays_and_tensors_for_tensors():
    f = cytape.vmap(lambda x: x * 2.0)
    assert type(f(X)) is np.ndarray
    assert isinstance(f(cytape.constant(X)), cytape.Tensor)
    with ways.watching(w := cytape.constant(W)):
        assert isinstance(cytape.vmap(lambda x: x * w)(X), cytape.Tensor)


@each("dtype", ["int64", "bool", "float32", "complex128"])
def test_dtypes(dtype):
    x = (X > 0).astype(dtype)
    found = cytape.vmap(lambda x: cnp.sum(x))(x)
    assert found.dtype == x.sum(1).dtype
    np.testing.assert_array_equal(found, x.sum(1))


@each("f", [
    lambda x: x * 2.0, lambda x: cnp.convolve(x, W), lambda x: cnp.sum(x),
    cnp.cumsum, cnp.cumprod, cnp.median, cnp.nanmedian, cnp.ravel, cnp.ediff1d, cnp.diagflat,
    lambda x: cnp.quantile(x, [0.2, 0.5]), lambda x: cnp.nanquantile(x, [0.2, 0.5]),
    lambda x: cnp.outer(x, x), lambda x: cnp.take(x, [0, 1]), lambda x: cnp.insert(x, 1, 2.0),
    lambda x: cnp.reshape(x, (-1, 1), order="F"), lambda x: cnp.histogram(x, 2)[1],
])  # fmt: skip
def test_no_members(f):
    nobody, shape = np.zeros((0, 3)), (0, *np.shape(f(W)))
    assert cytape.vmap(f)(nobody).shape == shape
    of_any_number = cytape.function(cytape.vmap(f), input_signature=[
        cytape.Spec.of((None, 3), float)])
    assert of_any_number(nobody).shape == shape
    with ways.watching(x := cytape.constant(nobody)) as tape:
        y = cytape.vmap(f)(x)
    assert tape.gradient(y, x, unconnected_gradients="zero").shape == (0, 3)
    with cytape.ForwardAccumulator(x, nobody) as accumulator:
        y = cytape.vmap(f)(x)
    assert accumulator.jvp(y, unconnected_gradients="zero").shape == shape


def test_shared_arguments_with_unknown_extents():
    def f(x, w):
        vectors, numbers = cytape.vmap(lambda e: (w * w, 2.0))(x)
        return cnp.sum(vectors * w) * cnp.sum(numbers)

    w = np.array([1.0, -2.0])
    for shape, known in ((4,), (4,)), ((4,), (None,)), ((4, 2), (None, 2)), ((0, 3), (None, None)):
        traced = cytape.function(f, input_signature=[
            cytape.Spec.of(known, float), cytape.Spec.of((None,), float)])
        x = np.ones(shape)
        np.testing.assert_allclose(traced(x, w), f(x, w))
        np.testing.assert_allclose(
            cytape.grad(traced, 1)(x, w), cytape.grad(f, 1)(x, w), rtol=1e-12)


def test_shared_arguments():
    found = cytape.vmap(lambda x: (1.0, W, np.arange(2)))(X)
    assert [x.shape for x in found] == [(5,), (5, 3), (5, 2)]
    assert cytape.vmap(lambda x: 1.0)(X[:0]).shape == (0,)
    found[1][0] = 0.0  # an array of its own
    np.testing.assert_array_equal(found[1][1], W)


def test_draws_differ_from_member_to_member():
    def noisy(x):
        return x + cnp.random.normal(size=2), cnp.random.gamma(2.0), cnp.random.choice(10, 8)

    cnp.random.seed(3)
    first = cytape.vmap(noisy, chunk_size=2)(X[:, 0])
    for y in first:
        assert len(np.unique(y.reshape(5, -1), axis=0)) == 5
    cnp.random.seed(3)
    for y, again in zip(first, cytape.vmap(noisy, chunk_size=2)(X[:, 0]), strict=True):
        np.testing.assert_array_equal(y, again)
    drawn = cytape.function(cytape.vmap(lambda x: x + cnp.random.normal()))
    assert not np.array_equal(drawn(X[:, 0]), drawn(X[:, 0]))
    assert len(np.unique(cytape.vmap(lambda x: cnp.random.normal(seed=1))(X))) == 5


def test_draws_of_python_are_warned_of():
    with pytest.warns(UserWarning, match="drew random numbers"):
        cytape.vmap(lambda x: x + np.random.normal())(X)


def test_functions_of_the_users_own():
    scaled = cytape.custom_gradient(lambda x: (x * 2.0, lambda g: g * 5.0))
    gradient = cytape.grad(lambda x: cnp.sum(cytape.vmap(scaled)(x)))
    np.testing.assert_array_equal(gradient(X), np.full_like(X, 5.0))
    np.testing.assert_array_equal(
        cytape.vmap(cytape.grad(lambda x: cnp.sum(scaled(x))))(X), np.full_like(X, 5.0))
    forward = cytape.custom_jvp(lambda x: x * 2.0)
    forward.defjvp(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 7.0))
    np.testing.assert_array_equal(
        cytape.jvp(cytape.vmap(forward), (X,), (np.ones_like(X),))[1], np.full_like(X, 7.0))


def test_a_stop_of_gradients_stays_one():
    f = lambda x: cnp.sum(x * cytape.stop_gradient(x))  # noqa: E731
    np.testing.assert_array_equal(cytape.grad(lambda x: cnp.sum(cytape.vmap(f)(x)))(X), X)

    def unrecorded(x):
        with cytape.stop_recording():
            y = x * x
        return cnp.sum(x * y)

    np.testing.assert_allclose(cytape.grad(lambda x: cnp.sum(cytape.vmap(unrecorded)(x)))(X), X * X)


def test_it_is_pickled_and_a_method():
    assert isinstance(pickle.loads(pickle.dumps(cytape.vmap(loss, (None, 0))))(W, X), np.ndarray)

    class Model:
        scale = 2.0

        @cytape.vmap
        def plain(self):
            return self * 2.0

        def scaled(self, x):
            return self.scale * x

    np.testing.assert_array_equal(cytape.vmap(Model().scaled)(X), 2 * X)
    assert cytape.vmap(loss).__name__ == "loss"


def test_an_assignment_is_refused():
    variable = cytape.Variable(0.0, name="total")
    with pytest.raises(GraphError, match=r"assigns to a variable \(total\)"):
        cytape.vmap(lambda x: variable.assign_add(cnp.sum(x)))(X)
    assert float(variable) == 0.0


def test_a_choice_by_value_is_refused_with_advice():
    with pytest.raises(SymbolicTensorError) as caught:
        cytape.vmap(lambda x: x if cnp.sum(x) > 0 else -x)(X)
    assert "cytape.numpy.where or cytape.cond" in caught.value.__notes__[0]


@each("arguments, error, message", [
    (((0,),), ValueError, "in_axes has 1 entries"),
    ((None,), ValueError, "None for all arguments"),
    (("x",), TypeError, "in_axes must be an integer, None"),
    ((True,), TypeError, "got True"),
    ((0, 0.5), TypeError, "out_axes must be an integer"),
    ((0, 2), ValueError, "out_axes is 2, but with its batch axis"),
    ((0, None), ValueError, "differs between members"),
    ((0, (0, 0)), ValueError, "out_axes must have the structure of the results"),
    ((({"a": 0}, None),), ValueError, "in_axes must have the structure of the arguments"),
    (((2, None),), ValueError, r"args\[0\] has no axis 2 to map, its shape is \(5, 3\)"),
    (((0, 0, 0),), ValueError, "in_axes has 3 entries"),
    ((0, 0, 0), ValueError, "chunk_size must be a positive integer"),
    ((0, 0, 1.5), ValueError, "chunk_size must be a positive integer"),
])  # fmt: skip
def test_wrong_axes(arguments, error, message):
    with pytest.raises(error, match=message):
        cytape.vmap(lambda x, y: x * 2.0, *arguments)(X, X)


@each("args, error, message", [
    ((X, X[:2]), ValueError, r"got 5 for args\[0\] and 2 for args\[1\]"),
    (({"a": X}, [W]), ValueError, r"got 5 for args\[0\]\['a'\] and 3 for args\[1\]\[0\]"),
    ((X, 1.0), ValueError, r"args\[1\] has no axis 0 to map, its shape is \(\)"),
    ((X, "a"), TypeError, r"args\[1\] is a str, which has no axis to map"),
])  # fmt: skip
def test_wrong_arguments(args, error, message):
    with pytest.raises(error, match=message):
        cytape.vmap(lambda x, y: 1.0)(*args)


def test_arguments_that_are_not_functions_or_return_no_array():
    with pytest.raises(TypeError, match="only functions can be mapped, got ndarray"):
        cytape.vmap(X)
    with pytest.raises(TypeError, match="must return arrays or tensors, got None"):
        cytape.vmap(lambda x: None)(X)


def test_a_wrong_call_inside_is_an_error_of_one_member():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        cytape.vmap(lambda x: x @ np.ones(4))(X)


def test_nothing_is_left_of_a_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            cytape.vmap(lambda x: cnp.sum(x))(X)


def test_a_member_that_the_function_kept_is_an_error_outside():
    kept = []

    def f(x):
        kept.append(x * x)
        return np.sum(x)

    cytape.vmap(cytape.grad(f))(np.ones((2, 2)))
    with pytest.raises(RuntimeError, match=r"^an op .* trace of vmap\(f\), which is complete"):
        cytape.grad(lambda x: np.sum(kept[0] * x))(np.ones(2))
