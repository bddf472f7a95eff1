"""Records of systems of equations, inverses, determinants, pseudoinverses and least squares."""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.submodules import least_squares, solving
from tests.ops.matrices import hermitian, regular
from tests.ops.op_specs import OpSpec, case

DTYPES = ("float64", "float32", "complex128", "complex64")
STACKS = [(3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 1, 2, 2)]


def of_product(function):
    """Return a function of matrices as one of the factors of a matrix of lower rank."""
    return lambda a, b, **options: function(cnp.matmul(a, b), **options)


def of_hermitian(function):
    return lambda a: function(hermitian(a), hermitian=True)


def square(rng, shape):
    """Draw a regular matrix of six rows, in the shape of a tensor."""
    return regular(rng, (6, 6)).reshape(shape)


def lstsq_back(a, b, x, rank, g, rcond):
    pinv = np.linalg.pinv(a)
    gb = pinv.conj().T @ g
    return (b - a @ x) @ (pinv @ gb).conj().T - gb @ x.conj().T, gb


def without_rank(function):
    def call(a, b, **options):
        x, squares, rank, s = function(a, b, **options)
        return x, squares, s

    return call


SPECS = [
    OpSpec(
        "Solve", solving.solve, np.linalg.solve,
        [
            case(a, b)
            for a, b in [
                ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)),
                ((2, 1, 2, 2), (3, 2, 4)), ((2, 2), (2, 0)), ((0, 2, 2), (2, 3)), ((0, 0), (0, 2)),
                ((1, 3, 3), (4, 3, 2)),
            ]
        ],
        domain=regular, dtypes=DTYPES,
    ),
    OpSpec(
        "solve", solving.solve, np.linalg.solve,
        [case((3, 3), (3,)), case((2, 3, 3), (3,)), case((0, 0), (0,))], domain=regular,
        dtypes=DTYPES,
    ),
    OpSpec("MatrixInverse", solving.inv, np.linalg.inv, [case(shape) for shape in STACKS],
           domain=regular, dtypes=DTYPES),
    OpSpec("Determinant", solving.det, np.linalg.det, [case(shape) for shape in STACKS],
           domain=regular, dtypes=DTYPES, tolerance=10),
    OpSpec(
        "Cofactors", lambda a: solving.cofactors_op(a, solving.det(a)),
        lambda a: np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2),
        [case(shape) for shape in STACKS], domain=regular, dtypes=DTYPES, tolerance=10,
    ),
    OpSpec("SignAndLogDeterminant", solving.slogdet, np.linalg.slogdet,
           [case(shape) for shape in STACKS], domain=regular, dtypes=DTYPES),
    OpSpec(
        "PseudoInverse", least_squares.pinv, np.linalg.pinv,
        [
            case((4, 3)), case((3, 4)), case((2, 3, 3)), case((3, 2), rtol=None), case((0, 3)),
            case((2, 0)), case((0, 3, 2)), case((4, 3), rcond=0.5), case((2, 3, 4), rtol=0.3),
            case((2, 3, 4), rcond=np.array([0.3, 0.8])),
        ],
        domain=regular, dtypes=DTYPES,
    ),
    OpSpec("PseudoInverseOfRank",
           lambda a, rank: least_squares.pinv_of_rank_op(a, rank, rcond=None, by_eps=True),
           lambda a, rank: np.linalg.pinv(a),
           [case(shape, np.array(min(shape))) for shape in ((4, 3), (3, 4), (2, 2), (3, 0))],
           domain=regular, dtypes=DTYPES, differentiable=(True, False)),
    OpSpec("LeastSquaresBack", least_squares.lstsq_back_op, lstsq_back,
           [case(a, b, x, np.array(x[0]), x, rcond=None)
            for a, b, x in (((4, 3), (4, 2), (3, 2)), ((3, 3), (3, 1), (3, 1)))],
           domain=regular, dtypes=DTYPES, differentiable=(True, True, True, False, True)),
    OpSpec("HermitianCompletion",
           lambda a, lower=True: least_squares.completed(hermitian(a), lower),
           lambda a, lower=True: hermitian(a),
           [case((3, 3)), case((2, 2, 2), lower=False)], domain=regular, dtypes=DTYPES),
    OpSpec("pinv", of_hermitian(least_squares.pinv), of_hermitian(np.linalg.pinv),
           [case((3, 3)), case((2, 2, 2))], domain=regular, dtypes=DTYPES),
    OpSpec("pinv", of_product(least_squares.pinv), of_product(np.linalg.pinv),
           [case((4, 2), (2, 3), rtol=1e-10)], domain=regular, dtypes=("float64", "complex128")),
    OpSpec(
        "LeastSquares", without_rank(least_squares.lstsq), without_rank(np.linalg.lstsq),
        [
            case(a, b, rcond=rcond)
            for a, b, rcond in [
                ((4, 3), (4, 2), None), ((3, 4), (3, 2), None), ((3, 3), (3, 1), None),
                ((4, 3), (4,), None), ((4, 2), (4, 0), None), ((4, 2), (4, 1), 1e-12),
                ((4, 2), (4, 1), -1),
            ]
        ],
        domain=regular, dtypes=DTYPES,
    ),
    OpSpec("tensorinv", solving.tensorinv, np.linalg.tensorinv,
           [case((6, 2, 3), ind=1), case((2, 3, 3, 2))], domain=square,
           dtypes=("float64", "complex128")),
    OpSpec("tensorsolve", solving.tensorsolve, np.linalg.tensorsolve,
           [case((2, 3, 6), (2, 3)), case((3, 6, 2), (6,), axes=(0, 2)), case((3, 2, 6), (3, 2))],
           domain=(square, regular), dtypes=("float64", "complex128")),
]
