cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_XDECREF, PyObject
from cytape.core.accumulator cimport tangent_of
from cytape.core.op_store cimport is_known
from cytape.core.typedefs cimport NO_ID
from cytape.ops.kernels.ufunc_loops cimport trouble
from cytape.tensor.values.spec cimport scalar_spec
from cytape.tensor.recording.leaked_tensors cimport watch_leak
from cytape.tensor.recording.state cimport (
    Recorder, TangentRecorder, accumulating, observed, recording)
from cytape.tensor.tensor cimport another_handle, as_ndarray, new_tensor, require_plain
from cytape.tensor.values.value cimport array_of, copy_of_array, new_value, value_of_array
from cytape.tensor.noted_views cimport note_foreign, note_view
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy cimport ndarray

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # other return values vary
    void Py_LeaveRecursiveCall()

from functools import lru_cache, partial
from inspect import cleandoc

import numpy as np

from cytape.errors import InvalidGradientError, NotDifferentiableError
from cytape.ops.calls.operands import is_tensor
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor


cdef class Conforming:
    pass


conform = Conforming()
# Attributes of Op that a declaration may set.
FACTS = ("batch", "composition", "counts", "given", "is_own_inverse", "is_passed_over",
         "is_product", "lowering", "makes_views", "moving", "neutral", "passes_gradients",
         "repeated", "rule_takes_tensors", "runs", "same_if_same_spec", "shows", "stateful",
         "stays_view", "ufunc", "work")
LOWERINGS = [name for name in Lowering.__members__ if name != "N_LOWERINGS"]
UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
UFUNC_ATTRIBUTES = ("__name__", "__qualname__", "nin", "nout", "nargs", "ntypes", "types",
                    "identity", "signature", "resolve_dtypes")
cdef object float64 = np.float64
cdef list weak_scalars = [None] * 32
cdef uint64_t weak_bits[32]


def install_conform(**functions):
    """Set functions of higher packages in `conform`; an unknown name raises an error."""
    for name, function in functions.items():
        setattr(conform, name, function)


# ---- operands

cdef Value value_of(x, bint copy):
    """Return the value of any operand; that of a non-tensor has no id."""
    cdef Value value = tensor_value(x)
    if value is None:
        value = copy_of_array(as_ndarray(x)) if copy else value_of_array(as_ndarray(x))
        value.id = NO_ID
    return value


cdef tuple with_lists_joined(tuple operands):
    """Return the operands with lists that hold tensors made tensors; None without such a list."""
    for x in operands:
        if isinstance(x, (list, tuple)) and is_tensor(x):
            break
    else:
        return None
    return tuple([
        convert_to_tensor(x) if isinstance(x, (list, tuple)) and is_tensor(x) else x
        for x in operands])


cdef ndarray_of(x):
    """Return the argument of NumPy's function for an operand; Python scalars stay weak."""
    cdef Value value = tensor_value(x)
    if value is not None:
        return array_of(value)
    require_plain(x)
    if isinstance(x, ndarray) or cnp.PyArray_CheckAnyScalar(x) or not hasattr(x, "__array__"):
        return x
    return np.asarray(x)  # else other libraries' classes would wrap NumPy's result


cdef bint opts_out(x):
    """Return whether an operand disables NumPy's operators, with ``__array_ufunc__ = None``."""
    return getattr(x, "__array_ufunc__", True) is None


cdef bint is_followed(inputs) except -1:
    """Return whether a recorder of this thread tracks any of the inputs."""
    cdef Value value
    cdef Recorder recorder
    cdef TangentRecorder accumulator
    cdef list active = recording(), following = accumulating()
    if active is not None or following is not None:
        for x in inputs:
            value = tensor_value(x)
            if value is None or not value.spec.trainable:
                continue
            for recorder in active or ():
                if is_known(recorder, value.id) or recorder.began and (
                        watch_leak(recorder, value.id)):
                    return True
            for accumulator in following or ():
                if tangent_of(accumulator, value.id) != NULL:
                    return True
    return False


def partly_followed(operands) -> bool:
    """Return whether a tape of this thread tracks some, not all, differentiable operands."""
    cdef Value value
    cdef Recorder recorder
    cdef bint known, unknown
    for recorder in recording() or ():
        known = unknown = False
        for x in operands:
            value = tensor_value(x)
            if value is not None and value.spec.trainable:
                if is_known(recorder, value.id):
                    known = True
                else:
                    unknown = True
        if known and unknown:
            return True
    return False


# ---- the common part of all ops

@cython.no_gc
cdef class Op(Operator):
    """An operation on tensors and arrays, declared by a function of `cytape.ops.declare`.

    For plain arrays an op returns NumPy's result; if any input is a tensor it returns tensors.
    """

    @property
    def name(self) -> str:
        """The op type."""
        return self.op_type.name

    def __repr__(self):
        return f"<op {self.op_type.name}>"

    def __getattr__(self, str name):
        """Return an attribute of the op's ufunc: its name, numbers of operands, methods."""
        if isinstance(self.forward, np.ufunc):
            if name in UFUNC_METHODS:
                return partial(conform.ufunc_method, self, name)
            if name in UFUNC_ATTRIBUTES:
                return getattr(self.forward, name)
        raise AttributeError(f"op {self.op_type.name!r} has no attribute {name!r}")

    def __dir__(self):
        names = [*UFUNC_METHODS, *UFUNC_ATTRIBUTES] if isinstance(self.forward, np.ufunc) else []
        return [*object.__dir__(self), *names]

    def described(self, **facts):
        """Set attributes that graphs, plans and `vmap` read; return the op."""
        for name, fact in facts.items():
            if name not in FACTS:
                raise TypeError(f"op {self.op_type.name!r} was declared with an unknown argument "
                                f"{name!r}; known are {', '.join(FACTS)}")
            if name == "lowering" and fact not in LOWERINGS:
                raise ValueError(f"op {self.op_type.name!r} was declared with lowering={fact!r}, "
                                 f"which must be one of {', '.join(LOWERINGS)}")
            try:
                setattr(self, name, Lowering[fact] if name == "lowering" else fact)
            except TypeError as error:
                error.add_note(f"op {self.op_type.name!r} was declared with {name}={fact!r}")
                raise
        return self

    def __reduce__(self):
        return conform.named, (self.op_type.name,)

    cdef object infer(self, list inputs, dict attrs):
        raise NotImplementedError(f"op {self.op_type.name!r} cannot be part of a graph")

    cdef int note_views(self, inputs, result, dict attrs) except -1:
        cdef Tensor origin = origin_of(inputs[0])
        cdef tuple others = None
        cdef int i
        if origin is not None:
            attrs = frozen_attrs(attrs)
            if len(inputs) > 1:  # after a write the handle would have another value
                others = tuple([another_handle((<Tensor>x).held) if type(x) is Tensor else x
                                for x in inputs[1:]])
            if type(result) is Tensor:
                return note_view(result, origin, self, attrs, others)
            for i, output in enumerate(result):
                note_view(output, origin, self, attrs, others, i)
        return 0

    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1:
        return 0

    cdef object tail_of(self, dict attrs):
        return attrs

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        return [None] * len(outputs)

    cdef bint has_jvp(self) noexcept:
        return True

    cdef bint takes_batches(self) noexcept:
        return False

    cdef int backward(self, BackwardCall* call) except -1:
        raise NotDifferentiableError(
            f"op {self.op_type.name!r} has no gradient: register one with "
            "cytape.register_gradient, or stop the gradient with cytape.stop_gradient")


cdef Tensor origin_of(x):
    """Return the base of a view: a tensor, or the value of a variable; None for an array."""
    if not isinstance(x, Variable):
        return x if type(x) is Tensor else None
    origin = another_handle((<Tensor>x).held)
    note_foreign(origin)
    return origin


cdef str documentation(Op op):
    """Return the text of `help` for an op: the beginning of its forward function's docstring."""
    doc = getattr(op.forward, "function", op.forward).__doc__  # of a FusedFunction
    return None if doc is None else beginning(doc)


@lru_cache  # transforms of an op read it
def beginning(str doc):
    text, *examples = cleandoc(doc).partition("\n\nParameters\n")[0].partition("\n\nExamples\n")
    return "".join([
        text, "\n\nWith a tensor among the arguments the result is a tensor.", *examples])


cdef void release_objects(void** refs, int32_t n_refs, object keeper) noexcept:
    cdef int32_t i
    for i in range(n_refs):
        Py_XDECREF(<PyObject*>refs[i])


cdef object restored(x, bint plain):
    """Return a saved value as a tensor, or as a plain array if no recorder is active."""
    if type(x) is not Value:
        return None
    return array_of(x) if plain else another_handle(x)


cdef Tensor dense(gradient):
    if type(gradient) is Value:
        return another_handle(gradient)
    if type(gradient) is Tensor:
        return gradient
    # No op on the path takes slices. An unknown number of elements counts as small.
    shape = gradient.dense_shape
    return IndexedSlices._densify(gradient, shape is not None and None in shape)


cdef Value dense_value(gradient):
    return gradient if type(gradient) is Value else dense(gradient).held


cdef int give(Op op, BackwardCall* call, int i, object gradient) except -1:
    """Store the gradient of input i for the tape, in the input's shape and dtype."""
    cdef Spec spec = spec_of_ref(<object>input_ref(call, i))
    cdef Value value
    if gradient is None or not call.needed[i]:
        return 0
    if type(gradient) is Tensor and (<Tensor>gradient).held.spec is spec:
        call.input_gradients[i] = owned(gradient)
        return 0
    if type(gradient) is ndarray and not observed():
        value = value_of_array(as_ndarray(gradient))
        if value.spec is not spec and value.spec.trainable and value.spec.shape == spec.shape:
            value = value_of_array(conform.cast(gradient, spec.dtype))
        if value.spec is spec:
            call.input_gradients[i] = owned(value)
            return 0
    if isinstance(gradient, IndexedSlices):
        if not shape_may_be(gradient.dense_shape, spec):
            raise InvalidGradientError(
                f"the gradient of op {op.op_type.name!r} with respect to its input {i} has "
                f"dense_shape {gradient.dense_shape}, but the input has shape {spec.shape}")
        if isinstance(gradient.values, IndexedSlices):
            gradient = IndexedSlices(gradient.values, gradient.indices, spec.shape)
        else:
            gradient = IndexedSlices(convert_to_tensor(gradient.values, spec.dtype),
                                     convert_to_tensor(gradient.indices), spec.shape)
    else:
        if not may_be(gradient, spec):
            raise InvalidGradientError(
                f"the gradient of op {op.op_type.name!r} with respect to its input {i} has shape "
                f"{np.shape(gradient)}, but the input has shape {spec.shape}")
        if isinstance(gradient, Tensor):
            gradient = convert_to_tensor(gradient)
        else:
            gradient = value_of_array(as_ndarray(gradient))
            if (<Value>gradient).spec.dtype.kind not in "biufc":
                raise TypeError(
                    f"the gradient of op {op.op_type.name!r} with respect to its input {i} is made "
                    f"of {(<Value>gradient).spec.dtype} data; it must be a tensor, IndexedSlices, "
                    "or convertible to a tensor of numbers")
            if (<Value>gradient).spec is not spec or observed():
                gradient = new_tensor(gradient)
        if type(gradient) is Tensor and (<Tensor>gradient).held.spec is not spec:
            gradient = conform.cast(gradient, spec.dtype)
    call.input_gradients[i] = owned(gradient)
    return 0


cdef bint may_be(found, Spec spec) except -1:
    """Return whether a gradient may have the shape of a spec; unknown extents match any."""
    return shape_may_be(
        (<Tensor>found).held.spec.shape if isinstance(found, Tensor) else np.shape(found), spec)


cdef bint shape_may_be(shape, Spec spec) except -1:
    """Return whether a shape may be another one; None matches any extent."""
    if shape == spec.shape or shape is None or spec.shape is None:
        return True
    if len(shape) != spec.ndim:
        return False
    for a, b in zip(shape, spec.shape):
        if a is not None and b is not None and a != b:
            return False
    return True


cdef object frozen(value):
    """Return an attribute that the caller cannot change."""
    if isinstance(value, list):
        Py_EnterRecursiveCall(b" in an attribute: it is nested too deeply or contains itself")
        try:
            return tuple([frozen(item) for item in value])
        finally:
            Py_LeaveRecursiveCall()
    return value.copy() if type(value) is np.ndarray else value


cdef dict frozen_attrs(dict attrs):
    """Return attributes for an entry, copied so that the caller cannot change them."""
    for attr in attrs.values():
        if type(attr) is list or type(attr) is ndarray:
            return {name: frozen(attr) for name, attr in attrs.items()}
    return attrs


cdef list gradients_of_outputs(BackwardCall* call, bint plain):
    """Return the dense output gradients, None if none arrived. Rules may change them in place."""
    cdef int i
    cdef Tensor tensor
    gradients = []
    for i in range(call.n_outputs):
        gradient = None
        if call.output_gradients[i] != NULL:
            gradient = <object>call.output_gradients[i]
            if plain:
                gradient = array_of(dense_value(gradient))
            else:
                tensor = dense(gradient)  # tapes track it while it lives
                gradient = another_handle(tensor.held)
        gradients.append(gradient)
    return gradients


cdef int give_all(Op op, BackwardCall* call, gradients) except -1:
    cdef int i
    if len(gradients) != call.n_inputs:
        raise InvalidGradientError(
            f"the gradient function of op {op.op_type.name!r} must return one gradient (or None) "
            f"per input: expected {call.n_inputs}, got {len(gradients)}")
    for i in range(call.n_inputs):
        give(op, call, i, gradients[i])
    return 0


cdef Value weak_scalar(x, Spec like):
    """Return a Python number as a 0-d value of a float dtype, None if NumPy must convert it.

    Values of recent numbers are cached, since programs use few numbers.
    """
    cdef Value value
    cdef double content
    cdef uint64_t bits
    cdef Py_ssize_t place
    if like.type_num != cnp.NPY_DOUBLE and like.type_num != cnp.NPY_FLOAT:
        return None
    if type(x) is float or (type(x) is float64 and like.type_num == cnp.NPY_DOUBLE):
        content = <double>x
    elif type(x) is int:
        content = x
    else:
        return None
    memcpy(&bits, &content, sizeof(double))
    place = (bits * <uint64_t>0x9E3779B97F4A7C15) >> 59  # 2**64 / golden ratio; 5 bits
    value = weak_scalars[place]
    if (value is not None and weak_bits[place] == bits
            and value.spec.type_num == like.type_num):
        return value
    value = new_value(scalar_spec(like))
    value.id = NO_ID
    if like.type_num == cnp.NPY_DOUBLE:
        (<double*>value.data)[0] = content
    else:
        (<float*>value.data)[0] = <float>content
    if not trouble():  # overflow of the cast must warn every time
        weak_scalars[place] = value
        weak_bits[place] = bits
    return value
