"""From ids to slots: what matters is that every id is found, wherever it lies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cytape.core import Tape, reference
from tests.cases import each

BIG = 2 ** 63 - 1
NEIGHBOURHOODS = [0, 1000, 70_000, 10 ** 7, 2 ** 31 - 2, 2 ** 32, 2 ** 62, BIG - 40]


def ids():
    return st.builds(lambda start, offset: start + offset, st.sampled_from(NEIGHBOURHOODS),
                     st.integers(0, 40))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["watch", "record", "delete"]), ids(), ids())))
def test_ids_far_apart_are_found(steps):
    tapes = Tape(), reference.Tape()
    mentioned = set()
    for step, id, other in steps:
        mentioned |= {id, other}
        for tape in tapes:
            if step == "watch":
                tape.watch(id)
            elif step == "delete":
                if tape.usages().get(id):
                    tape.delete_trace(id)
            elif id != other and not tape.is_known(other):
                tape.record("Op", [other], [id], ["float64"], object)
        fast, slow = tapes
        assert fast.usages() == slow.usages()
        assert (fast.num_known, fast.num_ops) == (slow.num_known, slow.num_ops)
    for id in mentioned:
        assert tapes[0].is_known(id) == tapes[1].is_known(id)


@each("ids", [
    range(1000), range(1000, 0, -1), range(0, 10 ** 9, 10 ** 6), [BIG, 0, BIG - 1, 1],
    [(i * 2654435761) % 2 ** 32 for i in range(1000)]])
def test_ids_in_any_order(ids):
    tape = Tape()
    for count, id in enumerate(ids):
        assert not tape.is_known(id)
        tape.watch(id)
        assert tape.num_known == count + 1
    assert all(tape.is_known(id) for id in ids)
    assert not any(tape.is_known(id) for id in (BIG - 7, 10 ** 12 + 1, -1, -BIG))


@each("step", [1, 1000, 10 ** 9])
def test_a_long_life_takes_little_room(step):
    """Old ids and new ones, most of them forgotten: memory follows what is alive."""
    tape = Tape()
    tape.watch(0)
    for id in range(step, 20_000 * step, step):
        tape.record("Op", [id], [0], ["float64"], object)
        tape.delete_trace(id)
    assert tape.num_known == 1
    assert tape.nbytes < 20_000


def test_ids_beyond_64_bits_are_refused():
    with pytest.raises(OverflowError):
        Tape().watch(BIG + 1)
