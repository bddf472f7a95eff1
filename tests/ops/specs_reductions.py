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
    record("Prod", "prod", reductions(), domain=uniform(-2, 2, avoid=[0]), **COMPLEX),
    record("Prod", "prod", [case((2, 4)), case((2, 4), axis=0)], domain=repeated(ZEROS), **COMPLEX),
    record("Prod", "prod", [case((2, 4))], domain=repeated(np.zeros(1)), **COMPLEX),
    record("Max", "max", reductions(empty=False), domain=distinct()),
    record("Min", "min", reductions(empty=False), domain=distinct()),
    record("Var", "var", DEVIATIONS, **COMPLEX),
    record("Std", "std", [c for c in DEVIATIONS if c.inputs[0] not in ((), (1,))
                          and c.kwargs.get("axis") != ()], **COMPLEX),
    record("Cumsum", "cumsum", ALONG, **COMPLEX),
    record("Cumprod", "cumprod", ALONG, **COMPLEX),
    record("Cumprod", "cumprod", [along((2, 4), 0), along((2, 4), 1)], domain=repeated(ZEROS),
           **COMPLEX),
    record("Cumsum", "cumsum", [case((2, 3)), case(()), case((), axis=-1)]),
    record("Cumprod", "cumprod", [case((2, 3)), case(()), case((), axis=-1)]),
]  # fmt: skip
SPECS += [
    record(name, function, [case((2, 3)), case((2, 3), axis=1, keepdims=True)],
           domain=distinct(), differentiable=False)
    for name, function in [("ArgMax", "argmax"), ("ArgMin", "argmin"), ("All", "all"),
                           ("Any", "any"), ("CountNonzero", "count_nonzero")]
]  # fmt: skip

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
]  # fmt: skip


def _cumprod_back(g, x, *, axis):
    """Sum the gradients of the products, each times all of its other factors."""
    g, x = np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1)
    total = np.zeros_like(x)
    for i in range(x.shape[-1]):
        others = x.copy()
        others[..., i] = 1
        total[..., i] = np.sum((g * np.cumprod(others, -1))[..., i:], -1)
    return np.moveaxis(total, -1, axis)


def _prod_back(g, x, *, axis):
    """Multiply the gradient of each product by all other factors."""
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        others = x.copy()
        others[place] = 1
        total[place] = (g * np.prod(others, axis, keepdims=True))[
            tuple(0 if i in axis else k for i, k in enumerate(place))]
    return total


SPECS += [
    OpSpec(
        "ProdBack", OPS["ProdBack"], _prod_back,
        [case((1,), (4,), axis=(0,)), case((3, 1, 2), (3, 5, 2), axis=(1,)),
         case((1, 1, 2), (4, 3, 2), axis=(0, 1))],
        dtypes=("float64", "float32", "complex128", "complex64"),
    ),
    OpSpec(
        "ProdBack", OPS["ProdBack"], _prod_back,
        [case((2, 1), (2, 4), axis=(1,)), case((1, 4), (2, 4), axis=(0,))],
        domain=(uniform(-2, 2), repeated(ZEROS)),
        dtypes=("float64", "float32", "complex128", "complex64"),
    ),
    OpSpec(
        "CumprodBack", OPS["CumprodBack"], _cumprod_back,
        [case((4,), (4,), axis=0), case((3, 5, 2), (3, 5, 2), axis=1), case((1, 2), (1, 2), axis=1),
         case((0,), (0,), axis=0)],
        dtypes=("float64", "float32", "complex128", "complex64"),
    ),
    OpSpec(
        "CumprodBack", OPS["CumprodBack"], _cumprod_back,
        [case((2, 4), (2, 4), axis=0), case((2, 4), (2, 4), axis=1)],
        domain=(uniform(-2, 2), repeated(ZEROS)),
        dtypes=("float64", "float32", "complex128", "complex64"),
    ),
]  # fmt: skip


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
]  # fmt: skip
