"""x[index] = value and x += value: NumPy's results for whatever names the tensor, or errors."""

import operator

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, TapeStateError
from tests.cases import each
from tests.ops.specs_indexing import INDICES
from tests.ways import watching

X = np.arange(1.0, 25.0).reshape(4, 3, 2)
SMALL = np.array([1.0, 2.0, 3.0])


# -- values ----------------------------------------------------------------------------------------


@each("index", INDICES, ids=str)
def test_assignments_are_those_of_numpy(index):
    part = X[index]
    for value in (5.0, 2, part + 7.0, part.tolist() if part.size else 0.0, np.float32(3)):
        expected, x = X.copy(), cytape.constant(X)
        expected[index] = value
        x[index] = value
        np.testing.assert_array_equal(x.numpy(), expected)


OPERATORS = {
    name: getattr(operator, name) for name in (
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow")}
OF_INTEGERS = {name: getattr(operator, name) for name in ("iand", "ior", "ixor", "ilshift",
                                                           "irshift")}


@each(name=[*OPERATORS, *OF_INTEGERS], value=[2, "array"])
def test_operators_with_assignment_change_what_all_names_name(name, value):
    data = np.array([[1, 2, 3], [4, 5, 6]]) if name in OF_INTEGERS else SMALL
    value = np.full(3, 2, data.dtype) if value == "array" else value
    operate = {**OPERATORS, **OF_INTEGERS}[name]
    x = other = cytape.constant(data)
    expected = operate(data.copy(), value)
    x = operate(x, value)
    assert x is other
    np.testing.assert_array_equal(other.numpy(), expected)
    assert other.dtype == expected.dtype


def test_a_product_of_matrices_in_place():
    x = other = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    x @= np.array([[0.0, 1.0], [1.0, 0.0]])
    assert other.numpy().tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_numbers_are_not_changed():
    x = other = cytape.constant(1.0)
    x += 1.0
    assert (float(x), float(other)) == (2.0, 1.0)


def test_a_tensor_keeps_its_shape_and_dtype():
    x = cytape.constant(np.ones(3, "float32"))
    x += np.ones(3)
    assert x.dtype == np.float32
    with pytest.raises(ValueError, match="non-broadcastable"):
        x += np.ones((2, 3))
    integers = cytape.constant([1, 2])
    with pytest.raises(TypeError, match="'add'.*same_kind"):
        integers += 0.5
    assert x.numpy().tolist() == [2.0] * 3
    assert integers.numpy().tolist() == [1, 2]


@each(("data", "operate", "value", "error"), [
    ([1, 2, 3], operator.iadd, 2.5, TypeError), ([1.0, 2.0, 3.0], operator.imul, 1j, TypeError),
    ([1.0, 2.0, 3.0], operator.iadd, np.ones((1, 2)), ValueError)])
def test_a_part_keeps_its_shape_and_dtype(data, operate, value, error):
    for array in (np.array(data), cytape.constant(data)):
        with pytest.raises(error):
            array[:2] = operate(array[:2], value)
        assert np.asarray(array).tolist() == data


def test_a_tensor_can_be_changed_again_after_an_element_was_named_twice():
    x, expected = cytape.constant(X), X.copy()
    for array in (x, expected):
        array[[0, 0]] = np.stack([np.ones((3, 2)), np.full((3, 2), 2.0)])
        array[1] = 1.0
        array += 1.0
    np.testing.assert_array_equal(x.numpy(), expected)
    product, expected = cytape.constant(X).at[[0, 1, 0]].multiply(2.0), X.copy()
    np.multiply.at(expected, [0, 1, 0], 2.0)
    for array in (product, expected):
        array[1] = 1.0
        array += 1.0
    np.testing.assert_array_equal(product.numpy(), expected)


@each(("data", "value"), [
    ([1, 2], np.nan), ([1, 2], np.inf), (np.array([1], np.uint8), -1),
    (np.array([1], np.uint8), 300), ([1.0], 1j), ([1, 2], [np.nan, 1.0]), ([1.0], "text"),
    ([1, 2], 2.7), ([1.0, 2.0], True), ([True], 2), ([1, 2], np.float32(1.5)),
    ([1, 2], np.array([1.5, 2.5])), ([1.0], np.int64(3)), ([1.0], "2.5")], ids=str)
def test_values_are_cast_as_numpy_casts_them(data, value):
    expected, error = np.array(data), None
    try:
        expected[...] = value
    except (OverflowError, TypeError, ValueError) as refused:
        error = type(refused)
    x = cytape.constant(data)
    if error is None:
        x[...] = value
    else:
        with pytest.raises(error):
            x[...] = value
        with pytest.raises(error):
            x.at[...].set(value)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_failed_assignment_changes_nothing():
    x = cytape.constant(SMALL)
    for index, value, error in ((9, 1.0, IndexError), (slice(2), np.ones(3), ValueError),
                                (0, "text", ValueError), ((0, 0), 1.0, IndexError),
                                ("a", 1.0, IndexError), ("@0", 1.0, IndexError),
                                (1.5, 1.0, IndexError), (1j, 1.0, IndexError),
                                (b"x", 1.0, IndexError), ((..., "@0"), 1.0, IndexError)):
        with pytest.raises(error):
            x[index] = value
    np.testing.assert_array_equal(x.numpy(), SMALL)


def test_earlier_results_of_a_tensor_stay():
    x = cytape.constant(np.zeros((100, 100)))
    row, rows, turned, array, copy = x[0] * 1.0, x[:50] * 1.0, x.T.copy(), x.numpy(), x.copy()
    x[...] = 1.0
    for before in (row, rows, turned, array, copy):
        assert not np.any(np.asarray(before))
    x[0] = x[0] + 1.0
    x[1:] = x[:-1]
    assert x.numpy()[:3, 0].tolist() == [2.0, 2.0, 1.0]
    assert not np.any(array)


def test_the_time_does_not_depend_on_the_size():
    x = cytape.constant(np.zeros((1000, 3)))
    place = x.numpy().__array_interface__["data"]
    for i in range(10):
        x[i] = i
    assert x.numpy().__array_interface__["data"] == place


# -- parts -----------------------------------------------------------------------------------------


def of_part(make):
    def change(x, change):
        part = make(x)
        change(part)

    return change


def add_one(part):
    part += 1.0


def set_first(part):
    part[0] = 1.0


def test_parts_are_changed_by_the_tensor():
    x, expected = cytape.constant(X), X.copy()
    for array in (x, expected):
        array[0] += 1.0
        array[1:, 0] *= 2.0
        array[array > 20] -= 3.0
        array[[0, 2]] /= 2.0
    np.testing.assert_array_equal(x.numpy(), expected)


@each("lost", [
    lambda x: operator.setitem(x * 2, 0, 5.0), lambda x: operator.setitem((x * 2)[0], 0, 5.0),
    lambda x: operator.setitem(cytape.Variable(x)[0], 0, 5.0)])
def test_unnamed_tensors_cannot_be_assigned_to(lost):
    with pytest.raises(ValueError, match="lost.*x\\[i, j\\]"):
        lost(cytape.constant(X))


# -- who relies on what a tensor is ----------------------------------------------------------------


def test_results_that_a_tape_watches_cannot_be_changed_in_place():
    x = cytape.constant([1.0, 2.0, 3.0])
    with watching(x, persistent=True) as tape:
        u, v = x * 2.0, x * 3.0
        tape.watch(u)
        for write in (lambda: operator.setitem(u, 0, 1.0), lambda: operator.iadd(u, 1.0),
                      lambda: operator.setitem(u[1:], 0, 1.0)):
            with pytest.raises(TapeStateError, match="watches.*x = x \\+ 1"):
                write()
        v[0] = 1.0  # which it follows, and was not told to watch
        y = np.sum(u * v)
    np.testing.assert_array_equal(tape.gradient(y, u), [1.0, 6.0, 9.0])
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 24.0, 36.0])
    u[0] = 1.0
    with pytest.raises(TapeStateError, match="changed in place"):
        tape.gradient(y, u)


def test_watched_tensors_cannot_be_changed_in_place():
    x = cytape.constant(SMALL)
    with watching(x) as tape:
        with pytest.raises(TapeStateError, match="watches.*x = x \\+ 1"):
            x += 1.0
        with pytest.raises(TapeStateError, match="watches"):
            x[0] = 1.0
        y = x.copy()
        y[0] = 5.0
        loss = cnp.sum(y * y)
    assert tape.gradient(loss, x).numpy().tolist() == [0.0, 4.0, 6.0]
    x -= 0.5  # it does not record any more
    assert x.numpy().tolist() == [0.5, 1.5, 2.5]


@each(change=[add_one, set_first], where=["after the block", "while it is paused"])
@each("ask", ["gradient", "jacobian", "batch_jacobian"])
def test_no_gradient_is_lost_by_a_change_that_a_tape_did_not_see(change, where, ask):
    x = cytape.constant(np.ones((2, 2)))
    with watching(x, persistent=True) as tape:
        y = x * x
        if where == "while it is paused":
            with tape.stop_recording():
                change(x)
    if where == "after the block":
        assert tape.gradient(y, x).numpy().tolist() == [[2.0, 2.0], [2.0, 2.0]]
        change(x)
    with pytest.raises(TapeStateError, match="changed in place"):
        getattr(tape, ask)(y, x)
    change(x)
    with pytest.raises(TapeStateError, match="changed in place"):
        getattr(tape, ask)(y, x)
    assert tape.gradient(y, x.copy()) is None  # never watched
    with tape:
        tape.watch(x)
        z = x * 3.0
    assert tape.gradient(z, x).numpy().tolist() == [[3.0, 3.0], [3.0, 3.0]]


def squared(x):
    x *= 2.0
    x[0] = x[1] * x[2]
    return cnp.sum(x * x)


def squared_of_arrays(x):
    x = x * 2.0
    return np.sum(np.concatenate([x[1:2] * x[2:], x[1:]]) ** 2)


def of_a_function(transform):
    def transformed(x):
        with pytest.warns(UserWarning, match="squared changes an argument"):
            return transform(cytape.function(squared))(x)

    return transformed


TRANSFORMS = {
    "grad": cytape.grad(squared), "of a function": of_a_function(cytape.grad),
    "traced": cytape.function(cytape.grad(squared)), "forward": cytape.jacfwd(squared),
    "of a recomputed one": cytape.grad(cytape.recompute_grad(squared)),
    "TensorFlow's": lambda x: cytape.gradients_function(squared)(x)[0].numpy(),
    "of members": cytape.grad(lambda x: cytape.vmap(squared)(x[None])[0]),
    "in a loop": cytape.grad(lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, x: (i + 1, cnp.full(3, squared(x))), (0, x))[1][0]),
    "in a loop of a graph": cytape.grad(cytape.function(lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, x: (i + 1, cnp.full(3, squared(x))), (0, x))[1][0])),
}


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@each("make", [np.array, cytape.constant])
def test_functions_may_change_their_arguments_which_are_their_own(transform, make):
    x = make(SMALL)
    step = 1e-6 * np.eye(3)
    expected = [(squared_of_arrays(SMALL + d) - squared_of_arrays(SMALL - d)) / 2e-6 for d in step]
    np.testing.assert_allclose(np.asarray(transform(x)), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(x), SMALL)


def test_second_order_of_what_is_changed_in_place():
    by_hand = cytape.hessian(lambda x: cnp.sum(cnp.concatenate([
        cnp.reshape(4.0 * x[1] * x[2], (1,)), 2.0 * x[1:]]) ** 2))(SMALL)
    for hessian in (cytape.hessian(squared), of_a_function(cytape.hessian),
                    cytape.jacrev(cytape.grad(squared)), cytape.jacfwd(cytape.jacfwd(squared))):
        np.testing.assert_allclose(hessian(SMALL), by_hand)


def test_a_recomputed_function_gets_what_its_argument_was():
    x = cytape.constant(SMALL)
    with watching(x) as tape:
        y = x * 1.0
        z = cytape.recompute_grad(lambda y: cnp.sum(y**3))(y)
        y[0] = 100.0
    np.testing.assert_allclose(tape.gradient(z, x).numpy(), 3 * SMALL**2)


def test_a_custom_gradient_gets_what_its_argument_was():
    @cytape.custom_gradient
    def cube(x):
        return x**3, lambda g: g * 3 * x**2

    x = cytape.constant(SMALL)
    with watching(x) as tape:
        y = x * 1.0
        z = cnp.sum(cube(y))
        y += 100.0
    np.testing.assert_allclose(tape.gradient(z, x).numpy(), 3 * SMALL**2)


def test_an_array_of_tensors_keeps_what_was_written():
    x = cytape.constant(SMALL)
    array = cytape.TensorArray("float64", size=1).write(0, x)
    x += 1.0
    np.testing.assert_array_equal(array.read(0).numpy(), SMALL)


def test_a_tensor_from_outside_cannot_be_changed_while_a_graph_is_built():
    outside = cytape.constant(SMALL)

    def assign(x):
        outside[0] = x
        return x

    def add(x):
        y = outside
        y += x
        return y

    for f in (assign, add):
        with pytest.raises(TapeStateError, match="outside.*copy inside"):
            cytape.function(f)(cytape.constant(1.0))
    with pytest.raises(TapeStateError, match="loop variable"):
        cytape.function(lambda x: cytape.while_loop(
            lambda i: i < 3, lambda i: (operator.setitem(x, 0, 1.0), i + 1)[1], (0,)))(
                cytape.constant(SMALL))
    np.testing.assert_array_equal(outside.numpy(), SMALL)


def test_a_trace_sees_what_a_captured_tensor_is_when_it_is_called():
    captured = cytape.constant(SMALL)
    f = cytape.function(lambda x: x * captured)
    assert f(2.0).tolist() == [2.0, 4.0, 6.0]
    captured[0] = 10.0
    assert np.asarray(f(2.0)).tolist() == [20.0, 4.0, 6.0]


def test_a_graph_keeps_constants_as_they_were():
    x = cytape.constant(SMALL)
    graph = cytape.Graph()
    constant = graph.constant(x)
    x += 1.0
    with cytape.Session(graph) as session:
        np.testing.assert_array_equal(session.run(constant), SMALL)


def test_tensors_made_in_a_trace_can_be_changed():
    @cytape.function
    def f(x):
        y = cytape.constant(SMALL)
        z = y * x
        y[0] = x
        y += z
        return y, z

    y, z = f(cytape.constant(2.0))
    assert (y.numpy().tolist(), z.numpy().tolist()) == ([4.0, 6.0, 9.0], [2.0, 4.0, 6.0])


# -- variables -------------------------------------------------------------------------------------


def test_variables_are_assigned():
    v = other = cytape.Variable(SMALL)
    v += 1.0
    v[0] = 9.0
    v[1:] *= 2.0
    assert v is other
    assert v.numpy().tolist() == [9.0, 6.0, 8.0]
    number = also = cytape.Variable(1.0)
    number -= 0.5
    assert float(also) == 0.5


def test_no_gradient_is_lost_in_a_variable():
    v, x = cytape.Variable(SMALL), cytape.constant(1.0)
    with cytape.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        with pytest.raises(DetachedError, match="value is being recorded"):
            v[0] = x
        with pytest.raises(DetachedError, match="value is being recorded"):
            v += x
        v += 1.0
    with cytape.GradientTape(), pytest.raises(DetachedError, match="gradient flows through"):
        v += 1.0
    assert v.numpy().tolist() == [2.0, 3.0, 4.0]


def test_variables_are_assigned_when_a_function_runs():
    v = cytape.Variable(SMALL)

    @cytape.function
    def f(x):
        nonlocal v
        v += x
        v[0] = x
        return v.value()

    assert f(cytape.constant(2.0)).numpy().tolist() == [2.0, 4.0, 5.0]
    assert f(cytape.constant(3.0)).numpy().tolist() == [3.0, 7.0, 8.0]
    assert v.numpy().tolist() == [3.0, 7.0, 8.0]
