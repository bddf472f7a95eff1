"""Records of choices, of arrays cut and put together, and of functions applied along axes."""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.choosing import insertion, padding, piecewise
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, distinct

COMPLEX = {"dtypes": FLOATS_AND_COMPLEX}
CONDITIONS = [np.array([True, False, False]), np.array([True, True, False])]
WHICH = np.array([[1, 0, 2], [0, 0, 1]])


def record(name, cases, **options):
    return OpSpec(name, getattr(cnp, name), getattr(np, name), cases, **(COMPLEX | options))


def both(name, call, cases, **options):
    """Make a record of a function called with what lists hold as operands."""
    return OpSpec(name, lambda *args, **kwargs: call(cnp, *args, **kwargs),
                  lambda *args, **kwargs: call(np, *args, **kwargs), cases, **(COMPLEX | options))


PADS = {
    "linear_ramp": [{}, {"end_values": ((1.0, 2.0), (3.0, 4.0))}],
    "maximum": [{}, {"stat_length": ((1, 2), (3, 9))}], "minimum": [{}, {"stat_length": 2}],
    "mean": [{}, {"stat_length": 2}], "median": [{}, {"stat_length": (2, 3)}],
    "reflect": [{"reflect_type": "odd"}], "symmetric": [{"reflect_type": "odd"}]}

SPECS = [
    both("Pad", lambda n, x, pad_width: n.pad(x, pad_width), [
        case((2, 3), pad_width=1), case((2, 3), pad_width=[(1, 0), (0, 2)]),
        case((0,), pad_width=2)]),
    both("PadWith", lambda n, x, **options: n.pad(x, **options), [
        case((2, 3), pad_width=(1, 2), constant_values=3.0),
        case((2, 3), pad_width=((0, 1),), constant_values=((1.0, 2.0), (3.0, 4.0))),
    ]),
    OpSpec("Resize", insertion.resize_op, lambda x, new_shape: np.resize(x, new_shape), [
        case((3,), new_shape=(2, 4)), case((4,), new_shape=(3,)), case((2,), new_shape=(4,))],
           **COMPLEX),
    OpSpec("PadCopies", padding.pad_copies_op,
           lambda x, axis, width, mode: np.pad(
               x, [width if i == axis else (0, 0) for i in range(x.ndim)], mode),
           [case((3, 2), axis=axis, width=(2, 4), mode=mode)
            for mode in ("edge", "reflect", "symmetric", "wrap") for axis in (0, 1)], **COMPLEX),
    record("pad", [
        *[case((2, 3), pad_width=((1, 4), (0, 2)), mode=mode)
          for mode in ("edge", "reflect", "symmetric", "wrap")],
        case((2, 3), pad_width={-1: (1, 2)}, mode="constant"),
        case((2, 3), pad_width={0: 1}, mode="edge"),
        case((3,), pad_width=2, mode="reflect", reflect_type="even"),
        case((3,), pad_width=0, mode="wrap"), case((), pad_width=1),
    ]),
    *[record("pad", [
        case((3, 4), pad_width=((2, 1), (0, 3)), mode=mode, **options), case((4,), 1, mode=mode),
        case((2, 1), pad_width=4, mode=mode, **options)],
        dtypes=("float64", "float32")) for mode in PADS
      for options in PADS[mode]],
    both("pad with values", lambda n, x, v: n.pad(x, (1, 2), constant_values=v), [
        case((3,), ()), case((2, 3), (2,)), case((2, 3), (2, 1)), case((2, 3), (2, 2))]),
    both("pad to values", lambda n, x, v: n.pad(x, (1, 2), "linear_ramp", end_values=v), [
        case((3,), ()), case((2, 3), (2, 2))], dtypes=("float64", "float32")),
    both("select", lambda n, x, y: n.select(CONDITIONS, [x, y]), [case((3,), (3,)),
                                                                  case((2, 3), ())]),
    both("select", lambda n, x, d: n.select(CONDITIONS[:1], [x], d), [case((3,), (3,)),
                                                                      case((3,), ())]),
    both("select", lambda n, x: n.select([n.greater(x, 0.55), n.greater(x, -0.35)], [
        n.square(x), n.multiply(3, x)], 7.0), [case((4,))],
         domain=distinct(0.3, 0.1), dtypes=("float64", "float32")),
    OpSpec("WithinChoices", piecewise.within_op, lambda a, n, mode: (
        a % n if mode == "wrap" else np.clip(a, 0, n - 1)), [
        case(np.array([0, 3, -1]), n=3, mode="wrap"), case(np.array([0, 3, -1]), n=3, mode="clip"),
    ], differentiable=False),
    both("choose", lambda n, x, y, z, **kwargs: n.choose(WHICH, [x, y, z], **kwargs), [
        case((3,), (2, 3), ()), case((2, 1), (3,), (2, 3), mode="clip"),
    ]),
    both("choose", lambda n, x, y: n.choose(np.array([5, -1]), [x, y], mode="wrap"),
         [case((2,), (2,))]),
    both("piecewise", lambda n, x: n.piecewise(x, [n.less(x, -0.35), n.greater(x, 0.25)], [
        lambda x: x * x, lambda x: n.sin(x), 3.0]), [case((5,)), case((2, 3))],
         domain=distinct(0.3, 0.1), dtypes=("float64", "float32")),
    both("piecewise", lambda n, x: n.piecewise(x, n.less(x, 0), [lambda x, a: a * x, 1.0], 3.0),
         [case((4,))], domain=distinct(0.3, 0.1), dtypes=("float64",)),
    record("delete", [case((5,), 1), case((5,), [0, 3]), case((3, 4), slice(1, 3), axis=1),
                      case((3, 4), -1, axis=0), case((2, 3), [0, 5]), case((3,), []),
                      case((4,), [True, False, False, True])]),
    record("insert", [
        case((4,), 1, (2,)), case((4,), 1, ()), case((4,), [1, 3], (2,)), case((4,), [1, 1], ()),
        case((3, 2), 1, (2,), axis=0), case((3, 2), 1, (3,), axis=1),
        case((3, 2), [1], (3, 1), axis=1), case((3, 2), [2, 0], (2,), axis=1), case((2, 2), -1, ()),
        case((4,), slice(0, 4, 2), (2,)), case((40,), list(range(0, 40, 2)), (20,)),
    ]),
    record("resize", [case((3,), new_shape=(2, 4)), case((2, 3), new_shape=(2, 2)), case((2,), 5),
                      case((4,), new_shape=(2, 2)), case((2,), 0)]),
    OpSpec("trim_zeros", lambda x, **kwargs: cnp.trim_zeros(cnp.pad(x, 2), **kwargs),
           lambda x, **kwargs: np.trim_zeros(np.pad(x, 2), **kwargs),
           [case((3,)), case((3,), trim="f"), case((2, 2), axis=1), case((2, 2))],
           domain=distinct(1.0, 0.5), **COMPLEX),
    record("diagflat", [case((3,)), case((2, 2), 1), case(())]),
    OpSpec("Block", insertion.block_op, lambda *arrays, arrangement: np.block(
               [[arrays[i] for i in row] for row in arrangement]), [
        case((2, 2), (2, 1), (1, 3), arrangement=((0, 1), (2,))),
        case((3, 2, 2), (3, 1, 2), arrangement=((0,), (1,), (0,))),
    ], dtypes=FLOATS_AND_COMPLEX),
    both("block", lambda n, x, y, z: n.block(
        [[n.asarray(x), n.asarray(y)], [n.asarray(z), np.ones((1, 1))]]), [
        case((2, 2), (2, 1), (1, 2)), case((2, 2), (2, 1), (2,)),
    ]),
    both("block", lambda n, x, y: n.block([n.asarray(x), n.asarray(y)]), [
        case((2,), (3,)), case((2, 3), (2, 1)), case((), (2,)),
    ]),
    both("block", lambda n, x: n.block(n.asarray(x)), [case((2,))]),
    both("apply_along_axis", lambda n, x, axis: n.apply_along_axis(lambda v: v * v[0], axis, x), [
        case((3, 4), axis=0), case((2, 3, 2), axis=1),
    ]),
    both("apply_along_axis", lambda n, x, axis: n.apply_along_axis(
        lambda v: n.outer(v, v), axis, x), [case((2, 3), axis=0)]),
    both("apply_along_axis", lambda n, x: n.apply_along_axis(lambda v: v[0] * v[1], -1, x),
         [case((3, 2))]),
    both("apply_over_axes", lambda n, x, axes: n.apply_over_axes(n.sum, x, axes), [
        case((2, 3, 2), axes=[0, 2]), case((2, 3), axes=-1),
    ]),
    record("real_if_close", [case((3,))], dtypes=("float64",)),
    *[both(name, lambda n, x, name=name: getattr(n, name)(x) * 2, [case((3,))]) for name in (
        "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "require")],
]
