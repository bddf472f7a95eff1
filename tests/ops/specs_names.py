"""Records of functions of NumPy that are others by another name, or make arrays of numbers."""

import numpy as np

import cytape.numpy as cnp
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, distinct


def both(name, call, cases, **options):
    """Record a call of a function of the namespace that it is given."""
    return OpSpec(name, lambda *xs, **kwargs: call(cnp, *xs, **kwargs),
                  lambda *xs, **kwargs: call(np, *xs, **kwargs), cases, **options)


SPECS = [
    *[both(name, lambda n, x, name=name, **options: getattr(n, name)(x, **options), [
        case((3, 4)), case((3, 4), axis=1)], domain=distinct()) for name in ("amax", "amin")],
    both("concat", lambda n, *xs, **options: n.concat(xs, **options), [
        case((2, 3), (1, 3)), case((2, 3), (2, 1), axis=1)], dtypes=FLOATS_AND_COMPLEX),
    both("block", lambda n, x, y: n.block([[x, y], [y, x]]), [case((), ())]),
    both("fromfunction", lambda n, x: n.fromfunction(lambda i, j: x * i + j, (2, 3)), [
        case(())]),
    both("arange", lambda n, start, step: n.arange(start, 5.0, step) * 1.0, [
        case((), 2.0)], dtypes=("float64",)),
    both("asarray", lambda n, x: n.asarray(x), [case((3, 4)), case(())],
         dtypes=FLOATS_AND_COMPLEX),
]
