# Program: a partial derivative as a list of kernel calls.
#
# The partial of an elementwise op is a Python function of arrays. Called once with symbols, it
# gives a list of steps, which ends with the product with the output's gradient. The backward pass
# runs the steps over blocks that fit into the L1 cache, without Python and without temporaries of
# the size of the data. Programs of tangents, and of several gradients at once, come from the same
# partials.

from cpython.ref cimport PyObject
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .partial_tracer cimport MAX_INPUTS, MAX_REGISTERS, N_OPERANDS
from .ufunc_loops cimport Loop, loop_t
from .walk cimport Walk

cdef struct Step:
    Loop[2] loops     # for float64 and float32; no function: select (3 inputs), widen (1)
    loop_t vector     # replaces the loop for large float64 data; or NULL
    int n_inputs
    int[3] inputs     # registers
    int output
    bint from_bool    # the inputs are booleans

cdef struct Operands:
    # Operands of programs, by register.
    void* shape              # the Spec that all are broadcast to
    unsigned int present     # bit per register
    bint flat                # each is uniform or in the layout of the result
    void* values[N_OPERANDS]
    char* data[MAX_REGISTERS]        # operands, then constants and temporaries
    npy_intp strides[MAX_REGISTERS]

# Run one step on `length` elements. Strides and memory are by register; booleans are contiguous.
cdef void run_step(const Step* step, int type_num, npy_intp length, char** registers,
                   const npy_intp* strides, char* output) noexcept nogil
cdef bint add_operand(Operands* operands, int register, Value value) noexcept  # False: other dtype

cdef class Program:
    cdef list kernels                       # owners of the data of the loops
    cdef list ufuncs                        # per step; None for select and widen
    cdef list ops                           # the op for each step in graphs; made at first use
    cdef bint in_graph                      # there is an op for every step
    cdef Step[MAX_REGISTERS] steps
    cdef int n_steps
    cdef int n_registers
    cdef int n_operands                     # registers from here to N_OPERANDS are unused
    cdef int n_results
    cdef int[MAX_INPUTS] results            # registers
    cdef npy_intp block                     # bytes of a register per block
    cdef npy_intp spacing                   # from one register to the next
    cdef double[MAX_REGISTERS] constants    # by register
    cdef float[MAX_REGISTERS] float_constants
    cdef bint[MAX_REGISTERS] is_constant
    cdef bint[2] runs_on                    # float64, float32: all steps have loops
    cdef unsigned int operands              # bit per register that is read
    cdef readonly unsigned int reads        # of these the output and inputs, which must be saved
    # The register that the result is a copy of, or -1. Without steps too, the result is zero.
    cdef int copied
    cdef readonly bint is_one               # the partial is 1: the gradient passes unchanged
    cdef int run_on(self, Operands* operands, Value result, bint accumulate) except -1
    cdef int run_together(self, Operands* operands, PyObject** results, bint accumulate) except -1
    cdef bint repeats(self, Operands* operands) noexcept
    cdef Value repeated(self, Operands* operands)
    cdef void join_operands(self, Operands* operands, Walk* walk) noexcept
    cdef void run_along(self, Walk* walk, int type_num, bint accumulate, char* memory) noexcept
    cdef void run(self, int type_num, npy_intp n, char** data, npy_intp* strides, char** results,
                  bint accumulate, char* memory) noexcept
