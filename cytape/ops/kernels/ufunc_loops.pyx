cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cpython.ref cimport PyObject
from libc.string cimport memset
from numpy cimport PyUFuncGenericFunction

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from "numpy/ufuncobject.h":
    # NumPy's own .pxd shows these as Python properties from 2.5 on.
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nargs, ntypes
        PyUFuncGenericFunction* functions
        void** data
        const char* types

cdef extern from "<fenv.h>":
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int feraiseexcept(int excepts) noexcept nogil
    int fetestexcept(int excepts) noexcept nogil

cdef extern from *:
    """
    #include <fenv.h>
    #include <math.h>
    #include <string.h>
    #define CYTAPE_COPY(type) \\
        CYTAPE_FOR_CPU static void cytape_copy_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            npy_intp i, count = *n; \\
            if (strides[0] == sizeof(type) && strides[1] == sizeof(type)) { \\
                memcpy(data[1], data[0], count * sizeof(type)); \\
                return; \\
            } \\
            if (strides[0] == 0 && strides[1] == sizeof(type)) { \\
                type item = *(type *)data[0]; \\
                for (i = 0; i < count; i++) { \\
                    ((type *)data[1])[i] = item; \\
                } \\
                return; \\
            } \\
            for (i = 0; i < count; i++) { \\
                *(type *)(data[1] + i * strides[1]) = *(type *)(data[0] + i * strides[0]); \\
            } \\
        }
    CYTAPE_COPY(npy_int8)
    CYTAPE_COPY(npy_int16)
    CYTAPE_COPY(npy_int32)
    CYTAPE_COPY(npy_int64)
    static void cytape_copy_items(char **data, const npy_intp *n, const npy_intp *strides,
                                  void *itemsize) {
        npy_intp i, count = *n;
        for (i = 0; i < count; i++) {
            memcpy(data[1] + i * strides[1], data[0] + i * strides[0], (size_t)itemsize);
        }
    }
    #define CYTAPE_BLOCK 1024
    typedef void (*cytape_loop)(char **, const npy_intp *, const npy_intp *, void *);

    /* A loop that clears the floating-point flags, as NumPy's of comparisons, negative and others
       do, without those that were raised before it. */
    static void cytape_keep_trouble(char **data, const npy_intp *n, const npy_intp *strides,
                                    void *clearing) {
        const struct { cytape_loop function; void *data; } *loop = clearing;  /* a Loop begins so */
        const int before = cytape_trouble();
        loop->function(data, n, strides, loop->data);
        if (before) { feraiseexcept(before); }
    }

    /* A loop that advances the pointers it is given, as SciPy's do; it may clear flags as well. */
    #define CYTAPE_KEEP_ARGUMENTS(n_operands) \\
        static void cytape_keep_arguments_##n_operands( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *advancing) { \\
            char *arguments[n_operands]; \\
            memcpy(arguments, data, sizeof(arguments)); \\
            cytape_keep_trouble(arguments, n, strides, advancing); \\
        }
    CYTAPE_KEEP_ARGUMENTS(2)
    CYTAPE_KEEP_ARGUMENTS(3)
    CYTAPE_KEEP_ARGUMENTS(4)

    /* A loop of one operand with boolean results, which are written to contiguous memory first and
       copied from there. NumPy's own loops leave a part of a strided result unwritten (isnan,
       isinf, isfinite, signbit with AVX-512 in NumPy 2.4). */
    static void cytape_through_block(char **data, const npy_intp *n, const npy_intp *strides,
                                     void *numpys) {
        const struct { cytape_loop function; void *data; } *loop = numpys;
        char block[CYTAPE_BLOCK], *through[2] = { data[0], block }, *result = data[1];
        const npy_intp steps[2] = { strides[0], 1 };
        npy_intp i, left, count;
        if (strides[1] == 1) {
            loop->function(data, n, strides, loop->data);
            return;
        }
        for (left = *n; left; left -= count) {
            count = left < CYTAPE_BLOCK ? left : CYTAPE_BLOCK;
            loop->function(through, &count, steps, loop->data);
            for (i = 0; i < count; i++, result += strides[1]) { *result = block[i]; }
            through[0] += count * strides[0];
        }
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <xmmintrin.h>
    #define CYTAPE_IS_INVALID() (_mm_getcsr() & 1)  /* fetestexcept without the call */
    #else
    #define CYTAPE_IS_INVALID() fetestexcept(FE_INVALID)
    #endif
    #define CYTAPE_SIGN(x) ((x) != (x) ? (x) : (x) > 0 ? 1 : (x) < 0 ? -1 : 0)
    #define CYTAPE_SIGNS(type) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_sign_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            const int before = CYTAPE_IS_INVALID(); \\
            const type *x = (const type *)data[0]; \\
            type *y = (type *)data[1]; \\
            npy_intp i, count = *n; \\
            if (strides[0] == sizeof(type) && strides[1] == sizeof(type)) { \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < count; i++) { y[i] = CYTAPE_SIGN(x[i]); } \\
            } else { \\
                for (i = 0; i < count; i++) { \\
                    const type a = *(const type *)(data[0] + i * strides[0]); \\
                    *(type *)(data[1] + i * strides[1]) = CYTAPE_SIGN(a); \\
                } \\
            } \\
            if (!before && CYTAPE_IS_INVALID()) { feclearexcept(FE_INVALID); } \\
        }
    CYTAPE_SIGNS(npy_float)
    CYTAPE_SIGNS(npy_double)

    /* Quotients and square roots, 512 bits at a time. They are rounded as NumPy's, which take 256
       and 128. Operands that do not lie close together are left to its loop, `numpys`. */
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #include <immintrin.h>
    #define CYTAPE_HAS_WIDE_LOOPS __builtin_cpu_supports("avx512f")
    #define CYTAPE_WIDE __attribute__((target("avx512f,prefer-vector-width=512")))
    #define CYTAPE_QUOTIENTS(first, second) \\
        CYTAPE_INDEPENDENT \\
        for (i = 0; i < count; i++) { z[i] = first / second; }
    #define CYTAPE_DIVIDE(type) \\
        CYTAPE_WIDE static void cytape_divide_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *numpys) { \\
            const struct { cytape_loop function; void *data; } *loop = numpys; \\
            const npy_intp near = sizeof(type), count = strides[2] == near ? *n : 0; \\
            const type *x = (const type *)data[0], *y = (const type *)data[1]; \\
            type *z = (type *)data[2]; \\
            npy_intp i; \\
            if (count && strides[0] == near && strides[1] == near) { \\
                CYTAPE_QUOTIENTS(x[i], y[i]) \\
            } else if (count && strides[0] == 0 && strides[1] == near) { \\
                const type number = *x; \\
                CYTAPE_QUOTIENTS(number, y[i]) \\
            } else if (count && strides[0] == near && strides[1] == 0) { \\
                const type number = *y; \\
                CYTAPE_QUOTIENTS(x[i], number) \\
            } else { \\
                loop->function(data, n, strides, loop->data); \\
            } \\
        }
    /* From an estimate of 1 / sqrt(a) Newton's steps make g, sqrt(a), and h, half of 1 / sqrt(a).
       The last one, by the remainder a - g * g, which is exact, rounds correctly (P. Markstein,
       IA-64 and Elementary Functions). Below `least` a remainder could be subnormal. The
       processor's own root takes ten times as long. */
    #define CYTAPE_NEWTON_STEP(p) \\
        rest = _mm512_fnmadd_##p(g, h, half); \\
        g = _mm512_fmadd_##p(g, rest, g); \\
        h = _mm512_fmadd_##p(h, rest, h);
    #define CYTAPE_SQRT(type, p, vector, mask, least, more_steps) \\
        CYTAPE_WIDE static void cytape_sqrt_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *numpys) { \\
            const struct { cytape_loop function; void *data; } *loop = numpys; \\
            const npy_intp near = sizeof(type), count = *n, at_once = 64 / sizeof(type); \\
            const vector half = _mm512_set1_##p(0.5), end = _mm512_set1_##p(INFINITY); \\
            const vector first = _mm512_set1_##p(least); \\
            const mask all = -1; \\
            npy_intp i; \\
            if (strides[0] != near || strides[1] != near) { \\
                loop->function(data, n, strides, loop->data); \\
                return; \\
            } \\
            for (i = 0; i + at_once <= count; i += at_once) { \\
                const vector a = _mm512_loadu_##p((const type *)data[0] + i); \\
                vector g, h, rest; \\
                if ((_mm512_cmp_##p##_mask(a, first, _CMP_GE_OQ) \\
                     & _mm512_cmp_##p##_mask(a, end, _CMP_LT_OQ)) == all) { \\
                    g = _mm512_rsqrt14_##p(a); \\
                    h = _mm512_mul_##p(g, half); \\
                    g = _mm512_mul_##p(g, a); \\
                    CYTAPE_NEWTON_STEP(p) \\
                    more_steps \\
                    rest = _mm512_fnmadd_##p(g, g, a); \\
                    g = _mm512_fmadd_##p(rest, h, g); \\
                } else { \\
                    g = _mm512_sqrt_##p(a); \\
                } \\
                _mm512_storeu_##p((type *)data[1] + i, g); \\
            } \\
            if (i < count) { \\
                const mask rest = (1 << (count - i)) - 1; \\
                _mm512_mask_storeu_##p((type *)data[1] + i, rest, _mm512_sqrt_##p( \\
                    _mm512_maskz_loadu_##p(rest, (const type *)data[0] + i))); \\
            } \\
        }
    CYTAPE_DIVIDE(npy_float)
    CYTAPE_DIVIDE(npy_double)
    CYTAPE_SQRT(npy_float, ps, __m512, __mmask16, 0x1p-96, )
    CYTAPE_SQRT(npy_double, pd, __m512d, __mmask8, 0x1p-960, CYTAPE_NEWTON_STEP(pd))
    #else
    #define CYTAPE_HAS_WIDE_LOOPS 0
    #define cytape_divide_npy_float NULL
    #define cytape_divide_npy_double NULL
    #define cytape_sqrt_npy_float NULL
    #define cytape_sqrt_npy_double NULL
    #endif
    """
    bint CYTAPE_HAS_WIDE_LOOPS
    void* cytape_divide_npy_float
    void* cytape_divide_npy_double
    void* cytape_sqrt_npy_float
    void* cytape_sqrt_npy_double
    void cytape_keep_trouble() noexcept
    void* cytape_keep_arguments_2
    void* cytape_keep_arguments_3
    void* cytape_keep_arguments_4
    void* cytape_through_block
    void cytape_sign_npy_float() noexcept
    void cytape_sign_npy_double() noexcept
    void cytape_copy_npy_int8() noexcept
    void cytape_copy_npy_int16() noexcept
    void cytape_copy_npy_int32() noexcept
    void cytape_copy_npy_int64() noexcept
    void cytape_copy_items() noexcept

cdef enum:
    MAX_ITEMSIZE = 32  # of numbers
    MAX_OPERANDS = 32

cdef dict kernels = {}
cdef dict long_loops = {}  # itemsize of text -> a Loop, in bytes
cdef Loop[MAX_ITEMSIZE + 1] copy_loops


cdef class Kernel:
    """Loops of one ufunc, by type."""

    def __cinit__(self, cnp.ufunc ufunc not None):
        cdef UFunc* raw = <UFunc*><PyObject*>ufunc
        cdef int i, j
        cdef const char* types
        cdef loop_t function
        self.ufunc = ufunc
        for i in range(N_TYPES):
            self.loops[i].function = NULL
        for i in range(raw.ntypes):
            types = raw.types + i * raw.nargs
            for j in range(1, raw.nin):
                if types[j] != types[0]:
                    break
            else:
                if 0 <= types[0] < N_TYPES and self.loops[<int>types[0]].function == NULL:
                    self.loops[<int>types[0]].function = <loop_t><void*>raw.functions[i]
                    self.loops[<int>types[0]].data = raw.data[i]
                    self.loops[<int>types[0]].out_type = types[raw.nin]
        if ufunc is np.sign:  # without the branches of NumPy's loop
            self.loops[<int>cnp.NPY_FLOAT].function = <loop_t><void*>cytape_sign_npy_float
            self.loops[<int>cnp.NPY_DOUBLE].function = <loop_t><void*>cytape_sign_npy_double
        if CYTAPE_HAS_WIDE_LOOPS and ufunc is np.divide:
            self.widen(cnp.NPY_FLOAT, cytape_divide_npy_float)
            self.widen(cnp.NPY_DOUBLE, cytape_divide_npy_double)
        if CYTAPE_HAS_WIDE_LOOPS and ufunc is np.sqrt:
            self.widen(cnp.NPY_FLOAT, cytape_sqrt_npy_float)
            self.widen(cnp.NPY_DOUBLE, cytape_sqrt_npy_double)
        for i in range(N_TYPES):
            if self.loops[i].function != NULL and i != cnp.NPY_OBJECT:
                function = kept_intact(&self.loops[i], ufunc, raw.nargs)
                if function != NULL:
                    self.clearing[i] = self.loops[i]
                    self.loops[i].function = function
                    self.loops[i].data = &self.clearing[i]
            if self.loops[i].function != NULL and raw.nargs == 2 and (
                    self.loops[i].out_type == cnp.NPY_BOOL):
                self.widen(i, cytape_through_block)

    cdef void widen(self, int type_num, void* function) noexcept:
        """Replace NumPy's loop by another one, which calls it for operands it does not handle."""
        self.numpys[type_num] = self.loops[type_num]
        self.loops[type_num].function = <loop_t>function
        self.loops[type_num].data = &self.numpys[type_num]


cdef loop_t kept_intact(Loop* loop, ufunc, int n_operands) except? NULL:
    """Return a loop that keeps flags and arguments if this one does not; NULL if it does."""
    cdef char memory[MAX_OPERANDS * MAX_ITEMSIZE]
    cdef char* data[MAX_OPERANDS]
    cdef npy_intp strides[MAX_OPERANDS]
    cdef npy_intp extents[MAX_OPERANDS]  # several for a signature
    cdef loop_t found = NULL
    cdef int i
    if n_operands > MAX_OPERANDS:
        return NULL
    memset(memory, 0, sizeof(memory))
    memset(extents, 0, sizeof(extents))
    for i in range(MAX_OPERANDS):
        data[i] = memory + i * MAX_ITEMSIZE
        strides[i] = MAX_ITEMSIZE
    feraiseexcept(FE_DIVBYZERO)
    loop.function(data, extents, strides, loop.data)
    if not trouble():
        found = <loop_t><void*>cytape_keep_trouble
    if ufunc.signature is None and n_operands <= 4:
        extents[0] = 1
        loop.function(data, extents, strides, loop.data)
        if data[0] != memory:
            found = <loop_t>(
                cytape_keep_arguments_2 if n_operands == 2 else
                cytape_keep_arguments_3 if n_operands == 3 else cytape_keep_arguments_4)
    clear_trouble()
    return found


cdef Kernel kernel_of(ufunc):
    found = kernels.get(ufunc)
    if found is None:
        found = kernels[ufunc] = Kernel(ufunc)
    return found


cdef void enter_copy_loops() noexcept:
    cdef size_t itemsize
    for itemsize in range(MAX_ITEMSIZE + 1):
        copy_loops[itemsize].function = <loop_t><void*>cytape_copy_items
        copy_loops[itemsize].data = <void*>itemsize
    copy_loops[1].function = <loop_t><void*>cytape_copy_npy_int8
    copy_loops[2].function = <loop_t><void*>cytape_copy_npy_int16
    copy_loops[4].function = <loop_t><void*>cytape_copy_npy_int32
    copy_loops[8].function = <loop_t><void*>cytape_copy_npy_int64


enter_copy_loops()


cdef Loop* copy_loop(Py_ssize_t itemsize) except NULL:
    cdef Loop loop
    if itemsize <= MAX_ITEMSIZE:
        return &copy_loops[itemsize]
    if itemsize not in long_loops:
        loop = copy_loops[0]
        loop.data = <void*>itemsize
        long_loops.setdefault(itemsize, (<char*>&loop)[:sizeof(Loop)])
    return <Loop*><char*>(<bytes>long_loops[itemsize])


cdef int warn(forward, tuple operands) except -1:
    """Let NumPy report, by its settings, the floating-point errors of a kernel."""
    cdef bint only_underflow = not fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
    clear_trouble()
    if not only_underflow or np.geterr()["under"] != "ignore":
        forward(*operands)
        clear_trouble()
    return 0
