"""Choice of the tensors to keep: by users' names and lists, or by place in the graph."""

from __future__ import annotations

import logging
import math
import re
from typing import Any

from cytape.graph.checkpoint.bottlenecks import bottlenecks
from cytape.graph.checkpoint.gradient_model import UNKNOWN_EXTENT, known_shape
from cytape.graph.checkpoint.recomputable import Between
from cytape.graph.differentiation.graph_gradients import (
    as_list,
    differentiated,
    flat,
    graph_of,
    place_of,
)
from cytape.graph.differentiation.places import Places
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into
from cytape.tensor.tensor import Tensor

COLLECTION = "checkpoints"
_logger = logging.getLogger(__name__)
_COSTLY = re.compile("conv2d|Conv|MatMul")
# Parts of names of tensors that are not worth keeping: losses, masks, cheap results.
_EXCLUDED = re.compile("L2Loss|entropy|FusedBatchNorm|Switch|dropout|Cast")


def chosen(
    ys: Any, xs: Any, grad_ys: Any, checkpoints: Any, least_size: int, options: dict[str, Any]
) -> list[int]:
    """Return the tensors to keep.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    checkpoints : str or list
        As `cytape.graph.checkpoint.gradients` takes them.
    least_size : int
        For "memory": tensors count that have more elements.
    options : dict
        Further arguments of `cytape.gradients`.

    Returns
    -------
    list of int
        Symbols of the graph that gradients are added to, in the order of their making.
    """
    flat_ys, flat_xs = flat(as_list(ys)), flat(as_list(xs))
    if isinstance(checkpoints, Tensor):
        raise TypeError(
            f"checkpoints must be a list of tensors, got one tensor, {checkpoints!r}: pass "
            "[tensor]")
    graph = graph_of(flat_ys + flat_xs)
    with building_into(graph):
        places = Places(graph)
        between = Between(
            places, [place_of(places, "ys", y) for y in flat_ys],
            [place_of(places, "xs", x) for x in flat_xs])
    if isinstance(checkpoints, list):
        found = _listed(between, checkpoints)
    elif checkpoints == "collection":
        found = _listed(between, graph.get_collection(COLLECTION))
    elif checkpoints == "speed":
        found = [
            symbol for symbol in between.tensors()
            if _COSTLY.search(graph.tensor_name_of(symbol))]
    elif checkpoints == "memory":
        found = _some_bottlenecks(
            between, least_size, _read_backwards(graph, ys, xs, grad_ys, options))
    elif isinstance(checkpoints, str):
        raise ValueError(
            f"checkpoints={checkpoints!r} is unknown: say 'collection', 'speed', 'memory' or, for "
            "a plan, 'auto', or give a list of tensors, or of parts of their names")
    else:
        raise TypeError(
            "checkpoints must be 'collection', 'speed', 'memory' or 'auto', a plan, or a list of "
            "tensors or of parts of their names, got "
            f"{type(checkpoints).__name__}: {checkpoints!r}")
    if not found:
        raise ValueError(
            f"no checkpoint nodes were found between xs and ys (checkpoints={checkpoints!r}): xs "
            "and ys themselves do not count. Give a list of tensors that lie between them, or of "
            "parts of their names")
    _logger.info("keep %d of %d tensors between xs and ys", len(found), len(between.tensors()))
    if _logger.isEnabledFor(logging.DEBUG):
        _logger.debug("keep %s", ", ".join(map(graph.tensor_name_of, found)))
    return found


def _listed(between: Between, checkpoints: list[Any]) -> list[int]:
    """Return the given tensors, or tensors matching names, between sources and targets."""
    graph, candidates = between.graph, between.tensors()
    found, parts = set(), []
    for item in checkpoints:
        if isinstance(item, str):
            parts.append(item)
        elif not isinstance(item, Tensor):
            raise TypeError(
                "checkpoints must be tensors of the graph, or parts of their names, got "
                f"{type(item).__name__}: {item!r}")
        elif item.graph is graph:
            found.add(graph.symbol_of(item))
    if parts:
        for symbol in _not_excluded(graph, candidates):
            name = graph.tensor_name_of(symbol)
            if any(part in name for part in parts):
                found.add(symbol)
    return [symbol for symbol in candidates if symbol in found]


def _not_excluded(graph: Any, symbols: list[int]) -> list[int]:
    found = [
        symbol for symbol in symbols if not _EXCLUDED.search(graph.tensor_name_of(symbol))
        and not graph.ops[graph.node_of(symbol)].is_passed_over]
    n = len(symbols)
    _logger.debug("exclude %d of %d tensors by name or kind", n - len(found), n)
    return found


def _size(shape: tuple[int | None, ...] | None) -> int:
    return 0 if shape is None else math.prod(known_shape(shape, UNKNOWN_EXTENT))


def _read_backwards(
    graph: Any, ys: Any, xs: Any, grad_ys: Any, options: dict[str, Any]
) -> set[int]:
    """Find the symbols that a plain backward pass reads, by building one in a copy."""
    body = FunctionGraph("gradients", graph)
    with building_into(body):
        differentiated(ys, xs, grad_ys, **options)
    return {
        graph.symbol_of(tensor) for tensor, _ in body.captures
        if isinstance(tensor, Tensor) and tensor.graph is graph}


def _some_bottlenecks(between: Between, least_size: int, read_backwards: set[int]) -> list[int]:
    """Return about sqrt(n) bottlenecks for n tensors that gradients read."""
    graph = between.graph
    sizes = {
        symbol: _size(graph.spec_of(symbol).shape)
        for symbol in _not_excluded(graph, between.tensors())}
    candidates = {symbol for symbol, size in sizes.items() if size > least_size}
    found = bottlenecks(between, candidates)
    n_read = len(read_backwards & candidates)
    _logger.debug(
        "%d tensors have more than %d elements: %d are bottlenecks, the backward pass reads %d",
        len(candidates), least_size, len(found), n_read)
    first = [symbol for symbol in found if symbol in read_backwards]
    if n_read and len(first) >= math.sqrt(n_read):
        found = first
    if not found and bottlenecks(between, set(sizes)):
        raise ValueError(
            f"no bottleneck was found among the tensors of more than {least_size} elements, and "
            f"checkpoints='memory' keeps no others; the largest has {max(sizes.values())}: set "
            "cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE to less, or give a list of tensors "
            "to keep, or of parts of their names, or say checkpoints='speed'")
    if not found:
        raise ValueError(
            "no bottleneck was found, a tensor that separates all earlier tensors from all later "
            "ones: give a list of tensors to keep, or of parts of their names, or say "
            "checkpoints='speed'")
    most = math.sqrt(max(n_read, 1))
    if len(found) <= math.ceil(most):
        return found
    step = math.ceil(len(found) / most)
    return found[step::step]
