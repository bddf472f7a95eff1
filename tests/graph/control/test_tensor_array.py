"""TensorArray: as a list in Python, as rows in graphs, and on its way through loops and calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cytape
import cytape.numpy as cnp
from cytape.tensor import nest
from tests.cases import each
from tests.tables import table
from tests.ways import ALL_MODES, FIRST_MODES, OF_KNOWN_EXTENTS, check, run_in_graph, watching

X = np.array([0.3, -0.7, 1.2])


def array(size=3, **kwargs):
    return cytape.TensorArray("float64", size, **kwargs)


def index(x, i):
    """Return an index that is a tensor, and has no value where x has none."""
    return (cnp.sum(x) * 0).astype("int64") + i


# ---- every method, with indices that are numbers and with tensors


def written(x, i=index):
    ta = array(4)
    for k in (2, 0, 3, 1):
        ta = ta.write(i(x, k), cnp.stack([x[k % 3] * x[0], x[1] ** k]))
    return ta


METHODS = {
    "write, stack": lambda x, i: written(x, i).stack(),
    "read": lambda x, i: written(x, i).read(i(x, 2)) * written(x, i).read(i(x, 1)),
    "read zeros": lambda x, i: array(4).write(i(x, 1), x).read(i(x, 3)) + x,
    "gather": lambda x, i: written(x, i).gather(cnp.stack([i(x, 3), i(x, 0), i(x, 3)])),
    "gather one": lambda x, i: written(x, i).gather([3]),
    "concat": lambda x, i: written(x, i).concat(),
    "unstack": lambda x, i: array(3).unstack(cnp.sin(x)).stack() * x,
    "scatter": lambda x, i: array(4, element_shape=()).scatter(
        cnp.stack([i(x, 3), i(x, 0), i(x, 1)]), x**2).stack(),
    "split": lambda x, i: array(3).split(x**2, [1, 1, 1]).stack(),
    "split, concat": lambda x, i: array(2, infer_shape=False).split(x**2, [1, 2]).concat(),
    "identity": lambda x, i: written(x, i).identity().stack(),
    "grow": lambda x, i: array(0, dynamic_size=True).write(i(x, 2), x).write(i(x, 4), x).stack(),
    "grow by scatter": lambda x, i: array(1, dynamic_size=True, element_shape=()).scatter(
        cnp.stack([i(x, 5), i(x, 0), i(x, 1)]), x).stack(),
}
PLAIN = {
    "write, stack": lambda x: cnp.stack([cnp.stack([x[k % 3] * x[0], x[1] ** k])
                                         for k in range(4)]),
    "read": lambda x: cnp.stack([x[2] * x[0], x[1] ** 2]) * cnp.stack([x[1] * x[0], x[1]]),
    "read zeros": lambda x: x,
    "gather": lambda x: PLAIN["write, stack"](x)[[3, 0, 3]],
    "gather one": lambda x: PLAIN["write, stack"](x)[[3]],
    "concat": lambda x: PLAIN["write, stack"](x).reshape(-1),
    "unstack": lambda x: cnp.sin(x) * x,
    "scatter": lambda x: cnp.stack([x[1], x[2], 0.0 * x[0], x[0]]) ** 2,
    "split": lambda x: (x**2)[:, None],
    "split, concat": lambda x: x**2,
    "identity": lambda x: PLAIN["write, stack"](x),
    "grow": lambda x: cnp.stack([0 * x, 0 * x, x, 0 * x, x]),
    "grow by scatter": lambda x: cnp.stack([x[1], x[2], 0 * x[0], 0 * x[0], 0 * x[0], x[0]]),
}


@pytest.mark.parametrize("by_tensors", table([True], [False]))
@pytest.mark.parametrize("method", METHODS)
def test_methods_everywhere(method, by_tensors):
    i = index if by_tensors else lambda x, i: i

    shape = PLAIN[method](cytape.constant(X)).shape
    weights = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    check(
        lambda x: cnp.sum(cnp.sin(METHODS[method](x, i)) * weights),
        lambda x: cnp.sum(cnp.sin(PLAIN[method](x)) * weights), X)


def collected(x, **kwargs):
    """The iterates of a loop, through an array that is a loop variable."""
    def body(i, y, ta):
        return i + 1, cnp.tanh(y * x) + 0.1, ta.write(i, y * y)

    _, _, ta = cytape.while_loop(
        lambda i, y, ta: i < 4, body, (0, x, cytape.TensorArray("float64", **kwargs)))
    return ta.stack()


@each("order, kwargs", [
    (2, {"size": 4}), (2, {"size": 4, "element_shape": (3,)}), (1, {"dynamic_size": True}),
    (1, {"size": 1, "dynamic_size": True, "element_shape": (3,)}),
])
def test_loop_variables_everywhere(order, kwargs):
    def plain(x):
        rows, y = [], x
        for _ in range(4):
            rows.append(y * y)
            y = cnp.tanh(y * x) + 0.1
        return cnp.sum(cnp.stack(rows) * np.arange(12.0).reshape(4, 3))

    check(
        lambda x: cnp.sum(collected(x, **kwargs) * np.arange(12.0).reshape(4, 3)), plain, X,
        modes=ALL_MODES if order == 2 else FIRST_MODES, ways=OF_KNOWN_EXTENTS)


def test_reading_what_an_earlier_iteration_wrote_everywhere():
    def body(i, ta):
        return i + 1, ta.write(i, ta.read(i - 1) * ta.read(i - 2) + 0.5)

    def f(x):
        start = array(6).write(0, x).write(1, cnp.sin(x))
        return cnp.sum(cytape.while_loop(lambda i, ta: i < 6, body, (2, start))[1].concat())

    def plain(x):
        rows = [x, cnp.sin(x)]
        for _ in range(4):
            rows.append(rows[-1] * rows[-2] + 0.5)
        return cnp.sum(cnp.concatenate(rows))

    check(f, plain, X)


def test_nested_loops_everywhere():
    def f(x):
        def outer(i, ta):
            def inner(j, ta):
                return j + 1, ta.write(2 * i + j, x * (i + 1.0) ** (j + 1.0))
            return i + 1, cytape.while_loop(lambda j, ta: j < 2, inner, (0, ta))[1]

        _, ta = cytape.while_loop(lambda i, ta: i < 2, outer, (0, array(4)))
        return cnp.sum(ta.stack() ** 2)

    def plain(x):
        return sum([cnp.sum((x * (i + 1.0) ** (j + 1)) ** 2) for i in (0, 1) for j in (0, 1)])

    check(f, plain, X, ways=OF_KNOWN_EXTENTS)


@each("sign", [-1.0, 1.0])
def test_results_of_branches_everywhere(sign):
    def f(x):
        ta = array(2)
        ta = cytape.cond(
            sign * x[0] > 0, lambda: ta.write(1, x), lambda: ta.write(0, x**2).write(1, x))
        return cnp.sum(ta.stack() ** 2 * np.array([[2.0], [3.0]]))

    check(f, lambda x: cnp.sum(3 * x**2) if sign > 0 else cnp.sum(3 * x**2 + 2 * x**4), X)


def test_a_branch_that_does_not_write():
    f = cytape.function(lambda p, x: cytape.cond(
        p, lambda: array(2).write(0, x), lambda: array(2)).stack())
    assert f(np.True_, X).tolist() == [X.tolist(), [0.0] * 3]
    assert f(np.False_, X).tolist() == [[0.0] * 3] * 2


# ---- random programs


COMMANDS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 5), st.integers(0, 2)),
    st.tuples(st.just("read"), st.integers(0, 5)),
    st.tuples(st.just("loop"), st.integers(0, 5), st.integers(1, 3)),
    st.tuples(st.just("branch"), st.integers(0, 5), st.booleans()))


def run_with_array(commands, x, dynamic):
    ta = array(0 if dynamic else 6, dynamic_size=dynamic, element_shape=(3,))
    total = cnp.zeros_like(x)
    for kind, i, *more in commands:
        if kind == "write":
            ta = ta.write(i, total + x * more[0])
        elif kind == "read":
            total = total + cnp.sin(ta.read(i))
        elif kind == "loop":
            def body(k, ta):
                return k + 1, ta.write(k, x + k.astype("float64") * x)

            _, ta = cytape.while_loop(
                lambda k, ta, end=i + more[0]: k < end, body, (cytape.constant(i), ta))
        else:
            ta = cytape.cond(
                cnp.sum(x * x) * (1.0 if more[0] else -1.0) > 0,
                lambda ta=ta, i=i: ta.write(i, x), lambda ta=ta, i=i: ta.write(i, 2.0 * x))
    return cnp.sum(ta.stack() * 0.7) + cnp.sum(total + x * x)


def run_with_list(commands, x, dynamic):
    rows, total = {}, cnp.zeros_like(x)
    size = 0 if dynamic else 6

    def write(i, value):
        nonlocal size
        if i >= size and not dynamic:
            raise IndexError
        if i in rows:
            raise ValueError
        size = max(size, i + 1)
        rows[i] = value

    for kind, i, *more in commands:
        if kind == "write":
            write(i, total + x * more[0])
        elif kind == "read":
            if i >= size:
                raise IndexError
            total = total + cnp.sin(rows.get(i, 0.0 * x))
        elif kind == "loop":
            for k in range(i, i + more[0]):
                write(k, x + k * x)
        else:
            write(i, x if more[0] else 2.0 * x)
    return sum([cnp.sum(row * 0.7) for row in rows.values()], cnp.sum(total + x * x))


@settings(max_examples=30, deadline=None)
@given(st.lists(COMMANDS, max_size=5), st.booleans())
def test_random_programs_do_what_lists_do(commands, dynamic):
    def f(x):
        return run_with_array(commands, x, dynamic)

    def plain(x):
        return run_with_list(commands, x, dynamic)

    try:
        expected = [compute(plain)(X) for compute in (lambda f: f, cytape.grad, cytape.hessian)]
    except (IndexError, ValueError) as error:
        for g in (f, cytape.function(f)):
            with pytest.raises(type(error), match="TensorArray"):
                g(cytape.constant(X))
        return
    for g in (f, cytape.function(f)):
        for compute, wanted in zip(
                (lambda f: f, cytape.grad, cytape.hessian), expected, strict=True):
            np.testing.assert_allclose(compute(g)(X), wanted, rtol=1e-10, atol=1e-12)


# ---- functional


def test_writes_leave_the_array_as_it_was():
    start = array(3, element_shape=())
    one = start.write(0, 1.0)
    two, other = one.write(1, 2.0), one.write(1, 3.0)
    again = start.write(0, 5.0)
    found = [ta.stack().numpy().tolist() for ta in (start, one, two, other, again)]
    assert found == [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 3, 0], [5, 0, 0]]
    for ta in (two, other):
        with pytest.raises(ValueError, match="index 1 is written a second time"):
            ta.write(1, 4.0)
    assert two.write(2, 9.0).stack().numpy().tolist() == [1, 2, 9]


def test_a_write_takes_no_longer_in_a_large_array():
    ta = array(200_000, element_shape=())
    for i in range(0, 200_000, 100):  # 2000 writes; each would copy 200,000 places
        ta = ta.write(i, 1.0)
    from cytape.graph.control.element_stores import Elements
    assert isinstance(ta._form, Elements)
    assert len(ta._form._history.by_index) == 2000
    assert float(ta.read(100)) == 1.0


@each("lose", [
    lambda ta, i: ta.write(i, 1.0), lambda ta, i: ta.scatter([0, 1], [1.0, 2.0]),
    lambda ta, i: ta.unstack([1.0, 2.0]), lambda ta, i: ta.split([1.0, 2.0], [1, 1])])
@each("traced", [False, True])
def test_a_write_that_is_lost_is_warned_of_where_it_is_lost(lose, traced):
    def f(i):
        ta = cytape.TensorArray("float64", size=2, infer_shape=False)
        lose(ta, i)
        return i

    with pytest.warns(UserWarning, match=r"is lost: write, .* array = array.write\(") as caught:
        (cytape.function(f) if traced else f)(cytape.constant(0))
    assert caught[0].filename == __file__


def test_an_array_that_is_only_carried_on_is_not_lost():  # warnings are errors here
    def body(i, ta):
        return i + 1, ta.write(i, 1.0)

    for traced in (False, True):
        def f(n):
            i, _ = cytape.while_loop(lambda i, ta: i < n, body, (0, array(3, element_shape=())))
            return i

        assert int((cytape.function(f) if traced else f)(cytape.constant(3))) == 3
    with pytest.raises(ValueError, match="index 0 is written a second time"):
        array(3).write(0, 1.0).write(0, 2.0)
    with pytest.raises(TypeError, match="is not an array"):
        np.asarray(array(3).write(0, 1.0))


@each(places=[[0], [2, 0], [1, 2, 0]], shape=[(), (3,), (None,)])
def test_elements_among_zeros_become_rows(places, shape):
    def rows(x):
        ta = cytape.TensorArray("float64", size=3)
        for i in places:
            ta = ta.write(i, x * (i + 1.0))
        return ta.leaves()[0]

    x = np.full([2 if n is None else n for n in shape], 0.5)
    expected = np.zeros((3, *x.shape))
    for i in places:
        expected[i] = x * (i + 1.0)
    signature = [cytape.Spec.of(shape, "float64")]
    for f in (rows, cytape.function(rows), cytape.function(rows, input_signature=signature)):
        np.testing.assert_array_equal(f(x), expected)
        cytape.testing.check_grads(lambda x, f=f: cnp.sin(f(x)), (x,), order=2)


@each("dynamic", [False, True])
def test_an_array_as_argument_and_result_of_a_function(dynamic):
    traces = []

    @cytape.function
    def f(ta, x):
        traces.append(1)
        assert (ta.dtype, ta.element_shape) == (np.float64, (3,))
        return ta.write(1, x * ta.read(0)), {"size": ta.size()}

    def loss(x):
        ta, more = f(array(2, dynamic_size=dynamic).write(0, x**2), x)
        assert int(more["size"]) == 2
        return cnp.sum((ta.write(2, x) if dynamic else ta).stack())

    x = cytape.constant(X)
    for _ in range(2):
        found = cytape.grad(loss)(x)
    np.testing.assert_allclose(found, 2 * X + 3 * X**2 + (1 if dynamic else 0))
    assert len(traces) == 1
    f(array(5, dynamic_size=dynamic).write(0, X), X)
    assert len(traces) == 2


def test_kinds_of_arguments_of_a_trace():
    f = cytape.function(lambda ta: ta.write(0, 1).stack())
    for ta in (cytape.TensorArray(int, 1), cytape.TensorArray(float, 1),
               cytape.TensorArray(float, 1, element_shape=()),
               cytape.TensorArray(float, 1, dynamic_size=True), cytape.TensorArray(float, 1)):
        assert f(ta).dtype == ta.dtype
    assert f.experimental_get_tracing_count() == 4


def test_it_is_a_structure_of_tensors():
    ta = array(3).write(1, [1.0, 2.0])
    rows, mask, size = nest.flatten({"a": [ta]})
    assert (rows.numpy().tolist(), mask.numpy().tolist(), int(size)) == (
        [[0, 0], [1, 2], [0, 0]], [False, True, False], 3)
    packed = nest.pack_sequence_as({"a": [ta]}, [rows * 2.0, mask, size])["a"][0]
    assert packed.read(1).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="second time"):
        packed.write(1, [0.0, 0.0])
    assert packed.write(0, [5.0, 6.0]).concat().numpy().tolist() == [5, 6, 2, 4, 0, 0]
    assert nest.flatten(array(2))[0] is None


@each("make, expected", [
    (lambda x: array(2).scatter(cnp.stack([index(x, 1), index(x, 0)]), x[::-1]), 3 * X[:2] ** 2),
    (lambda x: array(3, element_shape=()).write(2, x[0]).write(0, x[1]),
     [3 * X[1] ** 2, 0.0, 3 * X[0] ** 2])], ids=["rows", "elements"])
def test_gradients_with_respect_to_an_array(make, expected):
    def gradient(x):
        ta = make(x)
        return cytape.gradients(ta.stack() ** 3, ta)[0].stack()

    np.testing.assert_allclose(run_in_graph(gradient, X[:2]), expected)


def test_gradients_of_an_array_are_weighted_by_another_of_any_form():
    def gradients(x):
        ta = array(3, element_shape=()).write(2, x[0] ** 2).write(0, x[1])
        return [cytape.gradients(ta, x, grad_ys=w)[0] for w in (
            [array().unstack(X)], [array().write(2, 5.0)],
            [array().scatter([index(x, 1)], X[:1])], None)]

    np.testing.assert_allclose(
        run_in_graph(gradients, [2.0, 3.0]), [[4 * X[2], X[0]], [20, 0], [0, 0], [4, 1]])


# ---- derivatives of and with respect to arrays that have values


def powers(x):
    return array(3, element_shape=()).write(2, x**2).write(0, x)


def weights():
    return array().unstack([1.0, 100.0, 10.0])


HOW = {"list": powers, "rows": cytape.function(powers)}


@each("f", HOW.values(), ids=HOW)
def test_derivatives_of_an_array(f):
    value, vjp_fn = cytape.vjp(f, 3.0)
    assert value.stack().numpy().tolist() == [3, 0, 9]
    assert value.write(1, 5.0).read(1) == 5.0
    assert vjp_fn(weights()) == (61.0,)
    value, tangent = cytape.jvp(f, (3.0,), (2.0,))
    assert tangent.stack().numpy().tolist() == [2, 0, 12] and int(tangent.size()) == 3
    assert cytape.jvp(lambda x: cytape.vjp(f, x)[1](weights())[0], (3.0,), (1.0,)) == (61.0, 20.0)


@each("f", HOW.values(), ids=HOW)
@each("inside", [False, True])
def test_a_tape_and_an_accumulator_are_asked_about_an_array(f, inside):
    x = cytape.constant(3.0)
    with cytape.GradientTape(persistent=True) as tape, cytape.ForwardAccumulator(x, 1.0) as forward:
        tape.watch(x)
        ta = f(x)
        found = tape.gradient(ta, x) if inside else None
    assert (found if inside else tape.gradient([ta], x)) == 7.0
    assert tape.gradient({"ta": ta}, x, {"ta": weights()}) == 61.0
    assert forward.jvp({"ta": ta})["ta"].stack().numpy().tolist() == [1, 0, 6]
    assert forward.jvp(array()) is None


@each("f", HOW.values(), ids=HOW)
def test_an_array_is_watched(f):
    ta = f(cytape.constant(3.0))
    with watching({"ta": ta}, persistent=True) as tape:
        y = ta.read(0) * ta.read(2) ** 2
        z = cnp.sum(ta.gather([0, 2, 2]) ** 2)
    gradient = tape.gradient(y, ta)
    assert repr(gradient).startswith("TensorArray(float64, size=3")
    assert gradient.stack().numpy().tolist() == [81, 0, 54]
    assert tape.gradient(z, [ta])[0].stack().numpy().tolist() == [6, 0, 36]
    assert tape.jacobian(y, ta).stack().numpy().tolist() == [81, 0, 54]
    assert tape.gradient(cytape.constant(1.0), ta) is None
    assert tape.gradient(y, ta, unconnected_gradients="zero").read(2) == 54.0


def test_elements_that_are_watched_keep_what_they_came_of():
    x = cytape.constant(3.0)
    ta = powers(x)
    with watching(ta) as tape:
        ta.stack()
    with watching(x) as tape:
        ta = powers(x)
        tape.watch(ta)
        y = cnp.sum(ta.stack())
    assert tape.gradient(y, x) == 7.0


@cytape.custom_gradient
def doubled(ta):
    return 2.0 * cnp.sum(ta.stack()), lambda dy: dy


REFUSED = {
    "argument": (lambda: cytape.grad(lambda ta: ta.read(0))(powers(1.0)),
                 "argument 0 of <lambda> is a TensorArray, which cannot be differentiated"),
    "in an argument": (lambda: cytape.grad(lambda d: d["ta"].read(0))({"ta": powers(1.0)}),
                       "argument 0 of <lambda> has a TensorArray"),
    "jacrev": (lambda: cytape.jacrev(powers)(1.0), "powers returned what is a TensorArray"),
    "jacfwd": (lambda: cytape.jacfwd(lambda x: [powers(x)])(1.0),
               "<lambda> returned what has a TensorArray"),
    "followed": (lambda: cytape.ForwardAccumulator([powers(1.0)], [weights()]),
                 "a primal has a TensorArray: pass the tensors"),
    "custom_gradient": (lambda: cytape.grad(lambda x: doubled(powers(x)))(1.0),
                        "3 gradients for its arguments, three or a TensorArray of gradients"),
}


@each("case", REFUSED)
def test_the_error_names_the_op_without_derivative(case):
    call, match = REFUSED[case]
    with pytest.raises((TypeError, cytape.errors.InvalidGradientError), match=match):
        call()
