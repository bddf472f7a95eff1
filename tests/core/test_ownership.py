"""Gradients are handed on, never lost and never used twice."""

import gc
import weakref

import pytest


class Gradient:
    """A number that knows how many hold it."""

    def __init__(self, value):
        self.value = value
        self.holders = 1

    def take(self):
        assert self.holders > 0
        self.holders -= 1
        return self.value


@pytest.fixture
def ledger_type(core):
    class Ledger(core.VSpace):
        """Checks that every gradient is consumed, deleted or handed out as often as it is held."""

        def __init__(self):
            self.gradients = []
            self.size = 1

        def new(self, value):
            self.gradients.append(Gradient(value))
            return self.gradients[-1]

        def num_elements(self, gradient):
            assert gradient.holders
            return self.size

        def aggregate_gradients(self, gradients):
            return self.new(sum(gradient.take() for gradient in gradients))

        def ones_like(self, info):
            return self.new(1)

        def zeros_like(self, info):
            return self.new(0)

        def call_backward_function(self, op_type, backward, unneeded, output_gradients):
            taken = [dy if dy is None else dy.take() for dy in output_gradients]
            return [dx if dx is None else self.new(dx) for dx in backward(*taken)]

        def mark_as_result(self, gradient):
            assert gradient.holders
            gradient.holders += 1

        def delete_gradient(self, gradient):
            gradient.take()

        def held(self):
            return [gradient.value for gradient in self.gradients if gradient.holders]

    return Ledger


@pytest.fixture
def record_network(record):
    def record_network(tape):
        tape.watch(0)
        record(tape, "A", [0], [1, 2], lambda dy, dz: [2 * dy + 3 * dz])
        record(tape, "B", [1, 1, 9], [3], lambda dy: [dy, dy, dy])
        record(tape, "C", [3, 2, 1], [4], lambda dy: [dy, None, 5 * dy])
        record(tape, "D", [0, 3], [5], lambda dy: [7 * dy, dy])
    return record_network


@pytest.mark.parametrize("size", [1, 1 << 27])
@pytest.mark.parametrize("targets, sources, gradients", [
    ([4, 5], [0], [25]), ([4, 4, 5], [0, 0, 1, 3, 9, 2], [39, 39, 16, 3, None, None]),
    ([5], [5, 2], [1, None]), ([77], [0], [None])])
def test_every_gradient_is_held_by_the_results_only(
        core, ledger_type, record_network, targets, sources, gradients, size):
    ledger = ledger_type()
    ledger.size = size
    tape = core.Tape()
    record_network(tape)
    results = tape.compute_gradient(ledger, targets, sources)
    assert [result if result is None else result.value for result in results] == gradients
    for result in results:
        if result is not None:
            result.take()
    assert ledger.held() == []


def test_the_users_gradients_stay_the_users(core, ledger_type, record_network):
    ledger = ledger_type()
    tape = core.Tape(persistent=True)
    record_network(tape)
    tape.watch(6)
    user = [Gradient(value) for value in (10, 20, 30)]
    results = tape.compute_gradient(ledger, [4, 6, 99], [0, 6], None, user)
    assert [result.value for result in results] == [140, 20]
    assert (results[1] is user[1], user[1].take()) == (True, 20)
    assert [gradient.holders for gradient in user] == [1, 1, 1]
    results[0].take()
    assert ledger.held() == []


@pytest.mark.parametrize("size", [1, 1 << 27])
@pytest.mark.parametrize("method, nth", [
    ("ones_like", 1), ("ones_like", 2), ("zeros_like", 1),
    *(("aggregate_gradients", n) for n in (1, 2)),
    *(("call_backward_function", n) for n in (1, 2, 3, 4))])
def test_no_gradient_is_held_after_an_error(core, ledger_type, record_network, size, method, nth):
    class Failing(ledger_type):
        pass

    def fail(self, *arguments):
        nonlocal nth
        nth -= 1
        if nth == 0:
            for gradient in sum((a for a in arguments if isinstance(a, list)), []):
                if isinstance(gradient, Gradient):
                    gradient.take()
            raise ZeroDivisionError
        return getattr(super(Failing, self), method)(*arguments)

    setattr(Failing, method, fail)
    failing = Failing()
    tape = core.Tape()
    record_network(tape)
    with pytest.raises(ZeroDivisionError):
        tape.compute_gradient(failing, [4, 5], [0, 1])
    assert failing.held() == []


@pytest.mark.parametrize("failing_call", [1, 2])
def test_an_error_in_early_aggregation_loses_nothing(core, numbers_type, record, failing_call):
    """The gradients that the op's other inputs were to get go too."""
    class Value:
        pass

    def aggregate(terms):
        nonlocal failing_call
        failing_call -= 1
        if failing_call == 0:
            raise ZeroDivisionError
        return terms[0]

    numbers = numbers_type()
    numbers.num_elements = lambda gradient: 1 << 27
    numbers.aggregate_gradients = aggregate
    made = []

    def backward(dy):
        values = [Value() for _ in range(12)]
        made.extend(map(weakref.ref, values))
        return values

    tape = core.Tape()
    tape.watch(0)
    tape.watch(1)
    record(tape, "Op", [0] * 9 + [1] * 3, [2], backward)
    with pytest.raises(ZeroDivisionError):
        tape.compute_gradient(numbers, [2], [0, 1])
    numbers.deleted.clear()
    gc.collect()
    assert [value for value in made if value() is not None] == []
    assert record.released == ["Op"]
