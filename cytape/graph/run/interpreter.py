"""An interpreter of graphs in plain Python, op by op: the reference that plans are tested with.

Bodies of branches and loops run by plans here, too; tests compare these with eager code.
"""

import numpy as np

from cytape.graph.model.failures import note_operation


def run(graph, fetches, feeds, keep=()):
    """Compute symbols of a graph.

    Parameters
    ----------
    graph : SymbolicGraph
    fetches : sequence of int
        Symbols.
    feeds : dict of int to ndarray
        Values for symbols.
    keep : sequence of int
        Nodes that are to run, too, for what they do.

    Returns
    -------
    list of ndarray
    """
    values = dict(feeds)
    for node in needed_nodes(graph, fetches, feeds, keep):
        inputs = [values[symbol] for symbol in graph.inputs_of(node)]
        try:
            results = graph.ops[node].forward(*inputs, **graph.attrs[node])
        except Exception as error:
            note_operation(error, graph, node)
            raise
        outputs = graph.outputs_of(node)
        if not isinstance(results, (tuple, list)):
            results = [results]
        for symbol, result in zip(outputs, results, strict=True):
            values.setdefault(symbol, np.asarray(result))
    return [values[symbol] for symbol in fetches]


def needed_nodes(graph, fetches, feeds, keep=(), waits=True):
    """List the nodes that run, in order.

    Parameters
    ----------
    graph : SymbolicGraph
    fetches : sequence of int
        Symbols.
    feeds : container of int
        Symbols whose values are given. A node all of whose outputs are given does not run, also if
        others wait for it.
    keep : sequence of int
        Nodes.
    waits : bool, optional
        Whether what others only wait for runs, too.

    Returns
    -------
    list of int
    """
    needed = set()
    stack = [graph.node_of(symbol) for symbol in fetches if symbol not in feeds]
    stack += keep
    waits = waits and graph.has_control_inputs
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        if feeds and (outputs := graph.outputs_of(node)) and all(
                map(feeds.__contains__, outputs)):
            continue
        needed.add(node)
        stack += [graph.node_of(symbol) for symbol in graph.inputs_of(node) if symbol not in feeds]
        if waits:
            stack += graph.control_inputs_of(node)
    return sorted(needed)
