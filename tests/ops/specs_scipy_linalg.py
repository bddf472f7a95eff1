"""Records of the functions of `scipy.linalg`; none without SciPy."""


import numpy as np

import cytape.numpy as cnp
from tests.ops.matrices import hermitian, regular, squared
from tests.ops.op_specs import OpSpec, case, uniform

try:
    from scipy import linalg

    from cytape.ops.adjoints.identity_groups import together
    from cytape.ops.scipy_linalg.factored_systems import factors_op
    from cytape.ops.scipy_linalg.lu_factors import lu_back_op
    from cytape.ops.scipy_linalg.matrix_functions import logm_frechet_op
    from cytape.ops.scipy_linalg.orthogonal_factors import cofactors_op
    from cytape.ops.scipy_linalg.spectral_factors import positive_sylvester_op
    from cytape.scipy import linalg as ours
    from cytape.scipy.linalg.general_functions import independent_op
except ImportError:
    SPECS = []
else:
    DTYPES = ("float64", "complex128")

    def positive(function):
        return lambda a, **options: function(cnp.matmul(a, cnp.transpose(a)), **options)

    def native(function):  # which does not take another byte order
        return lambda a: function(a.astype(a.dtype.newbyteorder("=")))

    def of(function, part):
        def called(*operands, **options):
            a, *others = together(*operands)  # or the part of an untracked tensor is not recorded
            return function(part(cnp.asarray(a) * 1.0), *others, **options)

        return called

    def symmetric(a):
        return (cnp.asarray(a) + cnp.swapaxes(a, -1, -2)) / 2

    def shifted(a):  # regular for ones, too
        return a + np.eye(3, dtype=a.dtype)

    def stable(a):
        return a + 9 * cnp.linalg.matrix_power(a, 0)  # in graphs, too, of unknown extents

    def cut(a):
        return cnp.tril(cnp.triu(a, -2), 1)

    def banded(a, b, **options):
        return ours.solve(a, b, assume_a="banded", **options)

    def general(function):
        return lambda a, b: sizes(function(hermitian(a), squared(b)))

    def signed(rng, shape):
        return regular(rng, shape) * np.array([1.0, -1.0, 1.0])

    def sizes(result):
        return result[0], cnp.absolute(result[1]) ** 2

    def first(rng, shape):
        return rng.uniform(-0.5, 0.5, shape) + 4 * (np.arange(shape[0]) == 0)

    def lu_gradient(packed, g):  # that of the product of the factors, inverted
        lower = np.tril(packed, -1) + np.eye(3)
        upper = np.triu(packed)
        inner = np.tril(lower.conj().T @ np.tril(g, -1), -1) + np.triu(
            np.triu(g) @ upper.conj().T)
        return np.linalg.inv(lower.conj().T) @ inner @ np.linalg.inv(upper.conj().T)

    SPECS = [
        OpSpec(
            "ScipyLinalgSolveTriangular", ours.solve_triangular, linalg.solve_triangular,
            [case((3, 3), (3, 2)), case((3, 3), (3,)), case((3, 3), (3, 2), lower=True),
             case((3, 3), (3, 2), trans=1), case((3, 3), (3,), trans="C", lower=True),
             case((3, 3), (3, 2), unit_diagonal=True),
             case((3, 3), (3, 2), trans=1, unit_diagonal=True, lower=True),
             case((2, 3, 3), (3, 2)), case((0, 0), (0, 2))],
            regular, DTYPES),
        *[OpSpec("ScipyLinalgSolve", ours.solve, linalg.solve,
                 [case((3, 3), (3, 2), assume_a=structure), case((3, 3), (3,), assume_a=structure),
                  case((2, 3, 3), (3, 2), assume_a=structure)], regular, DTYPES)
          for structure in (None, "upper triangular", "diagonal", "tridiagonal")],
        OpSpec("ScipyLinalgSolve", of(banded, cut), of(linalg.solve, cut),
               [case((4, 4), (4, 2)), case((0, 0), (0, 2))], regular, DTYPES),
        *[OpSpec("ScipyLinalgSolve" if name == "sym" else "scipy solve of Hermitian",
                 of(ours.solve, part), of(linalg.solve, part),
                 [case((3, 3), (3, 2), assume_a=name, lower=lower), case(
                     (2, 3, 3), (3,), assume_a=name)], regular, DTYPES)
          for name, part, lower in (
              ("sym", symmetric, True), ("her", hermitian, False), ("pos", squared, True))],
        OpSpec("ScipyLinalgFactors", lambda a: factors_op(
            a, structure="gen", lower=False, check_finite=False)[0], native(
                lambda a: linalg.lu_factor(a)[0]), [case((3, 3))], regular, DTYPES,
               differentiable=False),
        OpSpec("ScipyLinalgDeterminant", ours.det, np.linalg.det,
               [case((3, 3)), case((2, 3, 3))], regular, DTYPES, tolerance=10),
        OpSpec("ScipyLinalgCofactors", lambda a: cofactors_op(a, ours.det(a)),
               lambda a: np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2),
               [case((3, 3)), case((2, 3, 3))], regular, DTYPES, tolerance=10),
        OpSpec("ScipyLinalgLuFactor", lambda a: ours.lu_factor(a)[0],
               native(lambda a: linalg.lu_factor(a)[0]),
               [case((3, 3)), case((4, 2)), case((2, 4)), case((2, 3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgLuBack", lu_back_op, lu_gradient, [case((3, 3), (3, 3))], regular,
               DTYPES),
        OpSpec("ScipyLinalgRowOrder", lambda a: ours.lu(a, p_indices=True)[0],
               native(lambda a: linalg.lu(a, p_indices=True)[0]), [case((3, 3))],
               regular, DTYPES, differentiable=False),
        *[OpSpec("ScipyLinalgSolvehBanded", ours.solveh_banded, linalg.solveh_banded,
                 [case((3, 5), (5,), lower=lower), case((1, 5), (5, 2), lower=lower)],
                 lambda rng, shape, lower=lower: rng.uniform(-0.5, 0.5, shape) + (
                     6 * np.eye(shape[0])[:, :1][:: 1 if lower else -1]
                     if shape[0] < 4 else 0), DTYPES)
          for lower in (False, True)],
        OpSpec(
            "ScipyLinalgSolveBanded", lambda ab, b, l_and_u: ours.solve_banded(l_and_u, ab, b),
            lambda ab, b, l_and_u: linalg.solve_banded(l_and_u, ab, b),
            [case((3, 5), (5,), l_and_u=(1, 1)), case((4, 5), (5, 2), l_and_u=(2, 1)),
             case((2, 5), (5, 2), l_and_u=(0, 1)), case((1, 5), (5, 2), l_and_u=(0, 0))],
            lambda rng, shape: 2 + rng.uniform(-0.5, 0.5, shape), DTYPES),
        OpSpec(
            "ScipyLinalgSolveSylvester", ours.solve_sylvester, linalg.solve_sylvester,
            [case((3, 3), (2, 2), (3, 2))], regular, DTYPES),
        OpSpec("ScipyLinalgEigh", lambda a: sizes(ours.eigh(hermitian(a))),
               lambda a: sizes(linalg.eigh(hermitian(a))), [case((3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgEighSubset",
               lambda a: sizes(ours.eigh(hermitian(a), subset_by_index=[0, 1])),
               lambda a: sizes(linalg.eigh(hermitian(a), subset_by_index=[0, 1])), [case((3, 3))],
               regular, DTYPES),
        OpSpec("ScipyLinalgEighGeneral",
               lambda a, b: general(ours.eigh)(*together(a, b)), general(linalg.eigh),
               [case((3, 3), (3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgPolarUnitary", ours.polar, native(linalg.polar),
               [case((3, 3)), case((4, 2))], regular, DTYPES),
        OpSpec("ScipyLinalgPositiveSylvester",
               of(positive_sylvester_op, squared),
               of(lambda p, q: linalg.solve_sylvester(p, p, q), squared),
               [case((3, 3), (3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgIndependentVectors", independent_op, lambda v: v.copy(),
               [case((3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgFunm", lambda a: ours.funm(a, np.exp), native(linalg.expm),
               [case((3, 3))], lambda rng, shape: regular(rng, shape) / 4, DTYPES),
        OpSpec("ScipyLinalgQrPivots", lambda a: ours.qr(a, mode="r", pivoting=True)[1],
               native(lambda a: linalg.qr(a, mode="r", pivoting=True)[1]), [case((3, 3))], regular,
               DTYPES, differentiable=False),
        OpSpec("ScipyLinalgSolveToeplitz", lambda c, r, b: ours.solve_toeplitz((c, r), b),
               lambda c, r, b: linalg.solve_toeplitz((c, r), b),
               [case((4,), (4,), (4,)), case((4,), (4,), (4, 2))],
               (first, uniform(-1, 1), uniform(-2, 2)), DTYPES),
        OpSpec(
            "ScipyLinalgContinuousLyapunov", of(ours.solve_continuous_lyapunov, stable),
            of(linalg.solve_continuous_lyapunov, stable),
            [case((3, 3), (3, 3)), case((2, 2, 2), (2, 2))], regular, DTYPES),
        *[OpSpec(
            "ScipyLinalgDiscreteLyapunov", ours.solve_discrete_lyapunov,
            linalg.solve_discrete_lyapunov, [case((3, 3), (3, 3), method=method)], regular, DTYPES)
          for method in (None, "bilinear")],
        OpSpec("ScipyLinalgCholesky", of(ours.cholesky, squared), of(linalg.cholesky, squared),
               [case((3, 3), lower=True), case((2, 3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgExpmFrechet", lambda a, e: ours.expm_frechet(a, e)[1],
               lambda a, e: linalg.expm_frechet(a, e)[1], [case((3, 3), (3, 3))],
               lambda rng, shape: rng.uniform(-1, 1, shape), DTYPES),
        OpSpec("ScipyLinalgLogm", of(ours.logm, shifted), of(native(linalg.logm), shifted),
               [case((3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgLogmFrechet",
               of(lambda a, e: logm_frechet_op(a, e, is_real=True), shifted),
               of(lambda a, e: linalg.logm(np.block([[a, e], [0 * a, a]]))[:3, 3:], shifted),
               [case((3, 3), (3, 3))], regular, ("float64",)),
        OpSpec("ScipyLinalgSignm", ours.signm, native(linalg.signm), [case((3, 3))],
               signed, DTYPES, tolerance=100),
        OpSpec("ScipyLinalgFractionalMatrixPower",
               of(lambda a: ours.fractional_matrix_power(a, 0.3), shifted),
               of(native(lambda a: linalg.fractional_matrix_power(a, 0.3)), shifted),
               [case((3, 3))], regular, DTYPES),
        OpSpec("ScipyLinalgSqrtm", ours.sqrtm, native(linalg.sqrtm), [case((3, 3))], regular,
               DTYPES),
        OpSpec("ScipyLinalgExpm", ours.expm, native(linalg.expm), [case((3, 3)), case((2, 2, 2))],
               lambda rng, shape: rng.uniform(-1, 1, shape), DTYPES),
        *[OpSpec("scipy cholesky", positive(ours.cholesky), positive(linalg.cholesky),
                 [case((3, 3), lower=lower)], regular, ("float64",)) for lower in (False, True)],
    ]
