"""Listings of graphs: one line per operation, in the order in which they run.

Numbers appear as operands and have no line of their own, unless the user named them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cytape.ops.calls.dispatch import Lowering
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

WIDTHS = (32, 64)  # largest widths of aligned columns
LONGEST = 40  # characters of an attribute
MOST = 6  # elements of an array that is written out


def listing(graph: Any) -> str:
    """Return a graph as text."""
    rows: list[tuple[str, ...]] = []
    present = ""
    for node in range(graph.n_nodes):
        if is_number(graph, node):
            continue
        path, slash, name = graph.name_of(node).rpartition("/")
        indent = "  " * (path.count("/") + 1) if slash else ""
        if path != present:
            rows.extend((heading,) for heading in _headings(present, path))
            present = path
        rows.append((indent + name, "= " + call_text(graph, node), _results(graph, node)))
        if notes := _notes(graph, node):
            rows[-1] += (notes,)
    widths = [
        min(limit, max((len(row[i]) for row in rows if len(row) > 1), default=0))
        for i, limit in enumerate(WIDTHS)
    ]
    lines = [
        " ".join([text.ljust(width) for text, width in zip(row, widths, strict=False)] + [*row[2:]])
        for row in rows
    ]
    return "\n".join([repr(graph)[1:-1], *[line.rstrip() for line in lines]])


def _headings(present: str, path: str) -> Iterator[str]:
    """Return the headings of a scope: the parts of its name not shared with the scope before."""
    old, new = (name.split("/") if name else [] for name in (present, path))
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    if shared == len(new) and new:
        shared -= 1  # back in a scope that was not left as a whole: name it again
    for depth in range(shared, len(new)):
        yield "  " * depth + new[depth] + "/"


def is_number(graph: Any, node: int) -> bool:
    """Return whether a node is an unnamed number that is listed as an operand only."""
    if graph.ops[node].lowering != Lowering.CONSTANT or graph.was_named(node):
        return False
    [symbol] = graph.outputs_of(node)
    return graph.spec_of(symbol).shape == () and bool(graph.consumers_of(symbol))


def call_text(graph: Any, node: int) -> str:
    """Return an op call as an expression, without attributes that are None or False."""
    op = graph.ops[node]
    if op.lowering == Lowering.CONSTANT:
        return short(graph.attrs[node]["value"])
    arguments = [operand_text(graph, symbol) for symbol in graph.inputs_of(node)]
    if op.lowering != Lowering.UNFED:
        arguments += [
            f"{name}={short(value)}"
            for name, value in graph.attrs[node].items()
            if value is not None and value is not False
        ]
    return f"{op.name}({', '.join(arguments)})"


def operand_text(graph: Any, symbol: int) -> str:
    """Return the text of a symbol as an operand."""
    node = graph.node_of(symbol)
    if is_number(graph, node):
        return short(graph.attrs[node]["value"])
    if len(graph.outputs_of(node)) == 1:
        return graph.name_of(node)
    return graph.tensor_name_of(symbol)


def spec_text(graph: Any, symbol: int) -> str:
    """Return dtype and shape of a symbol."""
    spec = graph.spec_of(symbol)
    return f"{spec.dtype} {'?' if spec.shape is None else tuple(spec.shape)}"


def _results(graph: Any, node: int) -> str:
    return "-> " + (", ".join(spec_text(graph, each) for each in graph.outputs_of(node)) or "()")


def _notes(graph: Any, node: int) -> str:
    operation = graph.operation_at(node)
    notes = []
    if operation.control_inputs:
        notes.append("after " + ", ".join(other.name for other in operation.control_inputs))
    if operation.device:
        notes.append(f"on {operation.device}")
    return f"[{'; '.join(notes)}]" if notes else ""


def short(value: Any) -> str:
    """Return a text of a few words for an attribute.

    Examples
    --------
    >>> import numpy as np
    >>> short((slice(1, None), None, Ellipsis)), short(np.zeros((3, 4))), short(np.dtype("int32"))
    ('(1:, None, ...)', '<float64 (3, 4)>', 'int32')
    """
    if isinstance(value, Variable):
        return value.name
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        if value.size > MOST:
            return f"<{value.dtype} {value.shape}>"
        return " ".join(np.array2string(value, separator=", ").split())
    if isinstance(value, slice):
        parts = ["" if part is None else short(part) for part in (value.start, value.stop)]
        return ":".join(parts if value.step is None else [*parts, short(value.step)])
    if isinstance(value, tuple) and type(value) is tuple:
        items = ", ".join(map(short, value))
        text = f"({items},)" if len(value) == 1 else f"({items})"
    elif value is Ellipsis:
        text = "..."
    elif isinstance(value, np.dtype):
        text = str(value)
    elif callable(value):
        text = getattr(value, "__name__", type(value).__name__)
    else:
        text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
