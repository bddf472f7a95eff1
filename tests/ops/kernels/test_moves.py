"""Moves: which regions are read and written, and what they cover."""

import numpy as np
import pytest

from cytape.ops.kernels.moves import Moves, outline
from cytape.tensor.spec import Spec


def moves_of(target_shape, source_shape, pieces):
    target, source = (outline(Spec.of(shape, float)) for shape in (target_shape, source_shape))
    return Moves([target], [source], pieces(target, source))


@pytest.mark.parametrize("pieces, are_views, sums", [
    (lambda t, s: [(t, s.T)], True, False),
    (lambda t, s: [(t, s[:1, :1])], True, False),
    (lambda t, s: [(t[:1], s.T[:1]), (t[1:], s.T[1:])], False, False),
    (lambda t, s: [(t[:1], s.T[:1])], False, False),
    (lambda t, s: [(t[::-1], s.T)], False, False),
    (lambda t, s: [(t, s.T), (t[1:], s.T[1:])], False, True),
    (lambda t, s: [(np.broadcast_to(t[0], (2, 2)), s[:, :2])], False, True),
    (lambda t, s: [], False, False),
    (lambda t, s: [(t[:0], s.T[:0])], False, False),
])
def test_what_is_covered(pieces, are_views, sums):
    moves = moves_of((3, 2), (2, 3), pieces)
    assert (moves.are_views, moves.sums) == (are_views, sums)
    assert moves.targets == (Spec.of((3, 2), float),)
    assert moves.sources == (Spec.of((2, 3), float),)


def test_a_copy_is_no_piece():
    with pytest.raises(ValueError, match="or a copy"):
        moves_of((6,), (2, 3), lambda t, s: [(t, s.T.reshape(6))])


@pytest.mark.parametrize("pieces", [
    lambda t, s: [(t, np.lib.stride_tricks.as_strided(s, (100,), (8,)))],
    lambda t, s: [(np.lib.stride_tricks.as_strided(t, (101,), (8,)), s[0, 0:1])],
    lambda t, s: [(t.view("f4"), s[0, :1].view("f4")[:1])],
])
def test_memory_beyond_an_outline_is_no_piece(pieces):
    with pytest.raises(ValueError, match="pieces? "):
        moves_of((100,), (2, 3), pieces)


@pytest.mark.parametrize("strides", [(24, 8), (8, 16), (-24, -8), (0, 8), (48, -16)])
def test_an_outline_has_the_strides_and_the_room(strides):
    x = outline(Spec.of((2, 3), float), strides)
    assert x.strides == strides and x.shape == (2, 3)
    x[...] = 1.0  # all of it is there
