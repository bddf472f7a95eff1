"""A host of forward accumulators: integers modulo a prime that know who holds them."""

import contextlib
import functools
import importlib
import itertools

PRIME = 10007

FORWARD_ACCUMULATORS = {"cytape.core": "cytape.core",
                        "cytape.core.reference": "cytape.core.reference_accumulator"}


def accumulator_type(core):
    """The ForwardAccumulator that goes with one of the two cores."""
    module = importlib.import_module(FORWARD_ACCUMULATORS[core.__name__])
    return module.ForwardAccumulator


class InjectedError(Exception):
    pass


class Value:
    """A tensor. With its last holder its tangents go."""

    def __init__(self, host, number):
        self.host = host
        self.number = number % PRIME
        self.id = next(host.new_ids)
        self.holders = 1
        host.made.append(self)

    def hold(self):
        assert self.holders > 0
        self.holders += 1
        return self

    def drop(self):
        assert self.holders > 0
        self.holders -= 1
        if self.holders == 0:
            for accumulator in self.host.accumulators:
                accumulator.delete_gradient(self.id)


def host_type(core):
    """The VSpace of values, on the VSpace class of one of the two cores."""

    class Host(core.VSpace):
        """Offers every op to its accumulators, the outermost first, up to one that is busy.

        What a function of an op makes and does not return is dropped when it is done.
        """

        def __init__(self):
            self.new_ids = itertools.count()
            self.made = []
            self.pools = [[]]  # values to be dropped: by the program, by each function that runs
            self.accumulators = []
            self.forward = True  # whether ops have a forward function
            self.log = []
            self.failing = None
            self.countdown = 0
            self.backwards = 0  # backward objects that live

        def enter(self, method, *details):
            self.log.append((method, *details))
            if method == self.failing:
                self.countdown -= 1
                if self.countdown == 0:
                    raise InjectedError

        def value(self, number):
            """A value that is dropped at the end of the function, or program, that makes it."""
            self.pools[-1].append(Value(self, number))
            return self.pools[-1][-1]

        def forget(self, value):
            """Drop a value before the end."""
            self.pools[-1].remove(value)
            value.drop()

        def held(self):
            return [value.number for value in self.made if value.holders]

        def check_end(self):
            """Let the program end, whose accumulators are gone, and check that nothing is left."""
            self.accumulators.clear()
            assert len(self.pools) == 1
            while self.pools[0]:
                self.pools[0].pop().drop()
            assert (self.held(), self.backwards) == ([], 0)

        # ---- execution

        def call(self, function, *arguments):
            """Call a function of an op; what it returns has a holder more, for the caller."""
            self.pools.append([])
            try:
                results = function(*arguments)
                return [value and value.hold() for value in results]
            finally:
                for value in self.pools.pop():
                    value.drop()

        def run(self, name, numbers, inputs, backward, forward=None, dtypes=None, existing=()):
            """Return an op's outputs, of which the last may exist already."""
            outputs = [*(self.value(number) for number in numbers), *existing]
            input_ids = [x.id for x in inputs]

            def getter():
                self.enter("getter", name)
                self.backwards += 1
                for x in inputs:
                    x.hold()
                return backward

            def deleter(function):
                assert function is backward
                self.backwards -= 1
                for x in inputs:
                    x.drop()

            forward_function = None
            if forward is not None and self.forward:
                forward_function = functools.partial(self.run_forward, forward)
            for accumulator in list(self.accumulators):
                accumulator.accumulate(
                    name, inputs, outputs, input_ids, dtypes or ["float64"] * len(inputs),
                    forward_function, getter, deleter)
                if accumulator.busy_accumulating:
                    break
            return outputs

        def run_forward(self, forward, tangents, use_batch):
            self.enter("forward", [tangent and tangent.number for tangent in tangents])
            return self.call(forward, *tangents)

        def multiply(self, x, y):
            return self.run("Multiply", [x.number * y.number], [x, y],
                            lambda dz: [self.multiply(dz, y), self.multiply(dz, x)],
                            lambda dx, dy: [self.add(self.multiply(dx, y), self.multiply(x, dy))],
                            )[0]

        def add(self, x, y):
            return self.run("Add", [x.number + y.number], [x, y],
                            lambda dz: [dz, dz], lambda dx, dy: [self.add(dx, dy)])[0]

        def scale(self, factor, x):
            return self.run("Scale", [factor * x.number], [x],
                            lambda dy: [self.scale(factor, dy)],
                            lambda dx: [self.scale(factor, dx)])[0]

        # ---- the methods of a VSpace

        def num_elements(self, gradient):
            return 1

        def ones_like(self, info):
            self.enter("ones_like", info.id)
            return Value(self, 1)

        def zeros_like(self, info):
            self.enter("zeros_like", info.id)
            return Value(self, 0)

        def aggregate_gradients(self, gradients):
            with self.taken(gradients):
                self.enter("aggregate_gradients", [gradient.number for gradient in gradients])
                return self.call(lambda: [functools.reduce(self.add, gradients)])[0]

        def call_backward_function(self, op_type, backward, unneeded, output_gradients):
            with self.taken(output_gradients):
                self.enter("call_backward_function", op_type, unneeded,
                           [dy and dy.number for dy in output_gradients])
                return self.call(backward, *output_gradients)

        @contextlib.contextmanager
        def taken(self, gradients):
            """Drop gradients at the end."""
            try:
                yield
            finally:
                for gradient in gradients:
                    if gradient is not None:
                        gradient.drop()

        def tensor_id(self, gradient):
            self.enter("tensor_id", gradient.number)
            return gradient.id

        def info_from_gradient(self, gradient):
            self.enter("info_from_gradient", gradient.number)
            return gradient

        def mark_as_result(self, gradient):
            gradient.hold()

        def delete_gradient(self, gradient):
            gradient.drop()

    return Host


def number_of(value):
    return value and value.number


def accumulate(accumulator, inputs, outputs, forward, dtypes=None):
    """Run an op with a forward function, and dtype float64 unless said, on the accumulator."""
    return accumulator.accumulate(
        "Op", inputs, outputs, inputs, dtypes or ["float64"] * len(inputs), forward)


def double(tangents, use_batch):
    return [2 * tangents[0]]
