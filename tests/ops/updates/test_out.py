"""out=, a tensor: of NumPy's functions and cytape's, of arrays and tensors."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.numpy.protocols import numpy_functions
from cytape.testing import numerical_grad
from tests.cases import case, each
from tests.ways import watching

SMALL = np.array([1.0, 2.0, 3.0])
ROWS = np.arange(6.0).reshape(2, 3)


def zeros(*arguments):
    return cytape.constant(np.zeros(*arguments))


def test_ufuncs_write_to_tensors():
    x, out = cytape.constant(SMALL), zeros(3)
    assert np.add(x, 1.0, out=out) is out
    assert out.numpy().tolist() == [2.0, 3.0, 4.0]
    cnp.multiply(x, 2.0, out=out, where=np.array([True, False, True]))
    assert out.numpy().tolist() == [2.0, 3.0, 6.0]

    def f(x):
        out = cnp.zeros(3)
        np.multiply(x, x, out=out)
        np.sin(out, out=out, where=[True, True, False])
        return cnp.sum(out)

    expected = 2 * SMALL * [*np.cos(SMALL[:2] ** 2), 1.0]
    np.testing.assert_allclose(cytape.grad(f)(SMALL), expected)
    np.testing.assert_allclose(cytape.grad(cytape.function(f))(SMALL), expected)
    with pytest.raises(TypeError, match="where"):
        np.add(x, 1.0, where=[True, False, True])
    with pytest.raises(TypeError, match="'float64'.*same_kind"):
        np.add(x, 1.0, out=zeros(3, int))
    with watching(x):
        with pytest.raises(TypeError, match="cytape.numpy.empty"):
            cnp.add(x, 1.0, out=np.zeros(3))


@each("where", [True, np.array([True, False, True])], ids=["all", "some"])
@each("ufunc", [np.exp, np.add, np.multiply, np.ldexp, np.arctan2, np.conjugate, np.sign])
def test_ufuncs_of_arrays_write_to_tensors(ufunc, where):
    operands = (SMALL, np.array([1, 2, 3]))[: ufunc.nin]
    x, expected = zeros(3), np.zeros(3)
    assert ufunc(*operands, out=x, where=where) is x
    np.testing.assert_array_equal(x.numpy(), ufunc(*operands, out=expected, where=where))
    y, z = zeros(3), zeros(3)
    ours = getattr(cnp, ufunc.__name__)
    assert ours(*operands, out=y, where=where) is y
    np.testing.assert_array_equal(y.numpy(), expected)
    assert ours(*operands, z) is z
    np.testing.assert_array_equal(z.numpy(), ufunc(*operands))


@each(where=[True, np.array([True, False, True])], ufunc=[np.modf, np.frexp, np.divmod])
def test_ufuncs_of_two_results_write_to_tensors(ufunc, where):
    operands = (2.5 * SMALL, SMALL)[: ufunc.nin]
    expected = np.zeros(3), np.zeros(3, ufunc(*operands)[1].dtype)
    ufunc(*operands, out=expected, where=where)
    for function in (ufunc, getattr(cnp, ufunc.__name__)):
        for given in (operands, list(map(cytape.constant, operands)), [list(operands[0]), SMALL]):
            outs = tuple(map(cytape.constant, map(np.zeros_like, expected)))
            found = function(*given[: ufunc.nin], out=outs, where=where)
            for out, y, z in zip(outs, found, expected, strict=True):
                assert out is y
                np.testing.assert_array_equal(out.numpy(), z)
        outs = cytape.constant(np.zeros(3)), None
        first, second = function(*operands, *outs)
        assert first is outs[0]
        np.testing.assert_array_equal(np.asarray(second), ufunc(*operands)[1])
        with cytape.GradientTape() as tape:
            x = cytape.constant(operands[0])
            tape.watch(x)
            with pytest.raises((TypeError, DetachedError), match="out"):
                function(x, *operands[1:], out=(np.zeros(3), np.zeros(3)))
        with pytest.raises((TypeError, ValueError), match="tuple"):
            function(*operands, out=first)

    def fraction(x):
        out = cnp.zeros(3), cnp.zeros(3)
        np.modf(x, out=out)
        return cnp.sum(out[0])

    np.testing.assert_array_equal(cytape.grad(fraction)(SMALL), np.ones(3))


@each("name, shapes, factor", [
    ("matmul", [(2, 3), (3, 2), (2, 2)], 1.0), ("vecdot", [(2, 3), (2, 3), (2,)], 1.0),
    ("matvec", [(2, 3), (3,), (2,)], 1.0), ("vecmat", [(2,), (2, 3), (3,)], 1.0),
    ("sign", [(3,), (3,)], 3 + 4j), ("conjugate", [(3,), (3,)], 3 + 4j)])
def test_products_and_functions_of_complex_numbers_write_to_tensors(name, shapes, factor):
    *operands, nothing = [factor * np.arange(1.0, 1 + np.prod(n)).reshape(n) for n in shapes]
    expected = getattr(np, name)(*operands)
    for module in (np, cnp):
        for given in (operands, list(map(cytape.constant, operands))):
            for by_name in (False, True):
                out = cytape.constant(nothing)
                found = getattr(module, name)(
                    *given, **{"out": out}) if by_name else getattr(module, name)(*given, out)
                assert found is out
                np.testing.assert_allclose(out.numpy(), expected)


def test_results_are_broadcast_to_what_they_are_written_to():
    for x in (SMALL, cytape.constant(SMALL)):
        out = zeros((2, 3))
        np.add(x, 1, out=out)
        assert out.numpy().tolist() == [[2.0, 3.0, 4.0]] * 2
        with pytest.raises(ValueError, match="non-broadcastable"):
            np.add(np.ones((2, 1)) * x, 1, out=zeros(3))

    def f(x):
        out = cnp.zeros((2, 3))
        np.multiply(x, x, out=out)
        return cnp.sum(out)

    np.testing.assert_allclose(cytape.grad(f)(SMALL), 4 * SMALL)
    np.testing.assert_allclose(cytape.grad(cytape.function(f))(SMALL), 4 * SMALL)


@each("function", [
    np.sum, np.prod, np.mean, np.max, lambda a, axis, out: np.add.reduce(a, axis, out=out),
    lambda a, axis, out: np.cumsum(a[1], out=out),
    lambda a, axis, out: np.concatenate([a[0, :2], a[1, :1]], out=out),
    lambda a, axis, out: np.clip(a[1], 0, 4, out=out)])
def test_functions_of_numpy_write_to_tensors(function):
    expected = function(ROWS, axis=0, out=np.zeros(3))
    for a in (ROWS, cytape.constant(ROWS)):
        out = zeros(3)
        assert function(a, axis=0, out=out) is out
        np.testing.assert_array_equal(out.numpy(), expected)

    def f(a):
        out = cnp.zeros(3)
        function(a, axis=0, out=out)
        return cnp.sum(out * SMALL)

    direct = cytape.grad(lambda a: cnp.sum(function(a, axis=0, out=None) * SMALL))(ROWS)
    np.testing.assert_allclose(cytape.grad(f)(ROWS), direct)


WRITERS = {
    "sum prod mean max min var std median ptp": "(a, 0, out=out)",
    "nansum nanmax nanmean nanvar nanmedian": "(a, 0, out=out)", "argmax argmin": "(a, 0, out=out)",
    "all any": "(a, 0, out=out)", "sin absolute fft.irfft2": "(a, out=out)",
    "fft.rfftn": "(a, axes=(0, 1), out=out)",
    "quantile percentile nanquantile": "(a, 0.5, 0, out=out)",
    "cumsum cumprod nancumsum nancumprod": "(a[0], 0, out=out)",
    "fft.fft fft.rfft": "(a[0], out=out)", "cumulative_sum": "(a[0], out=out)",
    "round": "(a[0], 1, out=out)", "concatenate": "([a[0, :2], a[1, :1]], out=out)",
    "stack": "([a[0], a[1]], out=out)", "clip": "(a[1], 0, 4, out=out)",
    "take": "(a[0], [2, 0, 0], out=out)", "dot": "(a, a[0], out=out)",
    "outer": "(a[0], a[1], out=out)", "trace": "(a, out=out)", "einsum": "('ij->j', a, out=out)",
    "choose": "([0, 1, 0], [a[0], a[1]], out=out)", "compress": "([True, False], a, 0, out=out)",
    "linalg.multi_dot": "([a, a.T, a], out=out)", "add.reduce logaddexp.reduce": "(a, 0, out=out)",
    "add.accumulate": "(a[0], out=out)", "multiply.reduceat": "(a[0], [0, 2], out=out)",
    "fft.fft2": "(a, out=out)"}


def functions_of(namespace):
    for names, arguments in WRITERS.items():
        for name in names.split():
            call = f"m.{name}{arguments}"
            yield call, eval(f"lambda a, out=None: {call}", {"m": namespace})


def test_functions_of_cytape_write_to_tensors_as_numpys_do():
    for (name, ours), (_, theirs) in zip(functions_of(cnp), functions_of(np), strict=True):
        with case(lambda name=name: name):
            expected = np.asarray(theirs(ROWS, None))
            for a in (ROWS, cytape.constant(ROWS), [cytape.constant(row) for row in ROWS]):
                out = zeros(expected.shape, expected.dtype)
                if not isinstance(a, list):
                    assert ours(a, out) is out
                elif name.endswith("(a, 0, out=out)"):
                    assert ours(a, out) is out
                else:
                    continue
                np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13)
            array = np.zeros(expected.shape, expected.dtype)
            for a in (ROWS, cytape.constant(ROWS)):  # of which no derivative is lost
                array[...] = 0
                assert ours(a, array) is array
                np.testing.assert_allclose(array, expected, rtol=1e-13)
            if expected.dtype.kind not in "fc" or "round" in name:  # which have no derivative
                continue
            with cytape.GradientTape() as tape:
                a = cytape.constant(ROWS)
                tape.watch(a)
                with pytest.raises(TypeError, match="out must be a tensor if an operand"):
                    ours(a, array)


def test_writes_of_functions_of_cytape_have_gradients():
    for name, function in functions_of(cnp):
        def total(a, write, function=function):
            y = function(a, None)
            if write:
                out = cnp.zeros(y.shape, y.dtype)
                function(a, out)
                y = out
            return cnp.sum(cnp.real(y * np.arange(1.0, y.size + 1).reshape(y.shape)))

        with case(lambda name=name: name), warnings.catch_warnings():
            warnings.simplefilter("ignore", cytape.errors.UnconnectedGradientWarning)
            expected = cytape.grad(total)(ROWS, False)
            for differentiate in (cytape.grad(total), cytape.function(cytape.grad(total))):
                np.testing.assert_allclose(differentiate(ROWS, True), expected)


SQUARE = np.array([[1.0, 2.0], [3.0, 5.0]])
# By position: what comes before it. Functions of one operand have no more.
BEFORE_OUT = {
    **dict.fromkeys(["sum", "mean", "std", "var", "prod", "cumsum", "cumprod", "nansum", "nanmean",
                     "nanstd", "nanvar", "nanprod", "nancumsum", "nancumprod"], (0, None)),
    **dict.fromkeys(["max", "min", "nanmax", "nanmin", "ptp", "median", "nanmedian", "argmax",
                     "argmin", "all", "any"], (0,)),
    **dict.fromkeys(["quantile", "nanquantile", "percentile", "nanpercentile"], (0.3, 0)),
    **dict.fromkeys(["exp", "absolute", "floor", "fix", "isposinf", "isneginf"], ()),
    **dict.fromkeys(["add", "power", "less", "matmul", "dot", "outer"], (SQUARE,)),
    "clip": (0.0, 4.0), "round": (1,), "take": ([0, 1], 0), "trace": (0, 0, 1, None),
    "compress": None,
}


@each(name=BEFORE_OUT, of_tensor=[False, True])
def test_out_by_position(name, of_tensor):
    x = np.arange(4.0).reshape(2, 2) / 3
    operands = (x, *(BEFORE_OUT[name] or ()))
    if name == "compress":
        operands = ([True, False], x, 0)
    expected = getattr(np, name)(*operands)
    if of_tensor:
        operands = tuple([cytape.constant(y) if y is x else y for y in operands])
    out = cytape.constant(np.zeros_like(expected))
    assert getattr(np, name)(*operands, out) is out
    np.testing.assert_array_equal(out.numpy(), expected)
    out = cytape.constant(np.zeros_like(expected))
    try:  # cytape's own take it where they are ufuncs, the others say what to write
        assert getattr(cnp, name)(*operands, out) is out
    except TypeError as error:
        assert "out is not supported for tensors. Use what is returned, or assign it" in str(error)
    else:
        np.testing.assert_array_equal(out.numpy(), expected)


@each("function", [
    lambda x, out: np.multiply(x, x, out), lambda x, out: cnp.multiply(x, x, out),
    lambda x, out: np.cumsum(x, 0, None, out), lambda x, out: np.clip(x, 0.5, 4.0, out)])
def test_out_by_position_is_differentiated_and_traced(function):
    def total(x):
        out = cnp.zeros(3)
        function(x, out)
        return cnp.sum(out * out)

    def direct(x):
        result = function(x, cnp.zeros(3))
        return cnp.sum(result * result)

    x = np.array([0.7, 1.0, 2.0])
    expected = numerical_grad(direct, x)
    np.testing.assert_allclose(cytape.grad(total)(x), expected, rtol=1e-8)
    np.testing.assert_allclose(cytape.function(cytape.grad(total))(x), expected, rtol=1e-8)


@each("call", [lambda x, out: np.add(x, x, out), lambda x, out: np.sum(x, None, None, out)])
def test_an_array_by_position_cannot_hold_a_derivative(call):
    x = cytape.constant([1.0, 2.0])
    with cytape.GradientTape() as tape, pytest.raises(DetachedError, match="with out="):
        tape.watch(x)
        call(x, np.zeros(()) if call(np.ones(2), None).ndim == 0 else np.zeros(2))


# At masked places stand what ufuncs or their derivatives are not finite at, in either operand.
MASKED = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, -3.0])
TAKEN = np.array([0.3, 0.6])


def _operands(ufunc):
    """Return operands of a ufunc, and a mask that is true where they are in its domain."""
    offsets = [float(ufunc is np.arccosh), 0.5]
    columns = [np.append(MASKED, TAKEN + offset) for offset in offsets[: ufunc.nin]]
    operands = list(map(np.ravel, np.meshgrid(*columns)))
    mask = np.logical_and.reduce([
        np.isin(x, TAKEN + offset) for x, offset in zip(operands, offsets, strict=False)])
    if ufunc is np.ldexp:
        operands[1] = np.where(mask, 2, -1)
    return operands, mask


def _is_differentiable(ufunc, i):
    operands, mask = _operands(ufunc)
    taken = [cytape.constant(x[mask]) for x in operands]
    with watching(taken[i]) as tape:
        result = ufunc(*taken)
    return tape.gradient(result[0] if ufunc.nout > 1 else result, taken[i]) is not None


DIFFERENTIABLE = [
    (ufunc, i) for ufunc in numpy_functions()
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None
    and any(types.startswith("d") for types in ufunc.types)
    for i in range(1 if ufunc is np.ldexp else ufunc.nin) if _is_differentiable(ufunc, i)
]


@each("traced", [False, True])
@each("ufunc, i", DIFFERENTIABLE)
def test_masked_elements_take_no_part(ufunc, i, traced):
    operands, mask = _operands(ufunc)
    first = np.arange(1.0, 1.0 + mask.size)  # the array passed as out

    def into(out, x):
        out = cnp.zeros(mask.shape) + out
        outs = (out, *[None] * (ufunc.nout - 1))
        ufunc(*operands[:i], x, *operands[i + 1 :], out=outs, where=mask)
        return cnp.sum(out * out)

    def directly(x):
        taken = [each[mask] for each in operands]
        result = ufunc(*taken[:i], x, *taken[i + 1 :])
        return cnp.sum(cnp.square(result[0] if ufunc.nout > 1 else result))

    def f(x):
        return into(first, x)

    def slope(x):
        return cnp.sum(cytape.grad(f)(x))

    wrap = cytape.function if traced else lambda f: f
    x, ones = operands[i], np.ones(mask.size)
    expected = np.zeros(mask.size)
    expected[mask] = cytape.grad(directly)(x[mask])
    with np.errstate(all="raise"):
        found = wrap(cytape.grad(f))(x)
        curvature = wrap(cytape.grad(slope))(x)
        _, tangent = cytape.jvp(wrap(f), [x], [ones])
        _, change = cytape.jvp(wrap(cytape.grad(f)), [x], [ones])
        of_out = wrap(cytape.grad(into))(first, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(tangent, expected.sum(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(change, curvature, rtol=1e-12, atol=1e-12)
    assert np.isfinite(curvature).all() and not curvature[~mask].any()
    np.testing.assert_array_equal(of_out, np.where(mask, 0.0, 2 * first))


def test_masked_operands_that_are_numbers_or_of_other_shapes():
    def mean(x, count):
        return cnp.divide(x, count, where=count > 0, out=cnp.zeros_like(x))

    total = cytape.constant(np.array([1, 2], np.float32))
    assert mean(total, 2).dtype == mean(total, 0).dtype == np.float32  # weak numbers stay weak
    with np.errstate(all="raise"):
        for count in (0, 0.0, np.float64(0), np.zeros(2, int), cytape.constant(0.0)):
            slope = cytape.grad(lambda x, count=count: cnp.sum(mean(x, count)))(SMALL[:2])
            assert slope.tolist() == [0.0, 0.0]
    sizes = np.array([[0.0], [2.0]])

    def of_rows(x):
        return cnp.sum(np.divide(x, sizes, where=sizes > 0, out=cnp.zeros((2, 3))))

    with np.errstate(all="raise"):
        assert cytape.grad(of_rows)(SMALL).tolist() == [0.5] * 3
        assert cytape.hessian(of_rows)(SMALL).tolist() == [[0.0] * 3] * 3
        less = cnp.less(cytape.constant(SMALL), 2, out=np.zeros(3, bool), where=False)
        assert less.dtype == bool and not less.any()
    with pytest.raises(TypeError, match="matmul.*'where'"):
        np.matmul(cytape.constant(ROWS), ROWS.T, out=zeros((2, 2)), where=[True, False])


def test_masks_that_depend_on_values():
    def f(x):
        return cnp.sum(np.sqrt(x, where=x > 0, out=cnp.full(x.shape, 5.0)) * SMALL)

    def by_members(x):
        return cytape.vmap(
            lambda y, n: np.sqrt(y, where=y > 0, out=cnp.full((), 5.0)) * n)(x, SMALL)

    x = np.array([-1.0, 0.0, 4.0])
    with np.errstate(all="raise"):
        for g in (f, cytape.function(f), lambda x: cnp.sum(by_members(x))):
            assert np.asarray(g(x)) == 5.0 + 10.0 + 6.0
            assert cytape.grad(g)(x).tolist() == [0.0, 0.0, 0.75]
            np.testing.assert_array_equal(cytape.hessian(g)(x), np.diag([0.0, 0.0, -3 / 32]))


def test_positional_arguments_before_out_are_not_outputs():
    x, out = cytape.constant([1.0, 2.0]), cytape.constant(np.zeros(4))
    np.testing.assert_array_equal(np.concatenate([x, x], 0), [1.0, 2.0, 1.0, 2.0])
    np.concatenate([x, x], 0, out)
    np.testing.assert_array_equal(out, [1.0, 2.0, 1.0, 2.0])


def test_a_result_of_unknown_extents_takes_the_shape_of_out():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(float, (None,))
        y = cnp.add(x, x, out=cnp.zeros((2, 3)))
        assert y.shape == (2, 3)
    session, row = cytape.Session(graph), np.arange(3.0)
    for fed in (row, row[1:2]):
        expected = np.add(fed, fed, out=np.zeros((2, 3)))
        np.testing.assert_array_equal(session.run(y, {x: fed}), expected)
    with pytest.raises(ValueError, match="broadcast"):
        session.run(y, {x: row[:2]})


@each("first, second", [
    (cytape.constant, cytape.constant), (cytape.constant, np.array), (np.array, cytape.constant),
    (np.array, np.array), (cytape.Variable, cytape.constant)])
def test_nothing_is_written_where_one_of_two_results_does_not_fit(first, second):
    x = cytape.constant([1.5, 2.5])
    outs = first(np.zeros(2)), second(np.zeros(3))
    with pytest.raises(ValueError, match="broadcast"):
        np.modf(x, out=outs)
    np.testing.assert_array_equal(outs[0], [0, 0])
    outs = first(np.zeros(2)), second(np.zeros(2))
    np.modf(x, out=outs)
    np.testing.assert_array_equal(outs[0], [0.5, 0.5])
    np.testing.assert_array_equal(outs[1], [1, 2])


def test_variables_are_assigned_what_is_written():
    variable, x = cytape.Variable([1.0, 2.0]), cytape.constant([3.0, 4.0])
    assert np.add(x, 1.0, out=variable) is variable
    np.testing.assert_array_equal(variable, [4, 5])
    np.multiply(x, 2.0, out=variable, where=np.array([True, False]))
    np.testing.assert_array_equal(variable, [6, 5])
    with pytest.raises(ValueError, match="broadcast"):
        np.add(x, np.ones((3, 1)), out=variable)
    np.testing.assert_array_equal(cytape.function(lambda x: np.add(x, 1.0, out=variable) * 2.0)(x),
                                  [8, 10])
    np.testing.assert_array_equal(variable, [4, 5])
    with watching(x):
        with pytest.raises(DetachedError, match="out=variable"):
            np.add(x, 1.0, out=variable)


@each(way=[lambda f: f, cytape.function], order=["C", "F", "A", "K"])
def test_an_order_that_is_asked_for(way, order):
    x = np.arange(6.0).reshape(2, 3)
    for f in (lambda x: np.multiply(x, 2.0, order=order), lambda x: np.exp(x, order=order),
              lambda x: np.maximum(x, x[:1], order=order), lambda x: np.add(x.T, x.T, order=order)
              if order != "K" else np.add(x, x)):
        found = way(lambda x, f=f: f(x).ravel("K"))(cytape.constant(x))
        np.testing.assert_allclose(np.asarray(found), f(x).ravel("K"))
        np.testing.assert_allclose(
            cytape.grad(lambda x, f=f: np.sum(way(f)(x) ** 2))(x),
            cytape.grad(lambda x, f=f: np.sum(f(x).copy() ** 2))(x))
    with pytest.raises(ValueError, match="order"):
        np.multiply(cytape.constant(x), 2.0, order="G")


@each("traced", [False, True])
def test_outputs_that_overlap_keep_what_masks_leave(traced):
    mask = np.array([True, False, True])

    def f(x, wrapped=cytape.identity):
        a = wrapped(np.arange(4.0))
        np.modf(x, out=(a[:3], a[1:]), where=mask)
        return a

    x = np.array([1.5, 2.5, 7.25])
    expected = f(x, np.array)
    written = (cytape.function(f) if traced else f)(cytape.constant(x))
    np.testing.assert_array_equal(written, expected)
