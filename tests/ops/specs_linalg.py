"""Records of matrix products and sums of products."""

import numpy as np

from cytape.ops import einsum, matrix_products
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

OUTER_SHAPES = [
    ((1,), (1,)), ((1,), (1, 5)), ((7, 1), (1,)), ((7, 1), (1, 5)), ((0, 1), (1, 4)),
    ((4, 1), (1, 0)), ((1, 1), (1, 9)), ((9, 1), (1, 1)), ((1, 9), (9,))]
VECTOR_SHAPES = [
    ((50, 54), (54,)), ((50,), (50, 54)), ((1, 54), (54,)), ((54,), (54, 1)), ((50, 1), (1,)),
    ((1,), (1, 50)), ((30,), (30,)), ((50, 1), (1, 54)), ((1, 54), (54, 1)), ((1, 1), (1, 1)),
    ((0, 3), (3,)), ((3, 0), (0,)), ((0,), (0, 3)), ((0,), (0,))]
MATMUL_SHAPES = [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)), ((1, 2, 3), (5, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
    ((2, 3, 0), (0, 4)), ((0, 2, 3), (3, 4)), ((2, 0), (0,))]
DOT_SHAPES = [
    ((), ()), ((), (2, 3)), ((2, 3), ()), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)),
    ((2, 3), (3, 4)), ((3,), (2, 3, 4)), ((5, 2, 3), (3,)), ((5, 2, 3), (3, 2)),
    ((2, 3), (4, 3, 2)), ((5, 2, 3), (4, 3, 2))]
INNER_SHAPES = [
    ((), (2, 3)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (4, 3)),
    ((2, 2, 3), (4, 3))]
SUBSCRIPTS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),  # the implied output is in alphabetical order
    ("i,i", (3,), (3,)), ("i,j->ji", (3,), (2,)), (",ij->ji", (), (2, 3)), ("ij->ji", (2, 3)),
    ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->j", (2, 2, 3)),
    ("iii->", (2, 2, 2)), ("iij,ij->i", (2, 2, 3), (2, 3)), ("ij,k->k", (2, 3), (4,)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("bij , bjk -> bik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 2)), ("...ij,...jk", (4, 1, 2, 3), (5, 3, 2)),
    ("...->...", (2, 3)), ("i...->...", (2, 3, 4)), ("...i->...", (3,)), ("...ii->...i", (2, 3, 3)),
    ("i...,j...->...ij", (2, 3), (4, 1)),
    ("ij,ij->ij", (2, 1), (2, 3)),  # an axis of length one is broadcast
    ("ij,ij->", (2, 1), (2, 3)), ("ii,i->i", (1, 1), (3,)),
    ("ij,jk->ik", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 3)),
    ("...i,i...->...", (2, 3), (3, 2)), ("ij,jk", (1, 3), (1, 2)), ("i,i->i", (1,), (3,)),
    ("...,...", (2, 3), (3,)), ("iij,jk->k", (2, 2, 1), (3, 2)),
]


def from_string(function):
    """Return `function`, an einsum, with the subscripts as a keyword."""
    return lambda *operands, subscripts, **kwargs: function(subscripts, *operands, **kwargs)


def product(name, function, reference, shapes, **options):
    return OpSpec(
        name, function, reference, [case(a, b) for a, b in shapes], dtypes=FLOATS_AND_COMPLEX,
        **options)


def composite(name, function, reference, shapes):
    return product(name, function, reference, shapes)


SPECS = [
    product("MatMul", matrix_products.matmul, np.matmul,
            MATMUL_SHAPES + OUTER_SHAPES + VECTOR_SHAPES),
    composite("dot", matrix_products.dot, np.dot, DOT_SHAPES),
    composite("inner", matrix_products.inner, np.inner, INNER_SHAPES),
    composite("outer", matrix_products.outer, np.outer, [((3,), (2,)), ((2, 2), (3,)), ((), (2,))]),
    composite("vdot", matrix_products.vdot, np.vdot,
              [((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (6,))]),
    composite("vecdot", matrix_products.vecdot, np.vecdot,
              [((3,), (3,)), ((2, 3), (3,)), ((4, 1, 3), (2, 3))]),
    OpSpec("vecdot", matrix_products.vecdot, np.vecdot, [case((3, 2), (3, 1), axis=0)]),
    composite(
        "kron", matrix_products.kron, np.kron,
        [((2,), (3,)), ((2, 3), (3, 1)), ((2,), (2, 3)), ((2, 1, 2), (3,)), ((), (3,))],
    ),
    OpSpec(
        "Tensordot", matrix_products.tensordot, np.tensordot,
        [
            case((2, 3, 4), (4, 3, 2), axes=((0, 2), (2, 0))),
            case((2, 3, 4), (4, 3, 2), axes=((2, 1, 0), (0, 1, 2))),
            case((2, 3), (3, 4), axes=((1,), (0,))), case((2, 3), (4,), axes=((), ())),
            case((2, 3, 2), (2, 4, 3), axes=((2, 1), (0, 2))),
            case((2, 0), (0, 3), axes=((1,), (0,))),
        ],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec(
        "tensordot", matrix_products.tensordot, np.tensordot,
        [
            case((2, 3), (3, 4), axes=1), case((2, 3), (2, 3), axes=2), case((2,), (3,), axes=0),
            case((2, 3), (4, 3), axes=(-1, -1)), case((2, 3), (4, 3), axes=([1], [-1])),
        ],
    ),
    OpSpec(
        "Einsum", from_string(einsum.einsum), from_string(np.einsum),
        [case(*shapes, subscripts=text, optimize=False) for text, *shapes in SUBSCRIPTS]
        + [
            case((2, 3), (3, 2), (2, 4), subscripts="ij,jk,kl->il", optimize=choice)
            for choice in (True, "optimal", ["einsum_path", (0, 1), (0, 1)])
        ],
        dtypes=FLOATS_AND_COMPLEX,
    ),
]
