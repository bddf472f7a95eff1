"""Aggregation: sums of the gradients of one tensor, as ops of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cytape.ops.adjoints.identity_groups import add_n_op
from cytape.ops.elementwise import add
from cytape.ops.sparse_sums import aggregate_indexed_slices
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.tensor import Tensor

if TYPE_CHECKING:
    from cytape.graph.model.graph import Graph

__all__ = ["AggregationMethod"]


class AggregationMethod:
    """Method by which gradients of one tensor are summed.

    Attributes
    ----------
    ADD_N, DEFAULT : int
        All in one op, after the last has been computed; runs add arrays of 4 MiB and more as below.
        Gradients on different devices are summed per device first, then level by level of the
        device labels.
    EXPERIMENTAL_TREE, EXPERIMENTAL_ACCUMULATE_N : int
        In pairs, each gradient as soon as it has been computed, so that at most two are kept.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", ())
    >>> y = x * x * x
    >>> [dx] = cytape.gradients(
    ...     y, x, aggregation_method=cytape.AggregationMethod.EXPERIMENTAL_TREE)
    >>> float(cytape.graph.Session(graph).run(dx, {x: 2.0}))
    12.0
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


METHODS = (
    AggregationMethod.ADD_N,
    AggregationMethod.EXPERIMENTAL_TREE,
    AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
)


def checked_method(method: Any) -> int:
    """Return an aggregation method, or raise for an unknown one."""
    if method is None:
        return AggregationMethod.DEFAULT
    if method not in METHODS:
        raise ValueError(
            f"unknown aggregation_method {method!r}: it must be one of those of "
            f"cytape.AggregationMethod, {METHODS}"
        )
    return method


def device_of(graph: Graph, node: int) -> str:
    """Return the device label of a node."""
    return graph.contexts[graph.context_of(node)].device


def add_pair(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of two gradients of one tensor."""
    if one.spec is other.spec and one.spec.known:
        return add(one, other)
    return add_n_op(one, other)  # without a check for broadcasting


def add_all(graph: Graph, terms: list[Tensor], on_device: Callable[[str], Any]) -> Tensor:
    """Return the sum of at least two gradients of one tensor.

    Parameters
    ----------
    graph : Graph
    terms : list of Tensor
    on_device : callable
        Called with a device label; returns a context manager within which ops get it.
    """
    devices = [device_of(graph, graph.node_of(graph.symbol_of(term))) for term in terms]
    if devices.count(devices[0]) == len(devices):
        with on_device(devices[0]):
            return _add(terms)

    def add_group(members: list[tuple[Tensor, str]]) -> tuple[Tensor, str]:
        device = members[0][1]
        with on_device(device):
            return _add([tensor for tensor, _ in members]), device

    groups: dict[tuple[str, ...], list[tuple[Tensor, str]]] = {}
    for term, device in zip(terms, devices, strict=True):
        levels = tuple(filter(None, device.split("/")))  # the largest unit first
        groups.setdefault(levels, []).append((term, device))
    sums = {levels: add_group(members) for levels, members in groups.items()}
    depth = max(map(len, sums))
    while len(sums) > 1:
        depth -= 1
        nearby: dict[tuple[str, ...], list[tuple[Tensor, str]]] = {}
        for levels in sorted(sums):
            nearby.setdefault(levels[:depth], []).append(sums[levels])
        sums = {levels: add_group(members) for levels, members in nearby.items()}
    [(total, _)] = sums.values()
    return total


def _add(tensors: list[Tensor]) -> Tensor:
    if len(tensors) <= 2:
        return tensors[0] if len(tensors) == 1 else add_pair(*tensors)
    return add_n_op(*tensors)


def gradient_tensors(gradients: Iterable[Any]) -> list[Any]:
    """List the tensors of gradients: values and indices of sparse ones, none for None."""
    tensors = []
    for gradient in gradients:
        if isinstance(gradient, IndexedSlices):
            tensors += [gradient.values, gradient.indices]
        elif gradient is not None:
            tensors.append(gradient)
    return tensors


def add_slices(terms: list[Any], add_dense: Callable[[list[Tensor]], Tensor]) -> Any:
    """Return the sum of gradients of which some are sparse; sparse if all are."""
    slices = [term for term in terms if isinstance(term, IndexedSlices)]
    joined = slices[0] if len(slices) == 1 else aggregate_indexed_slices(slices)
    if len(slices) == len(terms):
        return joined
    return add_dense([term for term in terms if isinstance(term, Tensor)] + [joined.to_tensor()])
