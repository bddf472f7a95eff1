"""Records of the functions of `scipy.linalg`; none without SciPy."""


import cytape.numpy as cnp
from tests.ops.matrices import regular
from tests.ops.op_specs import OpSpec, case

try:
    from scipy import linalg

    from cytape.scipy import linalg as ours
except ImportError:
    SPECS = []
else:
    DTYPES = ("float64", "complex128")

    def positive(function):
        return lambda a, **options: function(cnp.matmul(a, cnp.transpose(a)), **options)

    def native(function):  # which does not take another byte order
        return lambda a: function(a.astype(a.dtype.newbyteorder("=")))

    SPECS = [
        OpSpec(
            "ScipyLinalgSolveTriangular", ours.solve_triangular, linalg.solve_triangular,
            [case((3, 3), (3, 2)), case((3, 3), (3,)), case((3, 3), (3, 2), lower=True),
             case((3, 3), (3, 2), trans=1), case((3, 3), (3,), trans="C", lower=True),
             case((3, 3), (3, 2), unit_diagonal=True),
             case((3, 3), (3, 2), trans=1, unit_diagonal=True, lower=True)],
            regular, DTYPES),
        OpSpec(
            "ScipyLinalgSolveBanded", lambda ab, b, l_and_u: ours.solve_banded(l_and_u, ab, b),
            lambda ab, b, l_and_u: linalg.solve_banded(l_and_u, ab, b),
            [case((3, 5), (5,), l_and_u=(1, 1)), case((4, 5), (5, 2), l_and_u=(2, 1)),
             case((2, 5), (5, 2), l_and_u=(0, 1)), case((1, 5), (5, 2), l_and_u=(0, 0))],
            lambda rng, shape: 2 + rng.uniform(-0.5, 0.5, shape), DTYPES),
        OpSpec(
            "ScipyLinalgSolveSylvester", ours.solve_sylvester, linalg.solve_sylvester,
            [case((3, 3), (2, 2), (3, 2))], regular, DTYPES),
        OpSpec("ScipyLinalgSqrtm", ours.sqrtm, native(linalg.sqrtm), [case((3, 3))], regular,
               DTYPES),
        OpSpec("ScipyLinalgExpm", ours.expm, native(linalg.expm), [case((3, 3)), case((2, 2, 2))],
               lambda rng, shape: rng.uniform(-1, 1, shape), DTYPES),
        *[OpSpec("scipy cholesky", positive(ours.cholesky), positive(linalg.cholesky),
                 [case((3, 3), lower=lower)], regular, ("float64",)) for lower in (False, True)],
    ]
