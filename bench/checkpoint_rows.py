"""Rows about gradients that compute intermediates again: memory against depth, and time.

``python -m bench.checkpoint_rows PATH`` draws the memory that is in use while the gradient of a
deep network is computed, with all intermediates kept and with checkpoints.
"""

import argparse
from pathlib import Path

import numpy as np

import cytape
from bench.report import Row
from bench.timing import Effort, Program, best_seconds
from cytape.graph.run.trace_events import RunTrace

WAYS = {"all intermediates kept": None, 'checkpoints="memory"': "memory"}


def mlp(depth, width=16, batch=2048):
    """Return the loss and the weights of a deep network, in a graph of its own."""
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default():
        h = cytape.constant(rng.standard_normal((batch, width)))
        weights = []
        for _ in range(depth):
            weights.append(cytape.Variable(rng.standard_normal((width, width)) / width**0.5))
            h = np.tanh(h @ weights[-1])
        return np.sum(h * h), weights


def residual_network(depth, side=16, channels=4, batch=8):
    """Return the same of convolutions whose results are added to their inputs."""
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default():
        h = cytape.constant(rng.standard_normal((batch, side, side, channels)))
        weights = []
        for _ in range(depth):
            weights.append(cytape.Variable(rng.standard_normal((3, 3, channels, channels)) / depth))
            h = h + np.tanh(cytape.nn.conv2d(h, weights[-1], 1, "SAME"))
        return np.sum(h * h), weights


def run_of(loss, weights, checkpoints):
    """Return what a run of the gradient took: the first, in which no ops are fused."""
    with loss.graph.as_default():
        gradients = cytape.gradients(loss, weights, checkpoints=checkpoints)
    trace = RunTrace()
    cytape.Session(loss.graph).run(gradients, options=trace)
    return trace


def activation_bytes(loss, weights, checkpoints):
    """Return the peak memory of a gradient, without the weights."""
    of_weights = sum(weight.spec.nbytes for weight in weights)
    return run_of(loss, weights, checkpoints).peak_bytes - of_weights


def slope(depths, sizes):
    """Return the exponent of a power law that fits best."""
    return np.polyfit(np.log(depths), np.log(sizes), 1)[0]


def checkpoint_rows(smoke):
    """Yield all rows about gradients with checkpoints."""
    depths = [16, 64] if smoke else [16, 32, 64, 128, 256, 512, 1024]
    for name, network in (("an MLP", mlp), ("a residual network", residual_network)):
        sizes = [activation_bytes(*network(depth), "memory") for depth in depths]
        yield Row(
            f"peak memory of activations, {depths[0]} to {depths[-1]} layers",
            f'{name}, checkpoints="memory": grows as depth to the power of',
            slope(depths, sizes), "", at_most=None if smoke else 0.55,
            details=dict(zip(map(str, depths), map(int, sizes), strict=True)))
    yield row_of_time(4 if smoke else 64, Effort(1 if smoke else 5, 0.0 if smoke else 0.5))


def row_of_time(depth, effort):
    """Compare the times of gradients of a network in which matrix products take the time."""
    loss, weights = mlp(depth, width=256, batch=256)
    programs = []
    for checkpoints in (None, "memory"):
        with loss.graph.as_default():
            gradients = cytape.gradients(loss, weights, checkpoints=checkpoints)
        session = cytape.Session(loss.graph)
        session.run(gradients), session.run(gradients)  # the second run makes the fast plan
        programs.append(Program(lambda _, g=gradients, s=session: s.run(g)))
    plain, again = best_seconds(programs, effort)
    return Row(f"gradient of an MLP, {depth} layers 256x256, batch 256",
               'time with checkpoints="memory", over that with all kept', again / plain,
               at_most=1.33, details={"baseline_s": plain, "cytape_s": again})


def draw(path, depth):
    """Save the picture of memory over time as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for label, checkpoints in WAYS.items():
        trace = run_of(*mlp(depth, batch=4096), checkpoints)
        steps = np.arange(len(trace.events)) / len(trace.events)
        live = [event.live_bytes / 2**20 for event in trace.events]
        axes.step(steps, live, where="post", label=f"{label}: {max(live):.0f} MiB")
    axes.set_title(f"Gradient of a network of {depth} layers")
    axes.set_xlabel("ops that have run, as a share of all")
    axes.set_ylabel("values in memory (MiB)")
    axes.set_ylim(bottom=0)
    axes.legend()
    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure.savefig(path, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoint_rows")
    parser.add_argument("path", type=Path)
    parser.add_argument("--depth", type=int, default=100)
    arguments = parser.parse_args()
    draw(arguments.path, arguments.depth)


if __name__ == "__main__":
    main()
