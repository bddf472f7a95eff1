cimport cytape.ops.kernels.compilers
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

    #define CYTAPE_ABS_npy_float fabsf
    #define CYTAPE_ABS_npy_double fabs
    #define CYTAPE_ABS_npy_longdouble fabsl
    /* The normal distribution function without a branch. For x < 0 it is exp(-x^2 / 2) / (1 - x)
       times a polynomial of (-x - shift) / (-x + shift), interpolated at Chebyshev nodes with an
       error of 1e-8 and 1e-16. `power` is the exponential. */
    #define CYTAPE_GAUSSIAN_CDF(number, x, power) cytape_gaussian_cdf_##number(x, power)
    #define CYTAPE_GAUSSIAN_CDF_OF(number, shift, ...) \\
        static inline number cytape_gaussian_cdf_##number(number x, number power) { \\
            static const number c[] = {__VA_ARGS__}; \\
            const number size = CYTAPE_ABS_##number(x), right = CYTAPE_IS_POSITIVE(number, x); \\
            const number t = 1 - 2 * (number)shift / (size + shift); \\
            number tail = c[0]; \\
            int i; \\
            _Pragma("GCC unroll 32") \\
            for (i = 1; i < (int)(sizeof(c) / sizeof(number)); i++) { tail = tail * t + c[i]; } \\
            tail *= power / (1 + size); \\
            return right + (1 - 2 * right) * tail; \\
        }
    CYTAPE_GAUSSIAN_CDF_OF(npy_float, 4,
            7.500679584e-6f, 1.25685467e-5f, -8.059327401e-5f, -8.455401787e-5f,
            0.0006903034857f, -0.0002912674952f, -0.005000840439f, 0.01793769594f,
            -0.03219808644f, 0.02860016814f, 0.01399964997f, -0.09670347043f,
            0.4720532064f)
    CYTAPE_GAUSSIAN_CDF_OF(npy_double, 5,
            6.912703857390510062e-11, 2.5086998017187525881e-11,
            -8.136256173498981671e-10, -4.3272971100924323292e-10,
            5.5892805982472322486e-9, 4.0224933821709123585e-9,
            -3.2842210019043252495e-8, -2.688202129280461578e-8,
            1.9820204509871529823e-7, 1.2844797106496488584e-7,
            -1.3087568851342642027e-6, -7.0706288463177519224e-8,
            9.0604271801035814535e-6, -9.8959461593347340071e-6,
            -0.000053607767602610539132, 0.00018233410307611754535,
            7.7916351182566772413e-6, -0.0016760723371645698041,
            0.0065220006630702815647, -0.015170415403281223154, 0.024536963244008605725,
            -0.026401042966267253002, 0.010002352385218669923, 0.031030368425962848048,
            -0.091552281834008932663, 0.46151582985003777586)
    static inline npy_longdouble cytape_gaussian_cdf_npy_longdouble(
            npy_longdouble x, npy_longdouble power) {
        (void)power;
        return 0.5L * erfcl(x * -0.70710678118654752440L);
    }
    #define CYTAPE_GELU(number, x, power) (x * CYTAPE_GAUSSIAN_CDF(number, x, power))
    #define CYTAPE_GELU_SLOPE(number, x, power) \\
        (CYTAPE_GAUSSIAN_CDF(number, x, power) + x * (power * (number)0.39894228040143267794L))

    /* Exponents. */
    #define CYTAPE_MINUS_SIZE(number, x) (-CYTAPE_ABS_##number(x))
    /* Its exponential is 0 long before the square overflows. */
    #define CYTAPE_MINUS_HALF_SQUARE(number, x) \\
        (isgreater(CYTAPE_ABS_##number(x), (number)1e4) ? (number)-5e7 : (number)-0.5 * x * x)

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
    CYTAPE_ACTIVATIONS(gelu, CYTAPE_MINUS_HALF_SQUARE, CYTAPE_GELU, 1)
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


cdef object ufunc(PyUFuncGenericFunction* loops, char* name, char* doc=NULL):
    return cnp.PyUFunc_FromFuncAndData(
        loops, cytape_steps_of_types, cytape_types, 4, 1, 1, cnp.PyUFunc_None, name, doc, 0)


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
sigmoid = ufunc(cytape_sigmoid, b"sigmoid", b"""Return ``1 / (1 + exp(-x))``.

Examples
--------
>>> import numpy as np
>>> import cytape
>>> cytape.nn.sigmoid(np.array([0.0, -1000.0]))
array([0.5, 0. ])
""")
softplus = ufunc(cytape_softplus, b"softplus", b"""Return ``log(1 + exp(x))``, without overflow.

Examples
--------
>>> import numpy as np
>>> import cytape
>>> cytape.nn.softplus(np.array([1000.0, -1000.0]))
array([1000.,    0.])
""")
silu = ufunc(cytape_silu, b"silu", b"""Return ``x * sigmoid(x)``.

Examples
--------
>>> import numpy as np
>>> import cytape
>>> cytape.nn.silu(np.array([0.0, 1000.0]))
array([   0., 1000.])
""")
silu_slope = ufunc(cytape_silu_slope, b"silu_slope")
mish = ufunc(cytape_mish, b"mish", b"""Return ``x * tanh(softplus(x))``.

Examples
--------
>>> import numpy as np
>>> import cytape
>>> cytape.nn.mish(np.array([0.0, 1000.0]))
array([   0., 1000.])
""")
mish_slope = ufunc(cytape_mish_slope, b"mish_slope")
gelu = ufunc(cytape_gelu, b"gelu")
gelu_slope = ufunc(cytape_gelu_slope, b"gelu_slope")
