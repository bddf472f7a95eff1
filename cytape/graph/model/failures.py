"""Notes on errors of operations: the operation, its inputs, the line that built it."""

from __future__ import annotations

from typing import Any


def where_built(location: tuple[str, int, str] | None) -> str:
    """Return a node's location as a part of a sentence, "" if it is unknown.

    Parameters
    ----------
    location : (str, int, str) or None
        As `Operation.location`.

    Examples
    --------
    >>> where_built(("model.py", 12, "loss"))
    ', built in loss (model.py, line 12),'
    """
    if location is None:
        return ""
    file, line, function = location
    return f", built in {function} ({file}, line {line}),"


def note_operation(error: BaseException, graph: Any, node: int) -> None:
    """Add a note to an error: the operation that raised it, its inputs, its place in the source."""
    outputs = graph.outputs_of(node)
    what = graph.describe(outputs[0]) if outputs else f"node {node}"
    specs = [graph.spec_of(symbol) for symbol in graph.inputs_of(node)]
    inputs = ", ".join(f"{spec.dtype} {spec.shape}" for spec in specs) or "no inputs"
    location = graph.location_of(node)
    where = "" if location is None else ", built at {}:{} in {}".format(*location)
    error.add_note(f"while a graph computed {what}, op {graph.ops[node].name} of {inputs}{where}")
