from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject

from .interrupts cimport tell

from cytape.errors import TapeStateError

cdef extern from "Python.h":
    int PySet_Discard(PyObject* set, PyObject* key) noexcept

cdef str DELETE_GRADIENT = "delete_gradient"
cdef frozenset TRAINABLE = frozenset(
    ("float16", "bfloat16", "float32", "float64", "longdouble", "float96", "float128",
     "complex64", "complex128", "clongdouble", "complex192", "complex256", "resource", "variant"))


def is_trainable(dtype) -> bool:
    """Return whether tensors of this dtype have gradients.

    Parameters
    ----------
    dtype : str, type or object with a ``name``
        Floating and complex types, and the opaque kinds ``resource`` and ``variant`` (handles whose
        contents may be differentiable), are trainable; booleans, integers and strings are not.

    Returns
    -------
    bool

    Examples
    --------
    >>> from cytape.core import is_trainable
    >>> is_trainable("float32"), is_trainable("int64"), is_trainable(float)
    (True, False, False)
    """
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    return (getattr(dtype, "__name__", None) if name is None else name) in TRAINABLE


cdef class OpType:
    """Common part of all recorded entries of one op.

    Parameters
    ----------
    name : str
        Named in error messages and handed to `VSpace.call_backward_function`.
    optional_gradients : iterable of int, optional
        Positions of outputs (0 to 63) whose gradient the backward function takes as ``None`` when
        none arrived. If all 64 are given, so are all outputs beyond. For every other output the
        tape builds zeros.

    Raises
    ------
    ValueError
        If a position is not in 0 to 63.

    Examples
    --------
    >>> from cytape.core import OpType
    >>> OpType("SoftmaxCrossEntropyWithLogits", optional_gradients=(1,))
    OpType('SoftmaxCrossEntropyWithLogits', optional_gradients=(1,))
    """

    def __init__(self, str name not None, optional_gradients=()):
        self.name = name
        self.kind.optional_gradients = 0
        for position in optional_gradients:
            if not 0 <= position < 64:
                raise ValueError(f"optional_gradients of {name!r} has position {position}, but "
                                 "outputs are 0 to 63: all of these stand for further ones, too")
            self.kind.optional_gradients |= <uint64_t>1 << <int>position
        self.kind.release = release_backward
        self.kind.owner = <void*>self

    def __repr__(self):
        positions = tuple(i for i in range(64) if self.kind.optional_gradients >> <int>i & 1)
        return f"OpType({self.name!r}, optional_gradients={positions})"


cdef class Backward:
    def __del__(self):
        deleter, self.deleter = self.deleter, None
        if deleter is not None:
            tell(deleter, None, self.function)


cdef void release_backward(void** refs, int32_t n_refs, object keeper) noexcept:
    # The keeper is None before the first entry, and after the garbage collector cleared the tape.
    if keeper is not None:
        PySet_Discard(<PyObject*>keeper, <PyObject*>refs[n_refs - 1])  # hashed by identity


cdef inline void* new_reference(object gradient) noexcept:
    Py_INCREF(gradient)
    return <void*>gradient


cdef class VSpace:
    """The operations on gradients that a host provides to a tape.

    Subclass it and override the methods for your own tensors. A gradient is any object; ``None``
    stands for "no gradient" and is never passed to a method except inside ``output_gradients``.

    Examples
    --------
    Plain numbers as tensors, recorded under ids of one's own choice:

    >>> from cytape.core import Tape, VSpace
    >>> class Numbers(VSpace):
    ...     def num_elements(self, gradient): return 1
    ...     def aggregate_gradients(self, gradients): return sum(gradients)
    ...     def ones_like(self, info): return 1.0
    ...     def zeros_like(self, info): return 0.0
    ...     def call_backward_function(self, op_type, backward, unneeded, output_gradients):
    ...         return backward(*output_gradients)
    >>> tape = Tape()
    >>> tape.watch(1)
    >>> tape.record("Square", [2], [1], ["float64"], lambda: lambda dy: [dy * 2 * 3.0])
    True
    >>> tape.compute_gradient(Numbers(), targets=[2], sources=[1])
    [6.0]
    """

    def __cinit__(self, *_, **__):
        # Looked up once: release is called very often, and a Python call would dominate it.
        self.deletes = type(self).delete_gradient is not VSpace.delete_gradient

    def num_elements(self, gradient):
        """Return the number of elements of a gradient, an integer.

        Many large gradients of one tensor are summed early, to save memory.
        """
        raise NotImplementedError("num_elements")

    def aggregate_gradients(self, gradients):
        """Return the sum of a list of at least two gradients."""
        raise NotImplementedError("aggregate_gradients")

    def ones_like(self, info):
        """Return the seed, a gradient, of a target for which the caller gives none.

        Parameters
        ----------
        info : object
            The target's, from `Tape.record` or from the caller's `sources_that_are_targets`.
        """
        raise NotImplementedError("ones_like")

    def zeros_like(self, info):
        """Return the gradient of an output for which none arrived, from its recorded info."""
        raise NotImplementedError("zeros_like")

    def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
        """Return a sequence with one gradient (or None) per input of the op.

        Parameters
        ----------
        op_type : str
            Name of the recorded op.
        backward : object
            The object that the op's ``backward_getter`` returned.
        unneeded_gradients : list of int
            Sorted positions of the inputs whose gradient is not needed.
        output_gradients : list
            One gradient or None per output.
        """
        raise NotImplementedError("call_backward_function")

    def tensor_id(self, gradient):
        """Return the id of a gradient as a tensor, an integer."""
        raise NotImplementedError("tensor_id")

    def info_from_gradient(self, gradient):
        """Return the info, for `Tape.record`, of a gradient that becomes an output of an op."""
        raise NotImplementedError("info_from_gradient")

    def mark_as_result(self, gradient):
        """Note that another owner holds a gradient: no backward function may consume it."""

    def delete_gradient(self, gradient):
        """Note that the tape drops a gradient.

        The method must be defined in the class when the `VSpace` is created: the tape looks it up
        only then.
        """

    cdef int64_t size(self, void* gradient) except -1:
        return self.num_elements(<object>gradient)

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef list terms = [<object>gradients[i] for i in range(count)]
        for i in range(count):
            Py_DECREF(<object>gradients[i])
        return new_reference(self.aggregate_gradients(terms))

    cdef void* accumulate(self, void* total, void* term) except? NULL:
        return NULL

    cdef void* ones(self, void* info) except NULL:
        return new_reference(self.ones_like(<object>info))

    cdef void* zeros(self, void* info) except NULL:
        return new_reference(self.zeros_like(<object>info))

    cdef int backward(self, BackwardCall* call) except -1:
        cdef list output_gradients = []
        cdef Backward backward = <Backward>call.refs[call.n_refs - 1]
        for i in range(call.n_outputs):
            if call.output_gradients[i] == NULL:
                output_gradients.append(None)
            else:
                output_gradients.append(<object>call.output_gradients[i])
                Py_DECREF(<object>call.output_gradients[i])
                call.output_gradients[i] = NULL
        unneeded = [i for i in range(call.n_inputs) if not call.needed[i]]
        name = (<OpType>call.kind.owner).name
        gradients = list(self.call_backward_function(
            name, backward.function, unneeded, output_gradients))
        if len(gradients) != call.n_inputs:
            raise TapeStateError(
                f"the backward function of op {name!r} must return one gradient (or None) for each "
                f"of its inputs: expected {call.n_inputs}, received {len(gradients)}")
        for i in range(call.n_inputs):
            if gradients[i] is not None:
                call.input_gradients[i] = new_reference(gradients[i])
        return 0

    cdef void* as_target(self, void* gradient) except NULL:
        return gradient

    cdef id_t id_of(self, void* gradient) except -1:
        return self.tensor_id(<object>gradient)

    cdef void* info_of(self, void* gradient) except NULL:
        return new_reference(self.info_from_gradient(<object>gradient))

    cdef int retain(self, void* gradient) except -1:
        self.mark_as_result(<object>gradient)
        Py_INCREF(<object>gradient)
        return 0

    cdef void release(self, void* gradient) noexcept:
        if self.deletes:
            tell(self, DELETE_GRADIENT, <object>gradient)
        Py_DECREF(<object>gradient)
