"""Rows about recomputation in gradients: memory against depth, and time.

``python -m bench.checkpoint_rows PATH`` draws the memory in use while the gradient of a deep
network is computed, with all intermediates kept and with checkpoints. ``--table`` prints the price
of a network that is ten times as deep, in the memory of the shallow one.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np

import cytape
from bench.peak_memory import CLEAR, peak_of_graph_gradient
from bench.report import Row
from bench.timing import Effort, Program, best_seconds
from cytape.graph.sessions.run_trace import RunTrace

WAYS = {
    "all intermediates kept": None, 'checkpoints="memory"': "memory", 'checkpoints="auto"': "auto"}


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


def convolutional_network(depth, side=16, channels=4, batch=8):
    """Return the same of convolutions, one after the other."""
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default():
        h = cytape.constant(rng.standard_normal((batch, side, side, channels)))
        weights = []
        for _ in range(depth):
            weights.append(cytape.Variable(rng.standard_normal((3, 3, channels, channels)) / 6))
            h = np.tanh(cytape.nn.conv2d(h, weights[-1], 1, "SAME"))
        return np.sum(h * h), weights


def attention_network(depth, length=768, width=128):
    """Return a network of attention layers, which keep tables of length by length."""
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default():
        h = cytape.constant(rng.standard_normal((length, width)))
        weights = []
        for _ in range(depth):
            q, k, v = (
                cytape.Variable(rng.standard_normal((width, width)) / width) for _ in range(3))
            scores = np.exp((h @ q) @ (h @ k).T)
            h = h + scores / np.sum(scores, axis=1, keepdims=True) @ (h @ v)
            weights += [q, k, v]
        return np.sum(h * h), weights


def chain(depth, size=2048):
    """Return the loss and the start of a function that is applied again and again."""
    with cytape.Graph().as_default():
        start = h = cytape.Variable(np.ones(size))
        for _ in range(depth):
            h = np.tanh(h)
        return np.sum(h), [start]


def branching_graph(depth, size=2048, reach=8):
    """Return a network of ops with random inputs among the results of the ops before."""
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default():
        start = cytape.Variable(np.ones(size))
        made = [start * 1.0]
        for _ in range(depth):
            x, y = (made[-rng.randint(1, min(reach, len(made)) + 1)] for _ in range(2))
            made.append((np.tanh(x), x * y, x - y)[rng.randint(3)])
        return np.sum(sum(made[-reach:])), [start]


OPS_PER_LAYER = {  # networks, by which planning and rewriting are timed
    chain: 1, mlp: 3, residual_network: 4, branching_graph: 1}


def gradients_of(loss, weights, checkpoints):
    """Return a session, and the gradients that it can run."""
    with loss.graph.as_default():
        gradients = cytape.gradients(loss, weights, checkpoints=checkpoints)
    return cytape.Session(loss.graph), gradients


def runs_of(loss, weights, checkpoints, n_runs=3):
    """Return the costs of the first two runs of the gradient: a plan, then an optimised one."""
    session, gradients = gradients_of(loss, weights, checkpoints)
    traces = []
    for _ in range(n_runs):
        traces.append(RunTrace())
        session.run(gradients, options=traces[-1])
    return traces


def activation_bytes(loss, weights, checkpoints):
    """Return the peak memory of a gradient, without the weights."""
    of_weights = sum(weight.spec.nbytes for weight in weights)
    return max(trace.peak_bytes for trace in runs_of(loss, weights, checkpoints)) - of_weights


def pages_of_activations(network, depth, checkpoints):
    """Return by how much a process grows at its peak, without the weights' gradients.

    With more in a batch than where bytes are counted: plans, and the graph, are part of it.
    """
    sizes = {mlp: (16, 16384)}.get(network, (16, 4, 32))
    grown, _ = peak_of_graph_gradient(network.__name__, checkpoints, depth, *sizes)
    return grown - sum(weight.spec.nbytes for weight in network(depth, *sizes)[1])


def slope(depths, sizes):
    """Return the exponent of a power law that fits best."""
    return np.polyfit(np.log(depths), np.log(sizes), 1)[0]


def checkpoint_rows(smoke):
    """Yield all rows about gradients with checkpoints."""
    depths = [16, 64] if smoke else [16, 32, 64, 128, 256, 512, 1024]
    for name, network in (
            ("an MLP", mlp), ("a residual network", residual_network),
            ("a convolutional network", convolutional_network)):
        for checkpoints in ("memory", "auto"):
            sizes = [activation_bytes(*network(depth), checkpoints) for depth in depths]
            yield Row(
                f"peak memory of activations, {depths[0]} to {depths[-1]} layers",
                f'{name}, checkpoints="{checkpoints}": grows as depth to the power of',
                slope(depths, sizes), "", at_most=None if smoke else 0.55,
                details=dict(zip(map(str, depths), map(int, sizes), strict=True)))
            if CLEAR.exists():
                sizes = [pages_of_activations(network, depth, checkpoints) for depth in depths]
                yield Row(
                    f"peak memory of activations, {depths[0]} to {depths[-1]} layers",
                    f'{name}, checkpoints="{checkpoints}", by pages of a process: grows as',
                    slope(depths, sizes), "", at_most=None if smoke else 0.55,
                    details=dict(zip(map(str, depths), sizes, strict=True)))
        yield row_of_agreement(name, network(8 if smoke else 64))
    yield from rows_of_planning((100, 200) if smoke else (1000, 4000), 1 if smoke else 3)
    yield from rows_of_rewriting((100, 200) if smoke else (10_000, 100_000), 1 if smoke else 3)
    effort = Effort(1 if smoke else 5, 0.0 if smoke else 0.5)
    yield from rows_of_time(4 if smoke else 64, effort)


def row_of_agreement(name, network):
    """Compare the cost of each run with the prediction of the plan."""
    plan = cytape.graph.checkpoint.plan(*network)
    peaks = [trace.peak_bytes for trace in runs_of(*network, "auto")]
    off = max(abs(peak - plan.peak_bytes) for peak in peaks) / plan.peak_bytes
    return Row("plans", f"{name}: peak of any of three runs, off the planned by", 100 * off, "%",
               at_most=2)


def least_seconds(n_times, prepared, timed):
    """Return the least CPU time of calls; each takes a fresh argument, which is not timed."""
    found = []
    for _ in range(n_times):
        arguments = prepared()
        start = time.process_time()
        timed(*arguments)
        found.append(time.process_time() - start)
    return min(found)


def rows_of_planning(n_ops, n_times):
    for network, per_layer in OPS_PER_LAYER.items():
        for n in n_ops:
            seconds = least_seconds(
                n_times, partial(network, n // per_layer), cytape.graph.checkpoint.plan)
            yield Row("plans", f"{network.__name__} of {n:,} ops: planning, by 1,000 ops",
                      1000 * seconds / n, "s", at_most=1)


def rows_of_rewriting(n_ops, n_times):
    """Time how gradients are made that keep about the root of as many tensors as there are."""
    group = "gradients with checkpoints, made"
    for network, per_layer in OPS_PER_LAYER.items():
        per_op = []
        for n in n_ops:
            seconds = least_seconds(n_times, partial(network, n // per_layer), rewritten)
            per_op.append(seconds / n)
            yield Row(group, f"{network.__name__} of {n:,} ops: an op", 1e6 * per_op[-1], "us",
                      at_most=50)
        yield Row(group, f"{network.__name__} of {n_ops[1]:,} ops: an op, of one of {n_ops[0]:,}",
                  per_op[1] / per_op[0], at_most=1.5)


def rewritten(loss, weights):
    """Add gradients to a graph."""
    graph = loss.graph
    kept = range(0, graph.n_symbols, max(int(graph.n_symbols**0.5), 1))
    with graph.as_default():
        cytape.gradients(loss, weights, checkpoints=[graph.tensor_at(symbol) for symbol in kept])


def seconds_of(loss, weights, ways, effort):
    """Return the times of gradients, by their checkpoints."""
    programs = []
    for checkpoints in ways:
        session, gradients = gradients_of(loss, weights, checkpoints)
        session.run(gradients), session.run(gradients)  # the second run makes the fast plan
        programs.append(Program(lambda _, g=gradients, s=session: s.run(g)))
    return best_seconds(programs, effort)


def rows_of_time(depth, effort):
    """Compare the times of gradients of a network in which matrix products take the time."""
    ways = (None, "memory", "auto")
    plain, *others = seconds_of(*mlp(depth, width=256, batch=256), ways, effort)
    for checkpoints, seconds in zip(ways[1:], others, strict=True):
        yield Row(f"gradient of an MLP, {depth} layers 256x256, batch 256",
                  f'time with checkpoints="{checkpoints}", over that with all kept',
                  seconds / plain, at_most=1.33,
                  details={"baseline_s": plain, "cytape_s": seconds})


def print_table_of_depths(depth, length, effort):
    """Print, as Markdown, the price of a network ten times as deep, in the same memory."""
    room = activation_bytes(*attention_network(depth, length), None)
    loss, weights = attention_network(10 * depth, length)
    plan = cytape.graph.checkpoint.plan(
        loss, weights, memory_budget=room + sum(weight.spec.nbytes for weight in weights))
    plain, again = seconds_of(loss, weights, (None, plan), effort)
    print("| layers | gradient | peak of activations | time |\n|---:|---|---:|---:|")
    for n_layers, way, peak, time_taken in (
            (depth, "all kept", room, ""),
            (10 * depth, "all kept", activation_bytes(loss, weights, None), "1"),
            (10 * depth, "planned within the first's peak", activation_bytes(loss, weights, plan),
             f"{again / plain:.2f}")):
        print(f"| {n_layers} | {way} | {peak / 2**20:.0f} MiB | {time_taken} |")


def draw(path, depth):
    """Save the picture of memory over time as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for (label, checkpoints), line in zip(WAYS.items(), ("-", "-", "--"), strict=True):
        *_, trace = runs_of(*mlp(depth, batch=4096), checkpoints)
        steps = np.arange(len(trace.events)) / len(trace.events)
        live = [event.live_bytes / 2**20 for event in trace.events]
        axes.step(
            steps, live, line, where="post", label=f"{label}: {max(live):.0f} MiB")
    axes.set_title(f"Gradient of a network of {depth} layers")
    axes.set_xlabel("ops that have run, as a share of all")
    axes.set_ylabel("values in memory (MiB)")
    axes.set_ylim(bottom=0)
    axes.legend()
    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure.savefig(path, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoint_rows")
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print_table_of_depths(4, 768, Effort(5, 0.2))
    if arguments.path:
        draw(arguments.path, arguments.depth)


if __name__ == "__main__":
    main()
