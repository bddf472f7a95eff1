"""One long chain of ops in a process of its own: ``python -m bench.long_chain WHAT N_OPS``."""

import sys
from pathlib import Path

import numpy as np

import cytape

STATM = Path("/proc/self/statm")  # Linux tells there how many pages of a process are in memory


def record(n_ops):
    x = y = cytape.constant(np.ones(2))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        for _ in range(n_ops):
            y = y * 1.0
    return tape, x, y


def differentiate(n_ops):
    tape, x, y = record(n_ops)
    np.testing.assert_array_equal(tape.gradient(y, x), np.ones(2))


def drop_tape(n_ops):
    tape, x, y = record(n_ops)
    del tape


def drop_tensor(n_ops):
    tape, x, y = record(n_ops)
    del y
    assert tape.gradient(x, x) is not None


def print_bookkeeping(n_ops):
    """Print the bytes that a bare tape says it takes for a chain, and those it does take."""
    from bench.build_driver import load_driver

    host = load_driver().CHost()
    tape = host.new_tape()
    before = resident_bytes()
    host.record(tape, n_ops)
    print(tape.nbytes, *(after - b for b, after in zip(before, resident_bytes(), strict=True)))


def resident_bytes():
    """Return a list with the size of this process in memory, or an empty one if it is unknown."""
    if not STATM.exists():
        return []
    import resource

    return [int(STATM.read_text().split()[1]) * resource.getpagesize()]


if __name__ == "__main__":
    WHAT = {
        "differentiated": differentiate,
        "tape-dropped": drop_tape,
        "tensor-dropped": drop_tensor,
        "bookkeeping": print_bookkeeping,
    }
    WHAT[sys.argv[1]](int(sys.argv[2]))
