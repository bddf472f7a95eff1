cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.interrupts cimport NO_MEMORY
from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.kernels.ufunc_loops cimport N_TYPES, kernel_of, loop_t
from cytape.tensor.values.spec cimport spec_of_dims
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

cnp.import_array()

cdef enum:
    N_CASTS = 8  # dtypes

cdef extern from "<fenv.h>" nogil:
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW, FE_UNDERFLOW
    int fetestexcept(int excepts)

cdef extern from *:
    """
    #include <math.h>
    #define CYTAPE_BINARY(name, type, operator) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            const type *x = (const type *)data[0], *y = (const type *)data[1]; \\
            type *z = (type *)data[2]; \\
            npy_intp i, count = *n; \\
            if (strides[0] == 0) { \\
                const type number = *x; \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < count; i++) { z[i] = number operator y[i]; } \\
            } else if (strides[1] == 0) { \\
                const type number = *y; \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < count; i++) { z[i] = x[i] operator number; } \\
            } else { \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < count; i++) { z[i] = x[i] operator y[i]; } \\
            } \\
        }
    #define CYTAPE_UNARY(name, type, expression) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            const type *from = (const type *)data[0]; \\
            type *z = (type *)data[1]; \\
            npy_intp i, count = *n; \\
            CYTAPE_INDEPENDENT \\
            for (i = 0; i < count; i++) { \\
                const type x = from[strides[0] == 0 ? 0 : i]; \\
                z[i] = (type)(expression); \\
            } \\
        }
    #define CYTAPE_DIRECT(type) \\
        CYTAPE_BINARY(cytape_add_##type, type, +) \\
        CYTAPE_BINARY(cytape_subtract_##type, type, -) \\
        CYTAPE_BINARY(cytape_multiply_##type, type, *) \\
        CYTAPE_BINARY(cytape_divide_##type, type, /) \\
        CYTAPE_UNARY(cytape_negative_##type, type, -x) \\
        CYTAPE_UNARY(cytape_square_##type, type, x * x) \\
        CYTAPE_UNARY(cytape_mean_##type, type, x / (double)strides[2])
    CYTAPE_DIRECT(double)
    CYTAPE_DIRECT(float)
    #define CYTAPE_LOOPS(type) { \\
        cytape_add_##type, cytape_subtract_##type, cytape_multiply_##type, cytape_divide_##type, \\
        cytape_negative_##type, cytape_square_##type, cytape_mean_##type }
    typedef void (*cytape_loop_t)(char **, const npy_intp *, const npy_intp *, void *);
    static const cytape_loop_t cytape_direct_loops[2][7] = {
        CYTAPE_LOOPS(double), CYTAPE_LOOPS(float) };
    #define CYTAPE_CAST(name, from, to) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            npy_intp i, count = *n; \\
            for (i = 0; i < count; i++) { \\
                *(to *)(data[1] + i * strides[1]) = \\
                    (to)*(const from *)(data[0] + i * strides[0]); \\
            } \\
        }
    #define CYTAPE_CAST_TO_BOOL(name, from) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            npy_intp i, count = *n; \\
            for (i = 0; i < count; i++) { \\
                *(npy_bool *)(data[1] + i * strides[1]) = \\
                    *(const from *)(data[0] + i * strides[0]) != 0; \\
            } \\
        }
    #define CYTAPE_CAST_TO_COMPLEX(name, from, number) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            npy_intp i, count = *n; \\
            for (i = 0; i < count; i++) { \\
                number *to = (number *)(data[1] + i * strides[1]); \\
                to[0] = (number)*(const from *)(data[0] + i * strides[0]); \\
                to[1] = 0; \\
            } \\
        }
    #define CYTAPE_CAST_COMPLEX(name, from, number) \\
        static void name(char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            npy_intp i, count = *n; \\
            for (i = 0; i < count; i++) { \\
                const from *x = (const from *)(data[0] + i * strides[0]); \\
                number *to = (number *)(data[1] + i * strides[1]); \\
                to[0] = (number)x[0]; \\
                to[1] = (number)x[1]; \\
            } \\
        }
    #define CYTAPE_CASTS(name, from) \\
        CYTAPE_CAST_TO_BOOL(cytape_##name##_bool, from) \\
        CYTAPE_CAST(cytape_##name##_int, from, npy_int) \\
        CYTAPE_CAST(cytape_##name##_long, from, npy_long) \\
        CYTAPE_CAST(cytape_##name##_longlong, from, npy_longlong) \\
        CYTAPE_CAST(cytape_##name##_double, from, double) \\
        CYTAPE_CAST(cytape_##name##_float, from, float) \\
        CYTAPE_CAST_TO_COMPLEX(cytape_##name##_cdouble, from, double) \\
        CYTAPE_CAST_TO_COMPLEX(cytape_##name##_cfloat, from, float)
    CYTAPE_CASTS(bool, npy_bool)
    CYTAPE_CASTS(int, npy_int)
    CYTAPE_CASTS(long, npy_long)
    CYTAPE_CASTS(longlong, npy_longlong)
    CYTAPE_CASTS(double, double)
    CYTAPE_CASTS(float, float)
    CYTAPE_CAST_COMPLEX(cytape_cdouble_cdouble, double, double)
    CYTAPE_CAST_COMPLEX(cytape_cdouble_cfloat, double, float)
    CYTAPE_CAST_COMPLEX(cytape_cfloat_cdouble, float, double)
    CYTAPE_CAST_COMPLEX(cytape_cfloat_cfloat, float, float)
    #define CYTAPE_CASTS_OF(name) { \\
        cytape_##name##_bool, cytape_##name##_int, cytape_##name##_long, \\
        cytape_##name##_longlong, cytape_##name##_double, cytape_##name##_float, \\
        cytape_##name##_cdouble, cytape_##name##_cfloat }
    /* Of complex numbers no real ones are made: NumPy warns of what is lost. */
    static const cytape_loop_t cytape_cast_loops[8][8] = {
        CYTAPE_CASTS_OF(bool), CYTAPE_CASTS_OF(int), CYTAPE_CASTS_OF(long),
        CYTAPE_CASTS_OF(longlong), CYTAPE_CASTS_OF(double), CYTAPE_CASTS_OF(float),
        {0, 0, 0, 0, 0, 0, cytape_cdouble_cdouble, cytape_cdouble_cfloat},
        {0, 0, 0, 0, 0, 0, cytape_cfloat_cdouble, cytape_cfloat_cfloat} };
    /* Comparisons that raise no flag for a NaN, as NumPy's do not. */
    #define cytape_less(x, y) isless(x, y)
    #define cytape_less_equal(x, y) islessequal(x, y)
    """
    void* cytape_direct_loops[2][7]
    void* cytape_cast_loops[N_CASTS][N_CASTS]
    bint less "cytape_less"(double x, double y) noexcept nogil
    bint less_equal "cytape_less_equal"(double x, double y) noexcept nogil

cdef Loop direct_loops[2][N_DIRECT + 1]
cdef int[N_CASTS] cast_types = [
    cnp.NPY_BOOL, cnp.NPY_INT, cnp.NPY_LONG, cnp.NPY_LONGLONG, cnp.NPY_DOUBLE, cnp.NPY_FLOAT,
    cnp.NPY_CDOUBLE, cnp.NPY_CFLOAT]
cdef Loop cast_loops[N_CASTS][N_CASTS]
cdef Kernel power_kernel = kernel_of(np.power)
cdef list direct_kernels = [
    kernel_of(ufunc)
    for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.negative, np.square,
                  np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)]


cdef class Subprogram:
    """The subprogram of a control flow instruction."""

    cdef Runner new_runner(self):
        raise NotImplementedError


cdef class Runner:
    """A subprogram with its memory."""

    cdef list memory(self):
        return []

    cdef int run(self, char** data) noexcept nogil:
        return 0


cdef void enter_loops() noexcept:
    cdef int i, j
    for i in range(2):
        for j in range(N_DIRECT + 1):
            direct_loops[i][j].function = <loop_t>cytape_direct_loops[i][j]
            direct_loops[i][j].data = NULL
            direct_loops[i][j].out_type = cnp.NPY_FLOAT if i else cnp.NPY_DOUBLE
    for i in range(N_CASTS):
        for j in range(N_CASTS):
            cast_loops[i][j].function = <loop_t>cytape_cast_loops[i][j]
            cast_loops[i][j].data = NULL


enter_loops()


cdef int direct_op(Kernel kernel) except -2:
    cdef int i
    for i in range(len(direct_kernels)):
        if kernel is <Kernel>direct_kernels[i]:
            return i
    return -1


cdef int scalar_kind(int op, int type_num) noexcept:
    if type_num == cnp.NPY_DOUBLE:
        return ADD_D + op if op < N_DIRECT else LESS_D + op - N_DIRECT
    if type_num == cnp.NPY_FLOAT and op < N_DIRECT:
        return ADD_F + op
    if type_num == cnp.NPY_INT64:
        if op < N_INTEGER:
            return ADD_L + op
        if op >= N_DIRECT:
            return LESS_L + op - N_DIRECT
    return -1


cdef const Loop* short_loop(int op, int type_num) noexcept:
    if op >= N_DIRECT or type_num != cnp.NPY_DOUBLE and type_num != cnp.NPY_FLOAT:
        return NULL
    return &direct_loops[type_num == cnp.NPY_FLOAT][op]


cdef const Loop* mean_loop(int type_num) noexcept:
    return &direct_loops[type_num == cnp.NPY_FLOAT][N_DIRECT]


cdef const Loop* cast_loop(int from_type, int to_type) noexcept:
    cdef int i, j
    for i in range(N_CASTS):
        for j in range(N_CASTS):
            if cast_types[i] == from_type and cast_types[j] == to_type:
                return &cast_loops[i][j] if cast_loops[i][j].function != NULL else NULL
    return NULL


cdef Loop* loop_of(Kernel kernel, int type_num, Spec result) noexcept:
    """Return the loop for operands and results of given types, NULL if there is none."""
    cdef Loop* loop
    if not 0 <= type_num < N_TYPES:
        return NULL
    loop = &kernel.loops[type_num]
    return NULL if loop.function == NULL or loop.out_type != result.type_num else loop


cdef bint is_plain_integer(Kernel kernel, int type_num) noexcept:
    """Return whether a loop is for integers or booleans and raises no errors, unlike powers."""
    return type_num <= cnp.NPY_ULONGLONG and kernel is not power_kernel


cdef int compared_type(Spec x, Spec y) except -2:
    """Return the type in which operands of two types are compared, one of these two; or -1."""
    if x.type_num == cnp.NPY_BOOL or y.type_num == cnp.NPY_BOOL:
        return max(x.type_num, y.type_num)
    if cast_loop(x.type_num, x.type_num) == NULL or cast_loop(y.type_num, y.type_num) == NULL:
        return -1  # NumPy compares unsigned and signed integers exactly
    return (<cnp.dtype>np.promote_types(x.dtype, y.dtype)).num


cdef Spec converted_spec(Spec spec, int type_num):
    return spec_of_dims(spec.ndim, spec.dims, cnp.PyArray_DescrFromType(type_num))


cdef int found_trouble() noexcept:
    return fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW)


cdef int numbered(int found) noexcept:
    return ((1 if found & FE_DIVBYZERO else 0) | (2 if found & FE_OVERFLOW else 0)
            | (4 if found & FE_UNDERFLOW else 0) | (8 if found & FE_INVALID else 0))


cdef bint matters(int found, dict errors):
    """Return whether NumPy's settings report some floating-point flags."""
    return (found & FE_DIVBYZERO and errors["divide"] != "ignore"
            or found & FE_OVERFLOW and errors["over"] != "ignore"
            or found & FE_UNDERFLOW and errors["under"] != "ignore"
            or found & FE_INVALID and errors["invalid"] != "ignore")


cdef int run_span(const Instruction* code, Py_ssize_t start, Py_ssize_t end,
                  const npy_intp* pool) noexcept nogil:
    cdef const Instruction* at = code + start
    cdef const Instruction* last = code + end
    cdef const npy_intp* geometry
    cdef char** data
    cdef char* factors[3]
    cdef int kind, failed
    while at != last:
        kind = at.kind
        data = <char**>at.data
        if kind == ADD_D:
            (<double*>data[2])[0] = (<double*>data[0])[0] + (<double*>data[1])[0]
        elif kind == SUBTRACT_D:
            (<double*>data[2])[0] = (<double*>data[0])[0] - (<double*>data[1])[0]
        elif kind == MULTIPLY_D:
            (<double*>data[2])[0] = (<double*>data[0])[0] * (<double*>data[1])[0]
        elif kind == DIVIDE_D:
            (<double*>data[2])[0] = (<double*>data[0])[0] / (<double*>data[1])[0]
        elif kind == NEGATIVE_D:
            (<double*>data[1])[0] = -(<double*>data[0])[0]
        elif kind == SQUARE_D:
            (<double*>data[1])[0] = (<double*>data[0])[0] * (<double*>data[0])[0]
        elif kind == ADD_F:
            (<float*>data[2])[0] = (<float*>data[0])[0] + (<float*>data[1])[0]
        elif kind == SUBTRACT_F:
            (<float*>data[2])[0] = (<float*>data[0])[0] - (<float*>data[1])[0]
        elif kind == MULTIPLY_F:
            (<float*>data[2])[0] = (<float*>data[0])[0] * (<float*>data[1])[0]
        elif kind == DIVIDE_F:
            (<float*>data[2])[0] = (<float*>data[0])[0] / (<float*>data[1])[0]
        elif kind == NEGATIVE_F:
            (<float*>data[1])[0] = -(<float*>data[0])[0]
        elif kind == SQUARE_F:
            (<float*>data[1])[0] = (<float*>data[0])[0] * (<float*>data[0])[0]
        elif kind == ADD_L:  # unsigned, so that overflow wraps around
            (<uint64_t*>data[2])[0] = (<uint64_t*>data[0])[0] + (<uint64_t*>data[1])[0]
        elif kind == SUBTRACT_L:
            (<uint64_t*>data[2])[0] = (<uint64_t*>data[0])[0] - (<uint64_t*>data[1])[0]
        elif kind == MULTIPLY_L:
            (<uint64_t*>data[2])[0] = (<uint64_t*>data[0])[0] * (<uint64_t*>data[1])[0]
        elif kind == LESS_D:
            data[2][0] = less((<double*>data[0])[0], (<double*>data[1])[0])
        elif kind == LESS_EQUAL_D:
            data[2][0] = less_equal((<double*>data[0])[0], (<double*>data[1])[0])
        elif kind == GREATER_D:
            data[2][0] = less((<double*>data[1])[0], (<double*>data[0])[0])
        elif kind == GREATER_EQUAL_D:
            data[2][0] = less_equal((<double*>data[1])[0], (<double*>data[0])[0])
        elif kind == EQUAL_D:
            data[2][0] = (<double*>data[0])[0] == (<double*>data[1])[0]
        elif kind == NOT_EQUAL_D:
            data[2][0] = (<double*>data[0])[0] != (<double*>data[1])[0]
        elif kind == LESS_L:
            data[2][0] = (<int64_t*>data[0])[0] < (<int64_t*>data[1])[0]
        elif kind == LESS_EQUAL_L:
            data[2][0] = (<int64_t*>data[0])[0] <= (<int64_t*>data[1])[0]
        elif kind == GREATER_L:
            data[2][0] = (<int64_t*>data[0])[0] > (<int64_t*>data[1])[0]
        elif kind == GREATER_EQUAL_L:
            data[2][0] = (<int64_t*>data[0])[0] >= (<int64_t*>data[1])[0]
        elif kind == EQUAL_L:
            data[2][0] = (<int64_t*>data[0])[0] == (<int64_t*>data[1])[0]
        elif kind == NOT_EQUAL_L:
            data[2][0] = (<int64_t*>data[0])[0] != (<int64_t*>data[1])[0]
        elif kind == LOOP:
            geometry = pool + at.geometry
            at.loop.function(data, geometry, geometry + 1, at.loop.data)
        elif kind == WALK:
            walk(data, pool + at.geometry, at.loop)
        elif kind == PRODUCT:
            geometry = pool + at.geometry
            memcpy(factors, data, sizeof(factors))  # the loop advances its arguments
            at.loop.function(factors, geometry, geometry + 4, at.loop.data)
        elif kind == COPY:
            memcpy(data[1], data[0], at.work)
        elif kind == ZERO:
            memset(data[0], 0, at.work)
        elif kind == FUSED or kind == CONTROL:
            failed = run_looped(at, NULL)
            if failed < 0:
                return failed
        at += 1
    return 0


cdef int run_looped(const Instruction* at, int* met) noexcept nogil:
    """Run a FusedOp's loop."""
    cdef char* on_stack[MANY_OPERANDS]
    cdef char** data = on_stack
    cdef PyObject* op = <PyObject*>at.loop
    cdef int i, failed = 0, n = at.geometry
    if n > MANY_OPERANDS:
        data = <char**>malloc(n * sizeof(char*))
        if data == NULL:
            return NO_MEMORY
    for i in range(n):
        data[i] = <char*>at[i // N_OPERANDS].data[i % N_OPERANDS]
    if at.kind == CONTROL:
        failed = (<Runner>op).run(data)
    else:
        failed = (<FusedOp>op).run(data, data + (<FusedOp>op).n_operands, data[n - 1], met)
    if data != on_stack:
        free(data)
    return failed


cdef void walk(char** operands, const npy_intp* geometry, const Loop* loop) noexcept nogil:
    """Run a loop on each run of elements."""
    cdef npy_intp n_axes = geometry[0], n_operands = geometry[1]
    cdef const npy_intp* steps = geometry + 3
    cdef const npy_intp* extents = steps + n_operands
    cdef const npy_intp* strides = extents + n_axes
    cdef npy_intp position[64]
    cdef char* data[N_OPERANDS]
    cdef npy_intp axis, i
    memset(position, 0, n_axes * sizeof(npy_intp))
    for i in range(n_operands):
        data[i] = operands[i]
    while True:
        loop.function(data, geometry + 2, steps, loop.data)
        axis = n_axes - 1
        while axis >= 0:
            position[axis] += 1
            if position[axis] < extents[axis]:
                for i in range(n_operands):
                    data[i] += strides[i * n_axes + axis]
                break
            position[axis] = 0
            for i in range(n_operands):
                data[i] -= (extents[axis] - 1) * strides[i * n_axes + axis]
            axis -= 1
        if axis < 0:
            return
