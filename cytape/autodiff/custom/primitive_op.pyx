"""Ops whose derivatives are users' rules in autograd's form, made by calls with plain arrays.

`PrimitiveOp` does the usual calls in C: positional tensors and plain values in, one array out. Its
Python subclass does all others, and those that a graph records.
"""

cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cytape.core.op_store cimport is_known
from cytape.core.vspace cimport BackwardCall, OpType
from cytape.ops.calls.dispatch cimport (
    Op, dense_value, give, input_ref, owned, release_objects, restored, saved_output_ref)
from cytape.ops.calls.tangents cimport follow
from cytape.ops.engine.tape_entry cimport enter, items_of
from cytape.tensor.nest cimport flatten
from cytape.tensor.recording.state cimport (
    Counts, Recorder, accumulating, counts, observed, recording)
from cytape.tensor.tensor cimport Tensor, new_tensor
from cytape.tensor.values.spec cimport Spec, spec_of, spec_of_array
from cytape.tensor.values.value cimport (
    Value, array_of, copy_of_array, is_symbolic, new_id, new_value, value_of_array)
from libc.stdint cimport int32_t, uint64_t
from numpy cimport ndarray

import numpy as np

cnp.import_array()

cdef extern from "Python.h":
    object PyObject_Call(object function, object args, PyObject* kwargs)
    object PyObject_Vectorcall(object function, PyObject** args, size_t n, PyObject* names)
    int PySet_Discard(PyObject* set, PyObject* item)
    void PyObject_GC_UnTrack(void* object)
    ctypedef struct PyTupleObject:
        PyObject** ob_item

cdef extern from "numpy/arrayobject.h":
    object PyArray_Scalar(void* data, cnp.dtype dtype, object base)

cdef enum:
    MOST_ARGUMENTS = 63
    MOST_TENSORS = 8
    SIMPLE, OPAQUE, BOXES  # kinds of arguments

cdef Counts* recorders = counts()
cdef object float64 = np.float64
cdef Spec DOUBLE = spec_of((), np.dtype(float))
cdef frozenset PLAIN = frozenset(
    (float, int, bool, complex, str, type(None), np.ndarray, np.float64))


cdef int kind_of(x, set box_types) except -1:
    """Return whether an argument has no reference to other objects, no boxes, or boxes."""
    if type(x) in PLAIN or isinstance(x, np.generic):
        return SIMPLE
    for leaf in flatten(x):
        if isinstance(leaf, Tensor) or type(leaf) in box_types:
            return BOXES
    return OPAQUE


cdef object plain_of(Value value):
    """Return a value as an array that cannot be written to, or as NumPy's scalar."""
    if value.spec.ndim == 0:
        return PyArray_Scalar(value.data, <cnp.dtype>value.spec.dtype, None)
    cdef PyObject* owner = <PyObject*>value.owner
    if type(value.owner) is ndarray and value.contiguous and (
            cnp.PyArray_BYTES(<ndarray>owner) == value.data) and (
            cnp.PyArray_NDIM(<ndarray>owner) == value.spec.ndim):
        if cnp.PyArray_CHKFLAGS(
                <ndarray>owner, cnp.NPY_ARRAY_OWNDATA) and owner.ob_refcnt == 1:
            cnp.PyArray_CLEARFLAGS(<ndarray>owner, cnp.NPY_ARRAY_WRITEABLE)
        if not cnp.PyArray_ISWRITEABLE(<ndarray>owner):
            return value.owner
    return array_of(value)


cdef Value value_of_scalar(double x):
    cdef Value value = new_value(DOUBLE)
    (<double*>value.data)[0] = x
    return value


cdef Value value_of_new(ndarray array):
    """Return the value of a new array, which stays its owner: `plain_of` returns it."""
    cdef Value value
    if not cnp.PyArray_ISCARRAY(array):
        return value_of_array(array)
    value = Value.__new__(Value)
    value.spec = spec_of_array(array)
    value.id = new_id()
    value.data = cnp.PyArray_BYTES(array)
    value.owner = array
    value.contiguous = True
    return value


cdef inline bint is_new(PyObject* x) noexcept:
    """Return whether an array has no other owner than the caller, and its own memory."""
    return x.ob_refcnt == 1 and cnp.PyArray_BASE(<ndarray>x) == NULL and (
        cnp.PyArray_CHKFLAGS(<ndarray>x, cnp.NPY_ARRAY_OWNDATA))


cdef void release_call(void** refs, int32_t n_refs, object keeper) noexcept:
    cdef PyObject* calls = <PyObject*>keeper
    if refs[n_refs - 1] != NULL:  # the keeper is None after the garbage collector cleared the tape
        if keeper is not None:
            PySet_Discard(calls, <PyObject*>refs[n_refs - 2])
        refs[n_refs - 2] = NULL
    release_objects(refs, n_refs, keeper)


@cython.final
@cython.freelist(1024)
cdef class PrimitiveCall:
    """A recorded call: all that rules read."""

    @property
    def argnums(self) -> tuple:
        """Numbers of the arguments that were tensors."""
        return self.numbers(self.tensors)

    cdef tuple numbers(self, uint64_t mask):
        return tuple([i for i in range(len(self.args) - 1) if mask >> i & 1])

    cdef tuple seen(self, list inputs, output, bint plain):
        """Return the result and the arguments: as tensors, unless plain."""
        if plain:
            return self.args
        cdef list args = list(self.args)
        cdef int argnum, i = 0
        args[0] = restored(output, False)
        for argnum in range(<int>len(args) - 1):
            if self.tensors >> argnum & 1:
                args[argnum + 1] = restored(inputs[i], False)
                i += 1
        return tuple(args)


cdef class PrimitiveOp(Op):
    """Op of a function of plain arrays.

    Parameters
    ----------
    name : str
    fun : callable

    Notes
    -----
    A subclass has these methods. ``call_in_general(args, kwargs)`` does any call; ``box_result(ans,
    args, kwargs)`` finishes one whose result is known. ``gradients(argnums, ans, args, kwargs, g)``
    returns the list of these arguments' gradients, in cytape's complex convention; ``pulled(vjps,
    g)`` does so by the function that ``vjps`` returned.
    ``dense(gradient)`` returns a gradient of a user's class as an array. ``box_types`` is the set
    of the classes of boxes that are no tensors.
    """

    def __init__(self, str name, fun):
        self.op_type = OpType(name)
        self.op_type.kind.release = release_call
        self.op_type.kind.owner = <void*>self
        self.stateful = True  # the function is called as often as the program says
        self.moving = self.kept.inputs = ~<uint64_t>0
        self.kept.outputs = 1
        self.fun = fun
        if isinstance(fun, np.ufunc):  # whose attributes the op has
            self.forward = fun

    def set_vjps(self, vjps, dict makers=None):
        """Set the rule of reverse mode.

        Parameters
        ----------
        vjps : callable
            Takes numbers of arguments, the result, the arguments and the keywords; returns a
            function of the result's gradient, which returns one gradient per number.
        makers : dict, optional
            The same rule in parts, by number. Each takes the result and the arguments, and returns
            a function from gradient to gradient; None: the gradient is zero.
        """
        cdef int argnum
        self.vjps = vjps
        self.makers = None
        self.ruled = ~<uint64_t>0
        if makers is not None and all([0 <= i < MOST_ARGUMENTS for i in makers]):
            self.makers = [makers.get(i) for i in range(max(makers, default=-1) + 1)]
            self.ruled = 0
            for argnum in makers:
                self.ruled |= <uint64_t>1 << argnum

    def tracked(self, list argnums not None, list tensors not None) -> tuple:
        """Return the numbers of the arguments that tapes track; each must have a rule."""
        cdef Recorder tape
        cdef Tensor tensor
        found = sorted({
            argnum for tape in recording() or () for argnum, tensor in zip(argnums, tensors)
            if tensor is not None and is_known(tape, tensor.held.id)})
        missing = [argnum for argnum in found if not self.ruled >> min(argnum, 63) & 1]
        if missing:
            raise self.not_defined(tuple(missing))
        return tuple(found)

    def not_defined(self, argnums):
        """Return the error for arguments without a rule."""
        return NotImplementedError(
            f"VJP of {self.op_type.name} wrt argnums {argnums} not defined")

    def __call__(self, *args, **kwargs):
        cdef Py_ssize_t n = len(args), i
        cdef PyObject* inputs[MOST_TENSORS]
        cdef PyObject* output
        cdef PrimitiveCall call
        cdef int n_inputs = 0, kind
        cdef bint opaque = False
        cdef uint64_t tensors = 0
        cdef Recorder tape
        cdef Value value
        cdef tuple plain
        if n > MOST_ARGUMENTS:
            return self.call_in_general(args, kwargs)
        for x in kwargs.values() if kwargs else ():
            kind = kind_of(x, self.box_types)
            if kind == BOXES:
                return self.call_in_general(args, kwargs)
            opaque |= kind == OPAQUE
        plain = PyTuple_New(n + 1)  # the first is the result
        for i in range(n):
            x = args[i]
            if type(x) is Tensor:
                value = (<Tensor>x).held
                if is_symbolic(value) or n_inputs == MOST_TENSORS:
                    return self.call_in_general(args, kwargs)
                tensors |= <uint64_t>1 << i
                n_inputs += 1
                x = plain_of(value)
            else:
                kind = kind_of(x, self.box_types)
                if kind == BOXES:
                    return self.call_in_general(args, kwargs)
                opaque |= kind == OPAQUE
            Py_INCREF(x)
            PyTuple_SET_ITEM(plain, i + 1, x)
        if kwargs:
            ans = self.fun(*plain[1:], **kwargs)
        else:
            ans = PyObject_Vectorcall(
                self.fun, (<PyTupleObject*>plain).ob_item + 1, n, NULL)
        if tensors == 0:
            return ans
        if recorders.entered and tensors & ~self.ruled:
            return self.box_result(ans, args, kwargs)
        if type(ans) is float64 or type(ans) is float:
            value = value_of_scalar(ans)
        elif type(ans) is ndarray and (cnp.PyArray_ISFLOAT(ans) or cnp.PyArray_ISCOMPLEX(ans)):
            if is_new(<PyObject*>ans):
                value = value_of_new(ans)
                cnp.PyArray_CLEARFLAGS(ans, cnp.NPY_ARRAY_WRITEABLE)
            else:
                value = copy_of_array(ans)
                ans = plain_of(value)
        elif isinstance(ans, np.inexact):
            value = value_of_array(np.asarray(ans))
        else:
            return self.box_result(ans, args, kwargs)
        if recorders.entered:
            Py_INCREF(ans)
            PyTuple_SET_ITEM(plain, 0, ans)
            call = PrimitiveCall.__new__(PrimitiveCall)
            call.args, call.kwargs, call.tensors, call.opaque = plain, kwargs, tensors, opaque
            n_inputs = 0
            for i in range(n):
                if tensors >> i & 1:
                    inputs[n_inputs] = <PyObject*>(<Tensor>args[i]).held
                    for tape in recording() or ():
                        if is_known(tape, (<Value>inputs[n_inputs]).id):
                            call.tracked |= <uint64_t>1 << i
                    n_inputs += 1
            if call.tracked:
                call.vjps = self.made(call, call.tracked)
                call.opaque = True  # a rule may refer to anything
            if not call.opaque:
                PyObject_GC_UnTrack(<void*>call)
            output = <PyObject*>value
            result = new_tensor(value)
            self.record(inputs, n_inputs, output, call, True)
            if accumulating() is not None:
                follow(self, [<object>inputs[i] for i in range(n_inputs)], [value], {"call": call})
            return result
        return new_tensor(value)

    cdef object made(self, PrimitiveCall call, uint64_t tracked):
        """Make the vjp of a call at once: makers may read what the function left behind."""
        cdef int argnum
        cdef PyObject* kwargs = <PyObject*>call.kwargs if call.kwargs else NULL
        if self.makers is None:
            return self.vjps(call.numbers(tracked), call.args[0], call.args[1:], call.kwargs)
        cdef list vjps = []
        for argnum, maker in enumerate(self.makers):
            vjps.append(None if maker is None or not tracked >> argnum & 1
                        else PyObject_Call(maker, call.args, kwargs))
        return vjps

    cdef int record(self, PyObject** inputs, int n, PyObject* output, PrimitiveCall call,
                    bint is_new) except -1:
        """Record a call. If it is opaque, the keeper of a tape owns it, the entry does not."""
        cdef PyObject* tail[3]
        cdef Recorder tape
        tail[0], tail[1] = <PyObject*>self, <PyObject*>call
        tail[2] = <PyObject*>None if call.opaque else NULL
        for tape in recording() or ():
            if enter(tape, self, inputs, NULL, n, &output, 1, tail, 3, is_new) and call.opaque:
                if tape.keeper is None:
                    tape.keeper = set()
                tape.keeper.add(call)
                Py_DECREF(call)
        return 0

    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1:
        return self.record(items_of(inputs), <int>len(inputs), items_of(outputs)[0],
                           attrs["call"], False)

    cdef bint has_jvp(self) noexcept:
        return self.jvps is not None

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        cdef PrimitiveCall call = attrs["call"]
        cdef tuple seen = call.seen(inputs, outputs[0], plain)
        moving = [(argnum, tangent) for argnum, tangent in zip(call.argnums, tangents)
                  if tangent is not None]
        argnums, directions = zip(*moving)
        if plain:
            directions = [tangent[()] for tangent in directions]
        return [self.jvps(argnums, list(directions), seen[0], seen[1:], call.kwargs)]

    cdef int backward(self, BackwardCall* call) except -1:
        cdef PrimitiveCall recorded = <PrimitiveCall>call.refs[call.n_refs - 2]
        cdef bint plain = not observed()
        cdef int i, argnum = 0
        cdef PyObject* g
        if not plain or self.makers is None:
            return self.backward_in_general(call, recorded, plain)
        cdef list vjps = recorded.vjps
        seed = conjugate(plain_of(dense_value(<object>call.output_gradients[0])))
        g = <PyObject*>seed
        for i in range(call.n_inputs):
            while not recorded.tensors >> argnum & 1:
                argnum += 1
            if call.needed[i]:
                if not recorded.tracked >> argnum & 1:  # by another tape than those of the call
                    vjps = self.made(recorded, recorded.tensors)
                vjp = vjps[argnum]
                if vjp is not None:
                    self.take(call, i, PyObject_Vectorcall(vjp, &g, 1, NULL))
            argnum += 1
        return 0

    cdef int backward_in_general(self, BackwardCall* call, PrimitiveCall recorded,
                                 bint plain) except -1:
        cdef int i
        cdef list inputs = [<object>input_ref(call, i) for i in range(call.n_inputs)]
        cdef tuple seen = recorded.seen(inputs, <object>saved_output_ref(call), plain)
        cdef Value upstream = dense_value(<object>call.output_gradients[0])
        cdef list needed = [i for i in range(call.n_inputs) if call.needed[i]]
        cdef tuple argnums = recorded.argnums
        if plain and {argnums[i] for i in needed} <= set(recorded.numbers(recorded.tracked)):
            found = dict(zip(recorded.numbers(recorded.tracked),
                             self.pulled(recorded.vjps, plain_of(upstream))))
            found = [found[argnums[i]] for i in needed]
        else:
            found = self.gradients(
                tuple([argnums[i] for i in needed]), seen[0], seen[1:], recorded.kwargs,
                plain_of(upstream) if plain else restored(upstream, False))
        for i, gradient in zip(needed, found):
            give_fitted(self, call, i, gradient.copy() if type(gradient) is ndarray
                        and cnp.PyArray_ISWRITEABLE(gradient) else gradient)
        return 0

    cdef int take(self, BackwardCall* call, int i, found) except -1:
        """Store a gradient that a rule returned; an array may have other owners."""
        cdef Value value
        if type(found) is float64 and (<Value>input_ref(call, i)).spec is DOUBLE:
            call.input_gradients[i] = owned(value_of_scalar(found))
            return 0
        if type(found) is not ndarray:
            return give_fitted(self, call, i, conjugate(self.dense(found)))
        if cnp.PyArray_ISCOMPLEX(found):
            return give_fitted(self, call, i, conjugate(found))
        if is_new(<PyObject*>found):
            value = value_of_new(found)
            if value.spec is (<Value>input_ref(call, i)).spec:
                call.input_gradients[i] = owned(value)
                return 0
        return give_fitted(
            self, call, i, found.copy() if cnp.PyArray_ISWRITEABLE(found) else found)


cdef int give_fitted(Op op, BackwardCall* call, int i, gradient) except -1:
    """Store a gradient; of another number of axes it may have one element, or as many."""
    cdef Spec spec = (<Value>input_ref(call, i)).spec
    if gradient is not None and np.ndim(gradient) != spec.ndim:
        if np.size(gradient) == spec.size:
            gradient = np.reshape(gradient, spec.shape)
        elif np.size(gradient) == 1:
            gradient = np.broadcast_to(np.reshape(gradient, ()), spec.shape)
    return give(op, call, i, gradient)


cdef object conjugate(x):
    """Return the complex conjugate of a plain value: autograd's gradients are the conjugates."""
    if type(x) is ndarray:
        return x.conjugate() if cnp.PyArray_ISCOMPLEX(x) else x
    return x.conjugate() if isinstance(x, (complex, np.complexfloating)) else x
