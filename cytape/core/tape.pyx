from .backprop cimport backpropagate
from .trace cimport check_id
from cpython.ref cimport Py_DECREF, PyObject
from libc.stdlib cimport calloc, free

from cytape.errors import InvalidGradientError


cdef class Tape(Trace):
    """A language-agnostic gradient tape: ids in, gradients out.

    Parameters
    ----------
    persistent : bool, optional
        Whether more than one gradient can be computed. A tape that is not persistent releases each
        backward object as soon as it has been called (or is seen not to be needed).

    See Also
    --------
    VSpace : what the tape asks of the tensors' owner.

    Notes
    -----
    Not thread-safe: one thread at a time may use a tape (the GIL sees to it).

    Examples
    --------
    Ids are one's own choice; see `VSpace` for how to differentiate what was recorded.

    >>> tape = Tape()
    >>> tape.watch(1)
    >>> tape.record("Square", [2], [1], ["float64"], lambda: "what backward needs")
    True
    >>> tape.num_ops, tape.is_known(2)
    (1, True)
    >>> tape.delete_trace(2)
    >>> tape.num_ops, tape.is_known(2)
    (0, False)
    """

    def __init__(self, bint persistent=False):
        self.persistent = persistent

    cdef int gradient(self, VSpace vspace, const id_t* targets, Py_ssize_t n_targets, void** seeds,
                      void** infos, const id_t* sources, Py_ssize_t n_sources, bint build_zeros,
                      bint keep, void** results) except -1:
        """See `backpropagate`; ``keep`` spares a tape that is not persistent."""
        return backpropagate(self, vspace, targets, n_targets, seeds, infos, sources, n_sources,
                             build_zeros, not (self.persistent or keep), results)

    def compute_gradient(self, VSpace vspace not None, targets, sources,
                         sources_that_are_targets=None, output_gradients=None,
                         bint build_default_zeros_grads=True, bint keep=False) -> list:
        """Differentiate the sum of the targets with respect to each source.

        Parameters
        ----------
        vspace : VSpace
        targets, sources : sequence of int
            Ids. A target that no op on the tape produced contributes nothing.
        sources_that_are_targets : dict, optional
            Maps the id of a source that is a target too to its info, so that it can be seeded.
        output_gradients : sequence, optional
            One gradient per target; None (also as an entry) stands for ones.
        build_default_zeros_grads : bool, optional
            Whether an output without gradient is passed to the backward function as zeros (unless
            its OpType says that it may be None) or always as None.
        keep : bool, optional
            Whether to spare a tape that is not persistent: nothing is released, and this call does
            not count as its only one.

        Returns
        -------
        list
            Per source its gradient, or None if no path leads to it or the tape does not know it.

        Raises
        ------
        InvalidGradientError
            If `output_gradients` differs in length from `targets`.
        InvalidIdError
            If an id is negative.
        TapeStateError
            If the op that produced a target went with an earlier gradient computation, or a
            backward function returned a wrong number of gradients.

        Examples
        --------
        The derivatives of ``x * y`` and ``y * y`` at ``x = 2``, ``y = 3``; these have ids 0 and 1:

        >>> from cytape.core import VSpace
        >>> class Numbers(VSpace):
        ...     def num_elements(self, gradient): return 1
        ...     def aggregate_gradients(self, gradients): return sum(gradients)
        ...     def ones_like(self, info): return 1.0
        ...     def zeros_like(self, info): return 0.0
        ...     def call_backward_function(self, op_type, backward, unneeded, output_gradients):
        ...         return backward(*output_gradients)
        >>> tape = Tape(persistent=True)
        >>> tape.watch(0)
        >>> tape.watch(1)
        >>> floats = ["float64", "float64"]
        >>> tape.record("Multiply", [2], [0, 1], floats, lambda: lambda g: [g * 3.0, g * 2.0])
        True
        >>> tape.record("Multiply", [3], [1, 1], floats, lambda: lambda g: [g * 3.0, g * 3.0])
        True
        >>> tape.compute_gradient(Numbers(), [2], [0, 1])
        [3.0, 2.0]
        >>> tape.compute_gradient(Numbers(), [2, 3], [0, 1])
        [3.0, 8.0]
        >>> tape.compute_gradient(Numbers(), [3], [0, 1], output_gradients=[10.0])
        [None, 60.0]
        """
        cdef Py_ssize_t n_targets = len(targets), n_sources = len(sources), i
        cdef void** buffer
        cdef void** infos
        cdef void** results
        cdef id_t* ids
        if output_gradients is not None and len(output_gradients) != n_targets:
            raise InvalidGradientError(
                f"output_gradients must have one entry (or None) per target: expected {n_targets}, "
                f"got {len(output_gradients)}")
        buffer = <void**>calloc(3 * n_targets + 2 * n_sources + 1, sizeof(void*))
        if buffer == NULL:
            raise MemoryError()
        infos = buffer + n_targets
        results = infos + n_targets
        ids = <id_t*>(results + n_sources)
        try:
            for i in range(n_targets):
                check_id(targets[i])
                ids[i] = targets[i]
                if sources_that_are_targets is not None and targets[i] in sources_that_are_targets:
                    infos[i] = <void*><PyObject*>sources_that_are_targets[targets[i]]
            for i in range(n_sources):
                check_id(sources[i])
                ids[n_targets + i] = sources[i]
            for i in range(n_targets if output_gradients is not None else 0):
                if output_gradients[i] is not None:
                    gradient = output_gradients[i]
                    vspace.retain(<void*><PyObject*>gradient)
                    buffer[i] = <void*><PyObject*>gradient
            self.gradient(vspace, ids, n_targets, buffer, infos, ids + n_targets, n_sources,
                          build_default_zeros_grads, keep, results)
            return [taken(results[i]) for i in range(n_sources)]
        finally:
            for i in range(n_targets):
                if buffer[i] != NULL:
                    vspace.release(buffer[i])  # a seed that the gradient did not take
            free(buffer)


cdef object taken(void* gradient):
    """The gradient as an object; its reference goes to the caller."""
    if gradient == NULL:
        return None
    result = <object>gradient
    Py_DECREF(result)
    return result
