cimport numpy as cnp
from numpy cimport PyUFuncGenericFunction

from cytape.ops.kernels.ufunc_loops cimport Kernel, Loop, kernel_of

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default")))
    #else
    #define CYTAPE_FOR_CPU
    #endif
    #define CYTAPE_BLOCK 256

    typedef void (*cytape_loop)(char **, const npy_intp *, const npy_intp *, void *);
    typedef struct { cytape_loop function; void *data; } cytape_ufunc_loop;

    /* NumPy's loop of a function of one operand, over a block that it overwrites. */
    static inline void cytape_apply(const cytape_ufunc_loop *loop, void *block, npy_intp n,
                                    npy_intp size) {
        char *data[2] = {(char *)block, (char *)block};
        const npy_intp strides[2] = {size, size};
        loop->function(data, &n, strides, loop->data);
    }

    static inline float cytape_read_npy_half(const char *memory) {
        const npy_half h = *(const npy_half *)memory;
        const int exponent = h >> 10 & 0x1f, digits = h & 0x3ff;
        float size = exponent ? ldexpf(1024 + digits, exponent - 25) : ldexpf(digits, -24);
        if (exponent == 0x1f) { size = digits ? NAN : INFINITY; }
        return h & 0x8000 ? -size : size;
    }
    static inline void cytape_write_npy_half(char *memory, float x) {
        const npy_half sign = signbit(x) ? 0x8000 : 0;
        npy_half h;
        int exponent;
        x = fabsf(x);
        if (x != x) {
            h = 0x7e00;
        } else if (x >= 65520) {
            h = 0x7c00;
        } else if (x < ldexpf(1, -14)) {
            h = (npy_half)nearbyintf(ldexpf(x, 24));
        } else {
            const float digits = nearbyintf(ldexpf(frexpf(x, &exponent), 11));
            h = (npy_half)(((exponent + 14) << 10) + (int)digits - 1024);
        }
        *(npy_half *)memory = h | sign;
    }
    #define CYTAPE_PLAIN(type) \\
        static inline type cytape_read_##type(const char *memory) { \\
            return *(const type *)memory; \\
        } \\
        static inline void cytape_write_##type(char *memory, type x) { *(type *)memory = x; }
    CYTAPE_PLAIN(npy_float)
    CYTAPE_PLAIN(npy_double)
    CYTAPE_PLAIN(npy_longdouble)

    /* Without a comparison: with NaN that would be an invalid operation. */
    #define CYTAPE_POSITIVE_PART(number, integer) \\
        static inline number cytape_positive_part_##number(number x) { \\
            integer bits; \\
            memcpy(&bits, &x, sizeof(x)); \\
            bits &= ~(bits >> (8 * sizeof(x) - 1)); \\
            memcpy(&x, &bits, sizeof(x)); \\
            return x; \\
        }
    CYTAPE_POSITIVE_PART(npy_float, npy_int32)
    CYTAPE_POSITIVE_PART(npy_double, npy_int64)
    static inline npy_longdouble cytape_positive_part_npy_longdouble(npy_longdouble x) {
        return signbit(x) ? 0 : x;
    }

    /* Of exp(-|x|), which does not overflow, and of its log1p. Nor does the sign make a branch. */
    #define CYTAPE_IS_POSITIVE(number, x) ((number)0.5 + CYTAPE_COPYSIGN_##number((number)0.5, x))
    #define CYTAPE_COPYSIGN_npy_float copysignf
    #define CYTAPE_COPYSIGN_npy_double copysign
    #define CYTAPE_COPYSIGN_npy_longdouble copysignl
    #define CYTAPE_SIGMOID(number, x, power) \\
        ((CYTAPE_IS_POSITIVE(number, x) + (1 - CYTAPE_IS_POSITIVE(number, x)) * power) \\
         / (1 + power))
    #define CYTAPE_SOFTPLUS(number, x, power) (cytape_positive_part_##number(x) + power)
    #define CYTAPE_SILU(number, x, power) (x * CYTAPE_SIGMOID(number, x, power))
    /* x tanh(softplus(x)): a / (a + 2) with a = exp(x) (exp(x) + 2), by exp(-x) if x > 0 */
    #define CYTAPE_MISH(number, x, power) \\
        (x * (CYTAPE_IS_POSITIVE(number, x) * (1 + 2 * power) \\
              + (1 - CYTAPE_IS_POSITIVE(number, x)) * power * (power + 2)) \\
           / (CYTAPE_IS_POSITIVE(number, x) * (1 + 2 * power * (1 + power)) \\
              + (1 - CYTAPE_IS_POSITIVE(number, x)) * (power * (power + 2) + 2)))
    #define CYTAPE_SILU_SLOPE(number, x, power) \\
        (CYTAPE_SIGMOID(number, x, power) + x * (power / ((1 + power) * (1 + power))))
    #define CYTAPE_MISH_SLOPE(number, x, power) cytape_mish_slope_of_##number(x, power)
    /* t + x (1 - t^2) sigmoid(x) for t = tanh(softplus(x)) = above / below */
    #define CYTAPE_MISH_SLOPE_OF(number) \\
        static inline number cytape_mish_slope_of_##number(number x, number power) { \\
            const number right = CYTAPE_IS_POSITIVE(number, x), left = 1 - right; \\
            const number above = right * (1 + 2 * power) + left * power * (power + 2); \\
            const number below = above + 2 * (right * power * power + left); \\
            const number rest = power * (right * power + left) * (1 + power); \\
            return above / below + x * (4 * rest / (below * below)); \\
        }
    CYTAPE_MISH_SLOPE_OF(npy_float)
    CYTAPE_MISH_SLOPE_OF(npy_double)
    CYTAPE_MISH_SLOPE_OF(npy_longdouble)

    /* The error function of C, in one pass; erfc does not cancel for large negative x. */
    #define CYTAPE_ERFC_npy_float erfcf
    #define CYTAPE_ERFC_npy_double erfc
    #define CYTAPE_ERFC_npy_longdouble erfcl
    #define CYTAPE_GAUSSIAN_CDF(number, x, power) \\
        ((number)0.5 * CYTAPE_ERFC_##number(x * (number)-0.70710678118654752440L))
    #define CYTAPE_GELU(number, x, power) (x * CYTAPE_GAUSSIAN_CDF(number, x, power))
    #define CYTAPE_GELU_SLOPE(number, x, power) \\
        (CYTAPE_GAUSSIAN_CDF(number, x, power) + x * (power * (number)0.39894228040143267794L))

    /* Exponents. */
    #define CYTAPE_MINUS_SIZE(number, x) (-CYTAPE_ABS_##number(x))
    #define CYTAPE_MINUS_HALF_SQUARE(number, x) ((number)-0.5 * x * x)
    #define CYTAPE_ABS_npy_float fabsf
    #define CYTAPE_ABS_npy_double fabs
    #define CYTAPE_ABS_npy_longdouble fabsl

    #define CYTAPE_ACTIVATION(name, type, number, exponent, finish, n_loops) \\
        CYTAPE_FOR_CPU static void cytape_##name##_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *loops) { \\
            number x[CYTAPE_BLOCK], power[CYTAPE_BLOCK]; \\
            npy_intp i, done, count; \\
            for (done = 0; done < *n; done += count) { \\
                const char *from = data[0] + done * strides[0]; \\
                char *to = data[1] + done * strides[1]; \\
                count = *n - done < CYTAPE_BLOCK ? *n - done : CYTAPE_BLOCK; \\
                if (strides[0] == sizeof(number) && sizeof(type) == sizeof(number)) { \\
                    memcpy(x, from, count * sizeof(number)); \\
                } else { \\
                    for (i = 0; i < count; i++) { \\
                        x[i] = cytape_read_##type(from + i * strides[0]); \\
                    } \\
                } \\
                for (i = 0; i < count; i++) { power[i] = exponent(number, x[i]); } \\
                for (i = 0; i < n_loops; i++) { \\
                    cytape_apply((const cytape_ufunc_loop *)loops + i, power, count, \\
                                 sizeof(number)); \\
                } \\
                for (i = 0; i < count; i++) { x[i] = finish(number, x[i], power[i]); } \\
                if (strides[1] == sizeof(number) && sizeof(type) == sizeof(number)) { \\
                    memcpy(to, x, count * sizeof(number)); \\
                } else { \\
                    for (i = 0; i < count; i++) { \\
                        cytape_write_##type(to + i * strides[1], x[i]); \\
                    } \\
                } \\
            } \\
        }
    #define CYTAPE_ACTIVATIONS(name, exponent, finish, n_loops) \\
        CYTAPE_ACTIVATION(name, npy_half, npy_float, exponent, finish, n_loops) \\
        CYTAPE_ACTIVATION(name, npy_float, npy_float, exponent, finish, n_loops) \\
        CYTAPE_ACTIVATION(name, npy_double, npy_double, exponent, finish, n_loops) \\
        CYTAPE_ACTIVATION(name, npy_longdouble, npy_longdouble, exponent, finish, n_loops) \\
        static PyUFuncGenericFunction cytape_##name[] = { \\
            (PyUFuncGenericFunction)cytape_##name##_npy_half, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_float, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_double, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_longdouble, \\
        };
    CYTAPE_ACTIVATIONS(sigmoid, CYTAPE_MINUS_SIZE, CYTAPE_SIGMOID, 1)
    CYTAPE_ACTIVATIONS(softplus, CYTAPE_MINUS_SIZE, CYTAPE_SOFTPLUS, 2)
    CYTAPE_ACTIVATIONS(silu, CYTAPE_MINUS_SIZE, CYTAPE_SILU, 1)
    CYTAPE_ACTIVATIONS(silu_slope, CYTAPE_MINUS_SIZE, CYTAPE_SILU_SLOPE, 1)
    CYTAPE_ACTIVATIONS(mish, CYTAPE_MINUS_SIZE, CYTAPE_MISH, 1)
    CYTAPE_ACTIVATIONS(mish_slope, CYTAPE_MINUS_SIZE, CYTAPE_MISH_SLOPE, 1)
    CYTAPE_ACTIVATIONS(gelu, CYTAPE_MINUS_SIZE, CYTAPE_GELU, 0)
    CYTAPE_ACTIVATIONS(gelu_slope, CYTAPE_MINUS_HALF_SQUARE, CYTAPE_GELU_SLOPE, 1)
    static char cytape_types[] = {
        NPY_HALF, NPY_HALF, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE,
        NPY_LONGDOUBLE, NPY_LONGDOUBLE,
    };
    static cytape_ufunc_loop cytape_steps[4][2];
    static void *cytape_steps_of_types[4] = {
        cytape_steps[0], cytape_steps[1], cytape_steps[2], cytape_steps[3],
    };
    """
    ctypedef struct UfuncLoop "cytape_ufunc_loop":
        void* function
        void* data
    UfuncLoop[4][2] cytape_steps
    void** cytape_steps_of_types
    char* cytape_types
    PyUFuncGenericFunction* cytape_sigmoid
    PyUFuncGenericFunction* cytape_softplus
    PyUFuncGenericFunction* cytape_silu
    PyUFuncGenericFunction* cytape_silu_slope
    PyUFuncGenericFunction* cytape_mish
    PyUFuncGenericFunction* cytape_mish_slope
    PyUFuncGenericFunction* cytape_gelu
    PyUFuncGenericFunction* cytape_gelu_slope

cdef list kernels = [kernel_of(np.exp), kernel_of(np.log1p)]  # owners of the loops' data


cdef object ufunc(PyUFuncGenericFunction* loops, char* name):
    return cnp.PyUFunc_FromFuncAndData(
        loops, cytape_steps_of_types, cytape_types, 4, 1, 1, cnp.PyUFunc_None, name, NULL, 0)


cdef int enter_steps() except -1:
    cdef int[4] type_nums = [cnp.NPY_FLOAT, cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_LONGDOUBLE]
    cdef Loop* loop
    cdef int i, j
    for i in range(4):
        for j in range(2):
            loop = &(<Kernel>kernels[j]).loops[type_nums[i]]
            cytape_steps[i][j].function = <void*>loop.function
            cytape_steps[i][j].data = loop.data
    return 0


enter_steps()
sigmoid = ufunc(cytape_sigmoid, b"sigmoid")
softplus = ufunc(cytape_softplus, b"softplus")
silu = ufunc(cytape_silu, b"silu")
silu_slope = ufunc(cytape_silu_slope, b"silu_slope")
mish = ufunc(cytape_mish, b"mish")
mish_slope = ufunc(cytape_mish_slope, b"mish_slope")
gelu = ufunc(cytape_gelu, b"gelu")
gelu_slope = ufunc(cytape_gelu_slope, b"gelu_slope")
