"""Calls of functions on a tape of their own, for transforms in reverse mode."""

from cytape.autodiff.transform_arguments cimport (
    call_followed, export, has_tensors, note_kept_results, note_other_leaks,
    replace_arguments, warn_of_leaks)
from cytape.core.op_store cimport is_known
from cytape.core.typedefs cimport NO_ID
from cytape.ops.engine.tensor_vspace cimport gradients_of
from cytape.tensor.nest cimport flatten, pack_sequence_as
from cytape.tensor.recording.leaked_tensors cimport begin_call, ids_with_handles
from cytape.tensor.recording.recorders cimport enter, leave, new_recorder
from cytape.tensor.recording.thread_stack cimport building
from cytape.tensor.tensor cimport Tensor, another_handle
cimport numpy as cnp

from functools import partial

from cytape.autodiff.jacobian_rows import columns
from cytape.autodiff.seeds import densify, zeros
from cytape.autodiff.transform_arguments import report_unconnected
from cytape.tensor.recording.state import MOST_DETACHED, how_left, unrecorded
from cytape.tensor.structures import leaves_of_result


def gradients_by(recorder, target, list sources, seed):
    """Return the gradients of a target weighted by a seed; the tape is kept for others."""
    return gradients_of(recorder, [target], sources, [seed], True, None)


cdef bint is_connected(column) except -1:
    return type(column) is not tuple or any([gradient is not None for gradient in column])


cdef bint has_none(column) except -1:
    return type(column) is tuple and any([gradient is None for gradient in column])


cdef class RecordedCall:
    """One call of a function on a tape of its own, with new tensors for chosen arguments.

    An argument that is a tensor gets a new tensor, too, because the function may also read the
    original one, say as another argument, where it is a constant.

    With `quiet`, integers among the chosen arguments become float64, and arguments that the result
    does not depend on are not reported.
    """

    def __cinit__(self, fun, tuple args, dict kwargs, argnums, bint has_aux, bint quiet=False):
        cdef Tensor source
        cdef set ids
        aux = None
        self.quiet = quiet
        self.arrays_out = not has_tensors(args) and not (kwargs and has_tensors(kwargs))
        self.fun = fun
        self.argnums = argnums
        self.selected, self.sources, new_args = replace_arguments(
            fun, args, argnums, kwargs, quiet)
        self.recorder = new_recorder(False, False)
        if not quiet:
            self.recorder.detached = {}
        for source in self.sources:
            self.recorder.watch_id(source.held.id)
        begin_call(self.recorder)
        enter(self.recorder)
        try:
            self.value, aux = call_followed(fun, new_args, kwargs, has_aux)
        finally:
            if self.recorder.entry is not None:
                leave(self.recorder)
            new_args = None
            if building() is None:  # a graph can make handles at any time
                ids = ids_with_handles(self.recorder, (
                    (<Tensor>self.value).held.id if isinstance(self.value, Tensor) else NO_ID))
                for source in self.sources:
                    if source.held.handles > 1:
                        ids = set() if ids is None else ids
                        ids.add(source.held.id)
                if ids is not None:
                    note_other_leaks(ids, (self.value, aux))
        if self.arrays_out:
            self.note_kept(aux)
        self.aux = export(aux, self.arrays_out) if has_aux else None

    cpdef note_kept(self, aux=None):
        """Note the function's results as leaks if it kept them; for callers that get arrays."""
        # No name for the value here: its references are counted.
        note_kept_results(self.recorder, [self.value] if type(self.value) is Tensor else [
            x for x in leaves_of_result(self.value) if type(x) is Tensor], aux)

    def gradients(self, list outputs, list seeds=None, bint keep=False):
        """Differentiate; dense, zeros where unconnected, packed like the chosen arguments."""
        cdef list found, connected
        cdef Py_ssize_t i
        warn_of_leaks(self.fun, self.recorder, outputs)
        # If values were taken from tensors, gradients may be requested again.
        keep = keep or bool(self.recorder.detached)
        found = gradients_of(self.recorder, outputs, self.sources, seeds, keep, None)
        connected = [gradient is not None for gradient in found]
        if False in connected:
            self.report(connected)
        for i, source in enumerate(self.sources):
            if found[i] is None:
                found[i] = zeros(source.spec.extents, source.dtype)
            elif type(found[i]) is not Tensor:
                found[i] = densify(found[i])
            else:  # may be the caller's seed
                found[i] = another_handle((<Tensor>found[i]).held)
        return pack_sequence_as(self.selected, found)

    def rows(self, list targets not None, list seeds not None):
        """Return for each source the gradients of each target by each of its seeds."""
        cdef list found
        warn_of_leaks(self.fun, self.recorder, targets)
        found = [
            columns(partial(gradients_by, self.recorder, target, self.sources), target,
                    self.sources, own)
            for target, own in zip(targets, seeds, strict=True)]
        connected = [any([is_connected(own[i]) for own in found])
                     for i in range(len(self.sources))]
        if False in connected:
            self.report(connected)
        elif self.recorder.detached and any(
                [has_none(column) for own in found for column in own]) and not self.quiet:
            report_unconnected(self.fun, "its arguments", False, how_left(self.recorder.detached))
        return found

    def knows(self, Tensor tensor not None) -> bool:
        """Return whether a result depends on the chosen arguments, by ops on the tape."""
        return is_known(self.recorder, tensor.held.id)

    def knows_real_value(self) -> bool:
        """Return whether the value is a real array that depends on arguments of its dtype."""
        cdef Tensor value, source
        if type(self.value) is not Tensor:
            return False
        value = <Tensor>self.value
        if not cnp.PyTypeNum_ISFLOAT(value.held.spec.type_num):
            return False
        for source in self.sources:
            if source.held.spec.type_num != value.held.spec.type_num:
                return False
        return is_known(self.recorder, value.held.id)

    cdef int report(self, list connected) except -1:
        """Report each chosen argument of which no part is connected to the result."""
        if self.quiet:
            return 0
        by_number = [(self.argnums, self.selected)]
        if not isinstance(self.argnums, int):
            by_number = list(zip(self.argnums, self.selected, strict=True))
        argument_of = [i for i, part in by_number for _ in flatten(part)]
        reached = {i for i, found in zip(argument_of, connected, strict=True) if found}
        lost = set(argument_of) - reached
        left, certain = self.arguments_that_left(
            argument_of, [i for i, found in enumerate(connected) if not found])
        how = how_left(self.recorder.detached or {})
        detached = how if (lost & left if lost else left) else None
        what = "argument " + " and ".join(map(str, sorted(lost & left or lost)))
        report_unconnected(self.fun, what, bool(lost), detached, None if certain else how)
        return 0

    cdef tuple arguments_that_left(self, list argument_of, list places):
        """Return the arguments of sources that values taken from tensors depend on.

        And whether these are certainly all.
        """
        cdef list noted = [tensor for tensor, _ in (self.recorder.detached or {}).values()]
        sources = [self.sources[i] for i in places]
        if noted and len(sources) == len(self.sources):  # the noted values depend on one of them
            left = self.connected(noted, sources) or [True] * len(sources)
            return {argument_of[i] for i, of_it in zip(places, left, strict=True)
                    if of_it}, True
        found, certain = [False] * len(places), len(noted) < MOST_DETACHED
        together = self.connected(noted, sources)
        for one in [together] if together else [self.connected([x], sources) for x in noted]:
            if one is None:
                certain = False
            else:
                found = [a or b for a, b in zip(found, one, strict=True)]
        return {argument_of[i] for i, of_it in zip(places, found, strict=True)
                if of_it}, certain

    cdef list connected(self, list targets, list sources):
        """Return per source whether a target depends on it; None if the backward pass fails."""
        try:
            with unrecorded():
                found = gradients_of(self.recorder, targets, sources, None, True, None)
        except Exception:
            return None
        return [gradient is not None for gradient in found]
