"""Ufuncs and functions of views that plans make: transposed, sliced, reversed, strided, broadcast.

Plans read such views where they are, by strides, and call NumPy's loops in other orders than NumPy
does. What is computed must not depend on what the plan's memory held before.
"""

from itertools import product

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.run.plan_layout import poison_memory
from tests.cases import grouped
from tests.conftest import POISONS
from tests.graph.plans import nudged, spread

VIEWS = {
    "transposed": lambda a: a.T,
    "cut": lambda a: a[:, :-1],
    "strided": lambda a: a[::2, ::2],
    "reversed": lambda a: a[::-1, ::-1],
    "column": lambda a: a[:, 0],
    "broadcast": lambda a: np.broadcast_to(a[:, :1], (2, *a.shape)),
    "stack": lambda a: np.transpose(a[None].repeat(2, axis=0), (2, 0, 1)),
}
SHAPES = (1, 2), (5, 4), (20, 3), (7, 300), (700, 3), (2, 2100), (130, 150)
DTYPES = ("float64", "float32", "bool", "int64", "float16", "longdouble", "complex64",
          "complex128", "int8", "uint16", "int32")
SAMPLE = [("float64", (700, 3)), ("float32", (7, 300))]

UFUNCS = {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc)
          and u.signature is None and u.nin <= 2 and u not in (np.spacing, np.nextafter)}
FUNCTIONS = {
    **{name: getattr(np, name) for name in (
        "sum", "mean", "var", "std", "prod", "max", "min", "argmax", "argmin", "any", "all",
        "cumsum", "cumprod", "sort", "argsort", "median", "ptp", "count_nonzero",
        "nansum", "nanmean", "nanvar", "nanstd", "nanprod", "nanmax", "nanmin", "nancumsum",
        "nan_to_num", "flip", "ravel", "diff", "transpose", "triu", "real", "imag", "angle", "sinc",
        "isposinf", "isneginf", "isreal", "iscomplex", "zeros_like", "atleast_3d")},
    "where by mask": lambda x: np.where(np.isnan(x), 0, x),
    "where by sign": lambda x: np.where(np.signbit(x), -x, x * 2),
    "masked sum": lambda x: np.sum(np.where(np.isfinite(x), x, 1), axis=-1),
    "not nan": lambda x: ~np.isnan(x) & (x != 0),
    "how many": lambda x: np.sum(np.isinf(x), axis=0),
    "clip": lambda x: np.clip(x, -1, 1),
    "round": lambda x: np.round(x, 1),
    "isclose": lambda x: np.isclose(x, x[..., ::-1]),
    "take": lambda x: np.take(x, [0, -1, 0], axis=0),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "norm": np.linalg.norm,
    "product": lambda x: np.tensordot(x, x, axes=x.ndim),
    "concatenate": lambda x: np.concatenate([x, x[::-1]]),
    "astype": lambda x: x.astype("float64") if x.dtype.kind != "c" else x.astype("complex128"),
    "softmax": lambda x: np.exp(x - np.max(x, axis=-1, keepdims=True)),
}


def in_loop(f):
    def loop(a):
        start = 0, a, *map(cnp.zeros_like, f(a))
        return cytape.while_loop(lambda i, *_: i < 2, lambda i, a, *_: (i + 1, a, *f(a)), start)[2:]

    return cytape.function(loop)


def in_branch(f):
    return cytape.function(lambda a: cytape.cond(
        cnp.any(a == a), lambda: f(a), lambda: [cnp.ones_like(result) for result in f(a)]))


def in_graph(f):
    runs = {}

    def run(a):
        if not runs:
            with cytape.Graph().as_default() as graph:
                x = cytape.placeholder(a.dtype, a.shape)
                runs[0] = cytape.Session(graph), f(x), x
        session, fetches, x = runs[0]
        return session.run(fetches, {x: a})

    return run


WAYS = {"function": cytape.function, "loop": in_loop, "branch": in_branch, "graph": in_graph}


def draw(dtype, shape):
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)
    x = rng.normal(size=shape)
    x.flat[rng.permutation(x.size)[: x.size // 2]] = rng.choice(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5, -2.0], x.size // 2)
    if dtype.kind == "c":
        x = x + 1j * x[::-1]
    return x.astype(dtype)


# Of complex numbers they return the first NaN, in memory: its other part depends on the order.
OF_ANY_NAN = "max", "min", "ptp"


def without_nans(result, wanted):
    """Return complex arrays with zeros where both are NaN, whatever their other parts are."""
    both = np.isnan(result) & np.isnan(wanted)
    return np.where(both, 0, result), np.where(both, 0, wanted)


def check(f, way, dtype, shape, of_any_nan=False):
    """Compare three runs, on memory that holds NaNs or other bytes before, with NumPy."""
    a = draw(dtype, shape)
    with np.errstate(all="ignore"):
        try:
            expected, moved = ([np.asarray(y) for y in f(x)] for x in (a, nudged(a)))
        except TypeError:
            return
        run = WAYS[way](f)
        found = []
        for byte in POISONS[0], *POISONS:
            poison_memory(byte)
            found.append([np.asarray(result) for result in run(a)])
    for results in found:
        for view, result, wanted, other in zip(VIEWS, results, expected, moved, strict=True):
            exact = wanted.dtype.kind not in "fc"
            eps = 0 if exact else np.finfo(wanted.dtype).eps
            scale = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
            allowed = 0 if exact else 64 * eps * scale + 8 * spread(wanted, other)
            assert result.dtype == wanted.dtype, view
            if of_any_nan and wanted.dtype.kind == "c":
                result, wanted = without_nans(result, wanted)
            for got, want in (result.real, wanted.real), (result.imag, wanted.imag):
                np.testing.assert_allclose(
                    got, want, rtol=64 * eps, atol=allowed, strict=True,
                    err_msg=f"{view}, {dtype}, {shape}")


def rows(names):
    """Yield all in a group per function; two always run, one of them in a traced function.
    """
    for i, name in enumerate(names):
        other = [*WAYS][1 + i % (len(WAYS) - 1)]
        for way, argument in product(WAYS, product(DTYPES, SHAPES)):
            is_sampled = (way, argument) in [
                ("function", SAMPLE[i % 2]), (other, SAMPLE[(i + 1) % 2])]
            yield name, f"{way}, {argument}", (name, way, argument), not is_sampled


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@grouped("name, way, argument", rows(UFUNCS))
def test_a_ufunc_of_views_is_numpys(name, way, argument):
    ufunc = UFUNCS[name]

    def f(a):
        parts = [view(a) for view in VIEWS.values()]
        results = [ufunc(*(part, part[::-1])[: ufunc.nin]) for part in parts]
        return results if ufunc.nout == 1 else [last for *_, last in results]

    check(f, way, *argument)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@grouped("name, way, argument", rows(FUNCTIONS))
def test_a_function_of_views_is_numpys(name, way, argument):
    check(lambda a: [FUNCTIONS[name](view(a)) for view in VIEWS.values()], way, *argument,
          of_any_nan=name in OF_ANY_NAN)
