"""Peak memory of derivatives in `numpy.linalg`, measured in a process of its own.

``python -m tests.ops.submodules.linalg_peaks DTYPE STEP`` prints a line per function and kind of
derivative: what it adds to the pages in memory, as a multiple of its operands and results.
A square of the long axis raises MemoryError.
"""

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

import cytape
from cytape.tensor.values.buffer import release_kept
from tests.resident import ROLLUP, resident_bytes
from tests.ways import watching

CLEAR = Path("/proc/self/clear_refs")  # a write to it resets the peak
STATUS = Path("/proc/self/status")
MEASURABLE = os.access(ROLLUP, os.R_OK) and os.access(CLEAR, os.W_OK)

LENGTH = 1 << 14
TALL, WIDE, STACK, SQUARES = (LENGTH, 8), (8, LENGTH), (LENGTH // 16, 16, 8), (LENGTH // 8, 8, 8)
VECTOR, SHORT, SQUARE = (LENGTH,), (8,), (8, 8)
linalg = np.linalg
MATRIX_OF_POLYFIT = (LENGTH, 4)  # an operand of its least squares


def polyfit(x, y):
    return np.polyfit(x, y, 3)


FUNCTIONS = [  # name, function, shapes of its operands
    *[("pinv", linalg.pinv, shape) for shape in [(TALL,), (WIDE,), (STACK,)]],
    ("pinv with a cutoff", lambda a: linalg.pinv(a, 0.9), (TALL,)),
    *[("lstsq", lambda a, b: linalg.lstsq(a, b)[0], shapes)
      for shapes in [(TALL, VECTOR), (WIDE, SHORT)]],
    ("lstsq of lower rank", lambda a, b: linalg.lstsq(a * np.tri(8)[3], b)[0], (TALL, VECTOR)),
    ("polyfit", polyfit, (VECTOR, VECTOR)),
    *[("qr", linalg.qr, shape) for shape in [(TALL,), (WIDE,), (STACK,)]],
    *[("svd", lambda a: linalg.svd(a, False), shape) for shape in [(TALL,), (WIDE,), (STACK,)]],
    ("svdvals", linalg.svdvals, (TALL,)),
    ("nuclear norm", lambda a: linalg.norm(a, "nuc"), (WIDE,)), ("eigh", linalg.eigh, (SQUARES,)),
    ("eig", linalg.eig, (SQUARES,)),
    ("cholesky", lambda a: linalg.cholesky(a + 100 * np.eye(8)), (SQUARES,)),
    ("solve", linalg.solve, (SQUARES, SQUARES)),
    ("solve with one matrix", linalg.solve, (SQUARE, WIDE)),
    *[(f.__name__, f, (SQUARES,)) for f in [linalg.inv, linalg.det, linalg.slogdet]],
    *[("matrix_power", lambda a, n=n: linalg.matrix_power(a, n), (SQUARES,)) for n in [5, -3]],
    ("multi_dot", lambda *arrays: linalg.multi_dot(arrays), (WIDE, TALL, WIDE)),
]


def array(shape, dtype, rng):
    x = rng.normal(size=shape).astype(dtype)
    if dtype is complex:
        x += 1j * rng.normal(size=shape)
    return x + 4 * np.eye(*shape[-2:]) if len(shape) == 3 else x


def status(name):
    """Return a number of bytes from the status of this process."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def added_peak(call):
    """Return by how many bytes a call raises the peak of the pages in memory."""
    gc.collect()
    release_kept()
    CLEAR.write_text("5")
    before = resident_bytes()
    call()
    return status("VmHWM") - before


def ratios(function, shapes, dtype):
    """Yield (kind of derivative, multiple of the bytes of its operands and results)."""
    rng = np.random.default_rng(0)
    xs = tuple([cytape.constant(array(shape, dtype, rng)) for shape in shapes])
    tangents = tuple([cytape.constant(array(shape, dtype, rng)) for shape in shapes])

    def results(*xs):
        found = function(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    cotangents = [cytape.constant(np.ones(y.shape, y.dtype)) for y in results(*xs)]

    def gradient(*xs):
        with watching(xs) as tape:
            ys = results(*xs)
        return tape.gradient(ys, list(xs), output_gradients=cotangents)

    def second(*xs):
        with watching(xs) as tape:
            found = gradient(*xs)
        return tape.gradient(found, list(xs), output_gradients=list(tangents))

    nbytes = 2 * sum(x.nbytes for x in (*xs, *cotangents))
    if function is polyfit:
        nbytes += 2 * np.zeros(MATRIX_OF_POLYFIT, dtype).nbytes
    traced = cytape.function(gradient)
    for order, kind, call in (
        (1, "vjp", lambda: gradient(*xs)), (1, "jvp", lambda: cytape.jvp(results, xs, tangents)),
        (1, "traced vjp", lambda: traced(*xs)),
        (2, "forward over reverse", lambda: cytape.jvp(gradient, xs, tangents)),
        (2, "reverse over reverse", lambda: second(*xs)),
    ):
        yield kind, added_peak(call) / (order * nbytes)


def main():
    dtype, step = complex if sys.argv[1] == "complex" else float, int(sys.argv[2])
    square = LENGTH**2 * np.dtype(dtype).itemsize
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + square // 2,) * 2)
    for name, function, shapes in FUNCTIONS[::step]:
        for kind, ratio in ratios(function, shapes, dtype):
            print(f"{ratio:.2f} {kind} of {name}, {shapes}", flush=True)


def run(dtype, step):
    """Return (multiple, what of) of derivatives of each step-th function, in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.ops.submodules.linalg_peaks", dtype, str(step)],
        check=True, text=True, stdout=subprocess.PIPE,
        # Large blocks are mapped: else glibc keeps what is free.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"})
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [(float(ratio), what) for ratio, what in rows]


if __name__ == "__main__":
    main()
