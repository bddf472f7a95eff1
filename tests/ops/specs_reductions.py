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


def _of_others(x, *starts, axis):
    """Multiply all other factors of the line, or of the slice of it."""
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        others = x.copy()
        others[place] = 1
        line = others[tuple([slice(None) if i in axis else k for i, k in enumerate(place)])]
        if not starts:
            total[place] = np.prod(line)
        elif place[axis[0]] >= starts[0][0]:
            j = np.searchsorted(starts[0], place[axis[0]], "right")
            total[place] = np.prod(line[starts[0][j - 1]:(*starts[0], None)[j]])
    return total


def _moved_others(x, t, *starts, axis):
    """Sum over the other factors: the product with one of them replaced by its tangent."""
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        replaced = x.copy()
        replaced[place] = t[place]
        of_place = _of_others(replaced, *starts, axis=axis)
        without = x.copy()
        without[place] = 0
        rest = _of_others(without, *starts, axis=axis)
        moved = of_place - rest
        moved[place] = 0
        total += moved
    return total


def _prod_back(g, x, *, axis):
    return g * _of_others(x, axis=axis)


def _moved_back(g, x, t, *, axis):
    total = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        replaced, without = x.copy(), x.copy()
        replaced[place], without[place] = t[place], 0
        moved = _cumprod_back(g, replaced, axis=axis) - _cumprod_back(g, without, axis=axis)
        moved[place] = 0
        total += moved
    return total


NUMBERS = ("float64", "float32", "complex128", "complex64")
STARTS = np.array([0, 2, 3])

SPECS += [
    OpSpec("ProductsOfOthers", OPS["ProductsOfOthers"], _of_others, [
        case((9, 2), STARTS, axis=(0,)), case((4,), axis=(0,)), case((3, 5, 2), axis=(1,)),
        case((4, 3, 2), axis=(0, 1)), case((2, 3, 2), axis=(0, 2)), case((10, 3), axis=(1,)),
        case((2, 5), STARTS + 1, axis=(1,))], differentiable=(True, False), dtypes=NUMBERS),
    OpSpec("ProductsOfOthers", OPS["ProductsOfOthers"], _of_others, [
        case((2, 4), axis=(1,)), case((2, 4), axis=(0,)), case((8, 3), STARTS, axis=(0,))],
        domain=repeated(ZEROS), differentiable=(True, False), dtypes=NUMBERS),
    OpSpec("ProductsOfOthersTangent", OPS["ProductsOfOthersTangent"], _moved_others, [
        case((4,), (4,), axis=(0,)), case((3, 4, 2), (3, 4, 2), axis=(1,)),
        case((2, 2, 2), (2, 2, 2), axis=(0, 2)), case((9, 2), (9, 2), axis=(1,)),
        case((4, 2), (4, 2), STARTS, axis=(0,))],
        differentiable=(True, True, False), dtypes=NUMBERS),
    OpSpec("ProductsOfOthersTangent", OPS["ProductsOfOthersTangent"], _moved_others, [
        case((2, 4), (2, 4), axis=(1,)), case((8, 3), (8, 3), STARTS, axis=(0,))],
        domain=(repeated(ZEROS), uniform(-2, 2), None), differentiable=(True, True, False),
        dtypes=NUMBERS),
    OpSpec("ProdBack", OPS["ProdBack"], _prod_back, [
        case((1,), (4,), axis=(0,)), case((3, 1, 2), (3, 5, 2), axis=(1,)),
        case((1, 1, 2), (4, 3, 2), axis=(0, 1))], dtypes=NUMBERS),
    OpSpec("ProdBack", OPS["ProdBack"], _prod_back, [
        case((2, 1), (2, 4), axis=(1,)), case((1, 4), (2, 4), axis=(0,))],
        domain=(uniform(-2, 2), repeated(ZEROS)), dtypes=NUMBERS),
    OpSpec("CumprodBack", OPS["CumprodBack"], _cumprod_back, [
        case((4,), (4,), axis=0), case((3, 5, 2), (3, 5, 2), axis=1), case((1, 2), (1, 2), axis=1),
        case((0,), (0,), axis=0), case((9, 3), (9, 3), axis=1)], dtypes=NUMBERS),
    OpSpec("CumprodBack", OPS["CumprodBack"], _cumprod_back,
           [case((2, 4), (2, 4), axis=0), case((2, 4), (2, 4), axis=1)],
           domain=(uniform(-2, 2), repeated(ZEROS)), dtypes=NUMBERS),
    OpSpec("CumprodCurvature", OPS["CumprodCurvature"], _moved_back, [
        case((4,), (4,), (4,), axis=0), case((2, 3), (2, 3), (2, 3), axis=0),
        case((9, 2), (9, 2), (9, 2), axis=1)], dtypes=NUMBERS),
    OpSpec("CumprodCurvature", OPS["CumprodCurvature"], _moved_back,
           [case((2, 4), (2, 4), (2, 4), axis=1)],
           domain=(uniform(-2, 2), repeated(ZEROS), uniform(-2, 2)), dtypes=NUMBERS),
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
