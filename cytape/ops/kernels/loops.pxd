# Kernels: the typed inner loops of NumPy's ufuncs, called straight from C. They are what NumPy
# itself runs, so results agree to the bit, for every dtype; only the ufunc machinery around them is
# left out.

from numpy cimport npy_intp

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

cdef Kernel kernel_of(ufunc)
cdef Loop* copy_loop(Py_ssize_t itemsize) except NULL  # of any dtype without references
