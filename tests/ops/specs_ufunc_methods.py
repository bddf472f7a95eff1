"""Records of the methods of ufuncs.

Not of `power.reduce` and `arctan2.reduce`, which NumPy computes wrongly on processors with AVX512:
its loops read ahead of what they write. `test_ufunc_methods.py` has them.
"""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.calculus import reduceat, ufunc_folds
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.linear_recurrences import recurrence_op
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, distinct, uniform

POSITIVE = uniform(0.6, 1.6)
FOLDED = {
    "subtract": uniform(-2, 2), "divide": POSITIVE, "power": POSITIVE, "float_power": POSITIVE,
    "logaddexp": uniform(-2, 2), "logaddexp2": uniform(-2, 2), "hypot": uniform(0.3, 2),
    "arctan2": POSITIVE, "fmax": distinct(), "fmin": distinct(),
    "fmod": uniform(-1.5, 2, avoid=[0]),  # no quotient so near to a jump that differences meet it
    "copysign": uniform(-2, 2, avoid=[0]),
}
COMPLEX = ("subtract", "divide")
MASK = np.array([[True, False, True, True], [True, True, False, True], [True] * 4])
RIGHT_NEUTRAL = ("subtract", "divide", "logaddexp", "logaddexp2", "hypot", "fmax", "fmin")


def methods(name, method, **options):
    """Make a function that calls a method of a ufunc of cytape's, and one of NumPy's."""
    return [lambda *args, f=f, **kwargs: f(*args, **options, **kwargs)
            for f in (getattr(getattr(library, name), method) for library in (cnp, np))]


CASES = {
    "reduce": [case((4,)), case((2, 3), axis=1), case((3, 2, 2), axis=-2, keepdims=True),
               case((1, 3)), case((9, 2)), case((2, 3), axis=0, initial=0.7)],
    "accumulate": [case((4,)), case((2, 3), axis=-1), case((3, 2, 2), axis=1), case((0, 2)),
                   case((21,))],
    "reduceat": [case((5,), indices=[0, 3, 1, 4], axis=0), case((2, 4), indices=[2, 0], axis=1),
                 case((3, 2), indices=[1, 1, 2], axis=0), case((2, 5), indices=[1, 3], axis=1)],
}


def recurrence(a, b, backwards=False):
    if backwards:
        return np.flip(recurrence(np.roll(np.flip(a, -1), 1, -1), np.flip(b, -1)), -1)
    y = np.zeros(b.shape, np.result_type(a, b))
    for k in range(b.shape[-1]):
        y[..., k] = b[..., k] + (a[..., k] * y[..., k - 1] if k else 0)
    return y


def weights(x, starts, *, name, axis):
    """Return the derivative of each slice's result in each element, (slices, elements, lines)."""
    n = x.shape[axis]
    lines = np.moveaxis(x, axis, 0).reshape(n, -1)
    found = np.zeros((len(starts), *lines.shape))
    for k, start in enumerate(starts):
        stop = n if k + 1 == len(starts) else max(start + 1, starts[k + 1])
        if name == "Maximum":
            at = start + np.argmax(lines[start:stop], 0)
            found[k, at, np.arange(lines.shape[1])] = 1
        else:
            found[k, start:stop] = -1 if name == "Subtract" else 1
            found[k, start] = 1
    return found


def spread(g, starts, *, n, name, axis):
    """Spread a number for each slice over the elements of the slice."""
    x = np.zeros((*g.shape[:axis], n, *g.shape[axis + 1:]))
    return _spread(g, weights(x, starts, name=name, axis=axis), axis)


def _spread(g, weights, axis):
    columns = np.moveaxis(g, axis, 0)
    found = np.einsum("knc,kc->nc", weights, columns.reshape(*weights.shape[::2])).astype(g.dtype)
    return np.moveaxis(found.reshape(-1, *columns.shape[1:]), 0, axis)


def to_extrema(g, x, y, starts, *, axis):
    return _spread(g, weights(x, starts, name="Maximum", axis=axis), axis)


def of_extrema(t, x, y, starts, *, axis):
    found = weights(x, starts, name="Maximum", axis=axis)
    return _spread(t, np.swapaxes(found, 0, 1), axis)


def at_starts(name):
    return lambda x, starts, *, axis, **_: getattr(np, name).reduceat(x, starts, axis)


def fold(name):
    """Make a function that accumulates, and begins anew where it is said to."""
    accumulate = getattr(np, name).accumulate
    return lambda x, begins=(), *, name, axis: np.concatenate(
        [accumulate(part, axis) for part in np.split(x, np.flatnonzero(begins)[1:], axis)], axis)


STARTS = np.array([0, 1, 3])
OVERLAPPING = np.array([3, 1, 1, 4, 0, 2])
X_OF_EXTREMA = np.array([[3.0, 1], [1, 2], [2, 5], [4, 3], [0, 4]])
BEGINS = np.array([True, False, True, True, False])

SPECS = [
    OpSpec("LinearRecurrence", recurrence_op, recurrence,
           [case((5,), (5,)), case((2, 3), (2, 3)), case((3, 1), (3, 1)), case((2, 0), (2, 0)),
            case((17,), (17,)), case((9, 4), (9, 4)), case((9, 4), (9, 4), backwards=True),
            case((1,), (1,), backwards=True)], dtypes=FLOATS_AND_COMPLEX),
    OpSpec("BeginsOfSlices", OPS["BeginsOfSlices"], lambda starts, n: np.isin(
        np.arange(n), starts), [case(STARTS, n=5)], differentiable=False),
    *[OpSpec("SumsOfSlices", reduceat.sums_op, at_starts(name.lower()),
             [case((5,), STARTS, name=name, axis=0), case((2, 5), STARTS + 1, name=name, axis=1),
              case((5, 2), OVERLAPPING, name=name, axis=0)],
             differentiable=(True, False), dtypes=FLOATS_AND_COMPLEX)
      for name in ("Add", "Subtract")],
    *[OpSpec("SpreadOverSlices", reduceat.spread_op, spread,
             [case((3,), STARTS, n=5, name=name, axis=0),
              case((2, 3), STARTS + 1, n=5, name=name, axis=1),
              case((6, 2), OVERLAPPING, n=5, name=name, axis=0),
              case((0,), np.zeros(0, int), n=4, name=name, axis=0)],
             differentiable=(True, False), dtypes=FLOATS_AND_COMPLEX)
      for name in ("Add", "Subtract")],
    *[OpSpec(name, OPS[name], function, [
        case(shape, X_OF_EXTREMA, np.maximum.reduceat(X_OF_EXTREMA, starts, 0), starts, axis=0)
        for shape, starts in shapes], differentiable=(True, False, False, False))
      for name, function, shapes in [
          ("SpreadToExtrema", to_extrema, [((3, 2), STARTS), ((6, 2), OVERLAPPING)]),
          ("FoldAtExtrema", of_extrema, [((5, 2), STARTS), ((5, 2), OVERLAPPING)])]],
    OpSpec("ReduceAt", reduceat.reduce_at_op, at_starts("hypot"),
           [case((5,), STARTS, name="Hypot", axis=0), case((2, 4), STARTS, name="Hypot", axis=1)],
           domain=POSITIVE, differentiable=(True, False)),
    OpSpec("ReduceStepsAt", reduceat.reduce_steps_at_op, at_starts("floor_divide"),
           [case((5,), STARTS, name="FloorDivide", axis=0)], domain=POSITIVE,
           differentiable=False),
    OpSpec("Fold", ufunc_folds.fold_op, fold("hypot"), [
        case((4,), name="Hypot", axis=0), case((2, 5), BEGINS, name="Hypot", axis=1),
        case((0, 2), name="Hypot", axis=0),
    ], domain=POSITIVE, differentiable=(True, False)),
    OpSpec("FoldSteps", ufunc_folds.fold_steps_op, fold("floor_divide"),
           [case((4,), name="FloorDivide", axis=0)], differentiable=False),
    OpSpec("SlicesOfReduceAt", reduceat.slices_op, lambda x, indices, name, axis: (
        np.array([0, 1, 0, 1, 2, 3]), np.array([0, 1, 2])),
           [case((4, 2), np.array([0, 1, 0]), name="Add", axis=0)], differentiable=False),
    *[OpSpec(f"{name}.{method}", *methods(name, method), cases, domain=domain,
             dtypes=FLOATS_AND_COMPLEX if name in COMPLEX else ("float64", "float32"))
      for name, domain in FOLDED.items() for method, cases in CASES.items()
      if method == "accumulate" or name not in ("power", "arctan2")],
    *[OpSpec(f"{name}.reduceat", *methods(name, "reduceat"), CASES["reduceat"], domain=domain,
             dtypes=("float64", "float32"))
      for name, domain in [("add", uniform(-2, 2)), ("multiply", POSITIVE), ("maximum", distinct()),
                           ("minimum", distinct())]],
    *[OpSpec(f"{name}.accumulate", *methods(name, "accumulate"), CASES["accumulate"],
             domain=distinct()) for name in ("maximum", "minimum", "add", "multiply")],
    *[OpSpec(f"{name}.reduce", *methods(name, "reduce"), [
        case((2, 3)), case((2, 3), axis=-1), case((2, 3), axis=None, keepdims=True),
        case((2, 3), axis=(0, 1)), case((2, 3), axis=1, keepdims=True)], domain=distinct(),
        differentiable=not name.startswith("l"))
      for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or")],
    *[OpSpec(f"{name}.reduce and where", *[
        lambda x, initial, f=f: f(x, initial=initial)
        for f in methods(name, "reduce", axis=1, where=MASK)], [case((3, 4), ())],
        domain=(FOLDED[name], POSITIVE), dtypes=("float64",)) for name in RIGHT_NEUTRAL],
    *[OpSpec(f"{name}.outer", *methods(name, "outer"), [
        case((3,), (2, 2)), case((2, 2), ()), case((), (3,)), case((0,), (2,))],
        domain=POSITIVE, dtypes=("float64", "float32"))
      for name in ("add", "subtract", "multiply", "divide", "arctan2", "logaddexp")],
]
