"""Placement of boxes in layers, so that arrows point down, except one in each circle.

a. A box is one layer below the lowest box with an arrow to it; sources stand just above their
   first reader.
b. An arrow across several layers bends at points between the boxes of each layer that it crosses.
   All arrows from one box share these points.
c. In each layer the boxes are ordered by the mean place of their neighbours, in several passes
   down and up; the order with the fewest crossings of neighbouring layers is kept.
d. Positions along a layer are the nearest ones to the mean of the neighbours that keep order and
   distance, found by isotonic regression. Sources and bends have little weight: else a constant
   or an arrow beside each box of a long chain would shift the chain to one side.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

__all__ = ["Layout", "layered"]

GAP, BEND = 24, 12      # distance of boxes, width of a bending point
LAYER_GAP = 34
SWEEPS = 6
SOURCE_WEIGHT, BEND_WEIGHT = 0.001, 0.01   # boxes with arrows to them have 1
MOST_COUNTED = 4000     # arrows between layers of a drawing whose crossings are counted

Key = Any  # hashable


class Layout(NamedTuple):
    """Places of boxes and routes of arrows.

    Attributes
    ----------
    centres : dict of key to (float, float)
    routes : dict of (key, key) to list of (float, float)
        The points of each arrow: where it leaves the layer of its start, enters and leaves each
        layer between, enters that of its end.
    width, height : float
    """

    centres: dict[Key, tuple[float, float]]
    routes: dict[tuple[Key, Key], list[tuple[float, float]]]
    width: float
    height: float


def layered(
    sizes: Mapping[Key, tuple[float, float]], arrows: Sequence[tuple[Key, Key]]
) -> Layout:
    """Place boxes.

    Parameters
    ----------
    sizes : mapping of key to (width, height)
    arrows : sequence of (key, key)

    Returns
    -------
    Layout

    Examples
    --------
    >>> layout = layered({"x": (10, 10), "y": (10, 10)}, [("x", "y")])
    >>> (_, above), (_, below) = layout.centres["x"], layout.centres["y"]
    >>> above < below
    True
    """
    drawn = list(dict.fromkeys(arrows))
    rank = {key: i for i, key in enumerate(_in_order(list(sizes), drawn))}
    arrows = list(dict.fromkeys(
        (start, end) if rank[start] < rank[end] else (end, start) for start, end in drawn))
    level = _levels(rank, arrows)
    widths = {key: float(width) for key, (width, _) in sizes.items()}
    n_layers = max(level.values(), default=-1) + 1
    layers: list[list[Key]] = [[] for _ in range(n_layers)]
    for key, at in level.items():
        layers[at].append(key)
    links: list[tuple[Key, Key]] = []   # between neighbouring layers
    lowest: dict[Key, int] = {}
    for start, end in arrows:
        lowest[start] = max(lowest.get(start, 0), level[end])
    for start, last in lowest.items():
        before: Key = start
        for at in range(level[start] + 1, last):
            bend = (start, at)
            widths[bend] = BEND
            layers[at].append(bend)
            links.append((before, bend))
            before = bend
    for start, end in arrows:
        links.append(((start, level[end] - 1) if level[end] - level[start] > 1 else start, end))
    above: dict[Key, list[Key]] = {key: [] for key in widths}
    below: dict[Key, list[Key]] = {key: [] for key in widths}
    for start, end in links:
        below[start].append(end)
        above[end].append(start)
    layers = _ordered(layers, above, below, len(links))
    across = _across(layers, widths, above, below)
    bounds = _bounds(layers, sizes)
    left = min((across[key] - widths[key] / 2 for key in widths), default=0.0)
    right = max((across[key] + widths[key] / 2 for key in widths), default=0.0)
    routes = {}
    for start, end in arrows:
        keys = [start, *((start, at) for at in range(level[start] + 1, level[end])), end]
        points = [(across[key] - left, y) for at, key in enumerate(keys, level[start])
                  for y in bounds[at]]
        routes[start, end] = points[1:-1]
        routes[end, start] = points[-2:0:-1]
    centres = {key: (across[key] - left, sum(bounds[level[key]]) / 2) for key in sizes}
    return Layout(centres, routes, right - left, bounds[-1][1] if bounds else 0.0)


def _in_order(keys: list[Key], arrows: list[tuple[Key, Key]]) -> list[Key]:
    """Return the boxes, each after those with arrows to it, as far as there are no circles."""
    readers: dict[Key, list[Key]] = {key: [] for key in keys}
    missing = dict.fromkeys(keys, 0)
    for start, end in arrows:
        readers[start].append(end)
        missing[end] += 1
    found: dict[Key, None] = {}
    for first in [*(key for key in keys if not missing[key]), *keys]:
        stack = [first]
        while stack:
            key = stack.pop()
            if key in found:
                continue
            found[key] = None
            for reader in reversed(readers[key]):
                missing[reader] -= 1
                if not missing[reader]:
                    stack.append(reader)
    return list(found)


def _levels(rank: dict[Key, int], arrows: list[tuple[Key, Key]]) -> dict[Key, int]:
    """Return the layer of each box."""
    level, highest = dict.fromkeys(rank, 0), dict.fromkeys(rank, len(rank))
    for start, end in sorted(arrows, key=lambda arrow: rank[arrow[0]]):
        level[end] = max(level[end], level[start] + 1)
    for start, end in arrows:
        highest[start] = min(highest[start], level[end])
    sources = set(rank).difference(end for _, end in arrows)
    return {key: highest[key] - 1 if key in sources and highest[key] < len(rank) else at
            for key, at in level.items()}


def _ordered(
    layers: list[list[Key]], above: dict[Key, list[Key]], below: dict[Key, list[Key]], n_links: int
) -> list[list[Key]]:
    """Order each layer so that few arrows cross."""
    best, fewest = layers, _crossings(layers, below) if n_links <= MOST_COUNTED else None
    layers = [list(keys) for keys in layers]
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for i in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            fixed = {key: at for at, key in enumerate(layers[i - 1 if down else i + 1])}
            means = {key: fmean(fixed[other] for other in neighbours[key])
                     if neighbours[key] else float(at) for at, key in enumerate(layers[i])}
            layers[i].sort(key=means.__getitem__)
        if fewest is None:
            best = layers
            continue
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = [list(keys) for keys in layers], crossings
    return best


def _crossings(layers: list[list[Key]], below: dict[Key, list[Key]]) -> int:
    """Count the crossings of arrows between neighbouring layers."""
    total = 0
    for keys, following in zip(layers, layers[1:], strict=False):
        places = {key: at for at, key in enumerate(following)}
        seen: list[int] = []  # sorted
        for key in keys:
            ends = [places[end] for end in below[key]]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _across(
    layers: list[list[Key]], widths: dict[Key, float], above: dict[Key, list[Key]],
    below: dict[Key, list[Key]],
) -> dict[Key, float]:
    """Return the centre of each box and bending point along its layer."""
    weights = {key: BEND_WEIGHT if widths[key] == BEND else 1.0 if above[key] else SOURCE_WEIGHT
               for key in widths}

    def spread(keys: list[Key], wanted: list[float]) -> None:
        places.update(zip(keys, _spread(
            wanted, [widths[key] for key in keys], [weights[key] for key in keys]), strict=True))

    places: dict[Key, float] = {}
    for keys in layers:
        spread(keys, [0.0] * len(keys))
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for keys in layers if down else reversed(layers):
            spread(keys, [
                fmean([places[other] for other in neighbours[key]],
                      [weights[other] for other in neighbours[key]])
                if neighbours[key] else places[key] for key in keys])
    return places


def _spread(wanted: list[float], widths: list[float], weights: list[float]) -> list[float]:
    """Return the places nearest to the wanted ones, in the same order and without overlap."""
    offsets, total = [], 0.0
    for i, width in enumerate(widths):
        total += (widths[i - 1] + width) / 2 + GAP if i else 0.0
        offsets.append(total)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of members
    for want, offset, weight in zip(wanted, offsets, weights, strict=True):
        mean, count = want - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, n = blocks.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + n
        blocks.append((mean, weight, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _bounds(
    layers: list[list[Key]], sizes: Mapping[Key, tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return where each layer begins and ends."""
    bounds, top = [], 0.0
    for keys in layers:
        height = max((sizes[key][1] for key in keys if key in sizes), default=0.0)
        bounds.append((top, top + height))
        top += height + LAYER_GAP
    return bounds
