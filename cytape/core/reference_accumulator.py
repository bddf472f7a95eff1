"""Forward mode in plain Python: the contract of `cytape.core.ForwardAccumulator`.

The tests compare both. It also documents how forward mode works:

a. A tangent is the derivative of a tensor in one direction. It is computed right after the op that
   made the tensor and stored by the tensor's id, so no op is recorded.
b. A forward function maps the tangents of an op's inputs to those of its outputs. Without one, the
   backward function is transposed: its result is linear in the gradients of the outputs, so its
   derivative in these, weighted with the tangents, gives the tangents of the outputs.
c. The accumulator does not track the ops that compute tangents. Those of a transposed backward
   function are recorded on the tape that differentiates it.
"""

from dataclasses import dataclass

from cytape.core.reference import Tape, VSpace, _Backward, _check_id, is_trainable
from cytape.errors import NotDifferentiableError, TapeStateError


@dataclass(slots=True)
class _CallState:
    accumulating: bool = False
    tape: Tape | None = None  # records the backward function that is being transposed


class ForwardAccumulator:
    """Computes tangents (Jacobian-vector products); see `cytape.core.ForwardAccumulator`.

    Examples
    --------
    >>> class Numbers(VSpace):
    ...     def zeros_like(self, info): return 0.0
    >>> accumulator = ForwardAccumulator(Numbers())
    >>> accumulator.watch(1, 5.0)
    >>> accumulator.accumulate("Square", [1], [2], [1], ["float64"],
    ...                        lambda tangents, use_batch: [2 * 3.0 * tangents[0]])
    True
    >>> accumulator.fetch_jvp(2)
    30.0
    """

    def __init__(self, vspace, use_batch=False):
        self._tangents = {}  # id -> tangent
        self._states = [_CallState()]
        self._use_batch = bool(use_batch)
        self._vspace = vspace
        if not isinstance(vspace, VSpace):
            raise TypeError(f"a ForwardAccumulator needs a VSpace, got {type(vspace).__name__}")

    def __del__(self):
        for tensor_id in list(self._tangents):
            self.delete_gradient(tensor_id)

    def watch(self, tensor_id, tangent):
        """Add a tangent to the one that a tensor may have."""
        _check_id(tensor_id)
        self._vspace.mark_as_result(tangent)
        if tensor_id in self._tangents:
            terms = [tangent, self._tangents[tensor_id]]
            self._vspace.mark_as_result(terms[1])  # not consumed if the sum fails
            tangent = self._vspace.aggregate_gradients(terms)
            self.delete_gradient(tensor_id)
        self._tangents[tensor_id] = tangent

    def should_record(self, ids, dtypes):
        """Return whether a trainable input has a tangent, or the tape would record the op."""
        if len(ids) != len(dtypes):
            raise ValueError(f"every id needs a dtype: got {len(ids)} ids and {len(dtypes)} dtypes")
        state = self._states[-1]
        if state.tape is not None:
            return state.tape.should_record(ids, dtypes)
        return not state.accumulating and any(
            tensor_id in self._tangents and is_trainable(dtype)
            for tensor_id, dtype in zip(ids, dtypes, strict=True))

    def accumulate(self, op_type, inputs, outputs, input_ids, input_dtypes,
                   forward_function=None, backward_getter=None, deleter=None):
        """Compute the tangents of an op's outputs if `should_record`. Return whether."""
        if not self.should_record(input_ids, input_dtypes):
            return False
        name = getattr(op_type, "name", op_type)
        tape = self._states[-1].tape
        if backward_getter is None and (forward_function is None or tape is not None):
            raise NotDifferentiableError(f"op {name!r} has no function to compute a tangent with")
        if tape is not None:
            return tape.record(op_type, outputs, input_ids, input_dtypes, backward_getter, deleter)
        output_ids = [info if isinstance(info, int) else info.id for info in outputs]
        for tensor_id in output_ids:
            _check_id(tensor_id)
        depth = len(self._states)
        held = []
        try:
            input_tangents = self._input_tangents(inputs, input_ids, input_dtypes, held)
            self._states.append(_CallState(accumulating=True))
            if forward_function is None:
                backward = backward_getter, deleter
                tangents = self._transpose(name, outputs, backward, input_tangents)
            else:
                tangents = list(forward_function(input_tangents, self._use_batch))
        finally:
            del self._states[depth:]
            for tangent in held:
                self._vspace.delete_gradient(tangent)
        self._store(name, output_ids, tangents)
        return True

    def fetch_jvp(self, tensor_id):
        """Return a tensor's tangent, or None."""
        return self._tangents.get(tensor_id)

    def delete_gradient(self, tensor_id):
        """Drop a tensor's tangent, if there is one."""
        if tensor_id in self._tangents:
            self._vspace.delete_gradient(self._tangents.pop(tensor_id))

    def push_state(self):
        """Track ops until `pop_state` even if a tangent is being computed."""
        self._states.append(_CallState())

    def pop_state(self):
        """Restore the state before `push_state`."""
        if len(self._states) == 1:
            raise TapeStateError("pop_state was called more often than push_state")
        self._states.pop()

    @property
    def busy_accumulating(self):
        """Whether a tangent is being computed, and `push_state` was not called since."""
        return self._states[-1].accumulating

    @property
    def use_batch(self):
        """Whether tangents are batches of tangents."""
        return self._use_batch

    def _input_tangents(self, inputs, ids, dtypes, held):
        """Return the tangents of an op's inputs, zeros if missing, and add them to `held`."""
        tangents = []
        for info, tensor_id, dtype in zip(inputs, ids, dtypes, strict=True):
            tangent = self._tangents.get(tensor_id)
            if tangent is not None:
                self._vspace.mark_as_result(tangent)  # it may be deleted while it is in use
            elif is_trainable(dtype):
                tangent = self._vspace.zeros_like(info)
            if tangent is not None:
                held.append(tangent)
            tangents.append(tangent)
        return tangents

    def _transpose(self, name, outputs, backward, input_tangents):
        """Return the outputs' tangents, computed with the op's backward function."""
        vspace = self._vspace
        state = self._states[-1]
        state.tape = Tape()
        seeds = []
        gradients = []
        try:
            getter, deleter = backward
            backward = _Backward(getter(), deleter)
            try:
                seed_ids = []
                for info in outputs:
                    seeds.append(vspace.ones_like(info))
                    seed_ids.append(vspace.tensor_id(seeds[-1]))
                    state.tape.watch(seed_ids[-1])
                unneeded = [i for i, tangent in enumerate(input_tangents) if tangent is None]
                passed, seeds = seeds, []
                gradients = list(vspace.call_backward_function(
                    name, backward.function, unneeded, passed))
            finally:
                del backward
            if len(gradients) != len(input_tangents):
                raise TapeStateError(
                    f"the backward function of op {name!r} must return one gradient or None per "
                    f"input: expected {len(input_tangents)}, received {len(gradients)}")
            tape, state.tape = state.tape, None
            targets, both, weights = [], {}, []
            for gradient, tangent in zip(gradients, input_tangents, strict=True):
                if gradient is not None and tangent is not None:
                    targets.append(vspace.tensor_id(gradient))
                    weights.append(tangent)
                    if targets[-1] in seed_ids:
                        both[targets[-1]] = vspace.info_from_gradient(gradient)
            return tape.compute_gradient(vspace, targets, seed_ids, both, weights)
        finally:
            state.tape = None
            for gradient in seeds + gradients:
                if gradient is not None:
                    vspace.delete_gradient(gradient)

    def _store(self, name, output_ids, tangents):
        """Keep the tangents of outputs that have none, and drop the others."""
        kept = len(tangents) == len(output_ids)
        for tensor_id, tangent in zip(output_ids, tangents, strict=False):
            if tangent is None:
                continue
            if kept and tensor_id not in self._tangents:
                self._tangents[tensor_id] = tangent
            else:
                self._vspace.delete_gradient(tangent)
        if not kept:
            for tangent in tangents[len(output_ids):]:
                if tangent is not None:
                    self._vspace.delete_gradient(tangent)
            raise TapeStateError(
                f"the forward function of op {name!r} must return one tangent or None per output: "
                f"expected {len(output_ids)}, received {len(tangents)}")
