"""Records of the methods of ufuncs.

Not of `power.reduce` and `arctan2.reduce`, which NumPy computes wrongly on processors with AVX512:
its loops read ahead of what they write. `test_ufunc_methods.py` has them.
"""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.calculus import ufunc_methods
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, distinct, uniform

POSITIVE = uniform(0.6, 1.6)
FOLDED = {
    "subtract": uniform(-2, 2), "divide": POSITIVE, "power": POSITIVE, "float_power": POSITIVE,
    "logaddexp": uniform(-2, 2), "logaddexp2": uniform(-2, 2), "hypot": uniform(0.3, 2),
    "arctan2": POSITIVE, "fmax": distinct(), "fmin": distinct(),
    "fmod": uniform(-1.5, 2, avoid=[0]),  # no quotient so near to a jump that differences meet it
    "copysign": uniform(-2, 2, avoid=[0]),
}  # fmt: skip
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
                 case((3, 2), indices=[1, 1, 2], axis=0)],
}


def recurrence(a, b):
    y = np.zeros(b.shape, np.result_type(a, b))
    for k in range(b.shape[-1]):
        y[..., k] = b[..., k] + (a[..., k] * y[..., k - 1] if k else 0)
    return y


def fold(name):
    """Make a function that accumulates, and begins anew where it is said to."""
    accumulate = getattr(np, name).accumulate
    return lambda x, begins=(), *, name, axis: np.concatenate(
        [accumulate(part, axis) for part in np.split(x, np.flatnonzero(begins)[1:], axis)], axis)


BEGINS = np.array([True, False, True, True, False])

SPECS = [
    OpSpec("LinearRecurrence", ufunc_methods.recurrence_op, recurrence,
           [case((5,), (5,)), case((2, 3), (2, 3)), case((3, 1), (3, 1)), case((2, 0), (2, 0)),
            case((17,), (17,)), case((2, 12), (2, 12))], dtypes=FLOATS_AND_COMPLEX),
    OpSpec("Fold", ufunc_methods.fold_op, fold("hypot"), [
        case((4,), name="Hypot", axis=0), case((2, 5), BEGINS, name="Hypot", axis=1),
        case((0, 2), name="Hypot", axis=0),
    ], domain=POSITIVE, differentiable=(True, False)),
    OpSpec("FoldSteps", ufunc_methods.fold_steps_op, fold("floor_divide"),
           [case((4,), name="FloorDivide", axis=0)], differentiable=False),
    OpSpec("SlicesOfReduceAt", ufunc_methods.slices_op, lambda x, indices, name, axis: (
        np.array([0, 1, 0, 1, 2, 3]), np.array([1, 1, 1, 0, 0, 0], bool), np.array([0, 1, 5])),
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
             domain=distinct()) for name in ("maximum", "minimum")],
    *[OpSpec(f"{name}.reduce and where", *[
        lambda x, initial, f=f: f(x, initial=initial)
        for f in methods(name, "reduce", axis=1, where=MASK)], [case((3, 4), ())],
        domain=(FOLDED[name], POSITIVE), dtypes=("float64",)) for name in RIGHT_NEUTRAL],
    *[OpSpec(f"{name}.outer", *methods(name, "outer"), [
        case((3,), (2, 2)), case((2, 2), ()), case((), (3,)), case((0,), (2,))],
        domain=POSITIVE, dtypes=("float64", "float32"))
      for name in ("add", "subtract", "multiply", "divide", "arctan2", "logaddexp")],
]  # fmt: skip
