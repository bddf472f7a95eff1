"""Objects that a function can access, found without running it."""

import collections
import functools
import random

import numpy as np

import cytape
from cytape.ops.python.reachable import (
    Reachable,
    codes,
    contents,
    is_of_cytape,
    numpy_global,
    python_global,
    state_of,
)
from tests.cases import each

rng = np.random.default_rng(0)


class Slots:
    __slots__ = ("empty", "rng")

    def __init__(self):
        self.rng = np.random.default_rng(1)


class Holder:
    def __init__(self, held):
        self.held = held

    def draw(self):
        return self.held.normal()


class Kept(list):
    held = None


class Drawing:
    @staticmethod
    def drawn(x):
        return x * rng.normal()


def drawn(x):
    return x * rng.normal()


WAYS = {
    "global": (lambda x: x * rng.normal(), ()), "default": (lambda x, own=rng: x, ()),
    "function": (lambda x: drawn(x), ()), "inner function": (lambda x: (lambda: rng)(), ()),
    "method": (Holder(rng).draw, ()), "method of C": (rng.normal, ()),
    "partial": (functools.partial(len, rng), ()),
    "keyword of a partial": (functools.partial(len, y=rng), ()), "argument": (len, (rng,)),
    "attribute": (len, (Holder({"a": [Holder(rng)]}),)),
    "deque": (len, (collections.deque([rng]),)), "set": (len, ({rng},)),
    "static method": (lambda x: x.drawn(1.0), (Drawing(),)),
    "of a class": (lambda x: Drawing.drawn(x), ())}


@each("way", WAYS)
def test_generators_are_found(way):
    f, arguments = WAYS[way]
    found = Reachable(f, arguments)
    assert found.generators == {id(numpy_global): numpy_global, id(rng): rng}
    assert id(rng) in found.seen and id(numpy_global) not in found.seen


def test_slots_and_attributes_of_containers_are_looked_at():
    slots, kept = Slots(), Kept([1])
    kept.held = slots
    assert id(slots.rng) in Reachable(len, (kept,)).generators


def test_members_of_a_class_count_if_their_names_are_used():
    assert id(rng) not in Reachable(lambda x: x, (Drawing(),)).generators


def test_modules_are_no_containers_but_have_what_is_named():
    found = Reachable(lambda x: random.random() + np.random.rand())
    assert python_global in found.generators.values()
    assert {id(random), id(np)} <= found.seen and {"random", "rand"} <= found.names
    assert python_global not in Reachable(lambda x: np.sin(x)).generators.values()


def test_values_and_items_that_are_looked_at_are_bounded():
    deep = rng
    for _ in range(1000):
        deep = (deep,)
    assert id(rng) not in Reachable(len, (deep,)).generators
    assert id(rng) not in Reachable(len, ([None] * 64 + [rng],)).generators
    assert id(rng) in Reachable(len, ([None] * 63 + [rng],)).generators


def test_containers_may_contain_themselves():
    loop = [rng]
    loop.append(loop)
    assert id(rng) in Reachable(len, (loop,)).generators


def test_functions_are_listed_with_what_is_known_of_their_arguments():
    f = lambda x: drawn(x)  # noqa: E731
    (first, arguments), (second, _) = Reachable(f, (5,)).functions
    assert (first, arguments, second) == (f, (5,), drawn)
    method = Holder(rng).draw
    assert Reachable(method).functions[0] == (Holder.draw, (method.__self__,))


@each("generator, draw", [
    (np.random.default_rng(0), lambda x: x.normal()),
    (np.random.default_rng(0), lambda x: x.integers(2, dtype="uint32")),
    (np.random.RandomState(0), lambda x: x.randn()), (random.Random(0), lambda x: x.random()),
    (random.Random(0), lambda x: x.gauss(0.0, 1.0))])
def test_states_change_with_every_draw(generator, draw):
    seen = []
    for _ in range(4):
        assert state_of(generator) == state_of(generator)
        seen.append(state_of(generator))
        draw(generator)
    assert all(x != y for i, x in enumerate(seen) for y in seen[:i])


def test_code_modules_and_functions():
    def outer():
        return lambda: [lambda: 1]

    assert [code.co_name for code in codes(outer.__code__)] == ["outer", "<lambda>", "<lambda>"]
    assert contents(random) is vars(random)
    assert is_of_cytape(cytape.grad) and not is_of_cytape(drawn)
