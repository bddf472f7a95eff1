"""Random programs on the Cython tape and on the plain-Python one, step by step the same.

A program watches, records, drops handles and differentiates in any order. Its ops are linear maps
between vectors of integers, so that gradients are compared exactly; some of them give no gradient,
fail, or use the tape while it computes. Gradients know who holds them: none is lost.
"""

import functools
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cytape import core
from cytape.core import reference
from cytape.errors import CytapeError

EARLY = 1 << 27  # a size of which any five gradients are summed early


class InjectedError(Exception):
    pass


class Gradient:
    def __init__(self, value):
        self.value = value
        self.holders = 1

    def take(self):
        assert self.holders > 0
        self.holders -= 1
        return self.value


def spaces(base):
    """The VSpace of integer pairs, on the VSpace class of one of the two cores."""

    class Pairs(base):
        def __init__(self, size=1, failing=None, countdown=0):
            self.size = size
            self.failing = failing
            self.countdown = countdown
            self.made = []
            self.log = []

        def enter(self, method, *details):
            self.log.append((method, *details))
            if method == self.failing:
                self.countdown -= 1
                if self.countdown == 0:
                    raise InjectedError

        def new(self, value):
            self.made.append(Gradient(value))
            return self.made[-1]

        def num_elements(self, gradient):
            assert gradient.holders
            return self.size

        def ones_like(self, info):
            self.enter("ones_like", info)
            return self.new((1, 1))

        def zeros_like(self, info):
            self.enter("zeros_like", info)
            return self.new((0, 0))

        def aggregate_gradients(self, gradients):
            values = [gradient.take() for gradient in gradients]
            self.enter("aggregate_gradients", values)
            return self.new(tuple(map(sum, zip(*values, strict=True))))

        def call_backward_function(self, op_type, backward, unneeded, output_gradients):
            values = [dy and dy.take() for dy in output_gradients]
            self.enter("call_backward_function", op_type, unneeded, values)
            return [dx and self.new(dx) for dx in backward(values, unneeded)]

        def mark_as_result(self, gradient):
            assert gradient.holders
            gradient.holders += 1

        def delete_gradient(self, gradient):
            gradient.take()

        def held(self):
            return [gradient.value for gradient in self.made if gradient.holders]

    return Pairs


class Side:
    """One of the two tapes, and the program's state around it."""

    def __init__(self, core, persistent):
        self.core = core
        self.persistent = persistent
        self.tape = core.Tape(persistent)
        self.space = spaces(core.VSpace)
        self.ids = []
        self.handles = []  # ids of outputs whose handle lives
        self.n_ops = 0
        self.nested = False
        self.released = Counter()

    def new_id(self):
        self.ids.append(3 * len(self.ids))
        return self.ids[-1]

    def pick(self, number):
        """A known id, counted from the latest or (negative) the first; or any; or a new one."""
        known = list(filter(self.tape.is_known, self.ids))
        if number == ANY and self.ids:
            return self.ids[len(self.ids) // 2]
        if number == NEW or not known:
            return self.new_id()
        return known[(-1 - number) % len(known)]

    def watch(self, number):
        self.tape.watch(self.pick(number))

    def record(self, inputs, n_outputs, takes_over, trainable, optional, coefficients, extra):
        input_ids = [self.pick(number) for number in inputs]
        output_ids = [self.new_id() for _ in range(n_outputs)]
        # An id may be recorded again, say by an op around the ops it is made of.
        candidates = [i for i in self.handles if i not in input_ids]
        if takes_over is not None and candidates:
            output_ids[0] = candidates[takes_over % len(candidates)]
        name = f"op{self.n_ops}"
        recorded = self.tape.record(
            self.core.OpType(name, optional), output_ids, input_ids,
            ["float64" if trainable else "int64"] * len(input_ids),
            lambda: functools.partial(self.backward, input_ids, coefficients, extra),
            lambda _: self.release(name, input_ids[0], extra))
        if recorded:
            self.n_ops += 1
            self.handles += [i for i in output_ids if i not in self.handles]
        return recorded

    def release(self, name, input_id, extra):
        self.released.update([name])
        if extra == "deleter deletes" and input_id in self.handles and self.tape is not None:
            self.handles.remove(input_id)
            self.tape.delete_trace(input_id)

    def backward(self, input_ids, coefficients, extra, dys, unneeded):
        if extra == "raise":
            raise InjectedError
        if extra == "wrong number":
            return [(1, 1)] * (len(input_ids) == 0)
        if extra == "delete":
            self.delete(coefficients[0])
        if extra == "record":
            self.record([abs(coefficients[0]), 0], 1, None, True, (), [1, 1], None)
        if extra == "differentiate" and not self.nested:
            self.nested = True  # once: the op may lead to itself
            try:
                self.differentiate([abs(coefficients[0])], [-1], None, True, self.space())
            finally:
                self.nested = False
        gradients = []
        for position in range(len(input_ids)):
            a, b = coefficients[position % 2], coefficients[position % 2 - 1]
            pairs = [dy for dy in dys if dy is not None]
            if a == 0 or position in unneeded and b == 0:
                gradients.append(None)
            else:
                gradients.append((sum(a * dy[0] for dy in pairs), sum(b * dy[1] for dy in pairs)))
        return gradients

    def delete(self, number):
        if self.handles:
            self.tape.delete_trace(self.handles.pop(number % len(self.handles)))

    def differentiate(self, targets, sources, seeds, build_zeros, space):
        """Return the gradients' values, or the type of the error."""
        targets, sources = ([self.pick(number) for number in numbers]
                            for numbers in (targets, sources))
        if seeds is not None:
            seeds = [Gradient((seed, 1)) if seed else None for seed in seeds[:len(targets)]]
        both = {i: i for i in sources if i in targets}
        try:
            results = self.tape.compute_gradient(space, targets, sources, both, seeds, build_zeros)
        except (InjectedError, CytapeError) as error:
            outcome = type(error)
        else:
            outcome = [result and result.take() for result in results]
        assert [seed.holders for seed in seeds or () if seed] == [1] * sum(map(bool, seeds or ()))
        return outcome, space.log

    def snapshot(self):
        tape = self.tape
        return {
            "usages": tape.usages(), "num_ops": tape.num_ops, "num_known": tape.num_known,
            "known": list(map(tape.is_known, self.ids)), "released": self.released,
            "handles": self.handles, "ids": self.ids, "n_ops": self.n_ops}


NEW, ANY = 9, 8
NUMBERS = st.integers(-4, NEW)
FEW = st.lists(NUMBERS, min_size=1, max_size=4)
EXTRAS = st.sampled_from(
    [None] * 20 + ["raise", "wrong number", "delete", "deleter deletes", "record", "differentiate"])
SOME_OPS = st.lists(st.tuples(
    st.lists(NUMBERS, min_size=1, max_size=3) | st.lists(st.integers(0, 1), min_size=5, max_size=8),
    st.integers(1, 3), st.none() | st.none() | st.none() | NUMBERS, st.integers(0, 9),
    st.frozensets(st.integers(0, 2)), st.lists(st.integers(-2, 3), min_size=2, max_size=2), EXTRAS,
), min_size=2, max_size=8)


class Programs(RuleBasedStateMachine):
    @initialize(persistent=st.booleans(), ops=SOME_OPS)
    def start(self, persistent, ops):
        self.sides = [Side(core, persistent), Side(reference, persistent)]
        self.on_both("watch", NEW)
        self.record(ops)

    def on_both(self, method, *arguments):
        fast, slow = (getattr(side, method)(*arguments) for side in self.sides)
        assert fast == slow
        return fast

    @rule(number=NUMBERS)
    def watch(self, number):
        self.on_both("watch", number)

    @rule(ops=SOME_OPS)
    def record(self, ops):
        for op in ops:
            self.on_both("record", *op)

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4))
    def delete(self, numbers):
        for number in numbers:
            self.on_both("delete", number)
            self.on_both("snapshot")

    @precondition(lambda self: self.sides[0].tape.num_ops)
    @rule(ys=FEW, xs=FEW,
          seeds=st.none() | st.lists(st.integers(0, 3), min_size=4, max_size=4),
          build_zeros=st.booleans(), size=st.sampled_from([1, EARLY]),
          failing=st.sampled_from([None] * 6 + ["ones_like", "zeros_like", "aggregate_gradients",
                                                "call_backward_function"]),
          countdown=st.integers(1, 3))
    def differentiate(self, ys, xs, seeds, build_zeros, size, failing, countdown):
        spaces = [side.space(size, failing, countdown) for side in self.sides]
        outcomes = [side.differentiate(ys, xs, seeds, build_zeros, space)
                    for side, space in zip(self.sides, spaces, strict=True)]
        assert outcomes[0] == outcomes[1]
        assert spaces[0].held() == []
        if isinstance(outcomes[1][0], list):
            assert spaces[1].held() == []

    @invariant()
    def the_tapes_agree(self):
        if hasattr(self, "sides"):
            self.on_both("snapshot")

    def teardown(self):
        if hasattr(self, "sides"):
            for side in self.sides:
                side.tape = None
                assert side.released == {f"op{i}": 1 for i in range(side.n_ops)}


class TestPrograms(Programs.TestCase):
    settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


@pytest.mark.exhaustive
class TestMorePrograms(Programs.TestCase):
    settings = settings(max_examples=400, stateful_step_count=30, deadline=None)
