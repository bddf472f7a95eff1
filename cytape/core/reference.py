"""The tape in plain Python: the contract of `cytape.core`, with dicts instead of C arrays.

The tests compare both, and the benchmarks use it as their baseline. It also documents how a tape
works:

a. A tensor is an int id, never used for another tensor; an op is a number, increasing in the order
   of recording. A tape knows the tensors that are watched or were produced by its ops.
b. A use of a tensor is an occurrence among the inputs of a recorded op or, for an output, the
   handle that the host holds. An op is dropped, with its outputs, when none of them has a use left.
c. A gradient is computed from the latest op to the earliest. An op is ready when every needed op
   that uses one of its outputs has run, so its backward function is called exactly once.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Any

from cytape.errors import InvalidGradientError, InvalidIdError, TapeStateError

TRAINABLE = frozenset((
    "float16", "bfloat16", "float32", "float64", "longdouble", "float96", "float128",
    "complex64", "complex128", "clongdouble", "complex192", "complex256", "resource", "variant"))

AGGREGATE_ABOVE = 4  # more gradients than this for one tensor ...
AGGREGATE_BYTES = 128 * 1024 * 1024  # ... with more bytes than this in all are summed early
BYTES_PER_ELEMENT = 4

WATCHED = -1  # in place of the number of the op that produced a tensor


def is_trainable(dtype):
    """Return whether tensors of this dtype (a name, or an object with one) have gradients."""
    if not isinstance(dtype, str):
        dtype = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return dtype in TRAINABLE


class OpType:
    """The name of an op, and the positions of outputs whose gradient may stay None.

    If all of the first 64 are given, all later ones are, too.
    """

    def __init__(self, name, optional_gradients=()):
        self.name = name
        self.optional_gradients = frozenset(optional_gradients)


class VSpace:
    """Methods that a tape calls on its host; `cytape.core.VSpace` documents each."""

    def _to_override(self, *arguments):
        raise NotImplementedError("a VSpace has to override the methods that the tape calls")

    num_elements = aggregate_gradients = ones_like = zeros_like = _to_override
    call_backward_function = tensor_id = info_from_gradient = _to_override

    def mark_as_result(self, gradient):
        """Note that another owner holds a gradient: it must not be changed in place."""

    def delete_gradient(self, gradient):
        """Note that the tape drops a gradient."""


@dataclass(slots=True, eq=False)
class _Backward:
    """Backward function and saved values of a recorded op; calls the deleter at the end.

    The deleter runs in `__del__`, so at most once, and its errors go to `sys.unraisablehook`.
    """

    function: Any
    deleter: Any

    def __del__(self):
        if self.deleter is not None:
            self.deleter(self.function)


@dataclass(slots=True, eq=False)
class _Op:
    op_type: OpType
    infos: list
    output_ids: list  # None: a later op took the output over
    input_ids: list
    backward: _Backward | None  # None: released

    def release(self):
        self.backward = None


class Tape:
    """Records ops and computes gradients; see `cytape.core.Tape`.

    Examples
    --------
    >>> tape = Tape()
    >>> tape.watch(1)
    >>> tape.record("Add", [2], [1, 1], ["float64"] * 2, lambda: lambda dy: [dy, dy])
    True
    >>> tape.num_ops, tape.usages()
    (1, {1: 2, 2: 1})
    """

    def __init__(self, persistent=False):
        self.persistent = persistent
        self._producers = {}  # id -> number of the op that produced it, or WATCHED
        self._usages = {}  # id -> uses left
        self._handles = set()  # ids of outputs whose handle is one of the uses
        self._ops = {}  # number -> _Op; numbers of consumed ops are not in it
        self._next_number = 0
        self._doomed = []  # ops that left the tape and wait for their release
        self._releasing = False
        self._sweeps = 0  # gradients being computed now
        self._postponed = []  # ids whose trace is deleted when the last sweep ends

    def watch(self, tensor_id):
        """Make a tensor known, unless it is."""
        _check_id(tensor_id)
        self._producers.setdefault(tensor_id, WATCHED)

    def should_record(self, ids, dtypes):
        """Return whether some input is both known and trainable."""
        if len(ids) != len(dtypes):
            raise ValueError(f"every id needs a dtype: got {len(ids)} ids and {len(dtypes)} dtypes")
        for tensor_id, dtype in zip(ids, dtypes, strict=True):
            if tensor_id in self._producers and is_trainable(dtype):
                return True
        return False

    def record(self, op_type, outputs, input_ids, input_dtypes, backward_getter, deleter=None):
        """Record an op if `should_record`; only then make its backward object. Return whether."""
        if not self.should_record(input_ids, input_dtypes):
            return False
        if isinstance(op_type, str):
            op_type = OpType(op_type)
        infos, input_ids = list(outputs), list(input_ids)
        output_ids = [info if isinstance(info, int) else info.id for info in infos]
        for tensor_id in chain(input_ids, output_ids):
            _check_id(tensor_id)
        for tensor_id in output_ids:
            if tensor_id in input_ids or output_ids.count(tensor_id) > 1:
                raise InvalidIdError(f"output {tensor_id} of op {op_type.name!r} is listed twice or"
                                     " is its own input; give every output an id of its own")
        backward = _Backward(backward_getter(), deleter)
        number = self._next_number
        self._next_number += 1
        for tensor_id in input_ids:
            self._usages[tensor_id] = self._usages.get(tensor_id, 0) + 1
        self._ops[number] = _Op(op_type, infos, output_ids, input_ids, backward)
        replaced = []
        for tensor_id in output_ids:
            older = self._producers.get(tensor_id, WATCHED)
            self._producers[tensor_id] = number
            self._usages.setdefault(tensor_id, 0)
            if tensor_id not in self._handles:
                self._handles.add(tensor_id)
                self._usages[tensor_id] += 1
            if older in self._ops:
                outputs = self._ops[older].output_ids
                outputs[outputs.index(tensor_id)] = None
                replaced += self._remove_unused(older)
        for op in replaced:
            self._release([op, *self._drop_uses(op.input_ids)])
        return True

    def delete_trace(self, tensor_id):
        """Release the use of a tensor's handle, and all ops without uses.

        While a gradient is being computed the release is postponed.
        """
        if self._sweeps:
            self._postponed.append(tensor_id)
            return
        if tensor_id in self._handles:
            self._handles.remove(tensor_id)
            self._release(self._drop_uses([tensor_id]))

    def compute_gradient(self, vspace, targets, sources, sources_that_are_targets=None,
                         output_gradients=None, build_default_zeros_grads=True):
        """Return, for each source, the gradient of the targets' sum or None."""
        if output_gradients is None:
            output_gradients = [None] * len(targets)
        if len(output_gradients) != len(targets):
            raise InvalidGradientError(
                "output_gradients must have one entry (None means ones) for each of the "
                f"{len(targets)} targets, got {len(output_gradients)}")
        for tensor_id in chain(targets, sources):
            _check_id(tensor_id)
        for target, gradient in zip(targets, output_gradients, strict=True):
            number = self._producers.get(target, WATCHED)
            if gradient is None and number != WATCHED and number not in self._ops:
                raise TapeStateError(
                    f"cannot find the op that produced target {target}: a gradient consumed it;"
                    " make the tape persistent to compute more than one")
        sweep = _Sweep(vspace, self._producers, self._ops, targets, set(sources))
        consumed = {}
        if not self.persistent:
            consumed, self._ops = self._ops, consumed
        self._sweeps += 1
        try:
            for number, op in consumed.items():
                if number not in sweep.needed:
                    op.release()
            sweep.seed(targets, sources_that_are_targets or {}, output_gradients)
            sweep.run(build_default_zeros_grads, release=not self.persistent)
            return sweep.results(sources)
        finally:
            for op in consumed.values():
                op.release()
                self._doomed += self._drop_uses(op.input_ids)
                for tensor_id in op.output_ids:
                    if self._usages.get(tensor_id) == 0:
                        del self._usages[tensor_id], self._producers[tensor_id]
            for gradient in chain.from_iterable(sweep.gradients.values()):
                vspace.delete_gradient(gradient)
            self._sweeps -= 1
            if self._sweeps == 0:
                self._release([])
                postponed, self._postponed = self._postponed, []
                for tensor_id in postponed:
                    self.delete_trace(tensor_id)

    def is_known(self, tensor_id):
        """Whether a tensor is watched or was produced by an op on this tape."""
        return tensor_id in self._producers

    def usages(self):
        """Return the number of uses of every input and output of a live op."""
        ids = chain.from_iterable(op.input_ids + op.output_ids for op in self._ops.values())
        return {tensor_id: self._usages[tensor_id] for tensor_id in ids if tensor_id is not None}

    def recorded_ops(self):
        """List the name of each op, and the ids of its inputs and outputs."""
        return [(op.op_type.name, list(op.input_ids), list(op.output_ids))
                for op in self._ops.values()]

    @property
    def num_ops(self):
        """Number of ops on the tape."""
        return len(self._ops)

    @property
    def num_known(self):
        """Number of ids that are watched or were produced on this tape."""
        return len(self._producers)

    @property
    def nbytes(self):
        """Return the bytes of the tape's own data, saved values of ops excluded."""
        ops = chain.from_iterable(
            (op, op.infos, op.output_ids, op.input_ids, op.backward) for op in self._ops.values())
        return sum(map(sys.getsizeof, chain((self._producers, self._usages, self._ops), ops)))

    def _remove_unused(self, number):
        """Remove an op if its outputs have no uses; return a list of it, or an empty one."""
        op = self._ops[number]
        outputs = [tensor_id for tensor_id in op.output_ids if tensor_id is not None]
        if any(self._usages[tensor_id] for tensor_id in outputs):
            return []
        for tensor_id in outputs:
            del self._usages[tensor_id], self._producers[tensor_id]
        return [self._ops.pop(number)]

    def _drop_uses(self, ids):
        """Release one use of each id; return the ops without uses left, consumers first."""
        doomed = []
        stack = list(ids)
        while stack:
            tensor_id = stack.pop()
            self._usages[tensor_id] -= 1
            if self._usages[tensor_id]:
                continue
            number = self._producers.get(tensor_id, WATCHED)
            if number in self._ops:
                for op in self._remove_unused(number):
                    doomed.append(op)
                    stack += op.input_ids
            else:
                del self._usages[tensor_id]
                if number != WATCHED:
                    del self._producers[tensor_id]
        return doomed

    def _release(self, ops):
        """Release ops that left the tape, the latest first: no op after its producers.

        A deleter may run any code and delete traces; the ops that it dooms are released next.
        """
        self._doomed += ops
        if self._releasing:
            return  # the running call releases these too
        self._releasing = True
        try:
            while self._doomed and not self._sweeps:
                self._doomed.pop().release()
        finally:
            self._releasing = False


class _Sweep:
    """One pass over the ops that the targets need."""

    def __init__(self, vspace, known, ops, targets, sources):
        self.vspace = vspace
        self.known = known
        self.sources = sources
        self.needed = {}  # op number -> _Op that has not run yet
        self.pending = {}  # id -> uses by such ops
        self.producers = {}  # id in pending -> number of the needed op that produced it
        self.gradients = {}  # id -> gradients that arrived
        stack = list(targets)
        while stack:
            number = known.get(stack.pop())
            if number in self.needed or number not in ops:
                continue
            op = self.needed[number] = ops[number]
            for tensor_id in op.input_ids:
                if tensor_id not in self.pending:
                    self.pending[tensor_id] = 0
                    if known.get(tensor_id) in ops:
                        self.producers[tensor_id] = known[tensor_id]
                        stack.append(tensor_id)
                self.pending[tensor_id] += 1
        self.missing = Counter(self.producers.values())  # op number -> outputs with pending uses

    def seed(self, targets, sources_that_are_targets, output_gradients):
        for target, gradient in zip(targets, output_gradients, strict=True):
            if gradient is not None:
                self.vspace.mark_as_result(gradient)
            elif self.known.get(target) in self.needed:
                op = self.needed[self.known[target]]
                gradient = self.vspace.ones_like(op.infos[op.output_ids.index(target)])
            elif target in sources_that_are_targets:
                gradient = self.vspace.ones_like(sources_that_are_targets[target])
            else:
                continue
            self.gradients.setdefault(target, []).append(gradient)

    def run(self, build_zeros, release):
        ready = [-number for number in self.needed if number not in self.missing]
        heapify(ready)
        while ready:
            op = self.needed.pop(-heappop(ready))
            try:
                input_gradients = self.differentiate(op, build_zeros)
            finally:
                if release:
                    op.release()
            for tensor_id, gradient in zip(op.input_ids, input_gradients, strict=True):
                producer = self.producers.get(tensor_id)
                if gradient is not None:
                    self.deliver(tensor_id, gradient)
                self.pending[tensor_id] -= 1
                if producer is not None and self.pending[tensor_id] == 0:
                    self.missing[producer] -= 1
                    if self.missing[producer] == 0:
                        heappush(ready, -producer)
        if self.needed:
            raise TapeStateError(
                "ops depend on each other in a circle: an output was recorded again downstream")

    def differentiate(self, op, build_zeros):
        """Call an op's backward function, unless no gradient arrived for any of its outputs."""
        output_gradients = []
        for tensor_id in op.output_ids:
            self.aggregate(tensor_id)
            output_gradients += self.gradients.get(tensor_id, [None])
        if all(gradient is None for gradient in output_gradients):
            return [None] * len(op.input_ids)
        for position, gradient in enumerate(output_gradients):
            if (gradient is None and build_zeros
                    and position not in op.op_type.optional_gradients
                    and not op.op_type.optional_gradients.issuperset(range(64))):
                output_gradients[position] = self.vspace.zeros_like(op.infos[position])
        for tensor_id in op.output_ids:
            if tensor_id not in self.sources:
                self.gradients.pop(tensor_id, None)
            elif tensor_id in self.gradients:
                self.vspace.mark_as_result(self.gradients[tensor_id][0])
        unneeded = [position for position, tensor_id in enumerate(op.input_ids)
                    if tensor_id not in self.known and tensor_id not in self.sources]
        input_gradients = self.vspace.call_backward_function(
            op.op_type.name, op.backward.function, unneeded, output_gradients)
        if len(input_gradients) != len(op.input_ids):
            raise TapeStateError(
                f"the backward function of op {op.op_type.name!r} must return one gradient or None "
                f"per input: expected {len(op.input_ids)}, received {len(input_gradients)}")
        return input_gradients

    def deliver(self, tensor_id, gradient):
        if tensor_id not in self.producers and (
                tensor_id not in self.sources or tensor_id not in self.known):
            self.vspace.delete_gradient(gradient)
            return
        arrived = self.gradients.setdefault(tensor_id, [])
        arrived.append(gradient)
        if len(arrived) > AGGREGATE_ABOVE:
            n_bytes = len(arrived) * self.vspace.num_elements(arrived[0]) * BYTES_PER_ELEMENT
            if n_bytes > AGGREGATE_BYTES:
                self.aggregate(tensor_id)

    def aggregate(self, tensor_id):
        """Replace the gradients that arrived for a tensor by their sum."""
        if len(self.gradients.get(tensor_id, ())) > 1:
            terms = self.gradients.pop(tensor_id)
            self.gradients[tensor_id] = [self.vspace.aggregate_gradients(terms)]

    def results(self, sources):
        for source in sources:
            self.aggregate(source)
        results = [self.gradients.get(source, [None])[0] for source in sources]
        for gradient in results:
            if gradient is not None:
                self.vspace.mark_as_result(gradient)
        return results


def _check_id(tensor_id):
    if tensor_id < 0:
        raise InvalidIdError(f"tensor ids are at least 0, got {tensor_id}")
