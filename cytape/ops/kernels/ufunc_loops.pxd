# Kernels: the typed inner loops of NumPy's ufuncs, called from C. NumPy runs the same loops, so
# results agree to the bit, for every dtype.

from cytape.tensor.values.spec cimport Spec
from numpy cimport NPY_BOOL, npy_intp

cdef extern from *:
    """
    #include <fenv.h>
    #define CYTAPE_TROUBLE (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW)
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <xmmintrin.h>
    /* fetestexcept without the call: vector code sets the one word, feraiseexcept the other. */
    static inline int cytape_trouble(void) {
        unsigned short status;
        __asm__ __volatile__("fnstsw %0" : "=a"(status));
        return (status | _mm_getcsr()) & CYTAPE_TROUBLE;
    }
    #else
    #define cytape_trouble() fetestexcept(CYTAPE_TROUBLE)
    #endif
    #define cytape_clear_trouble() feclearexcept(CYTAPE_TROUBLE)
    """
    bint trouble "cytape_trouble"() noexcept nogil  # a kernel divided by zero, overflowed, ...
    void clear_trouble "cytape_clear_trouble"() noexcept nogil

cdef enum:
    N_TYPES = 24  # NumPy's type numbers below this have loops: numbers, bool, half
    WORTH_THE_GIL = 1 << 16  # bytes of data from which on a loop releases the GIL

ctypedef void (*loop_t)(char** data, const npy_intp* n, const npy_intp* strides,
                        void* extra) noexcept nogil

cdef struct Loop:
    loop_t function  # NULL: none for inputs of this type
    void* data       # its last argument
    int out_type

cdef class Kernel:
    cdef readonly object ufunc
    cdef Loop[N_TYPES] loops         # by the type number that all inputs share
    cdef Loop[N_TYPES] numpys                 # NumPy's loop, if `loops` has a replacement
    cdef Loop[N_TYPES] clearing      # loops that clear the floating-point flags
    cdef void widen(self, int type_num, void* function) noexcept

cdef Kernel kernel_of(ufunc)
cdef Loop* copy_loop(Py_ssize_t itemsize) except NULL  # of any dtype without references

# Let NumPy report, by its settings, the floating-point errors of the kernels of a function.
cdef int warn(forward, tuple operands) except -1


cdef inline Loop* loop_of(Kernel kernel, Spec spec) noexcept:
    """Return the loop for operands of a dtype, NULL if results might differ from NumPy's."""
    cdef Loop* loop
    if not spec.trainable or spec.type_num >= N_TYPES:  # integer loops may raise
        return NULL
    loop = &kernel.loops[spec.type_num]
    if loop.function == NULL or (loop.out_type != spec.type_num and loop.out_type != NPY_BOOL):
        return NULL
    return loop


cdef inline bint suits_loops(npy_intp step, Spec spec) noexcept:
    """Return whether C order is a good order of elements; NumPy would choose the order."""
    return step == 0 or step == spec.itemsize or (step > 0 and spec.nbytes < WORTH_THE_GIL)
