"""``python -m bench.scipy_rows.matrices``: backward passes of linear algebra over SciPy's forward.

A backward pass computes the gradients with respect to all operands, for one call that was recorded
before. Run it with one thread of BLAS, as in ``OMP_NUM_THREADS=1``.
"""

import sys

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

import cytape
from bench.timing import Effort, Program, best_seconds
from cytape.scipy import linalg, sparse
from cytape.tensor import nest

LIMIT = 4.0  # backward over forward


def operands(n):
    """Return matrices of several structures, and a right-hand side of ten columns."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, n)) / n**0.5 + 3 * np.eye(n)
    return {"a": a, "p": a @ a.T, "s": (a + a.T) / 2, "b": rng.normal(size=(n, 10)),
            "c": np.append(5.0, rng.normal(size=n - 1) / n), "w": a[:, : n // 2],
            "band": np.array([np.full(n, 0.5), np.full(n, 3.0), np.full(n, -1.0)])}


def dense_rows():
    """Return names, functions of a module and operands, and the names of the operands."""
    return [
        ("solve", lambda m, a, b: m.solve(a, b), "ab"),
        ('solve, "pos"', lambda m, p, b: m.solve(p, b, assume_a="pos"), "pb"),
        ('solve, "sym"', lambda m, s, b: m.solve(s, b, assume_a="sym"), "sb"),
        ("solve_triangular", lambda m, a, b: m.solve_triangular(a, b), "ab"),
        ("solve_triangular of a vector", lambda m, a, c: m.solve_triangular(a, c), "ac"),
        ("solve_banded", lambda m, band, b: m.solve_banded((1, 1), band, b), ("band", "b")),
        ("cholesky", lambda m, p: m.cholesky(p, lower=True), "p"),
        ("lu_factor", lambda m, a: m.lu_factor(a)[0], "a"),
        ("qr, economic", lambda m, a: m.qr(a, mode="economic"), "a"),
        ("inv", lambda m, a: m.inv(a), "a"),
        ("det", lambda m, a: m.det(a / 4), "a"),
        ("pinv", lambda m, w: m.pinv(w), "w"),
        ("lstsq", lambda m, w, b: m.lstsq(w, b)[0], "wb"),
        ("eigh", lambda m, s: m.eigh(s), "s"),
        ("eigh of two", lambda m, s, p: m.eigh(s, p), "sp"),
        ("svd", lambda m, a: m.svd(a, full_matrices=False), "a"),
        ("polar", lambda m, a: m.polar(a), "a"),
        ("expm", lambda m, a: m.expm(a), "a"),
        ("sqrtm", lambda m, a: m.sqrtm(a), "a"),
        ("logm", lambda m, a: m.logm(a), "a"),
        ("solve_sylvester", lambda m, a, p: m.solve_sylvester(a, p, a), "ap"),
        ("solve_continuous_lyapunov", lambda m, a, p: m.solve_continuous_lyapunov(a, p), "ap"),
        ("solve_discrete_lyapunov", lambda m, a, p: m.solve_discrete_lyapunov(a / 9, p), "ap"),
        ("toeplitz", lambda m, c: m.toeplitz(c), "c"),
        ("solve_toeplitz", lambda m, c, b: m.solve_toeplitz(c, b), "cb")]


def sparse_rows(n):
    """Return the same for the five-point Laplacian on a grid of about n points."""
    side = int(n**0.5)
    line = scipy.sparse.diags_array([-1.0, 2.01, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    matrix = scipy.sparse.kronsum(line, line).tocsr()
    b = np.random.default_rng(0).normal(size=side * side)

    def solver(name, **options):
        def solve(m, data, b):
            of = sparse if isinstance(data, cytape.Tensor) else scipy.sparse
            a = of.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
            return name(m, a, b, **options)
        return solve

    return [
        (f"sparse product, {matrix.nnz} values", solver(lambda m, a, b: a @ b)),
        ("spsolve", solver(lambda m, a, b: m.spsolve(a, b))),
        ("cg", solver(lambda m, a, b: m.cg(a, b, rtol=1e-8)[0])),
        ("eigsh, 2 vectors", solver(
            lambda m, a, b: m.eigsh(a, 2, sigma=0.0, v0=np.ones(b.shape[0])))),
    ], [matrix.data, b]


def ratio(f, ours, theirs, arrays, effort):
    """Return the seconds of SciPy's call, and those of a backward pass."""
    tensors = [cytape.constant(x) for x in arrays]
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        y = f(ours, *tensors)
    seeds = [cytape.constant(np.ones(x.shape, x.dtype)) for x in nest.flatten(y)]
    y = list(nest.flatten(y))
    forward, backward = best_seconds([
        Program(lambda _: f(theirs, *arrays)),
        Program(lambda _: tape.gradient(
            y, tensors, output_gradients=seeds, unconnected_gradients="zero")),
    ], effort)
    return forward, backward


def main(smoke=False):
    """Print a row per function and size; return the ratios by name."""
    effort, found = Effort(1, 0.001) if smoke else Effort(2, 0.05), {}
    sizes = (20,) if smoke else (100, 500)
    print(f"{'function':34}{'n':>6}{'SciPy':>11}{'backward':>11}{'ratio':>8}   limit {LIMIT:g}")
    for n in sizes:
        arrays = operands(n)
        rows = [(name, f, linalg, scipy.linalg, [arrays[key] for key in keys])
                for name, f, keys in dense_rows()]
        sparse_functions, sparse_operands = sparse_rows(20 * n)
        rows += [(name, f, sparse.linalg, scipy.sparse.linalg, sparse_operands)
                 for name, f in sparse_functions]
        for name, *row in rows:
            forward, backward = ratio(*row, effort)
            found[name, n] = backward / forward
            mark = "" if found[name, n] <= LIMIT else "  over"
            print(f"{name:34}{n:6}{1e3 * forward:8.3f} ms{1e3 * backward:8.3f} ms"
                  f"{found[name, n]:8.2f}{mark}", flush=True)
    return found


if __name__ == "__main__":
    main("--smoke" in sys.argv)
