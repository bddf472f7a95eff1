"""Peak memory of gradients of a deep network or a long loop, in a process of its own.

``python -m bench.peak_memory LIBRARY LAYERS WIDTH BATCH`` prints by how much the gradient made the
process grow, as a multiple of the bytes of weights, their gradients and activations together.
"""

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")  # Linux's; writing to it resets the peak


def cytape_gradient(weights, batch):
    import cytape

    weights, x = [cytape.constant(w) for w in weights], cytape.constant(batch)
    peak = peak_bytes()
    with cytape.GradientTape() as tape:
        tape.watch(weights)
        for w in weights:
            x = cytape.numpy.tanh(x @ w)
        loss = cytape.numpy.sum(x * x)
    del x
    return peak, tape.gradient(loss, weights)


def torch_gradient(weights, batch):
    import torch

    weights = [torch.tensor(w, requires_grad=True) for w in weights]
    x = torch.tensor(batch)
    peak = peak_bytes()
    for w in weights:
        x = torch.tanh(x @ w)
    loss = torch.sum(x * x)
    del x
    return peak, torch.autograd.grad(loss, weights)


GRADIENTS = {"cytape": cytape_gradient, "PyTorch": torch_gradient}


def peak_bytes():
    if STATUS.exists():  # on Linux getrusage would begin with the peak of the parent process
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_ratio(library, layers, width, batch):
    """Measure in a process of its own, with one thread; the weights are part of the growth."""
    run = subprocess.run(
        [sys.executable, "-m", "bench.peak_memory", library, str(layers), str(width), str(batch)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True)
    return float(run.stdout)


def peak_of_graph_gradient(network, checkpoints, *arguments):
    """Return the memory of a gradient in a process of its own: resident bytes, and counted ones.

    `network` is the name of one in `bench.checkpoint_rows`, which is called with the arguments.
    """
    program = f"from bench import peak_memory as m; m.print_growth{network, checkpoints, arguments}"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        # Large blocks are mapped: otherwise glibc keeps freed ones.
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                          "MALLOC_MMAP_THRESHOLD_": "131072"})
    return tuple(map(int, run.stdout.split()))


def print_growth(network, checkpoints, arguments):
    """Print the growth of the pages in memory in runs, and the executor's count."""
    from bench import checkpoint_rows

    loss, weights = getattr(checkpoint_rows, network)(*arguments)
    gradients_of = checkpoint_rows.gradients_of
    session, gradients = gradients_of(loss, weights, checkpoints)
    small = gradients_of(*getattr(checkpoint_rows, network)(2), checkpoints=None)
    small[0].run(small[1])  # the memory that Python and BLAS need once
    CLEAR.write_text("5")  # resets the peak to the present memory
    before = peak_bytes()
    for _ in range(3):  # the first makes a plan, the second a better one; a plan keeps its memory
        session.run(gradients)
    grown, trace = peak_bytes() - before, checkpoint_rows.RunTrace()
    session.run(gradients, options=trace)
    print(grown, trace.peak_bytes)


def peak_of_loop(n_steps, checkpoints):
    """Return the bytes by which a process grows that computes the gradient of a loop."""
    program = f"from bench import peak_memory as m; print(m.growth({n_steps}, {checkpoints!r}))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(run.stdout)


def growth(n_steps, checkpoints):
    import cytape
    import cytape.numpy as cnp

    @cytape.function
    @cytape.grad
    def gradient(x, n):
        _, y = cytape.while_loop(
            lambda i, _: i < n, lambda i, y: (i + 1, cnp.tanh(y * 0.9 + 0.1) * 1.1),
            (cytape.constant(0), x), checkpoints=checkpoints)
        return cnp.sum(y)

    x = np.linspace(0.1, 1.0, 8)
    for _ in range(2):  # traced, and made a plan
        gradient(x, np.array(10))
    before = peak_bytes()
    gradient(x, np.array(n_steps))
    return peak_bytes() - before


def main(library, layers, width, batch):
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, width**-0.5, (width, width)) for _ in range(layers)]
    x = rng.normal(size=(batch, width))
    n_weights = sum(w.nbytes for w in weights)
    before, gradients = GRADIENTS[library](weights, x)
    assert len(gradients) == layers
    # The library holds weights of its own; the peak before the gradient has them in it.
    print((peak_bytes() - before + n_weights) / (2 * n_weights + (layers + 1) * x.nbytes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.peak_memory")
    parser.add_argument("library", choices=GRADIENTS)
    for size in "layers", "width", "batch":
        parser.add_argument(size, type=int)
    main(**vars(parser.parse_args()))
