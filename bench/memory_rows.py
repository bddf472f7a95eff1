"""Rows about memory: very long chains of ops, and memory that very many tapes leave in use."""

import gc
import subprocess
import sys

import cytape
from bench.peak_memory import peak_ratio
from bench.report import Row

MAX_BYTES_PER_OP = 150
MAX_LIVE_OBJECTS = 1.0001  # a handful of blocks come and go with Python's own caches


def memory_rows(smoke):
    """Yield all rows about memory."""
    yield from rows_of_long_chains(30_000 if smoke else 1_000_000)
    yield row_of_many_tapes(100 if smoke else 100_000)
    yield row_of_a_deep_network(50 if smoke else 200)


def rows_of_long_chains(n_ops):
    """Run long chains in processes of their own: one that crashes is a failed row."""
    group = f"a chain of {n_ops:,} ops"
    runs = {
        name: subprocess.run(
            [sys.executable, "-m", "bench.long_chain", name, str(n_ops)],
            capture_output=True, text=True)
        for name in ("differentiated", "tape-dropped", "tensor-dropped", "bookkeeping")
    }
    survivors = [name for name, run in runs.items() if run.returncode == 0]
    details = {name: run.stderr[-500:] for name, run in runs.items() if run.returncode != 0}
    yield Row(group, "recorded and differentiated, or dropped: runs that end well",
              len(survivors) / len(runs), at_least=1, details=details)
    if "bookkeeping" in survivors:
        n_bytes, *resident = map(int, runs["bookkeeping"].stdout.split())
        yield Row(group, "bookkeeping per binary op, by tape.nbytes", n_bytes / n_ops, "bytes",
                  at_most=MAX_BYTES_PER_OP)
        for growth in resident:
            yield Row(group, "bookkeeping per binary op, by resident memory", growth / n_ops,
                      "bytes", at_most=MAX_BYTES_PER_OP)


def row_of_many_tapes(n_tapes):
    x = cytape.constant([1.0, 2.0])

    def use_a_tape():
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = x * x + 1.0
        return tape.gradient(y, x)

    for _ in range(100):  # fill caches and free lists
        use_a_tape()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(n_tapes):
        use_a_tape()
    gc.collect()
    after = sys.getallocatedblocks()
    return Row(f"after {n_tapes:,} tapes", "live objects, as a multiple of those before",
               after / before, at_most=MAX_LIVE_OBJECTS, details={"before": before, "after": after})


def row_of_a_deep_network(layers):
    return Row(f"gradient of an MLP, {layers} layers 256x256, batch 256",
               "peak memory, over weights, gradients and activations",
               peak_ratio("cytape", layers, 256, 256), at_most=1.05)
