"""Records of the ops in `cytape.ops.adjoints.identity_groups`."""

from cytape.ops.adjoints import identity_groups as ops
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case


def unchanged(*values):
    return values


SPECS = [
    OpSpec("AddN", ops.add_n_op, lambda *terms: sum(terms), [
        case((2, 3), (2, 3)), case((2,), (2,), (2,), (2,)), case((), ()), case((3,)),
        case((0,), (0,)),
    ], dtypes=FLOATS_AND_COMPLEX),
    OpSpec("IdentityN", ops.identity_n_op, unchanged, [
        case((2, 3), (4,)), case((2,)), case((), (0,), (3,)),
    ], dtypes=FLOATS_AND_COMPLEX),
    OpSpec("Tuple", ops.tuple_op, unchanged, [case((2, 3), (4,)), case((), (3,))],
           dtypes=FLOATS_AND_COMPLEX),
]
