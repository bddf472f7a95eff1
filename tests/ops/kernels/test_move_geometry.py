"""The elements that moves cover: all, some, or some more often than once."""

import numpy as np

from cytape.ops.kernels.moves import Moves, outline
from cytape.tensor.values.spec import Spec
from tests.cases import each


@each("pieces, are_views, sums", [
    (lambda t, s: [(t, s.T)], True, False), (lambda t, s: [(t, s[:1, :1])], True, False),
    (lambda t, s: [(t[:1], s.T[:1]), (t[1:], s.T[1:])], False, False),
    (lambda t, s: [(t[:1], s.T[:1])], False, False), (lambda t, s: [(t[::-1], s.T)], False, False),
    (lambda t, s: [(t, s.T), (t[1:], s.T[1:])], False, True),
    (lambda t, s: [(np.broadcast_to(t[0], (2, 2)), s[:, :2])], False, True),
    (lambda t, s: [], False, False), (lambda t, s: [(t[:0], s.T[:0])], False, False)])
def test_covered_elements(pieces, are_views, sums):
    target, source = outline(Spec.of((3, 2), float)), outline(Spec.of((2, 3), float))
    moves = Moves([target], [source], pieces(target, source))
    assert (moves.are_views, moves.sums) == (are_views, sums)
    assert moves.targets == (Spec.of((3, 2), float),)
    assert moves.sources == (Spec.of((2, 3), float),)
