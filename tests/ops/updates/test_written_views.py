"""Tensors that NumPy would have made views: they see writes to their base, and write to it."""

import operator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cytape
from cytape.errors import TapeStateError
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import agree, as_in_numpy, watching

X = np.arange(1.0, 17.0).reshape(4, 4)

VIEWS = {
    "row": lambda x: x[1], "rows": lambda x: x[1:], "every other": lambda x: x[::-2],
    "column": lambda x: x[:, 1], "element": lambda x: x[1, 1, ...], "all": lambda x: x[...],
    "new axis": lambda x: x[None], "row of a loop": lambda x: list(x)[1],
    "transpose": lambda x: x.T, "swapaxes": lambda x: x.swapaxes(0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1), "permuted": lambda x: np.permute_dims(x, (1, 0)),
    "reshape": lambda x: x.reshape(2, -1), "same shape": lambda x: x.reshape(4, 4),
    "ravel": np.ravel, "expand_dims": lambda x: np.expand_dims(x, 1),
    "squeeze": lambda x: np.squeeze(x[None]), "atleast_3d": np.atleast_3d, "real": np.real,
    "split": lambda x: np.split(x, 2)[1], "array_split": lambda x: np.array_split(x, 3)[0],
    "unstack": lambda x: np.unstack(x)[1], "flip": np.flip, "rot90": np.rot90,
    "rollaxis": lambda x: np.rollaxis(x, 1), "diagonal": np.diagonal, "diag": np.diag,
    "einsum": lambda x: np.einsum("ii->i", x), "broadcast": lambda x: np.broadcast_to(x, (2, 4, 4)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    "broadcast with itself": lambda x: np.broadcast_arrays(x, x)[0],
    "of a view": lambda x: x[1:][:, 1:].T, "of a view of it": lambda x: x.T[1:].T[0],
    "ravel of rows": lambda x: x[1:].ravel()}
COPIES = {
    "copy": lambda x: x.copy(), "flatten": lambda x: x.flatten(), "sum": lambda x: x + 0.0,
    "rows by number": lambda x: x[[1, 2]], "mask": lambda x: x[X[0] > 0],
    "take": lambda x: np.take(x, [0], 0), "compress": lambda x: np.compress([True, True], x, 0),
    "roll": lambda x: np.roll(x, 1), "reshape of columns": lambda x: x.T.reshape(-1),
    "ravel of a column": lambda x: x[:, 1].ravel(), "ravel of columns": lambda x: x[:, 1:].ravel(),
    "number": lambda x: x[1, 1], "number by NumPy's integers": lambda x: x[np.int64(1), 1],
    "tile": lambda x: np.tile(x, 1), "triu": np.triu}
WRITES = {
    "elements": lambda x: operator.setitem(x, (1, 1), 70.0),
    "a row": lambda x: operator.setitem(x, 0, 50.0),
    "places": lambda x: operator.setitem(x, (np.array([0, 2]), np.array([1, 3])), 5.0),
    "all": lambda x: operator.iadd(x, 100.0), "out": lambda x: np.multiply(x, 2.0, out=x),
    "from itself": lambda x: operator.setitem(x, slice(1, None), x[:-1])}


@each("write", WRITES.values(), ids=WRITES)
@each("view", [*VIEWS.values(), *COPIES.values()], ids=[*VIEWS, *COPIES])
def test_views_see_what_is_written(view, write):
    def f(x):
        shown = view(x)
        write(x)
        return x, shown

    as_in_numpy(f, X)


@each("traced", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("view", [*VIEWS.values(), *COPIES.values()], ids=[*VIEWS, *COPIES])
def test_writes_to_a_view_are_writes_to_its_base(view, traced):
    def f(x):
        shown = view(x)
        if np.ndim(shown):
            shown += 100.0
            shown[...] = shown * 2.0
            shown[0] = 7.0
        return x, shown

    try:
        expected = f(X.copy())
    except ValueError:
        expected = None
    if expected is None or view is VIEWS["einsum"]:  # read-only, or a diagonal
        with pytest.raises(ValueError, match="read-only"):
            traced(f)(cytape.constant(X))
    else:
        agree(traced(f)(cytape.constant(X)), expected)


@each("view", VIEWS.values(), ids=VIEWS)
def test_derivatives_of_what_views_show(view):
    def f(x):
        x = x * 1.0
        shown = view(x)
        x[0] = np.sin(x[0]) * np.sum(shown)
        x[1:3, 2] *= x[0, 0]
        return np.sum(shown * shown) + x[0, 1]

    check_grads(f, (X / 9.0,), order=2)
    check_grads(cytape.function(f), (X / 9.0,), order=2)


def test_a_sweep_over_views_that_are_made_once():
    def swept(u, n=5):
        u = u * 1.0
        left, inner, right = u[:-2], u[1:-1], u[2:]
        for _ in range(n):
            inner[:] = 0.5 * (left + right) + 0.1 * np.sin(inner)
        return u

    u = np.linspace(0.0, 1.0, 200) ** 2  # views of so many share memory
    np.testing.assert_array_equal(swept(cytape.constant(u)), swept(u))
    np.testing.assert_allclose(cytape.function(swept)(cytape.constant(u)), swept(u), rtol=1e-14)
    check_grads(lambda u: np.sum(swept(u) ** 2), (u[::20],), order=2)


def test_rows_of_a_loop_are_written_to():
    def doubled(x):
        for i, row in enumerate(x):
            row *= 2.0
            row[i] = 0.0
        x[1][2] = -1.0
        return x

    as_in_numpy(doubled, X)


@each("known", [True, False])
def test_views_by_indices_that_only_a_run_tells(known):
    @cytape.function(input_signature=[cytape.Spec.of((4 if known else None, 4), float),
                                      cytape.Spec.of((), np.int64)])
    def f(x, i):
        row, rest, number = x[i], x[i:], x[i, i]
        x[i] = x[i] * 2.0
        x[0, 0] = -1.0
        return x, row, rest, number

    expected = X.copy()
    expected[2] *= 2.0
    expected[0, 0] = -1.0
    x, row, rest, number = f(X, np.int64(2))
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(row, expected[2])
    np.testing.assert_array_equal(rest, expected[2:])
    assert float(number) == X[2, 2]


# -- random programs -------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(
    st.sampled_from(["view", "view", "view", "new", "write", "write", "add", "drop"]),
    st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)), max_size=25)
# Views from `einsum` are read-only here.
SOME = [view for name, view in VIEWS.items() if name != "einsum"]


@settings(max_examples=75, deadline=None)
@given(STEPS)
def test_random_programs_of_views(steps):
    pairs = [(X.copy(), cytape.constant(X))]
    for kind, which, how, other in steps:
        array, tensor = pairs[which % len(pairs)]
        if array.ndim == 0 or array.size == 0:
            continue
        if kind == "view":
            try:
                shown = SOME[how % len(SOME)](array)
            except (IndexError, ValueError):
                continue
            pairs.append((shown, SOME[how % len(SOME)](tensor)))
        elif kind == "new":
            pairs.append((np.array(array * 2.0, order="C"), tensor * 2.0))
        elif kind == "drop" and len(pairs) > 1:
            del pairs[which % len(pairs)]
        elif kind in ("write", "add") and array.flags.writeable:
            row = slice(None) if kind == "add" else how % len(array)
            try:
                tensor[row] = other
            except ValueError:  # its base was dropped
                assert array.base is not None and all(each is not array.base for each, _ in pairs)
                continue
            array[row] = other
        for array, tensor in pairs:
            np.testing.assert_array_equal(tensor.numpy(), array)
        del array, tensor  # alive, they would be views of others


# -- who else there is -----------------------------------------------------------------------------


def test_the_base_may_be_gone():
    def halves(x):
        y = x * 2.0
        return y[:3], y[1:]

    first, second = halves(cytape.constant(X))
    with pytest.raises(ValueError, match="read-only"):  # `second` would not notice
        first += 1.0
    del second
    first += 1.0
    np.testing.assert_array_equal(first, halves(X)[0] + 1.0)
    first[0][1] = 5.0
    assert float(first[0, 1]) == 5.0


def test_memory_that_only_views_share_is_written_in_place():
    x = cytape.constant(np.zeros((100, 100))) + 0.0
    flat, rows = x.ravel(), x[50:]
    x[0] = 1.0
    place = x.numpy().__array_interface__["data"]
    for i in range(1, 100):
        x[i] = float(i)
    assert x.numpy().__array_interface__["data"] == place
    assert flat.numpy()[::100].tolist() == [1.0, *range(1, 100)]
    assert rows.numpy()[:, 0].tolist() == [*range(50, 100)]


@each("width", [3, 100])  # views of so many share memory
def test_rows_apart_are_no_matter_of_each_other(width):
    x = cytape.constant(np.zeros((50, width))) + 0.0
    row = x[3]
    before = row.id
    x[4] = 1.0
    assert row.id == before
    place = x.numpy().__array_interface__["data"]
    x[5] = 1.0
    assert x.numpy().__array_interface__["data"] == place
    x[3] = 1.0
    assert row.id != before
    np.testing.assert_array_equal(row, np.ones(width))


def test_rows_apart_stay_recorded():
    x = cytape.constant(np.ones((50, 100)))
    with watching(x, persistent=True) as tape:
        y = x * 2.0
        row, rows = y[0], y[10:]
        z = np.sum(row * row) + np.sum(rows)
        y[1] = 3.0
    y[2] = 4.0
    of_row, of_rows = tape.gradient(z, [row, rows])
    np.testing.assert_array_equal(of_row, np.full(100, 4.0))
    np.testing.assert_array_equal(of_rows, np.ones((40, 100)))


def test_a_view_that_is_watched():
    x = cytape.constant(X)
    with cytape.GradientTape() as tape:
        row, rows = x[0], x[2:]
        tape.watch(row)
        x[3] = 0.0
        assert not np.any(rows.numpy()[1])
        with pytest.raises(TapeStateError, match="watches"):
            x[0] = 1.0
        with pytest.raises(TapeStateError, match="watches"):
            x += 1.0
        y = np.sum(row * row)
    np.testing.assert_array_equal(tape.gradient(y, row), 2.0 * X[0])


def test_gradients_with_respect_to_views():
    x = cytape.constant(X)
    with watching(x) as tape:
        y = x * 1.0
        row = y[0]
        y[0] = row * 3.0
        z = np.sum(row * row)
    of_row, of_x = tape.gradient(z, [row, x])
    np.testing.assert_array_equal(of_row, 6.0 * X[0])
    np.testing.assert_array_equal(of_x, [18.0 * X[0], *np.zeros((3, 4))])


def test_functions_get_arrays_of_their_own():
    def f(x, row):
        x[0] = 0.0
        return np.sum(row)

    x = cytape.constant(X)
    row = x[0]
    with pytest.warns(UserWarning, match="f changes an argument"):
        assert float(cytape.function(f)(x, row)) == X[0].sum()
    np.testing.assert_array_equal(row, X[0])


def test_operands_that_made_views_may_change():
    def f(x):
        axes, shape, at = [1, 0], [2, 8], np.array([1, 3])
        which = x[0, 0, ...].astype(int)
        row = x[int(which)] if isinstance(x, np.ndarray) else x[which]
        shown = [np.transpose(x, axes), np.reshape(x, shape), np.split(x, at)[1], row]
        axes[:], shape[:], at[:] = [0, 1], [8, 2], [2, 3]
        which[...] = 0
        x[...] = x * 2.0
        return x, *shown

    as_in_numpy(f, X)


def test_a_value_that_looks_at_views_while_it_is_written():
    x = cytape.constant(X)
    row, seen = x[0], []

    class Ones:
        def __array__(self, dtype=None, copy=None):
            seen.append(row.numpy())
            return np.ones(4, dtype)

    x[0] = Ones()
    np.testing.assert_array_equal(seen[0], X[0])
    np.testing.assert_array_equal(row, np.ones(4))


def test_tangents_of_rows_apart():
    x = cytape.constant(np.ones((50, 100)))
    with cytape.ForwardAccumulator(x, np.ones((50, 100))) as accumulator:
        y = x * 2.0
        rows = y[10:]
        y[1] = 3.0
        z = np.sum(rows)
    assert float(accumulator.jvp(z)) == 8000.0


def test_results_that_are_views_make_no_views_of_what_takes_them_on():
    def f(x):
        y = x * 0.0
        np.einsum("ij->ji", x, out=y)
        y += 1.0
        y[0] = 5.0
        return y

    as_in_numpy(f, X)


@each("part", [np.real, np.imag, lambda z: z[1:].T.real])
def test_parts_of_complex_numbers_are_not_written_to(part):
    z = cytape.constant(X + 1j)
    shown = part(z)
    with pytest.raises(ValueError, match="part of complex"):
        shown[0] = 5.0
    np.testing.assert_array_equal(z, X + 1j)
    z[...] = 2.0 + 3.0j
    np.testing.assert_array_equal(shown, part(z.numpy()))


def test_a_failed_write_leaves_views():
    x = cytape.constant(X)
    row, large = x[0], cytape.constant(np.zeros((100, 100)))
    rows = large[1:]
    for index, value in ((900, 1.0), (slice(2), np.ones(3)), (0, "text"), ("a", 1.0)):
        with pytest.raises((IndexError, ValueError)):
            x[index] = value
        with pytest.raises((IndexError, ValueError)):
            large[index] = value
    np.testing.assert_array_equal(row, X[0])
    np.testing.assert_array_equal(rows, np.zeros((99, 100)))
    large[1] = 1.0
    assert np.all(rows.numpy()[0] == 1.0)


def test_functions_that_return_or_change_what_they_got():
    x = cytape.constant([1.0, np.nan])
    assert x.conj() is x
    assert np.nan_to_num(x, copy=False) is x
    np.testing.assert_array_equal(x, [1.0, 0.0])
    y = np.nan_to_num(x)
    y += 1.0
    np.testing.assert_array_equal(x, [1.0, 0.0])


@each("index", [0, (1, 2), slice(1, None, 2), ([0, 2, 0], [1, 1, 1]), np.eye(4) > 0, ...])
def test_parts_of_views_are_written_to(index):
    def f(x):
        x = x * 1.0
        turned, flat = x.T, x[1:].ravel()
        turned[index] = 5.0
        turned[index] = turned[index] * np.arange(np.size(turned[index])).reshape(
            np.shape(turned[index]))
        flat[1:3] = x[0, :2]
        return x, turned, flat

    as_in_numpy(f, X)


PARTS = st.one_of(st.integers(-3, 2), st.just(...), st.builds(
    slice, *[st.none() | st.integers(-4, 4)] * 2, st.sampled_from([None, -2, -1, 1, 2])))


@settings(max_examples=75, deadline=None)
@given(st.lists(st.lists(PARTS, max_size=3).map(tuple), min_size=2, max_size=4))
@example([(0, 0, 0), (...,), ()])
def test_indices_of_indices(indices):
    array = np.arange(36.0).reshape(3, 4, 3)
    tensor = cytape.constant(array)
    arrays, tensors = [array], [tensor]
    try:
        for index in indices[:-1]:
            arrays.append(arrays[-1][index])
            tensors.append(tensors[-1][index])
        values = np.cos(np.arange(arrays[-1][indices[-1]].size)).reshape(
            arrays[-1][indices[-1]].shape)
        arrays[-1][indices[-1]] = values
    except (IndexError, TypeError):  # of a number there are no parts
        return
    tensors[-1][indices[-1]] = values
    agree(tensors, arrays)


def test_elements_of_a_view_are_written_in_place():
    x = cytape.constant(np.zeros((100, 100))) + 0.0
    inner = x[1:-1][:, ::-2]
    inner[0] = 1.0
    place = x.numpy().__array_interface__["data"]
    for i in range(1, 98):
        inner[i, i // 2] = float(i)
    assert x.numpy().__array_interface__["data"] == place
    assert float(x[98, 99 - 2 * (97 // 2)]) == 97.0


def test_a_view_whose_base_is_gone_is_watched_or_from_outside():
    row = (cytape.constant(X) * 2.0)[0]
    with watching(row):
        with pytest.raises(TapeStateError, match="watches"):
            row += 1.0

    @cytape.function
    def f(x):
        row[0] = x[0]
        return x

    with pytest.raises(TapeStateError, match="outside"):
        f(X)
    np.testing.assert_array_equal(row, X[0] * 2.0)


def test_parts_of_what_nothing_names():
    def f(x):
        position, velocity = x.reshape(2, -1).copy()
        position += velocity
        left, right = np.split(x * 2.0, 2, axis=1)
        left *= right
        first = x.ravel(order="F")
        first[0] = 9.0
        return position, velocity, left, right, first

    as_in_numpy(f, X)


def test_numbers_that_are_views():
    def f(x):
        y = x * 1.0
        first, second = y[..., 0], y[1:2].squeeze()
        first += y[2]
        second *= 3.0
        return np.sum(y ** 2)

    check_grads(f, (X[0],), order=2)
    check_grads(cytape.function(f), (X[0],), order=2)


def test_views_of_views_without_end():
    x = cytape.constant(X[:3, :3])
    for _ in range(5000):
        x = x.T
        x += 1.0
    np.testing.assert_array_equal(x, X[:3, :3] + 5000.0)
    for _ in range(5000):
        x = x.T
    x[0] = 1.0
    np.testing.assert_array_equal(x[0], np.ones(3))
    shown = x
    for _ in range(5000):
        shown = shown.T
    with pytest.raises(RecursionError):
        shown[0] = 1.0


def test_ambiguous_writes_are_refused():
    v = cytape.Variable(X)
    row = v[0]
    with pytest.raises(ValueError, match="read-only"):
        row += 1.0
    with pytest.raises(ValueError, match="lost"):
        v[0][1] = 1.0
