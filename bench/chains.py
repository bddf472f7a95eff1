"""Long chains of binary ops, recorded and differentiated on a bare tape.

Every op multiplies the output of the one before with the same weight. A host drives a tape the way
a library with tensors of its own would, and leaves out the tensors: gradients count paths, so the
gradient of the chain's end is 1 for its source, and for the weight it is the number of ops.
"""

SOURCE, WEIGHT, FIRST_OUTPUT = range(3)  # ids


class Refused(Exception):
    """The seed is refused, so all of a gradient that happens is its preparation."""


class PathCounts:
    """The methods of the smallest possible VSpace."""

    refuses_to_seed = False

    def num_elements(self, gradient):
        return 1

    def aggregate_gradients(self, gradients):
        return sum(gradients)

    def ones_like(self, info):
        if self.refuses_to_seed:
            raise Refused
        return 1

    def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
        return output_gradients * 2


def no_backward():
    return None


class PythonHost:
    """Drives the tape of `core`, either `cytape.core` or `cytape.core.reference`, from Python."""

    def __init__(self, core):
        self.core = core
        self.op_type = core.OpType("Multiply")
        self.dtypes = ("float64", "float64")
        self.vspace = type("Counts", (PathCounts, core.VSpace), {})

    def new_tape(self, persistent=False):
        tape = self.core.Tape(persistent)
        tape.watch(SOURCE)
        tape.watch(WEIGHT)
        return tape

    def record(self, tape, n_ops):
        record, op_type, dtypes = tape.record, self.op_type, self.dtypes
        x = SOURCE
        for y in range(FIRST_OUTPUT, FIRST_OUTPUT + n_ops):
            record(op_type, (y,), (x, WEIGHT), dtypes, no_backward)
            x = y

    def delete(self, tape, n_ops):
        delete_trace = tape.delete_trace
        for x in range(FIRST_OUTPUT, FIRST_OUTPUT + n_ops):
            delete_trace(x)

    def record_and_delete(self, tape, n_ops):
        """Let go of each tensor once its successor is there, as a loop over ``x = x * w`` does."""
        record, delete_trace = tape.record, tape.delete_trace
        op_type, dtypes = self.op_type, self.dtypes
        x = SOURCE
        for y in range(FIRST_OUTPUT, FIRST_OUTPUT + n_ops):
            record(op_type, (y,), (x, WEIGHT), dtypes, no_backward)
            delete_trace(x)
            x = y
        delete_trace(x)

    def gradient(self, tape, target, source):
        return tape.compute_gradient(self.vspace(), [target], [source])[0]

    def prepare(self, tape, target, source):
        space = self.vspace()
        space.refuses_to_seed = True
        try:
            tape.compute_gradient(space, [target], [source])
        except Refused:
            pass
