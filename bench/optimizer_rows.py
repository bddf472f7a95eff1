"""``python -m bench.optimizer_rows``: steps of Adam, beside the same step written in NumPy.

Prints the measured values with their limits; ``--smoke`` runs everything once. The exit code is 1
if a limit is exceeded.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys

import numpy as np

import cytape
from bench.timing import Effort, Program, best_seconds

N_ARRAYS, SIZE, ROWS = 20, 50_000, 64
TABLE = 50_000, 32


def in_numpy(parameters, gradients, means, squares, t, rate=1e-3, epsilon=1e-8):
    """Make a step in place, as it is written by hand."""
    for p, g, mean, square in zip(parameters, gradients, means, squares, strict=True):
        mean *= 0.9
        mean += 0.1 * g
        square *= 0.999
        square += 0.001 * (g * g)
        p -= rate / (1 - 0.9**t) * mean / (np.sqrt(square / (1 - 0.999**t)) + epsilon)


def dense_programs(dtype, wrap):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=SIZE).astype(dtype) for _ in range(N_ARRAYS)]
    gradients = [rng.normal(size=SIZE).astype(dtype) for _ in start]
    arrays, ours = [x.copy() for x in start], [wrap(x.copy()) for x in start]
    slots = [[np.zeros_like(x) for x in start] for _ in range(2)]
    tensors, optimizer = list(map(cytape.constant, gradients)), cytape.optimizers.Adam(1e-3)
    optimizer.update(ours, tensors)
    in_numpy(arrays, gradients, *slots, 1)
    assert all(np.allclose(a, b, 1e-4, 1e-6) for a, b in zip(arrays, ours, strict=True))
    return [Program(lambda _: optimizer.update(ours, tensors)),
            Program(lambda _: in_numpy(arrays, gradients, *slots, 2))]


def sparse_program(dtype):
    rng = np.random.default_rng(0)
    table, optimizer = cytape.Variable(np.zeros(TABLE, dtype)), cytape.optimizers.Adam(1e-3)
    slices = cytape.IndexedSlices(
        cytape.constant(rng.normal(size=(ROWS, TABLE[1])).astype(dtype)),
        cytape.constant(rng.integers(0, TABLE[0], ROWS)), TABLE)
    optimizer.update(table, slices)
    return Program(lambda _: optimizer.update(table, slices))


def rows(effort):
    """Yield name, measured value, limit and unit of each row."""
    for dtype in ("float64", "float32"):
        for kind, wrap in (("variables", cytape.Variable), ("arrays", np.asarray)):
            ours, plain = best_seconds(dense_programs(dtype, wrap), effort)
            yield (f"Adam step, {N_ARRAYS} {kind} of {SIZE:,} {dtype}, over NumPy",
                   ours / plain, 0.5, "x")
        (seconds,) = best_seconds([sparse_program(dtype)], effort)
        yield (f"Adam step, {ROWS} rows of a table of {TABLE[0]:,} x {TABLE[1]} {dtype}",
               seconds * 1e6, 20.0, "us")


def main(smoke=False):
    missed = False
    for name, value, limit, unit in rows(Effort(1, 0.0) if smoke else Effort(5, 0.2)):
        is_missed = value > limit
        missed |= is_missed
        print(f"{name:66}{value:8.2f} {unit:2} (limit {limit:g}){' MISSED' * is_missed}")
    return missed and not smoke


if __name__ == "__main__":
    sys.exit(main("--smoke" in sys.argv[1:]))
