"""Tensors in pandas, xarray and matplotlib: values outside of tapes, gradients or errors inside."""

import operator

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests.cases import each
from tests.ways import watching

V = np.array([1.0, 2.0, 4.0])
M = np.arange(9.0).reshape(3, 3) + 1.0


def recorded(function):
    """Return the value and the gradient of the sum of a function's result at V."""
    x = cytape.constant(V)
    with watching(x) as tape:
        y = function(x)
        total = np.sum(y)
    assert type(y) is cytape.Tensor
    return y.numpy(), tape.gradient(total, x).numpy()


# ---- pandas


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


TABLES = {
    "Series": lambda pd, t: pd.Series(t, index=list("abc")),
    "DataFrame": lambda pd, t: pd.DataFrame({"a": t, "b": 2 * t}),
    "rows": lambda pd, t: pd.DataFrame([t, t]),
    "column": lambda pd, t: pd.DataFrame({"a": V}).assign(b=t),
    "product with a frame": lambda pd, t: pd.DataFrame(M) @ t,
    "product with a series": lambda pd, t: pd.Series(V) @ t,
    "concat": lambda pd, t: pd.concat([pd.Series(V), pd.Series(t)])}


@each("make", TABLES.values(), ids=TABLES)
def test_tables_of_tensors_hold_numbers(pd, make):
    tensor = cytape.constant(V)
    np.testing.assert_array_equal(np.asarray(make(pd, tensor)), np.asarray(make(pd, V)))
    with watching(tensor), pytest.raises(DetachedError, match=r"(?s)pandas.*frame.to_numpy\(\)"):
        make(pd, tensor)


@each("op", [operator.add, operator.sub, operator.mul, operator.truediv, np.hypot, np.dot])
def test_operators_with_tables_are_differentiated(pd, op):
    series = pd.Series(V + 1, index=list("abc"))
    for call in (lambda t: op(series, t), lambda t: op(t, series)):
        value, gradient = recorded(call)
        np.testing.assert_allclose(value, call(V))
        steps = [(np.sum(call(V + 1e-6 * e)) - np.sum(call(V - 1e-6 * e))) / 2e-6
                 for e in np.eye(3)]
        np.testing.assert_allclose(gradient, steps, 1e-8, 1e-8)


def test_products_with_frames_are_differentiated(pd):
    frame = pd.DataFrame(M)
    for call in (lambda t: t @ frame, lambda t: frame.T.to_numpy() @ t, lambda t: np.dot(t, frame)):
        value, gradient = recorded(call)
        np.testing.assert_allclose(value, V @ M)
        np.testing.assert_allclose(gradient, M.sum(1))
    value, gradient = recorded(lambda t: cnp.mean(frame * t, axis=0))
    np.testing.assert_allclose(gradient, M.mean(0))


def test_a_fit_to_a_frame(pd):
    data = pd.DataFrame({"x": V, "y": 3 * V + 1})
    loss = cytape.value_and_grad(lambda p: np.sum((p[0] * data["x"] + p[1] - data.y) ** 2))
    value, gradient = loss(np.array([2.0, 1.0]))
    assert float(value) == (V ** 2).sum()
    assert gradient.tolist() == [-2 * (V ** 2).sum(), -2 * V.sum()]


# ---- xarray


@pytest.fixture
def labelled():
    xarray = pytest.importorskip("xarray")
    return lambda data: xarray.DataArray(data, dims="x", coords={"x": [10.0, 20.0, 30.0]})


LABELLED = {
    "mean": lambda a: a.mean("x"), "squares": lambda a: (a ** 2).sum(), "std": lambda a: a.std(),
    "exp": lambda a: np.exp(a), "sel": lambda a: a.sel(x=20.0), "isel": lambda a: a.isel(x=[0, 2]),
    "diff": lambda a: a.diff("x"), "cumsum": lambda a: a.cumsum("x"),
    "integrate": lambda a: a.integrate("x"), "where": lambda a: a.where(a > 1.5, 0.0),
    "rename": lambda a: a.rename(x="y") * a, "dot": lambda a: a.dot(a + 1)}


@each("call", LABELLED.values(), ids=LABELLED)
def test_arrays_with_labels_are_differentiated(labelled, call):
    value, gradient = recorded(lambda t: call(labelled(t)).data)
    np.testing.assert_allclose(value, call(labelled(V)).data)
    steps = [(call(labelled(V + 1e-6 * e)).data.sum() - call(labelled(V - 1e-6 * e)).data.sum())
             / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(gradient, steps, 1e-7, 1e-7)


def test_conversions_of_arrays_with_labels(labelled):
    x = cytape.constant(V)
    for convert in (lambda a: a.values, lambda a: float(a.sum()), lambda a: a.interp(x=15.0)):
        np.testing.assert_array_equal(convert(labelled(x)), convert(labelled(V)))
        with watching(x), pytest.raises(DetachedError, match="DataArray.data is the tensor"):
            convert(labelled(x))
    assert "Tensor([1., 2., 4.])" in str(labelled(x))


# ---- matplotlib


@pytest.fixture
def axes():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()


PLOTS = {
    "plot": lambda axes, t: axes.plot(t, t), "scatter": lambda axes, t: axes.scatter(t, t, c=t),
    "imshow": lambda axes, t: axes.imshow(t[:, None] * t), "hist": lambda axes, t: axes.hist(t),
    "several": lambda axes, t: axes.hist([t, 2 * t]), "bar": lambda axes, t: axes.bar(t, t),
    "errorbar": lambda axes, t: axes.errorbar(t, t, yerr=t), "line": lambda a, t: a.axhline(t[0]),
    "fill_between": lambda axes, t: axes.fill_between(t, t, t + 1),
    "contour": lambda axes, t: axes.contourf(t, t, t[:, None] * t),
    "pcolormesh": lambda axes, t: axes.pcolormesh(t[:, None] * t),
    "boxplot": lambda axes, t: axes.boxplot([t, t]), "limits": lambda a, t: a.set_xlim(*t[:2]),
    "quiver": lambda axes, t: axes.quiver(t, t, t, t), "step": lambda axes, t: axes.step(t, t)}


@each("plot", PLOTS.values(), ids=PLOTS)
def test_plots_of_tensors(axes, plot):
    x = cytape.constant(V)
    plot(axes, x)
    with watching(x), pytest.raises(DetachedError, match=r"(?s)matplotlib.*Plot tensor.numpy\(\)"):
        plot(axes, x)


def test_plotted_data(axes):
    x = cytape.constant(V)
    line, = axes.plot(x, 2 * x)
    np.testing.assert_array_equal(line.get_xydata(), np.stack([V, 2 * V], 1))
    np.testing.assert_array_equal(axes.imshow(x[:, None] * x).get_array(), V[:, None] * V)
    assert [bar.get_height() for bar in axes.bar(x, x)] == V.tolist()
    assert axes.hist(x, bins=[0, 3, 5])[0].tolist() == [2, 1]
