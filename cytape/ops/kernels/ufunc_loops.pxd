# Kernels: the typed inner loops of NumPy's ufuncs, called straight from C. They are what NumPy
# itself runs, so results agree to the bit, for every dtype; only the ufunc machinery around them is
# left out.

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
    WORTH_THE_GIL = 1 << 16  # bytes of data for which other threads may run meanwhile

ctypedef void (*loop_t)(char** data, const npy_intp* n, const npy_intp* strides,
                        void* extra) noexcept nogil

cdef struct Loop:
    loop_t function  # NULL: none for inputs of this type
    void* data       # its last argument
    int out_type

cdef class Kernel:
    cdef readonly object ufunc
    cdef Loop[N_TYPES] loops         # by the type number that all inputs share
    cdef Loop[N_TYPES] numpys        # NumPy's own, where `loops` has another one that may call it
    cdef Loop[N_TYPES] clearing      # those that clear the floating-point flags
    cdef void widen(self, int type_num, void* function) noexcept

cdef Kernel kernel_of(ufunc)
cdef Loop* copy_loop(Py_ssize_t itemsize) except NULL  # of any dtype without references

# Have NumPy report, as it is set up to, what the kernels met that did what a function does.
cdef int warn(forward, tuple operands) except -1


cdef inline Loop* loop_of(Kernel kernel, Spec spec) noexcept:
    """The loop for operands of a dtype, NULL where that may not be what NumPy does."""
    cdef Loop* loop
    if not spec.trainable or spec.type_num >= N_TYPES:  # integer loops may raise
        return NULL
    loop = &kernel.loops[spec.type_num]
    if loop.function == NULL or (loop.out_type != spec.type_num and loop.out_type != NPY_BOOL):
        return NULL
    return loop


cdef inline bint suits_loops(npy_intp step, Spec spec) noexcept:
    """Whether going through memory in C order is a good way; NumPy would choose the order."""
    return step == 0 or step == spec.itemsize or (step > 0 and spec.nbytes < WORTH_THE_GIL)
