"""Views of tensors whose extents a trace does not know, and of results that nothing else names."""

from functools import partial
from itertools import product

import numpy as np
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ops.updates.test_written_views import COPIES, SOME, STEPS, VIEWS, WRITES, X
from tests.ways import agree, as_in_numpy

TRACES = {
    "no extent": partial(cytape.function, input_signature=[cytape.Spec.of((None, None), float)]),
    "one extent": partial(cytape.function, input_signature=[cytape.Spec.of((None, 4), float)]),
    "of a mask": lambda f: cytape.function(lambda x: f(x[x[:, 0] > -99.0]))}
SECOND = ("rows", "every other", "column", "transpose", "reshape", "flip", "ravel", "windows")
# Whether this is a view depends on the number of rows.
UNDECIDED = [("every other", "reshape"), ("transpose", "same shape"), ("swapaxes", "same shape")]


def compare(trace, f, *, may_depend=False):
    """Compare a program with NumPy's, where it does not need extents; return whether it ran."""
    try:
        expected = f(X.copy())
    except (IndexError, TypeError, ValueError):  # of a number, or what is only to be read
        return False
    try:
        found = trace(f)(X)
    except SymbolicTensorError:
        return False
    except ValueError as error:
        if "read-only" not in str(error) and not (
                may_depend and "depends on extents" in str(error)):
            raise
        return False
    agree(found, expected)
    return True


@each("trace", TRACES)
@each("view", [*VIEWS.values(), *COPIES.values()], ids=[*VIEWS, *COPIES])
def test_views_see_what_is_written(view, trace):
    for write in WRITES.values():
        def f(x, write=write):
            x = x * 1.0
            shown = view(x)
            write(x)
            return x, shown

        compare(TRACES[trace], f)


@sampled(3, trace=TRACES, first=[*VIEWS, *COPIES])
def test_views_of_views_are_written_to(first, trace):
    for second in SECOND:
        def f(x, second=second):
            x = x * 1.0
            shown = ({**VIEWS, **COPIES})[first](x)
            part = VIEWS[second](shown)
            part[:1] = 5.0
            part[-1] = part[0] * 2.0
            x[1] = x[0] + 1.0
            return x, shown, part

        compare(TRACES[trace], f, may_depend=(first, second) in [
            *UNDECIDED, ("every other", "ravel of rows")])


def test_most_programs_of_unknown_extents_run():
    def f(x, first, second):
        x = x * 1.0
        shown = VIEWS[first](x)
        part = VIEWS[second](shown)
        part[:1] = 5.0
        return x, shown, part

    firsts = ("rows", "transpose", "flip", "rot90", "swapaxes", "expand_dims", "ravel", "column")
    for first, second in product(firsts, ("rows", "every other", "flip", "ravel", "new axis")):
        assert compare(TRACES["no extent"], partial(f, first=first, second=second))


RESHAPED = {
    "reshaped": lambda m, x: m.reshape(x, (-1,)), "raveled": lambda m, x: m.ravel(x),
    "reshaped twice": lambda m, x: m.reshape(m.reshape(x, (-1,)), (-1, 1)),
    "a slice": lambda m, x: m.reshape(x, (-1,))[:1],
    "in Fortran's order": lambda m, x: m.reshape(x, (-1,), order="F")}
OPERANDS = {
    "transposed": lambda m, x: x.T, "columns": lambda m, x: x[:, ::2],
    "other columns": lambda m, x: x[:, 1:], "rows": lambda m, x: x[::2],
    "reversed": lambda m, x: x[::-1], "a column": lambda m, x: x[:, 0],
    "squeezed": lambda m, x: m.squeeze(x[:, :1], 1), "copy": lambda m, x: m.copy(x.T),
    "reshaped columns": lambda m, x: m.reshape(x[:, ::2], (-1,)),
    "three axes": lambda m, x: x.T[None]}
SHAPES = [(3, 3), (3, 4), (1, 4), (1, 3), (3, 1), (1, 1), (2, 2), (5, 2), (2, 1)]


@sampled(6, extents=[(None, None), (3, None), (None, 4), (None, 1), (1, None)],
         reshaped=RESHAPED, operand=OPERANDS)
def test_a_run_decides_what_is_a_view(reshaped, operand, extents):
    """Each of the three is written to, with the base and the view named or not."""
    def f(x, written, is_named, m=cnp):
        x = x * 1.0
        shown = OPERANDS[operand](m, x)
        other = m.ravel(x.T)
        y = RESHAPED[reshaped](m, shown if is_named else OPERANDS[operand](m, x))
        (x, shown if is_named else x, y, other)[written][:1] = 50.0
        return x, shown, y, other

    for written, is_named in product(range(4), (False, True)):
        program = partial(f, written=written, is_named=is_named)
        traced = cytape.function(program, input_signature=[cytape.Spec.of(extents, float)])
        for shape in SHAPES:
            if all(n in (None, m) for n, m in zip(extents, shape, strict=True)):
                x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
                agree(traced(x), program(x, m=np))


@each("shape", [(3, 4), (1, 4), (3, 1)])
def test_derivatives_see_what_a_run_decides(shape):
    def f(x):
        y = np.sin(x)
        flat = y.T.ravel()
        flat[1:2] = flat[0] * x[0, 0]
        y[-1] *= y[0, 0]
        return np.sum(y * y) + np.sum(flat * flat)

    x = np.linspace(0.2, 1.0, 12)[: np.prod(shape)].reshape(shape)
    traced = TRACES["no extent"](f)
    check_grads(traced, (x,), order=2)
    for derivative in (cytape.grad, cytape.hessian):
        np.testing.assert_allclose(derivative(traced)(x), derivative(f)(x), rtol=1e-12)


def undecided(x):
    return (x * 1.0)[::-2].reshape(2, -1)


@each("read", [
    lambda x: cytape.function(lambda y: y * 2.0)(undecided(x)),
    lambda x: cytape.map_fn(lambda y: y * 2.0, undecided(x)),
    lambda x: cytape.while_loop(
        lambda i, y: i < 1, lambda i, y: (i + 1, y * 2.0), (0, undecided(x)))[1],
    lambda x: cytape.vmap(lambda y: y * 2.0)(undecided(x)),
    lambda x: cytape.recompute_grad(lambda y: y * 2.0)(undecided(x)),
    lambda x: np.add(undecided(x), undecided(x), out=cnp.zeros((2, 4))),
    lambda x: np.positive(np.copy(undecided(x)), out=cnp.zeros((2, 4))) * 2.0,
    lambda x: cnp.ascontiguousarray(undecided(x)) * 2.0,
])
def test_values_that_depend_on_extents_are_read_and_passed_on(read):
    f = TRACES["no extent"](read)
    np.testing.assert_array_equal(f(X), 2.0 * undecided(X))
    np.testing.assert_array_equal(
        cytape.grad(lambda x: cnp.sum(f(x)))(X), cytape.grad(lambda x: np.sum(
            2.0 * undecided(x)))(X))


def test_derivatives_through_views_of_unknown_extents():
    def f(x):
        y = x * 1.0
        turned, rows = y.T[::-1], y[1:]
        turned[0] = np.sin(x[:, 0]) * turned[1]
        rows[:, 1] *= rows[0, 2]
        chosen = y[y[:, 0] > 0.2]
        flipped = chosen.T
        flipped[0] = flipped[1] * y[0, 0]
        return np.sum(chosen * chosen) + np.sum(turned * y[0, 1])

    for trace in (cytape.function, TRACES["no extent"], TRACES["one extent"]):
        check_grads(trace(f), (X / 9.0,), order=2)
        np.testing.assert_allclose(
            cytape.grad(trace(f))(X / 9.0), cytape.grad(f)(X / 9.0), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_random_programs_of_views(steps):
    def program(x):
        tensors = [x * 1.0]
        for kind, which, how, other in steps:
            tensor = tensors[which % len(tensors)]
            if kind == "view" and np.ndim(tensor):
                tensors.append(SOME[how % len(SOME)](tensor))
            elif kind == "new":
                tensors.append(np.add(tensor, 1.0, order="C"))
            elif kind == "drop" and len(tensors) > 1:
                del tensors[which % len(tensors)]
            elif kind in ("write", "add") and np.ndim(tensor):
                tensor[how % 2] = other
        return tensors

    compare(TRACES["no extent"], program, may_depend=True)


# -- results that nothing names --------------------------------------------------------------------

RESULTS = {
    "solve": lambda x: np.linalg.solve(x[:3], x[:3, 0]),
    "lstsq": lambda x: np.linalg.lstsq(x, x[:, 0] + 1.0)[0],
    "nanmean": lambda x: np.nanmean(x, axis=0), "nanvar": lambda x: np.nanvar(x, axis=0),
    "median": lambda x: np.median(x, axis=0, keepdims=True),
    "average": lambda x: np.average(x, axis=1, keepdims=True), "vecdot": lambda x: np.vecdot(x, x),
    "matvec": lambda x: np.matvec(x, x[0]), "polyfit": lambda x: np.polyfit(x[0], x[1], 1),
    "inverse": lambda x: np.linalg.inv(x[:3]), "cross": lambda x: np.cross(x, x[::-1]),
    "norm": lambda x: np.linalg.norm(x, axis=0), "gradient": lambda x: np.gradient(x, axis=0),
    "kron": lambda x: np.kron(x, x[:1]), "quantile": lambda x: np.quantile(x, [0.3, 0.6], axis=0),
    "ptp": lambda x: np.ptp(x, axis=1),
    "cholesky": lambda x: np.linalg.cholesky(x.T @ x + np.eye(3)),
    "fft": lambda x: np.fft.irfft(np.fft.rfft(x, axis=0), axis=0), "unique": lambda x: np.unique(x),
    "tensordot": lambda x: np.tensordot(x, x, (0, 0)), "outer": lambda x: np.outer(x[0], x[1]),
    "interp": lambda x: np.interp(x[0], [0.0, 1.0], [0.0, 2.0]), "cov": lambda x: np.cov(x.T),
    "transposed": lambda x: (x * 2.0).T, "reshaped": lambda x: (x * 2.0).reshape(3, 4),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [1]),
    "asfortranarray": cnp.asfortranarray, "windows": lambda x: np.sort(x, axis=0)[:, 1:].T}
MATRIX = np.cos(np.arange(12.0) ** 2).reshape(4, 3)


def written_to(make, x):
    y = make(x)
    reversed_y, first = y[::-1], y[..., :1]
    reversed_y[:1] = 9.0
    first *= 2.0
    return y, reversed_y, first


@each("make", RESULTS.values(), ids=RESULTS)
def test_views_of_fresh_results_are_written_to(make):
    as_in_numpy(partial(written_to, make), MATRIX, rtol=1e-10, atol=1e-12)


@each("name", [name for name in RESULTS if name not in ("unique", "median", "interp")])
def test_derivatives_of_written_views_of_fresh_results(name):
    def f(x):
        return np.sum(np.sin(written_to(RESULTS[name], x)[0]))

    check_grads(f, (MATRIX,), modes=("reverse", "forward"))
    check_grads(cytape.function(f), (MATRIX,), modes=("reverse", "forward"))


def test_a_view_that_is_written_to_often_keeps_its_views():
    def f(x):
        y = (x * 2.0).T
        rows = [y[i] for i in range(3)]
        for i in range(20):
            rows[i % 3] += 1.0
            y[:, 0] = i
            turned = y.T
            turned[1:] *= 0.5
        return y, *rows

    as_in_numpy(f, MATRIX)


@each("extents", [(None, None), (None, 3), (1, None)])
def test_an_axis_that_is_squeezed_has_one_element(extents):
    def f(x):
        x = x * 1.0
        row = np.squeeze(x, 0)
        row[1:] = x[0, 0] * 7.0
        row += 1.0
        return x

    x = np.array([[2.0, 3.0, 4.0]])
    traced = cytape.function(f, input_signature=[cytape.Spec.of(extents, float)])
    np.testing.assert_array_equal(traced(x), f(x))
    np.testing.assert_array_equal(cytape.grad(lambda x: np.sum(traced(x)))(x), [[15, 0, 0]])


def reads_ravel_of_fortran(x):
    every_other = x[::2]
    shown = every_other.reshape(-1, 1, order="F")
    raveled = shown.ravel()
    every_other[0] = 9.0
    return x, every_other, shown, raveled


def writes_through_two_reshapes(x):
    column = x.reshape(-1, 1, order="F")
    every_other = column[::2]
    again = every_other.reshape(-1, 1, order="F")
    again[0] = 9.0
    return x, column, every_other, again


def writes_to_slice(index):
    def f(x):
        flat = x[index].reshape(-1)
        flat[0] = 9.0
        return x, flat

    return f


@each(shape=[(4, 1), (1, 4), (4, 6), (3, 100), (100, 3), (40, 40)], f=[
    reads_ravel_of_fortran, writes_through_two_reshapes,
    *map(writes_to_slice, [
        np.s_[:, :30], np.s_[::30], np.s_[:, -30:], np.s_[:30], np.s_[..., :30]]),
    lambda x: writes_to_slice(np.s_[:])(np.hsplit(x, [30])[0])])
def test_reshapes_of_slices_and_of_reshapes_are_decided_in_each_run(f, shape):
    def program(x):
        x = x * 1.0
        return f(x)

    array = np.arange(float(np.prod(shape))).reshape(shape)
    traced = cytape.function(program, input_signature=[cytape.Spec.of((None, None), float)])
    agree(traced(array), program(array))
