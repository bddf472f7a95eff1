"""Gradients of a graph's tensors, as ops that are added to the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cytape.errors import InvalidGradientError
from cytape.graph.differentiation.graph_sweep import Backward, StandIns
from cytape.graph.differentiation.places import Place, Places
from cytape.graph.tracing.lost_counts import warn_of_counts
from cytape.ops.adjoints.conform import cast
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.calls.late import upper
from cytape.ops.calls.symbolic import graph_for
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, building_under, current_graph
from cytape.tensor.structures import (
    flatten_structure,
    is_structure,
    leaves_of_operand,
    pack_structure,
)
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import (
    UnconnectedGradients,
    parse_unconnected,
    warn_of_dtype,
)
from cytape.tensor.variable import Variable

__all__ = ["gradients"]


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str | None = "gradients",
    colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: int | None = None, stop_gradients: Any = None,
    unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
    checkpoints: Any = None, memory_budget: float | None = None,
) -> list[Any]:
    """Add ops to a graph that compute the gradients of the sum of some of its tensors.

    Parameters
    ----------
    ys : Tensor, Variable or structure, or a list of them
        The targets: tensors of a graph, or structures of them (`IndexedSlices`, and objects of
        classes that were registered by `cytape.register_structure`).
    xs : Tensor, Variable or structure, or a list of them
        The sources: any tensors of the graph, also tensors that other sources depend on, or
        targets. Inside a function, also tensors of the graphs around it.
    grad_ys : Tensor, IndexedSlices, array_like or structure, or a list of them, optional
        The seed of each of `ys`, in its shape; ones by default, and for None.
    name : str, optional
        The scope of the new ops.
    colocate_gradients_with_ops : bool, optional
        Whether new ops get the device label of the op that they differentiate.
    gate_gradients : bool, optional
        Whether the gradients of all inputs of an op are computed before any of them is used.
    aggregation_method : int, optional
        One of those of `AggregationMethod`.
    stop_gradients : Tensor or Variable, or a list of them, optional
        Tensors that count as constants.
    unconnected_gradients : {"none", "zero"} or UnconnectedGradients, optional
        The gradient with respect to sources that `ys` do not depend on.
    checkpoints : str, list or Plan, optional
        The intermediates to keep for the backward pass: "collection", "speed", "memory" (among
        tensors of more than 1024 elements, or of
        ``cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE``), "auto", or a list. All others are
        recomputed, see `cytape.graph.checkpoint.gradients`. By default all are kept.
    memory_budget : int or float, optional
        For ``checkpoints="auto"``: an integer limits the bytes of the gradients; a float is a
        fraction of the bytes with all values kept.

    Returns
    -------
    list of Tensor, IndexedSlices, structure or None
        One per entry of `xs`, in its shape and dtype.

    Raises
    ------
    RuntimeError
        If a tensor does not belong to a graph.
    NotDifferentiableError
        If a gradient arrives at an op that has no gradient function (also a LookupError).
    InvalidGradientError
        If `grad_ys` do not fit `ys` in number or shape, or a gradient function returns a wrong
        number of gradients, or one of a wrong shape (also a ValueError).
    ValueError
        If `aggregation_method` (once there is something to aggregate) or `unconnected_gradients` is
        unknown, or a tensor belongs to another graph; or a budget is given without "auto".
    MemoryBudgetError
        If no plan is found within the budget; its ``smallest_bytes`` is the smallest one found.
    TypeError
        If one of `ys` is complex and has no seed, or a real one, or a real one has a complex seed;
        if an object is not a tensor; or if a gradient function returns other objects than
        gradients.

    See Also
    --------
    GradientTape : For tensors with values.
    cytape.graph.checkpoint.gradients : The same in less memory.

    Notes
    -----
    The gradient of a complex tensor follows TensorFlow's convention: for a holomorphic function it
    is the conjugate of the derivative.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", ())
    >>> y = x * x
    >>> dx, dy = cytape.gradients(y * y, [x, y])
    >>> [float(value) for value in cytape.graph.Session(graph).run([dx, dy], {x: 3.0})]
    [108.0, 18.0]

    They are tensors of the graph and can be differentiated again:

    >>> [second] = cytape.gradients(dx, x)
    >>> float(cytape.graph.Session(graph).run(second, {x: 3.0}))
    108.0
    """
    options = {
        "name": name, "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients, "aggregation_method": aggregation_method,
        "stop_gradients": stop_gradients, "unconnected_gradients": unconnected_gradients}
    if checkpoints is not None:
        return upper("checkpointed_gradients")(
            ys, xs, grad_ys, checkpoints, memory_budget, **options)
    if memory_budget is not None:
        raise ValueError("memory_budget needs checkpoints='auto', which chooses the tensors to "
                         "keep")
    return differentiated(ys, xs, grad_ys, **options)


def differentiated(
    ys: Any, xs: Any, grad_ys: Any = None, name: str | None = "gradients",
    colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: int | None = None, stop_gradients: Any = None,
    unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
    stand_ins: Callable[..., StandIns] | None = None,
) -> list[Any]:
    """Compute `gradients`, with stand-ins for nodes of the graph.

    Parameters
    ----------
    ys, ..., unconnected_gradients
        As for `gradients`.
    stand_ins : callable, optional
        Called with the `Places`, and the places of the targets and of the sources; returns the
        nodes that are differentiated instead of those of the graph.
    """
    unconnected = parse_unconnected(unconnected_gradients)
    ys, xs, stops = as_list(ys), as_list(xs), as_list(stop_gradients)
    grad_ys = [None] * len(ys) if grad_ys is None else as_list(grad_ys)
    if len(grad_ys) != len(ys):
        raise InvalidGradientError(
            f"grad_ys must have one entry (None means ones) for each of the {len(ys)} ys, got "
            f"{len(grad_ys)}"
        )
    flat_xs, flat_stops = flat(xs), flat(stops)
    flat_ys, flat_grad_ys = _flat_with_gradients(ys, grad_ys)
    graph = graph_of(flat_ys + flat_xs)
    with building_into(graph), building_under(graph, graph.scope_context(name or "gradients")):
        places = Places(graph)
        sources = [place_of(places, "xs", x) for x in flat_xs]
        stops = [place_of(places, "stop_gradients", x) for x in flat_stops]
        flat_ys = [_checked_target(graph, y) for y in flat_ys]
        targets = [places.place_of("ys", y) for y in flat_ys]
        seeds = [
            _checked_seed(i, y, grad_y)
            for i, (y, grad_y) in enumerate(zip(flat_ys, flat_grad_ys, strict=True))
        ]
        warn_of_counts(graph, [symbol for level, symbol in targets if not level], [
            symbol for level, symbol in sources if not level])
        backward = Backward(
            places, aggregation_method, bool(gate_gradients), bool(colocate_gradients_with_ops),
            None if stand_ins is None else stand_ins(places, targets, sources))
        found = backward.run(targets, seeds, sources, stops)
        if unconnected is UnconnectedGradients.ZERO:
            found = [
                backward.filled(source, 0) if gradient is None else gradient
                for source, gradient in zip(sources, found, strict=True)
            ]
    for x in flat_xs:
        if not x.spec.trainable:
            warn_of_dtype(x, f"the gradient of {x.name!r} is None")
    remaining = iter(found)
    return [pack_structure(x, remaining) for x in xs]


def as_list(values: Any) -> list[Any]:
    """Return one object, or a list or tuple of them, as a list; None as an empty one."""
    if values is None:
        return []
    leaves_of_operand(values)  # registers dataclasses
    return list(values) if isinstance(values, (list, tuple)) else [values]


def flat(values: Iterable[Any]) -> list[Any]:
    """Return the tensors of structures."""
    return [leaf for value in values for leaf in flatten_structure(value)]


def _flat_with_gradients(ys: list[Any], grad_ys: list[Any]) -> tuple[list[Any], list[Any]]:
    """Flatten structures among ys, and their given gradients."""
    flat_ys, flat_grad_ys = [], []
    for i, (y, grad_y) in enumerate(zip(ys, grad_ys, strict=True)):
        leaves = flatten_structure(y)
        seeds = [None] * len(leaves)
        if grad_y is not None:
            seeds = flatten_structure(grad_y) if is_structure(y) else [grad_y]
            if nest.rules_of(y) is not None:  # two TensorArrays, which may have other elements
                leaves, seeds = nest.flatten(y)[:1], nest.flatten(grad_y)[:1]
            if len(seeds) != len(leaves):
                raise InvalidGradientError(
                    f"grad_ys[{i}] consists of {len(seeds)} tensors, its y of {len(leaves)}"
                )
        flat_ys += leaves
        flat_grad_ys += seeds
    return flat_ys, flat_grad_ys


def graph_of(tensors: list[Any]) -> Any:
    """Return the graph that gradients are added to."""
    graph = graph_for(tensors) or current_graph()
    if graph is None:
        raise RuntimeError(
            "gradients() is for tensors of a graph, and got none: record the computation with "
            "cytape.GradientTape and call its method gradient, or build a cytape.Graph"
        )
    return graph


def place_of(places: Places, argument: str, x: Any) -> Place:
    """Return the place of a source or of a tensor that gradients stop at."""
    if isinstance(x, Variable):
        return places.place_of_variable(x)
    if not isinstance(x, Tensor):
        raise TypeError(f"{argument} must be tensors or variables, got {type(x).__name__}: {x!r}")
    return places.place_of(argument, x)


def _checked_target(graph: Any, y: Any) -> Tensor:
    if isinstance(y, Variable):
        y = graph.variable_value(y)
    if not isinstance(y, Tensor):
        raise TypeError(f"ys must be tensors or variables, got {type(y).__name__}: {y!r}")
    if y.dtype.kind not in "iufc":
        raise TypeError(f"ys must be numeric, {y!r} is of dtype {y.dtype}")
    return y


def _checked_seed(i: int, y: Tensor, grad_y: Any) -> Any:
    """Return the seed of one of ys, in its dtype; None for ones."""
    if grad_y is None:
        if y.dtype.kind == "c":
            raise TypeError(
                f"{y!r} is complex ({y.dtype}): it has no default gradient, so set grad_ys"
            )
        return None
    if not isinstance(grad_y, IndexedSlices):
        grad_y = convert_to_tensor(grad_y)
    if grad_y.dtype.kind not in ("c" if y.dtype.kind == "c" else "iuf"):
        wanted = "complex" if y.dtype.kind == "c" else "real or integer"
        raise TypeError(f"grad_ys[{i}] is {grad_y.dtype}, but must be {wanted}, as its y, {y!r}")
    if not may_agree(grad_y.shape, y.shape):
        raise InvalidGradientError(f"grad_ys[{i}] has shape {grad_y.shape}, its y {y.shape}")
    if isinstance(grad_y, IndexedSlices):
        values = cast(convert_to_tensor(grad_y.values), y.dtype)
        return IndexedSlices(values, convert_to_tensor(grad_y.indices), grad_y.dense_shape)
    return cast(grad_y, y.dtype)
