"""Pictures of a tape, a graph and a profile: those of docs/how_to/see_inside.md.

They are written to examples/output; ``python examples/see_inside.py docs/how_to`` writes those of
the page again.
"""

import os
import sys
from pathlib import Path

import numpy as np

import cytape

OUTPUT = Path(__file__).parent / "output"


def fit():
    """Record the loss of a small fit; return the tape and its tensors by name."""
    x, y = cytape.constant(np.linspace(0.0, 1.0, 50)), cytape.constant(np.ones(50))
    slope, offset = cytape.Variable(1.0, name="slope"), cytape.Variable(0.0, name="offset")
    with cytape.GradientTape() as tape:
        tape.watch(x)
        error = np.tanh(slope * x + offset) - y
        loss = (error**2).mean()
    return tape, {"x": x, "y": y, "error": error, "loss": loss}


def network():
    """Build a graph with scopes: two layers, and the loss."""
    graph = cytape.Graph()
    with graph.as_default():
        values = cytape.placeholder("float64", (None, 4), name="x")
        for i, width in enumerate((4, 3)):
            with cytape.name_scope(f"layer{i}"):
                weights = cytape.get_variable(f"w{i}", initializer=np.ones((width, 3)))
                values = np.tanh(values @ weights + 1.0)
        cytape.identity((values**2).sum(), name="loss")
    return graph


def profiled():
    """Return the profile of a gradient of a longer program."""
    x = cytape.Variable(np.linspace(0.0, 1.0, 100_000))
    with cytape.profile() as p:
        with cytape.GradientTape() as tape:
            y = x
            for _ in range(20):
                y = np.sin(y) * x
            loss = y.sum()
        tape.gradient(loss, x)
    return p


def main(folder=OUTPUT):
    folder.mkdir(exist_ok=True)
    os.environ["PATH"] = ""  # without Graphviz, so that all machines draw the same
    tape, names = fit()
    tape.draw(names).save(folder / "see_inside_tape.svg")
    network().draw().save(folder / "see_inside_graph.svg")
    network().draw(depth=0).save(folder / "see_inside_scopes.svg")
    p = profiled()
    p.draw().save(folder / "see_inside_profile.svg")
    print(p)
    print(f"pictures: {folder}/see_inside_*.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
