cimport cytape.ops.kernels.compilers
from cytape.tensor.values.value cimport new_value
from libc.string cimport memset
from numpy cimport NPY_DOUBLE, NPY_FLOAT

from .ufunc_loops cimport N_TYPES, WORTH_THE_GIL, Kernel, Loop, kernel_of
from .walk cimport Walk, begin, join, plan, run

import numpy as np

cdef extern from *:
    """
    /* 32 sums of no more than 16 terms each side by side, then pair by pair. */
    #define CYTAPE_SUM(type) \\
        CYTAPE_FOR_CPU static double cytape_sum_##type(const type *x, npy_intp n) { \\
            double total = 0; \\
            type rest = 0; \\
            npy_intp i = 0, j, k; \\
            while (n - i >= 32) { \\
                const npy_intp end = n - i < 512 ? n - 31 : i + 512; \\
                type lanes[32] = {0}; \\
                for (; i < end; i += 32) { \\
                    for (j = 0; j < 32; j++) { lanes[j] += x[i + j]; } \\
                } \\
                for (k = 16; k; k /= 2) { \\
                    for (j = 0; j < k; j++) { lanes[j] += lanes[j + k]; } \\
                } \\
                total += lanes[0]; \\
            } \\
            for (; i < n; i++) { rest += x[i]; } \\
            return total + rest; \\
        }
    CYTAPE_SUM(double)
    CYTAPE_SUM(float)
    /* In the order of NumPy's loops, whose calls take longer than short rows. */
    #define CYTAPE_ADD_ROWS(type) \
        CYTAPE_FOR_CPU static void cytape_add_rows_##type( \
                type *total, const type *rows, npy_intp n_rows, npy_intp n) { \
            npy_intp i; \
            for (; n_rows > 0; n_rows--, rows += n) { \
                for (i = 0; i < n; i++) { total[i] += rows[i]; } \
            } \
        }
    CYTAPE_ADD_ROWS(double)
    CYTAPE_ADD_ROWS(float)
    """
    void add_rows_of_doubles "cytape_add_rows_double"(
        double* total, const double* rows, npy_intp n_rows, npy_intp n) noexcept nogil
    void add_rows_of_floats "cytape_add_rows_float"(
        float* total, const float* rows, npy_intp n_rows, npy_intp n) noexcept nogil
    double cytape_sum_double(const double* x, npy_intp n) noexcept nogil
    double cytape_sum_float(const float* x, npy_intp n) noexcept nogil

cdef enum:
    SHORT_ROW = 256  # elements; for longer rows NumPy's loops are as fast

cdef Kernel add_kernel = kernel_of(np.add)
cdef Loop* add_loops = add_kernel.loops


cdef void add_to(int type_num, npy_intp stride, npy_intp itemsize, npy_intp n, char* total,
                 char* terms) noexcept nogil:
    cdef char* data[3]
    cdef npy_intp strides[3]
    data[0] = data[2] = total
    data[1] = terms
    strides[0] = strides[2] = stride
    strides[1] = itemsize
    add_loops[type_num].function(data, &n, strides, add_loops[type_num].data)


cdef Value zeros(Spec spec):
    cdef Value value = new_value(spec)
    memset(value.data, 0, spec.nbytes)
    return value


cdef double sum_of(int type_num, npy_intp n, const char* terms) noexcept nogil:
    if type_num == NPY_DOUBLE:
        return cytape_sum_double(<const double*>terms, n)
    return cytape_sum_float(<const float*>terms, n)


cdef Loop* add_loop_of(Spec spec) noexcept:
    if not spec.trainable or spec.type_num >= N_TYPES:  # integers may overflow
        return NULL
    return &add_loops[spec.type_num]


cdef bint is_row_of(Spec row, Spec spec) noexcept:
    """Return whether a shape consists of the last axes of another one, after axes of length 1."""
    cdef int gap = spec.ndim - row.ndim, axis = row.ndim - 1
    if gap < 0:
        return False
    while axis >= 0 and row.dims[axis] == spec.dims[gap + axis]:
        axis -= 1
    while axis >= 0 and row.dims[axis] == 1:
        axis -= 1
    return axis < 0


cdef void add_rows(Value total, Value terms) noexcept nogil:
    cdef npy_intp n = total.spec.size, n_rows = terms.spec.size // n
    if total.spec.type_num == NPY_DOUBLE:
        add_rows_of_doubles(<double*>total.data, <const double*>terms.data, n_rows, n)
    else:
        add_rows_of_floats(<float*>total.data, <const float*>terms.data, n_rows, n)


cdef bint add_sum(Value total, Value terms) noexcept:
    cdef Walk walk
    cdef Spec spec = terms.spec
    if (spec.nbytes < WORTH_THE_GIL and spec is total.spec and add_loop_of(spec) != NULL
            and terms.contiguous and total.contiguous):
        add_to(spec.type_num, spec.itemsize, spec.itemsize, spec.size, total.data, terms.data)
        return True
    if spec.type_num != total.spec.type_num or add_loop_of(spec) == NULL:
        return False
    if not plan(&walk, spec):
        return True  # there are no terms
    if 1 < total.spec.size <= SHORT_ROW and (
            spec.type_num == NPY_DOUBLE or spec.type_num == NPY_FLOAT) and (
            total.contiguous and terms.contiguous and is_row_of(total.spec, spec)):
        add_rows(total, terms)
        return True
    if not join(&walk, total) or not join(&walk, terms) or not join(&walk, total):
        return False
    begin(&walk)  # along runs with a total of stride 0 its loop sums pairwise
    run(&add_loops[spec.type_num], &walk, spec.nbytes)
    return True


cdef Value sum_to(Value terms, Spec spec):
    cdef Value total = zeros(spec)
    return total if add_sum(total, terms) else None


cdef Value plus(Value a, Value b):
    cdef Walk walk
    cdef Value total
    if a.spec is not b.spec or add_loop_of(a.spec) == NULL or not plan(&walk, a.spec):
        return None
    total = new_value(a.spec)
    if not join(&walk, a) or not join(&walk, b) or not join(&walk, total):
        return None
    begin(&walk)
    run(&add_loops[a.spec.type_num], &walk, a.spec.nbytes)
    return total
