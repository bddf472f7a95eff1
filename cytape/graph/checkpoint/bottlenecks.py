"""Bottlenecks: tensors that separate the ops between `xs` and `ys` into two parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cytape.graph.checkpoint.recomputable import Between

MOST_ARMS = 4096  # ops of a piece without a cut; larger ones are not searched for more


def bottlenecks(between: Between, candidates: set[int]) -> list[int]:
    """Find the tensors that divide all candidates into those read before and those read after.

    The tensor's op and its ancestors read some candidates, the descendants of the op read all
    others. So one arm of a diamond is a bottleneck, too, if the other arm reads only tensors from
    before the diamond.

    Parameters
    ----------
    between : Between
    candidates : set of int
        Symbols.

    Returns
    -------
    list of int
        In an order in which they can be computed.

    Notes
    -----
    A tensor is a *cut* if there is an order of the ops in which no other tensor is used on both
    sides of its op. Cuts are found in one pass. Other bottlenecks lie between two adjacent cuts:
    each piece is searched separately, in the square of its number of ops.
    """
    ops = _Ordered(between, candidates)
    return [symbol for place in ops.parting() for symbol in ops.made_at(place)]


class _Ordered:
    """Ops in an order in which each is as late as its readers allow.

    Places are positions in this order.
    """

    def __init__(self, between: Between, candidates: set[int]) -> None:
        graph = between.graph
        self._graph = graph
        members = set(between.nodes)
        read = {symbol for node in between.nodes for symbol in graph.inputs_of(node)}
        # A tensor without readers would be on neither side.
        self._candidates = {
            symbol for symbol in candidates & read if graph.node_of(symbol) in members}
        before = {
            node: sorted({
                other for symbol in graph.inputs_of(node)
                if (other := graph.node_of(symbol)) in members})
            for node in between.nodes}
        self.order = _late_order(between.nodes, before)
        place = {node: i for i, node in enumerate(self.order)}
        self.before = [[place[other] for other in before[node]] for node in self.order]
        self.after: list[list[int]] = [[] for _ in self.order]
        for i, others in enumerate(self.before):
            for other in others:
                self.after[other].append(i)

    def made_at(self, place: int) -> list[int]:
        """List the candidates among an op's outputs."""
        return [
            symbol for symbol in self._graph.outputs_of(self.order[place])
            if symbol in self._candidates]

    def parting(self) -> list[int]:
        """List the places of ops that divide the candidates and compute one."""
        n = len(self.order)
        makes = [bool(self.made_at(place)) for place in range(n)]
        if True not in makes:
            return []
        cuts = [-1, *self._cuts()]
        # From these cuts on, or up to these, candidates are read on neither side.
        lost_before = self._first_lost(cuts, makes)
        found = []
        for number in reversed(range(len(cuts))):
            cut = cuts[number]
            last = cuts[number + 1] if number + 1 < len(cuts) else n
            if number < lost_before:
                found += self._arms(cut, last, makes)
            if last < n and cut >= 0 and self._loses(cut, last, makes):
                break
            if cut >= 0 and makes[cut] and number < lost_before:
                found.append(cut)
        return sorted(found)

    def _cuts(self) -> list[int]:
        """List the ops with outputs that are the only tensors read across them."""
        cuts, furthest = [], -1
        for place, after in enumerate(self.after):
            if furthest <= place:
                cuts.append(place)
            furthest = max(furthest, after[-1] if after else -1)
        return cuts

    def _first_lost(self, cuts: list[int], makes: list[bool]) -> int:
        """Return the first cut with an earlier candidate that it does not depend on, by number."""
        first = makes.index(True)
        for number, cut in enumerate(cuts[1:], 1):
            start, needed = cuts[number - 1], {cut}
            for place in range(cut - 1, max(start, 0) - 1, -1):
                if not needed.isdisjoint(self.after[place]):
                    needed.add(place)
                elif makes[place] or place == start > first:
                    return number
        return len(cuts)

    def _loses(self, cut: int, last: int, makes: list[bool]) -> bool:
        """Return whether a candidate between two cuts has no reader that depends on the first."""
        follows = {cut}
        for place in range(cut + 1, last + 1):
            if not follows.isdisjoint(self.before[place]):
                follows.add(place)
        return last not in follows or any(
            makes[place] and place not in follows and follows.isdisjoint(self.after[place])
            for place in range(cut + 1, last))

    def _arms(self, start: int, last: int, makes: list[bool]) -> list[int]:
        """Find the ops between two cuts that divide the candidates there."""
        if not 1 < last - start <= MOST_ARMS:
            return []
        end, first = min(last, len(self.order) - 1), makes.index(True)
        above, below = {start: 1}, {end: 0}  # sets of places, counted from the start, as bits
        for place in range(start + 1, end + 1):
            above[place] = 1 << place - start
            for other in self.before[place]:
                above[place] |= above[other]
        for place in range(end - 1, start, -1):
            below[place] = 0
            for other in self.after[place]:
                below[place] |= 1 << other - start | below[other]
        readers = [
            sum(1 << other - start for other in self.after[place])
            for place in range(max(start, 0), end) if makes[place]]
        return [
            place for place in range(start + 1, last)
            if makes[place] and (above[place] & 1 or start <= first)
            and (last > end or below[place] >> last - start & 1)
            and all(bool(above[place] & read) != bool(below[place] & read) for read in readers)]


def _late_order(nodes: list[int], before: dict[int, list[int]]) -> list[int]:
    """Order nodes such that each is behind its inputs, and as late as possible."""
    depth: dict[int, int] = {}
    read = set()
    for node in nodes:
        depth[node] = 1 + max((depth[other] for other in before[node]), default=0)
        read.update(before[node])

    def deepest_first(some: Iterable[int]) -> Iterator[int]:
        return iter(sorted(some, key=lambda node: (-depth[node], node)))

    order: list[int] = []
    anchors: dict[int, int] = {}  # node that the deepest target does not need -> its predecessor
    n_main = 0
    for target in deepest_first(set(nodes) - read):
        pending = [(target, deepest_first(before[target]))]
        anchors[target] = -1
        while pending:
            node, others = pending[-1]
            for other in others:
                if other not in anchors:
                    anchors[other] = -1
                    pending.append((other, deepest_first(before[other])))
                    break
            else:
                pending.pop()
                anchors[node] = len(order) if not n_main else max(
                    (anchors[other] for other in before[node]), default=-1)
                order.append(node)
        n_main = n_main or len(order)
    return sorted(order, key=anchors.__getitem__)
