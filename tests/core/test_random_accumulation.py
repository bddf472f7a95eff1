"""Random programs on the Cython accumulator and on the plain-Python one, step by step the same.

A program watches, runs ops and forgets values in any order, under two accumulators, one inside the
other. Its ops compute tangents by a forward function or are transposed; some of the functions fail
or use the accumulators while they compute. Values know who holds them: none is lost.
"""

import importlib

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cytape.errors import CytapeError
from tests.core.accumulating import InjectedError, accumulator_type, host_type

N_ACCUMULATORS = 2


class Side:
    """One of the two cores, and the program's state on it."""

    def __init__(self, name):
        core = importlib.import_module(name)
        self.forward_accumulator = accumulator_type(core)
        self.host = host_type(core)()
        self.values = []
        for _ in range(N_ACCUMULATORS):
            self.enter_accumulator()

    def enter_accumulator(self):
        self.host.accumulators.append(self.forward_accumulator(self.host))

    def exit_accumulator(self, outer):
        del self.host.accumulators[0 if outer else -1]

    def accumulator(self, number):
        return self.host.accumulators[number]

    def pick(self, number):
        return self.values[-1 - number % len(self.values)]

    def value(self, number):
        self.values.append(self.host.value(number))

    def watch(self, which, number, tangent):
        self.accumulator(which).watch(self.pick(number).id, self.host.value(tangent))

    def forget(self, number):
        if len(self.values) > 1:
            value = self.pick(number)
            self.values.remove(value)
            self.host.forget(value)

    def delete(self, which, number):
        self.accumulator(which).delete_gradient(self.pick(number).id)

    def push(self, which):
        self.accumulator(which).push_state()

    def pop(self, which):
        self.accumulator(which).pop_state()

    def op(self, inputs, n_outputs, takes_over, trainable, forward, backward, extra):
        host = self.host
        inputs = [self.pick(number) for number in inputs]
        existing = [self.pick(takes_over)] if takes_over is not None else []
        existing = [value for value in existing if value not in inputs]
        n_new = n_outputs - len(existing)
        outputs = host.run(
            "Op", range(10, 10 + n_new), inputs,
            lambda *dys: self.results(backward, len(inputs), inputs, dys, extra),
            forward and (lambda *dxs: self.results(forward, n_outputs, inputs, dxs, extra)),
            ["float64" if trainable >> i & 1 else "int64" for i in range(len(inputs))], existing)
        self.values += outputs[:n_new]

    def results(self, expressions, count, inputs, arguments, extra):
        """Return what a function of an op computes."""
        name, which, number = extra
        x = inputs[number % len(inputs)]
        if name == "raise":
            raise InjectedError
        if name == "wrong number":
            return []
        if name == "delete":
            self.accumulator(which).delete_gradient(x.id)
        if name == "watch":
            self.accumulator(which).watch(x.id, self.host.value(number))
        if name == "push":
            self.push(which)
            self.host.multiply(x, x)
            self.pop(which)
        if name == "push only":
            self.push(which)
        return [self.compute(expressions[i % len(expressions)], inputs, arguments)
                for i in range(count)]

    def compute(self, expression, inputs, arguments):
        kind, *operands = expression
        if kind == "argument":
            return arguments[operands[0] % len(arguments)]
        if kind == "input":
            return inputs[operands[0] % len(inputs)]
        if kind == "none":
            return None
        values = [self.compute(operand, inputs, arguments) for operand in operands]
        if None in values:
            return None
        if kind == "scale":
            return self.host.scale(3, *values)
        return getattr(self.host, kind)(*values)

    def outcome(self, method, *arguments):
        try:
            return getattr(self, method)(*arguments)
        except (InjectedError, CytapeError) as error:
            return type(error)
        finally:
            self.host.failing = None

    def fail_at(self, method, countdown):
        self.host.failing, self.host.countdown = method, countdown

    def snapshot(self):
        ids = [value.id for value in self.values]
        accumulators = self.host.accumulators
        tangents = [[accumulator.fetch_jvp(id) for id in ids] for accumulator in accumulators]
        return {
            "values": [(value.id, value.number) for value in self.values],
            "tangents": [[tangent and (tangent.id, tangent.number) for tangent in row]
                         for row in tangents],
            "record": [[accumulator.should_record([id], [dtype])
                        for id in ids for dtype in ("float64", "int64")]
                       for accumulator in accumulators],
            "busy": [accumulator.busy_accumulating for accumulator in accumulators],
            "backwards": self.host.backwards, "log": self.host.log,
        }

    def holders(self):
        return {value.id: value.holders for value in self.host.made if value.holders}


NUMBERS = st.integers(0, 5)
ACCUMULATORS = st.integers(0, N_ACCUMULATORS - 1)
LEAVES = st.one_of(
    st.tuples(st.just("argument"), NUMBERS), st.tuples(st.just("argument"), NUMBERS),
    st.tuples(st.just("input"), NUMBERS), st.just(("none",)))
EXPRESSIONS = st.lists(st.recursive(LEAVES, lambda operands: st.one_of(
    st.tuples(st.just("scale"), operands),
    st.tuples(st.sampled_from(["add", "multiply"]), operands, operands)), max_leaves=4),
    min_size=1, max_size=3)
EXTRAS = st.tuples(
    st.sampled_from([None] * 12 + ["raise", "wrong number", "delete", "watch", "push",
                                   "push only"]), ACCUMULATORS, NUMBERS)
OPS = st.lists(st.tuples(
    st.lists(NUMBERS, min_size=1, max_size=3), st.integers(1, 3),
    st.none() | st.none() | st.none() | NUMBERS, st.sampled_from([0b111] * 4 + [0b101, 0b110]),
    st.none() | EXPRESSIONS, EXPRESSIONS, EXTRAS), min_size=1, max_size=3)
FAILING = st.sampled_from([
    "zeros_like", "ones_like", "aggregate_gradients", "call_backward_function", "tensor_id",
    "info_from_gradient", "getter", "forward"])


class Accumulations(RuleBasedStateMachine):
    @initialize(tangents=st.lists(st.integers(1, 3), min_size=N_ACCUMULATORS,
                                  max_size=N_ACCUMULATORS), forward=st.booleans())
    def start(self, tangents, forward):
        self.sides = [Side("cytape.core"), Side("cytape.core.reference")]
        for side in self.sides:
            side.host.forward = forward
        for number in (2, 3, 5):
            self.on_both("value", number)
        for which, tangent in enumerate(tangents):
            self.on_both("watch", which, which, tangent)

    def on_both(self, method, *arguments):
        fast, slow = (side.outcome(method, *arguments) for side in self.sides)
        assert fast == slow
        fast, slow = (side.holders() for side in self.sides)
        assert fast == slow

    @rule(number=NUMBERS)
    def value(self, number):
        self.on_both("value", number)

    @rule(which=ACCUMULATORS, number=NUMBERS, tangent=NUMBERS)
    def watch(self, which, number, tangent):
        self.on_both("watch", which, number, tangent)

    @rule(ops=OPS)
    def run(self, ops):
        for op in ops:
            self.on_both("op", *op)

    @rule(op=OPS.map(lambda ops: ops[0]), method=FAILING, countdown=st.integers(1, 4))
    def run_and_fail(self, op, method, countdown):
        for side in self.sides:
            side.fail_at(method, countdown)
        self.on_both("op", *op)

    @rule(which=ACCUMULATORS, number=NUMBERS, tangent=NUMBERS)
    def watch_and_fail(self, which, number, tangent):
        for side in self.sides:
            side.fail_at("aggregate_gradients", 1)
        self.on_both("watch", which, number, tangent)

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=3))
    def forget(self, numbers):
        for number in numbers:
            self.on_both("forget", number)

    @rule(which=ACCUMULATORS, number=NUMBERS)
    def delete(self, which, number):
        self.on_both("delete", which, number)

    @rule(which=ACCUMULATORS, push=st.booleans())
    def push_or_pop(self, which, push):
        self.on_both("push" if push else "pop", which)

    @rule(outer=st.booleans())
    def replace_an_accumulator(self, outer):
        self.on_both("exit_accumulator", outer)
        self.on_both("enter_accumulator")

    @invariant()
    def the_sides_agree(self):
        if hasattr(self, "sides"):
            fast, slow = (side.snapshot() for side in self.sides)
            assert fast == slow

    def teardown(self):
        if hasattr(self, "sides"):
            for side in self.sides:
                side.host.check_end()


class TestAccumulations(Accumulations.TestCase):
    settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


@pytest.mark.exhaustive
class TestMoreAccumulations(Accumulations.TestCase):
    settings = settings(max_examples=400, stateful_step_count=30, deadline=None)
