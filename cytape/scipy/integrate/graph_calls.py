"""Calls of eager functions that graphs make when they run."""

from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.custom.bound_rule import bound, noting, restored
from cytape.autodiff.custom.eager_derivatives import EagerCall
from cytape.autodiff.wrapped_calls import copied, own_leaf
from cytape.errors import DetachedError
from cytape.ops.calls.operands import is_tensor
from cytape.ops.python.python_ops import python_call_op
from cytape.tensor import nest
from cytape.tensor.recording.state import building_into


def reads_others(name: str, error: Exception) -> DetachedError:
    """Return an error for a tensor that a user's function reads from its closure."""
    return DetachedError(
        f"{str(error).partition(chr(10))[0]}\n{name}: a function reads a tensor that is not among "
        "its arguments: pass the tensor in `args`, as args=(p,)")


def call_in_graph(
    graph: Any, name: str, function: Callable, users: Sequence, arguments: tuple, specs: Sequence,
) -> list:
    """Add a call of a function to a graph; return its results, of the given specs.

    The function is called with the user's functions `users`, as they are now, and `arguments`, with
    eager tensors in place of those of the graph.
    """
    leaves = nest.flatten(arguments)
    moving = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
    inputs = [own_leaf(graph, leaves[i]) for i in moving]
    leaves = [None if is_tensor(leaf) else copied(leaf) for leaf in leaves]
    arguments = nest.pack_sequence_as(arguments, leaves)  # keeps no tensors of the graph
    rules = [bound(f"a function of {name}", f) if callable(f) else f for f in users]

    def run(*tensors: Any) -> Any:
        filled = list(leaves)
        for i, x in zip(moving, tensors, strict=True):
            filled[i] = x
        return noting(
            rules, function, [*map(restored, rules)], *nest.pack_sequence_as(arguments, filled))

    with building_into(graph):
        return python_call_op(*inputs, call=EagerCall(name, run, specs))
