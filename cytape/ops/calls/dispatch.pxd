# Op: a declared operation. A call computes the outputs and records an entry on each recorder of the
# thread that tracks an input; `engine/tape_entry.pxd` has the layout of entries.

from cpython.ref cimport Py_INCREF, Py_XINCREF, PyObject
from cytape.core.vspace cimport BackwardCall, OpType
from cytape.tensor.operators cimport Operator
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value
from cytape.tensor.variable cimport Variable, read
from libc.stdint cimport int32_t, uint64_t

cdef struct Kept:  # positions of the saved values, a bit each; the last bit: all later ones
    uint64_t inputs, outputs

# The instructions that plans run instead of a call. The kind of an op decides, or its declaration.
cpdef enum Lowering:
    CALLED           # none: its forward function is called
    VARIABLE_READ    # none, and its input is not looked at
    UNFED            # an error, as it has no value of its own
    CONSTANT
    ZEROS, ONES
    LOOPED           # a ufunc of one output
    FUSED, ACCUMULATED, UPDATED, MOVED, PRODUCT, SELECTED  # the classes of these names
    SHOWN            # input `shows`, unchanged; -1: the last inputs, one per output
    CONVERTED        # to another dtype
    REAL_PART, IMAGINARY_PART
    SUM, MEAN, REDUCED, RUNNING  # along axes; by `ufunc`
    ADDED            # a sum of any number of terms
    READ_PART, ADD_PART, GATHERED, SCATTERED  # at an index
    ROWS_READ, ROWS_ADDED, ROWS_WRITTEN, ROWS_CLEARED, ROWS_MARKED, ROWS_CHECKED  # of TensorArrays
    BRANCH, LOOP, CHECKPOINTED_LOOP
    N_LOWERINGS

cdef class Op(Operator):
    cdef OpType op_type                        # name, and facts that the tape reads
    cdef readonly object forward  # the plain NumPy function
    cdef public bint stateful            # results of equal calls differ, or a call changes state
    cdef public bint rule_takes_tensors  # its vjp is made of ops, faster than NumPy's functions
    cdef public bint makes_views  # NumPy's result may be a view of the first operand
    cdef readonly bint linear     # in all operands that move
    # Inputs with a derivative, a bit each; no entry is made without one. 1: the first alone.
    cdef public uint64_t moving
    cdef Kept kept        # by an entry, for any tracked inputs
    cdef Kept* kept_for   # per tracked input; NULL: `kept` for all
    cdef public object composition  # the op made of simpler ops, for plans; or None
    cdef public object batch      # the rule for an added axis, a function of a BatchedCall; or None
    # Facts for passes, plans and checkpoints; `described` sets them.
    cdef public int lowering      # a Lowering
    cdef public int shows         # which input the result is, if SHOWN
    cdef public object ufunc      # whose reduction or accumulation it is, if REDUCED or RUNNING
    cdef public object neutral    # per operand the number that leaves the other as it is, or None
    cdef public bint is_own_inverse
    cdef public bint same_if_same_spec  # a result of the first input's spec equals that input
    cdef public bint stays_view   # also of a constant: readers take its strides
    cdef public bint is_product   # checkpoint policies count it among "dots"
    cdef public bint is_passed_over  # by automatic checkpoints, as a loss or cheap to compute again
    cdef public object work       # multiplications, from the shapes of inputs and output; or None
    cdef public bint passes_gradients   # each output is the input at its position; so are gradients
    # Facts about stateful ops, or None.
    cdef public object counts     # function and parameters of a draw without a derivative
    cdef public object runs       # bodies that a node runs, from its attributes
    cdef public object repeated   # results of a repeated call, from inputs, outputs, attributes
    cdef public object given      # outputs of a graph's node that `repeated` reads, if not all
    # Specs of the outputs of a call with symbolic values, packed as the results of forward.
    cdef object infer(self, list inputs, dict attrs)
    cdef int backward(self, BackwardCall* call) except -1
    # Record a call, whose inputs and outputs are Values.
    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1
    # The tail of a call's entry, or None. Called before `kept` is read, as it may set that.
    cdef object tail_of(self, dict attrs)
    # The tangents of the outputs: tensors, arrays (plain) or None. Those of the inputs are arrays
    # (plain) or tensors, or None; batched: with a leading axis, which `takes_batches` must allow,
    # and the result may be NotImplemented.
    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched)
    cdef int note_views(self, inputs, result, dict attrs) except -1  # of the first input
    cdef bint has_jvp(self) noexcept
    cdef bint takes_batches(self) noexcept

# Functions of higher packages that this one calls; `install_conform` sets them.
cdef class Conforming:
    cdef public object cast, sum_to, broadcast_to            # tensors made to fit a dtype or spec
    cdef public object broadcast_batch_like, zeros_in_batch  # for batches of tangents
    cdef public object getitem                               # for an index with symbols
    cdef public object structural_vjp                        # the vjp of ops that move numbers
    cdef public object deferred                              # gradients computed when a graph runs
    cdef public object ufunc_method                          # reduce and other methods of ufuncs
    cdef public object named                                 # the op of a name
    cdef public Op broadcast_to_op, constant_op, index_add_op, sum_to_op, transpose_op

cdef Conforming conform

cdef str documentation(Op op)
cdef Value value_of(x, bint copy)
cdef tuple with_lists_joined(tuple operands)
cdef Value weak_scalar(x, Spec like)  # a Python number in a float dtype, or None
cdef ndarray_of(x)
cdef bint opts_out(x)
cdef Tensor origin_of(x)
cdef bint is_followed(inputs) except -1
cdef object restored(x, bint plain)
cdef Tensor dense(gradient)
cdef Value dense_value(gradient)
cdef object frozen(value)
cdef dict frozen_attrs(dict attrs)
cdef bint may_be(found, Spec spec) except -1
cdef bint shape_may_be(shape, Spec spec) except -1
cdef list gradients_of_outputs(BackwardCall* call, bint plain)
cdef int give(Op op, BackwardCall* call, int i, object gradient) except -1
cdef int give_all(Op op, BackwardCall* call, gradients) except -1
cdef void release_objects(void** refs, int32_t n_refs, object keeper) noexcept


cdef inline void* output_ref(BackwardCall* call, Py_ssize_t i) noexcept:
    return call.refs[i]


cdef inline void* input_ref(BackwardCall* call, Py_ssize_t i) noexcept:
    return call.refs[call.n_outputs + i]


cdef inline void* spec_pointer(BackwardCall* call, Py_ssize_t i) noexcept:
    """The spec of input i."""
    cdef void* ref = input_ref(call, i)
    return <void*>(<Value>ref).spec if type(<object>ref) is Value else ref


cdef inline void* saved_output_ref(BackwardCall* call) noexcept:
    """The first of the outputs that the rules read."""
    return call.refs[call.n_outputs + call.n_inputs]


cdef inline dict attrs_of(BackwardCall* call):
    return <dict>call.refs[call.n_refs - 1]


cdef inline Value tensor_value(x):
    """Return the value of a tensor, the present value of a variable, None for other objects."""
    if type(x) is Tensor:
        return (<Tensor>x).held
    if isinstance(x, Variable):
        return read(x)
    return None


cdef inline bint adds_part(Op op) noexcept:
    """Return whether the result is zero outside of a part; plans add only this."""
    return op.lowering == Lowering.ADD_PART or op.lowering == Lowering.ROWS_ADDED


cdef inline bint is_among(uint64_t bits, Py_ssize_t position) noexcept:
    return bits >> min(position, 63) & 1


cdef inline Spec spec_of_ref(x):
    return (<Value>x).spec if type(x) is Value else x


cdef inline void* owned(object x) noexcept:
    Py_INCREF(x)
    return <void*><PyObject*>x


cdef inline void* owned_pointer(PyObject* x) noexcept:
    Py_XINCREF(x)
    return <void*>x
