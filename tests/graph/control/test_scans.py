"""cytape.map_fn, scan, foldl and foldr against loops in Python."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each, grouped, sampled
from tests.ways import check

X = np.array([[0.3, -0.7], [1.1, 0.4], [-0.2, 0.9]])


def plain_scan(fn, elems, initializer=None, reverse=False):
    rows = list(elems)[::-1] if reverse else list(elems)
    found = [] if initializer is not None else [rows.pop(0)]
    y = initializer if initializer is not None else found[0]
    for row in rows:
        y = fn(y, row)
        found.append(y)
    return cnp.stack(found[::-1] if reverse else found)


def step(y, x):
    return cnp.tanh(y * x) + 0.5 * x


@each(reverse=[False, True], initial=[False, True])
def test_scan_everywhere(reverse, initial):
    start = cytape.constant([0.5, 1.5]) if initial else None
    weights = np.arange(6.0).reshape(3, 2)

    def by(scan):
        return lambda x: cnp.sum(scan(step, x, start, reverse=reverse) * weights)

    check(by(cytape.scan), by(plain_scan), X)


@each("fold, reverse", [(cytape.foldl, False), (cytape.foldr, True)])
@each("initial", [False, True])
def test_folds_everywhere(fold, reverse, initial):
    def plain(x):
        start = x[0] * 2.0 if initial else None
        found = plain_scan(step, x, start, reverse)
        return cnp.sum(found[0 if reverse else -1] * cytape.constant([2.0, 3.0]))

    def f(x):
        last = fold(step, x, x[0] * 2.0) if initial else fold(step, x)
        return cnp.sum(last * cytape.constant([2.0, 3.0]))

    check(f, plain, X)


def test_map_fn_everywhere():
    def fn(x, scale):
        return cnp.sum(cnp.exp(x)) * scale

    def f(x):
        scale = cnp.sum(x)  # captured
        return cnp.sum(cytape.map_fn(lambda row: fn(row, scale), x) ** 2)

    check(f, lambda x: cnp.sum(cnp.stack([fn(row, cnp.sum(x)) for row in x]) ** 2), X)


def test_structures_everywhere():
    def fn(state, slices):
        row, (factor,) = slices["row"], slices["others"]
        return {"a": state["a"] * factor + row, "b": (state["b"][0] + cnp.sum(state["a"]),)}

    def elems(x):
        return {"row": x, "others": (cytape.constant([1.5, -0.5, 2.0]),)}

    def f(x):
        start = {"a": x[0], "b": (cytape.constant(1.0),)}
        found = cytape.scan(fn, elems(x), start)
        mapped = cytape.map_fn(lambda s: [s["row"] ** 2, {"k": s["others"][0]}], elems(x))
        return cnp.sum(found["a"] ** 2) + cnp.sum(found["b"][0]) + cnp.sum(
            mapped[0] * mapped[1]["k"][:, None])

    def plain(x):
        state, total = {"a": x[0], "b": (cytape.constant(1.0),)}, 0.0
        for i, factor in enumerate([1.5, -0.5, 2.0]):
            state = fn(state, {"row": x[i], "others": (factor,)})
            total = total + cnp.sum(state["a"] ** 2) + state["b"][0] + cnp.sum(x[i] ** 2 * factor)
        return total

    check(f, plain, X)


def test_nested_scans_everywhere():
    def f(x):
        def row(total, row):
            return total + cytape.foldl(lambda y, v: cnp.sin(y) + v * total, row)

        return cytape.foldl(row, x, cytape.constant(0.3))

    def plain(x):
        total = cytape.constant(0.3)
        for row in x:
            y = row[0]
            for v in list(row)[1:]:
                y = cnp.sin(y) + v * total
            total = total + y
        return total

    check(f, plain, X)


def test_one_op_whatever_the_number():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (None, None))
    before = graph.n_nodes
    y = cytape.scan(lambda s, r: s + r, x, cytape.numpy.zeros_like(x[0]))
    assert y.shape == (None, None)
    assert [op.type for op in graph.get_operations()].count("While") == 1
    assert graph.n_nodes - before < 12
    session = cytape.Session(graph)
    for n in (0, 1, 4):
        data = np.ones((n, 3)) if n else np.ones((1, 3))
        found = session.run(y, {x: data})
        np.testing.assert_array_equal(found, np.cumsum(data, axis=0))


@each("traced", [False, True])
def test_no_elements(traced):
    def f(x):
        return (
            cytape.map_fn(lambda row: (cnp.sum(row), row), x),
            cytape.scan(lambda y, row: y + row, x, x[:0].sum(axis=0)),
            cytape.foldr(lambda y, row: y + row, x, cytape.constant([1.0, 2.0])))

    (sums, rows), scanned, last = (cytape.function(f) if traced else f)(
        cytape.constant(np.zeros((0, 2))))
    assert (sums.shape, rows.shape, scanned.shape) == ((0,), (0, 2), (0, 2))
    assert last.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="no elements, so an initializer"):
        cytape.scan(lambda y, row: y, np.zeros((0, 2)))


@each(traced=[False, True], call=[
    lambda x: cytape.map_fn(lambda row: row * 2.0, x, back_prop=False),
    lambda x: cytape.scan(lambda y, row: y + row, x, back_prop=False),
    lambda x: cytape.foldl(lambda y, row: y + row, x, back_prop=False),
    lambda x: cytape.foldr(lambda y, row: y + row, x, x[0], back_prop=False),
])
def test_without_back_prop_there_is_no_gradient(traced, call):
    f = cytape.function(call) if traced else call
    x = cytape.constant(X)
    assert ways.gradient(f, x) is None
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (3, 2))
        assert cytape.gradients(call(x), x) == [None]


def test_variables_that_are_assigned_and_draws():
    count = cytape.Variable(0.0)

    @cytape.function
    def f(x):
        def row(row):
            count.assign_add(1.0)
            return cnp.sum(row) * count

        return cytape.map_fn(row, x), cytape.map_fn(
            lambda row: row * cytape.numpy.random.normal(size=()), x)

    x = cytape.constant(np.ones((3, 2)))
    tape, (counted, drawn) = ways.taped(f, x)
    assert counted.numpy().tolist() == [2.0, 4.0, 6.0]
    assert len(np.unique(drawn.numpy())) == 3
    np.testing.assert_allclose(
        tape.gradient(drawn, x), drawn.numpy())  # the numbers drawn


def test_weak_numbers_and_signatures():
    x = np.array([1.0, 2.0], np.float32)
    found = cytape.scan(lambda y, v: 2, x, np.float32(0))
    assert (found.dtype, found.numpy().tolist()) == (np.float32, [2.0, 2.0])
    mapped = cytape.map_fn(lambda v: 1, x, fn_output_signature="float64")
    assert mapped.dtype == np.float64
    assert cytape.map_fn(lambda v: v, x, np.float32).dtype == np.float32
    spec = cytape.Spec.of((None,), np.float32)
    assert cytape.map_fn(lambda v: cnp.stack([v, v]), x, dtype=spec).shape == (2, 2)


@each("traced", [False, True])
def test_errors(traced):
    x = cytape.constant(X)

    def raises(error, match, call):
        f = cytape.function(call) if traced else call
        with pytest.raises(error, match=match):
            f(x)

    raises(TypeError, "fn must be a function", lambda x: cytape.map_fn(3, x))
    raises(ValueError, r"elems\['b'\] must have a first axis",
           lambda x: cytape.map_fn(lambda s: s, {"a": x, "b": 1.0}))
    raises(ValueError, r"first axes of one length, got 3 for elems\[0\] and 2 for elems\[1\]",
           lambda x: cytape.map_fn(lambda s: s, (x, x[:2])))
    raises(ValueError, "at least", lambda x: cytape.map_fn(lambda s: s, ()))
    raises(TypeError, r"dtype of initializer\[1\] from int64 to float64: .*astype",
           lambda x: cytape.scan(lambda y, r: (y[0], y[1] + 0.5), x, (x[0], 1)))
    raises(ValueError, r"shape of initializer from \(\) to \(2,\)",
           lambda x: cytape.foldl(lambda y, r: y + r, x, 1.0))
    raises(ValueError, "must agree in structure", lambda x: cytape.foldr(lambda y, r: (y, y), x))
    raises(TypeError, "fn returns float64 of shape .* where fn_output_signature has int64",
           lambda x: cytape.map_fn(lambda r: r, x, np.int64))
    raises(ValueError, "agree in structure",
           lambda x: cytape.map_fn(lambda r: (r, r), x, np.float64))
    raises(TypeError, "parallel_iterations must be an integer",
           lambda x: cytape.map_fn(lambda r: r, x, parallel_iterations=1.5))
    raises(ValueError, "parallel_iterations must be at least 1",
           lambda x: cytape.scan(lambda y, r: r, x, parallel_iterations=0))


def test_side_effects_of_python_in_eager_scans():
    changes = iter([1.0, cytape.constant([1.0])])
    with pytest.raises(ValueError, match=r"shape of its result from \(\) to \(1,\)"):
        cytape.map_fn(lambda row: next(changes), X[:2])
    kinds = iter([(1.0,), 1.0])
    with pytest.raises(ValueError, match="agree in structure"):
        cytape.map_fn(lambda row: next(kinds), X[:2])


@each("lengths", [(4, 2), (2, 4)])
def test_lengths_that_only_a_run_tells_must_agree(lengths):
    f = cytape.function(
        lambda x, y: cytape.map_fn(lambda pair: pair[0] * pair[1], (x, y)),
        input_signature=[cytape.Spec.of((None,), float)] * 2)
    assert f(np.ones(3), np.ones(3)).tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="map_fn takes tensors of one length, got"):
        f(*map(np.ones, lengths))


def test_a_fold_over_what_has_an_unknown_rank():
    f = cytape.function(
        lambda x: cytape.foldl(lambda a, e: cnp.sin(a) * e + a, x, cnp.sum(x)),
        input_signature=[cytape.Spec.of(None, float)])
    plain = cytape.function(lambda x: cytape.foldl(lambda a, e: cnp.sin(a) * e + a, x, cnp.sum(x)))
    x = np.array([0.3, 0.7, 1.2])
    np.testing.assert_allclose(cytape.grad(f)(x), cytape.grad(plain)(x), rtol=1e-13)


def array_of_products(x):
    array = cytape.TensorArray("float64", size=3, element_shape=())
    return cytape.while_loop(
        lambda i, _: i < 3, lambda i, array: (i + 1, array.write(i, x[i] * x[0])),
        (0, array))[1].stack()


def doubled_until_large(x):
    return cytape.while_loop(lambda x: x < 3.0, lambda x: (1.5 * x,), (x,))[0]


# Functions of three numbers that return three numbers.
LOOPS = {
    "scan": lambda x: cytape.scan(lambda c, e: c * e, x),
    "scan from a start": lambda x: cytape.scan(lambda c, e: c * e + c, x, x[0], reverse=True),
    "scan of a structure": lambda x: cytape.scan(
        lambda c, e: {"a": c["a"] * e, "b": c["b"] + e * x}, x, {"a": x[0], "b": x})["b"][:, 0],
    "foldl": lambda x: cytape.foldl(lambda c, e: c + e * x, x, x),
    "foldl, a sum": lambda x: cytape.foldl(lambda c, e: c + e, x) * x,
    "foldr": lambda x: cytape.foldr(lambda c, e: c * cnp.sin(e) + x, x, x),
    "map_fn": lambda x: cytape.map_fn(lambda e: cnp.sin(e) * x[0], x),
    "map_fn of two": lambda x: cytape.map_fn(
        lambda rows: cnp.sum(rows[0] * rows[1]), (cnp.outer(x, x), 2.0 * cnp.outer(x, x))),
    "fold in map_fn": lambda x: cytape.map_fn(
        lambda e: cytape.foldl(lambda c, f: c * f + e, x), x),
    "scan in map_fn": lambda x: cnp.sum(
        cytape.map_fn(lambda e: cytape.scan(lambda c, f: c * f + e, x), x), 0),
    "scan in cond": lambda x: cytape.cond(
        x[0] > 0, lambda: cytape.scan(lambda c, e: c * e, x), lambda: x),
    "scan in recompute_grad": lambda x: cytape.recompute_grad(
        lambda x: cytape.scan(lambda c, e: c * e, x))(x),
    "recompute_grad in scan": lambda x: cytape.scan(
        lambda c, e: cytape.recompute_grad(lambda a, b: a * b)(c, e), x),
    "while_loop": lambda x: cytape.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, cnp.sin(y) * x), (0, x))[1],
    "while_loop in vmap": lambda x: cytape.vmap(doubled_until_large)(x),
    "scan in vmap": lambda x: cytape.vmap(
        lambda e: cytape.scan(lambda c, f: c * f + e, x)[1])(x),
    "mask in vmap": lambda x: cytape.vmap(lambda e: cnp.sum((x * e)[x > e]))(x),
    "TensorArray": array_of_products,
    "draws": lambda x: cytape.map_fn(lambda e: e * cnp.random.normal(size=()), x),
}
DIRECTION = np.array([1.0, -0.5, 2.0])


def squared(f):
    return lambda x: cnp.sum(f(x) ** 2)


DERIVATIVES = {
    "value": (lambda f: f, (3,)),
    "gradient": (lambda f: cytape.grad(squared(f)), (3,)),
    "tangent": (lambda f: lambda x: cytape.jvp(f, (x,), (DIRECTION,))[1], (3,)),
    "jacrev": (cytape.jacrev, (3, 3)),
    "jacfwd": (cytape.jacfwd, (3, 3)),
    "hessian": (lambda f: cytape.hessian(squared(f)), (3, 3)),
    "second order in reverse": (lambda f: cytape.grad(squared(cytape.grad(squared(f)))), (3,)),
    "gradient of a tangent": (
        lambda f: cytape.grad(squared(lambda x: cytape.jvp(f, (x,), (DIRECTION,))[1])), (3,)),
    "of a function": (lambda f: cytape.grad(squared(cytape.function(f))), (3,)),
    "in vmap": (lambda f: lambda x: cytape.vmap(f)(cnp.outer(x, x)), (3, 3)),
    "gradient in a branch": (
        lambda f: lambda x: cytape.cond(
            x[0] > 0, lambda: cytape.grad(squared(f))(x), lambda: x), (3,)),
}


@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
@grouped("derivative, loop", [
    (derivative, f"{derivative}, {loop}", (derivative, loop), (i + k) % 3 > 0)
    for i, derivative in enumerate(DERIVATIVES) for k, loop in enumerate(LOOPS)])
def test_shapes_are_known_while_a_graph_is_built(derivative, loop):
    x, (transformed, shape) = np.array([0.5, 1.3, 2.1]), DERIVATIVES[derivative]
    shapes = []

    def noted(x):
        y = transformed(LOOPS[loop])(x)
        shapes.append(y.shape)
        return y

    assert cytape.function(noted)(x).shape == shape
    assert shapes == [shape]


@sampled(3, make={
    "scan": lambda row: cytape.scan(lambda c, e: c * e, row),
    "map_fn": lambda row: cytape.map_fn(cnp.sin, row),
    "scan of rows": lambda row: cytape.scan(lambda c, e: c * e + row, row, row),
}.items(), use={
    "len": lambda y: y * len(y),
    "extent": lambda y: y / y.shape[0],
    "iteration": lambda y: sum(row * row for row in y),
    "unpacking": lambda y: (lambda a, b, c: a * b + c)(*y),
    "broadcast_to": lambda y: cnp.broadcast_to(y, (2, *y.shape)),
    "apply_along_axis": lambda y: cnp.apply_along_axis(lambda v: cnp.sum(v) * v, 0, y),
    "zeros": lambda y: y + cnp.zeros(y.shape),
    "out": lambda y: cnp.add(y, y, out=cnp.zeros(y.shape)),
    "split": lambda y: cnp.split(y, 3)[1],
    "pairs": lambda y: sum(a * b for a, b in zip(y, y[1:], strict=False)),
}.items())
def test_members_of_a_batch_are_used_as_arrays_are(make, use):
    x = np.outer([0.5, 1.3, 2.1], [0.5, 1.3, 2.1])
    (_, loop), (_, of_result) = make, use

    def f(row):
        return of_result(loop(row))

    for way in (lambda f: f, cytape.function):
        for derivative in (lambda f: f, cytape.jacrev, cytape.jacfwd):
            expected = np.stack([derivative(f)(row) for row in x])
            np.testing.assert_allclose(
                way(cytape.vmap(derivative(f)))(x), expected, rtol=1e-12, atol=1e-14)


@each(n=[0, 1, 3], f=[
    lambda rows, x: cytape.map_fn(lambda row: row * x, rows),
    lambda rows, x: cytape.map_fn(lambda row: cnp.sort(row) * cnp.sum(x[x > 1.0]), rows),
    lambda rows, x: cytape.scan(lambda y, row: cnp.tanh(y * row), rows, x),
    lambda rows, x: cytape.map_fn(
        lambda row: cytape.foldl(lambda y, e: y * e + row, x, x), rows),
    lambda rows, x: cytape.map_fn(lambda row: cytape.while_loop(
        lambda y: cnp.sum(y) < 3.0, lambda y: (1.5 * y + 0.1,), (row * row,))[0], rows),
])
def test_rows_of_unknown_extents_have_a_shape_even_if_there_are_none(n, f):
    x, rows = np.array([0.5, 1.3, 2.1]), np.arange(9.0).reshape(3, 3)[:n]

    def total(rows, x):
        return cnp.sum(cnp.sum(f(rows, x), 0) * x)

    with cytape.Graph().as_default() as graph:
        of_rows, of_x = cytape.placeholder(float, (None, None)), cytape.placeholder(float, (None,))
        y = total(of_rows, of_x)
        fetches = [f(of_rows, of_x), y, *cytape.gradients(
            [y], [of_rows, of_x], unconnected_gradients="zero")]
    found = cytape.Session(graph).run(fetches, {of_rows: rows, of_x: x})
    expected = [f(rows, x), total(rows, x), *cytape.grad(total, (0, 1))(rows, x)]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-12)
