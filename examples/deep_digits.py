"""Train a network of 200 layers in less memory than its gradient takes, on handwritten digits.

Run it with ``make demo-memory``, on Linux. The process limits its own memory, tries the plain
gradient, which does not fit, and trains with a gradient that keeps some activations and computes
the others again.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # threads would take memory of their own; NumPy reads this once

import argparse
import contextlib
import resource
import sys
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from examples.digits import load_digits

ROOM = 64 << 20  # bytes that the values of a step may take
SPARE = 64 << 20  # bytes for all else: copies of gradients, what products need, the interpreter
BATCH = 1024
STEPS = 12


def network(depth, width=64, seed=0):
    """Return the inputs, the loss, and the variables of a residual network, in a graph of its own.

    Parameters
    ----------
    depth, width : int
    seed : int, optional

    Returns
    -------
    inputs : tuple of Tensor
        Images and labels.
    loss : Tensor
    parameters : list of Variable
    """
    rng = np.random.default_rng(seed)
    with cytape.Graph().as_default():
        images = cytape.placeholder("float64", (BATCH, width))
        labels = cytape.placeholder("int64", (BATCH,))
        parameters = [
            cytape.Variable(rng.normal(0, width**-0.5, (width, width))) for _ in range(depth)]
        h = images
        for weights in parameters:
            h = h + cnp.tanh(h @ weights) / depth**0.5
        parameters.append(cytape.Variable(np.zeros((width, 10))))
        losses = cytape.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=h @ parameters[-1])
        return (images, labels), cnp.mean(losses), parameters


@contextlib.contextmanager
def room_for(n_bytes):
    """Let the process take so many bytes more than it has now, and no others."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def train(run, parameters, steps, learning_rate=0.1, momentum=0.9):
    """Yield the loss before each step; `run` returns it and the gradients."""
    speeds = [np.zeros(parameter.shape) for parameter in parameters]
    for _ in range(steps):
        loss, *gradients = run()
        yield float(loss)
        for parameter, speed, gradient in zip(parameters, speeds, gradients, strict=True):
            speed *= momentum
            speed += gradient
            parameter.assign_sub(learning_rate * speed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    images, labels, *_ = load_digits()
    inputs, loss, parameters = network(arguments.depth)
    feeds = dict(zip(inputs, (images[:BATCH], labels[:BATCH]), strict=True))
    plan = cytape.graph.checkpoint.plan(loss, parameters, memory_budget=ROOM)
    with loss.graph.as_default():
        plain = cytape.gradients(loss, parameters)
        gradients = cytape.graph.checkpoint.gradients(
            loss, parameters, checkpoints=plan.checkpoints)
    session = cytape.Session(loss.graph)

    print(f"{arguments.depth} layers, and room for {ROOM + SPARE >> 20} MiB")
    with room_for(ROOM + SPARE):
        try:
            session.run([loss, *plain], feeds)
            sys.exit("the plain gradient was expected not to fit")
        except MemoryError:
            print(f"all activations kept: {plan.plain_peak_bytes >> 20} MiB do not fit")
        losses = list(train(
            lambda: session.run([loss, *gradients], feeds), parameters, arguments.steps))
    print(f"{len(plan.checkpoints)} of them kept, others computed again: "
          f"{plan.peak_bytes >> 20} MiB fit, for {plan.seconds / plan.plain_seconds - 1:.0%} more "
          "time")
    print(f"loss {losses[0]:.3f} before, {losses[-1]:.3f} after {arguments.steps} steps")
    if not losses[-1] < losses[0] / 2:
        sys.exit("the loss was expected to halve")


if __name__ == "__main__":
    main()
