"""Minimum of the six-hump camel function, with proof: branch and bound on intervals."""

import heapq

from intervals import Interval, value_and_gradient


def camel(x, y):
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2


def middle(box):
    return [Interval((side.low + side.high) / 2) for side in box]


def halves(box):
    """Split a box at the middle of its longest side."""
    axis = max(range(len(box)), key=lambda i: box[i].high - box[i].low)
    low, high = box[axis].low, box[axis].high
    for part in (Interval(low, (low + high) / 2), Interval((low + high) / 2, high)):
        yield [*box[:axis], part, *box[axis + 1:]]


def lower_bound(function, box):
    """Return a lower bound of a function over a box, infinity if it is not stationary there."""
    value, slopes = value_and_gradient(function, *box)
    if not all(0 in slope for slope in slopes):
        return float("inf")
    center = middle(box)
    around = function(*center)  # the mean value theorem, with the slopes over the whole box
    for slope, side, point in zip(slopes, box, center, strict=True):
        around += slope * (side - point)
    return max(value.low, around.low)


def minimum(function, box, width=1e-9, bound=lower_bound):
    """Return bounds of the least stationary value of a function in a box, and the boxes tried."""
    least, tried = function(*middle(box)).high, 0
    waiting = [(bound(function, box), tried, box)]
    while least - waiting[0][0] > width:
        for half in halves(heapq.heappop(waiting)[2]):
            tried += 1
            low = bound(function, half)
            if low <= least:
                least = min(least, function(*middle(half)).high)
                heapq.heappush(waiting, (low, tried, half))
    return Interval(waiting[0][0], least), tried


if __name__ == "__main__":
    square = [Interval(-2, 2), Interval(-1, 1)]
    print("with slopes:", *minimum(camel, square))
    print("without, to 1e-3:", *minimum(camel, square, 1e-3, lambda f, box: f(*box).low))
