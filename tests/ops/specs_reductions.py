"""Records of the reductions."""

import numpy as np

import cytape.numpy as ops
from cytape.ops import OPS
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, distinct, repeated, uniform

AXES = [None, 0, -1, (0, 2), (-1, 1), (), (2, 0, 1)]


def reductions(empty=True):
    """Make the cases that all reductions have in common."""
    cases = [case((2, 3, 4), axis=axis) for axis in AXES]
    cases += [case((2, 3, 4), axis=axis, keepdims=True) for axis in (None, 1, (0, -1))]
    cases += [case(()), case((1,), axis=0), case((5, 0), axis=0)]
    return cases + [case((0, 3))] if empty else cases


def along(shape, axis=0, **kwargs):
    return case(shape, axis=axis, **kwargs)


def record(name, function, cases, **options):
    return OpSpec(name, getattr(ops, function), getattr(np, function), cases, **options)


ALONG = [along((4,)), along((3, 5, 2), 1), along((2, 3), -1), along((1, 2)), along((0,))]
ZEROS = np.array([[2.0, 0.0, 3.0, -1.0], [0.0, 0.0, 0.5, 1.5]])
COMPLEX = {"dtypes": FLOATS_AND_COMPLEX}
DEVIATIONS = [c for c in reductions(empty=False) if c.inputs != ((5, 0),)] + [
    case((3, 4), ddof=1),
    case((3, 4), axis=0, ddof=0.5, keepdims=True),
]

SPECS = [
    record("Sum", "sum", [*reductions(), case((), axis=-1), case((2, 3), dtype=np.complex128)],
           **COMPLEX),
    record("Mean", "mean", reductions(empty=False), **COMPLEX),
    record("Prod", "prod", [*reductions(), case((), axis=0)], domain=uniform(-2, 2, avoid=[0]),
           **COMPLEX),
    record("Prod", "prod", [case((2, 4)), case((2, 4), axis=0)], domain=repeated(ZEROS), **COMPLEX),
    record("Prod", "prod", [case((2, 4))], domain=repeated(np.zeros(1)), **COMPLEX),
    record("Max", "max", [*reductions(empty=False), case((), axis=0)], domain=distinct()),
    record("Min", "min", [*reductions(empty=False), case((), axis=0)], domain=distinct()),
    record("Var", "var", DEVIATIONS, **COMPLEX),
    record("Std", "std", [c for c in DEVIATIONS if c.inputs[0] not in ((), (1,))
                          and c.kwargs.get("axis") != ()], **COMPLEX),
    record("Cumsum", "cumsum", ALONG, **COMPLEX), record("Cumprod", "cumprod", ALONG, **COMPLEX),
    record("Cumprod", "cumprod", [along((2, 4), 0), along((2, 4), 1)], domain=repeated(ZEROS),
           **COMPLEX),
    record("Cumsum", "cumsum", [case((2, 3)), case(()), case((), axis=-1)]),
    record("Cumprod", "cumprod", [case((2, 3)), case(()), case((), axis=-1)]),
]
SPECS += [
    record(name, function, [case((2, 3)), case((2, 3), axis=1, keepdims=True)],
           domain=distinct(), differentiable=False)
    for name, function in [("ArgMax", "argmax"), ("ArgMin", "argmin"), ("All", "all"),
                           ("Any", "any"), ("CountNonzero", "count_nonzero")]
]

# `where` leaves elements out, whole rows among them; what is reduced begins with `initial`.
MASK = np.array([[True, False, True, True], [False] * 4, [True, True, False, True]])
SOME = [{"axis": None}, {"axis": 0}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}]


def with_initial(function, **options):
    """Make a function of an array and of the number that its reduction begins with."""
    return lambda x, initial: function(x, initial=initial, **options)


def around_mean(function):
    """Make a function of an array and of the mean that the deviations are taken from."""
    return lambda x, mean: function(x, axis=1, mean=mean, ddof=1)


SPECS += [
    OpSpec(name, getattr(ops, name), getattr(np, name), [
        *[case((3, 4), where=MASK, **extra, **options) for options in SOME],
        case((2, 3, 4), where=MASK[0], **extra), case((0, 4), axis=0, where=MASK[:0], **extra),
        case((3, 4), where=True, **extra),
    ], domain=distinct(gap=0.3, offset=0.1), **options)
    for name, extra, options in [
        ("sum", {}, COMPLEX), ("prod", {}, COMPLEX), ("max", {"initial": 0.2}, {}),
        ("min", {"initial": 0.2}, {}), ("nansum", {}, COMPLEX), ("nanprod", {}, COMPLEX),
        ("nanmax", {"initial": 0.2}, {}), ("nanmin", {"initial": 0.2}, {})]
] + [
    OpSpec(f"{name} and where", with_initial(getattr(ops, name), where=MASK),
           with_initial(getattr(np, name), where=MASK), [case((3, 4), ()), case((2, 3, 4), ())],
           domain=(distinct(), uniform(0.1, 0.2)))
    for name in ("sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin")
] + [
    OpSpec(name, getattr(ops, name), getattr(np, name), [
        case((3, 4), where=MASK), case((3, 4), axis=0, where=~MASK[1:2], keepdims=True),
        case((3, 4), axis=1, where=MASK[2]), case((2, 3, 4), axis=0, where=~MASK[1]),
    ], **COMPLEX)
    for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd")
] + [
    OpSpec(f"{name} around a mean", around_mean(getattr(ops, name)),
           around_mean(getattr(np, name)), [case((3, 4), (3, 1))])
    for name in ("var", "std", "nanvar", "nanstd")
] + [
    OpSpec(name, getattr(ops, name), getattr(np, name),
           [case((3, 4), axis=1, where=MASK), case((3, 4), where=~MASK)],
           domain=distinct(), differentiable=False)
    for name in ("all", "any")
]


def _cumprod_back(g, x, *, axis):
    """Sum the gradients of the products, each times all of its other factors."""
    g, x = np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1)
    total = np.zeros_like(x)
    for i in range(x.shape[-1]):
        others = x.copy()
        others[..., i] = 1
        total[..., i] = np.sum((g * np.cumprod(others, -1))[..., i:], -1)
    return np.moveaxis(total, -1, axis)


def _others(x, *starts, axis):
    """Return for each product its derivative in each factor, (products, *shape of x)."""
    places = np.indices(x.shape)
    number = np.searchsorted(starts[0], places[axis[0]], "right") - 1 if starts else 0
    places[list(axis)] = number
    shape = _products_shape(x, *starts, axis=axis)
    product_of = np.ravel_multi_index(places, shape, mode="wrap")
    found = np.zeros((np.prod(shape), *x.shape), x.dtype)
    for product, of_product in enumerate(found):
        factors = (product_of == product) & (number >= 0)
        others = np.tile(x[factors], (np.sum(factors), 1))
        np.fill_diagonal(others, 1)
        of_product[factors] = others.prod(1)
    return found


def _products_shape(x, *starts, axis):
    count = len(starts[0]) if starts else 1
    return tuple([count if i in axis else n for i, n in enumerate(x.shape)])


def _products_back(g, x, *starts, axis, cumulative):
    if cumulative:
        return _cumprod_back(g, x, axis=axis[0])
    return np.tensordot(g.ravel(), _others(x, *starts, axis=axis), 1)


def _products_tangent(x, t, *starts, axis, cumulative):
    if not cumulative:
        moved = (_others(x, *starts, axis=axis) * t).reshape(-1, x.size).sum(1)
        return moved.reshape(_products_shape(x, *starts, axis=axis))
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        replaced, without = x.copy(), x.copy()
        replaced[place], without[place] = t[place], 0
        total += np.cumprod(replaced, axis[0]) - np.cumprod(without, axis[0])
    return total


def _products_curvature(g, x, t, *starts, axis, cumulative):
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        replaced, without = x.copy(), x.copy()
        replaced[place], without[place] = t[place], 0
        moved = _products_back(g, replaced, *starts, axis=axis, cumulative=cumulative) - (
            _products_back(g, without, *starts, axis=axis, cumulative=cumulative))
        moved[place] = 0
        total += moved
    return total


NUMBERS = ("float64", "float32", "complex128", "complex64")
STARTS = np.array([0, 2, 3])
LINES = [  # shapes of products and factors, where slices begin, the axes, whether cumulative
    ((1,), (4,), (), (0,), False), ((3, 1, 2), (3, 4, 2), (), (1,), False),
    ((1, 2), (4, 2), (), (0,), False), ((1, 3, 1), (2, 3, 2), (), (0, 2), False),
    ((4,), (4,), (), (0,), True), ((2, 4), (2, 4), (), (1,), True),
    ((4, 2), (4, 2), (), (0,), True), ((3,), (4,), (STARTS,), (0,), False),
    ((2, 3), (2, 5), (STARTS + 1,), (1,), False), ((3, 2), (4, 2), (STARTS,), (0,), False),
]

SPECS += [
    *[OpSpec(name, OPS[name], function, [
        case(*operands(products, factors), *starts, axis=axis, cumulative=cumulative)
        for products, factors, starts, axis, cumulative in LINES if bool(starts) == sliced],
        domain=tuple([repeated(ZEROS) if zeros and i == x else uniform(-2, 2) for i in range(n)]
                     + [None] * sliced),
        differentiable=(True,) * n + (False,) * sliced, dtypes=NUMBERS)
      for name, function, operands, x, n in [
          ("ProductsBack", _products_back, lambda g, x: (g, x), 1, 2),
          ("ProductsTangent", _products_tangent, lambda g, x: (x, x), 0, 2),
          ("ProductsCurvature", _products_curvature, lambda g, x: (g, x, x), 1, 3)]
      for zeros in (False, True) for sliced in (False, True)],
]


def _extremes(x, **options):
    return np.max(x, **options), np.min(x, **options)


def _shared(n, share, x, g, axis):
    """Share a gradient among the largest elements."""
    return share(x, g, n.max(x, axis, keepdims=True), axis)


def _is_largest(x, g, largest, axis):
    return g * (x == largest) / np.sum(x == largest, axis, keepdims=True)


# These take large operands, in functions or always.
SPECS += [
    OpSpec("Extremes", OPS["Extremes"], _extremes,
           [case((2, 3, 4), axis=axis, keepdims=axis == 1) for axis in [None, 0, 1, (0, 2)]],
           domain=distinct()),
    OpSpec("SharedAmongTies",
           lambda x, g, *, axis: _shared(ops, lambda x, g, y, axis: OPS["SharedAmongTies"](
               x, g, y, axis=axis, skip_nan=False), x, g, axis),
           lambda x, g, *, axis: _shared(np, _is_largest, x, g, axis),
           [case((2, 3), (2, 1), axis=1), case((4,), (1,), axis=None),
            case((3, 2), (1, 2), axis=0)],
           domain=(distinct(), uniform(-2, 2)), differentiable=(False, True), dtypes=["float64"]),
]
