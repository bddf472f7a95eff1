cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from numpy cimport npy_intp

cnp.import_array()

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>
    #define CYTAPE_CHAINS 16
    /* A line multiplied in chains, which a processor goes through at once. 0 if one is not normal
       on the way: what is multiplied by later factors may hide that. */
    #define CYTAPE_LINES(type, count_type, magnitude) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_multiply_##type( \\
                const type *x, npy_intp n, type *product, type least) { \\
            type chains[CYTAPE_CHAINS]; \\
            count_type normal[CYTAPE_CHAINS] = {0}; \\
            npy_intp i, j; \\
            int all_normal = 1; \\
            for (j = 0; j < CYTAPE_CHAINS; j++) { chains[j] = 1; } \\
            for (i = 0; i + CYTAPE_CHAINS <= n; i += CYTAPE_CHAINS) { \\
                for (j = 0; j < CYTAPE_CHAINS; j++) { \\
                    chains[j] *= x[i + j]; \\
                    normal[j] += magnitude(chains[j]) >= least; \\
                } \\
            } \\
            for (j = 0; j < CYTAPE_CHAINS; j++) { all_normal &= normal[j] == n / CYTAPE_CHAINS; } \\
            for (; i < n; i++) { \\
                chains[0] *= x[i]; \\
                all_normal &= magnitude(chains[0]) >= least; \\
            } \\
            for (i = CYTAPE_CHAINS / 2; i; i /= 2) { \\
                for (j = 0; j < i; j++) { \\
                    chains[j] *= chains[j + i]; \\
                    all_normal &= magnitude(chains[j]) >= least; \\
                } \\
            } \\
            *product = chains[0]; \\
            return all_normal; \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_divide_##type( \\
                const type whole, const type *x, npy_intp n, type *result, type least) { \\
            count_type normal = 0; \\
            npy_intp i; \\
            for (i = 0; i < n; i++) { \\
                const type factor = x[i]; \\
                normal += magnitude(factor) >= least; \\
                result[i] = whole / factor; \\
            } \\
            return normal == (count_type)n; \\
        } \\
        /* The same of columns, side by side; and the sum of tangents times the quotients. */ \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_multiply_columns_##type( \\
                const type *x, npy_intp n, npy_intp inner, type *product, type least) { \\
            npy_intp i, j; \\
            count_type abnormal = 0; \\
            for (j = 0; j < inner; j++) { product[j] = 1; } \\
            for (i = 0; i < n; i++) { \\
                for (j = 0; j < inner; j++) { \\
                    product[j] *= x[i * inner + j]; \\
                    abnormal += !(magnitude(product[j]) >= least); \\
                } \\
            } \\
            return !abnormal; \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_divide_columns_##type( \\
                const type *whole, const type *x, npy_intp n, npy_intp inner, type *result, \\
                type least) { \\
            npy_intp i, j; \\
            count_type abnormal = 0; \\
            for (i = 0; i < n; i++) { \\
                for (j = 0; j < inner; j++) { \\
                    const type factor = x[i * inner + j]; \\
                    abnormal += !(magnitude(factor) >= least); \\
                    result[i * inner + j] = whole[j] / factor; \\
                } \\
            } \\
            return !abnormal; \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_move_columns_##type( \\
                const type *whole, const type *x, const type *t, npy_intp n, npy_intp inner, \\
                type *result, type least) { \\
            npy_intp i, j; \\
            count_type abnormal = 0; \\
            for (j = 0; j < inner; j++) { result[j] = 0; } \\
            for (i = 0; i < n; i++) { \\
                for (j = 0; j < inner; j++) { \\
                    const type factor = x[i * inner + j]; \\
                    abnormal += !(magnitude(factor) >= least); \\
                    result[j] += t[i * inner + j] * (whole[j] / factor); \\
                } \\
            } \\
            return !abnormal; \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static int cytape_move_##type( \\
                const type whole, const type *x, const type *t, npy_intp n, type *result, \\
                type least) { \\
            const npy_intp rows = n / CYTAPE_CHAINS; \\
            type wholes[CYTAPE_CHAINS], sums[CYTAPE_CHAINS]; \\
            npy_intp i; \\
            int normal; \\
            for (i = 0; i < CYTAPE_CHAINS; i++) { wholes[i] = whole; } \\
            normal = cytape_move_columns_##type(wholes, x, t, rows, CYTAPE_CHAINS, sums, least); \\
            *result = 0; \\
            for (i = 0; i < CYTAPE_CHAINS; i++) { *result += sums[i]; } \\
            for (i = rows * CYTAPE_CHAINS; i < n; i++) { \\
                normal &= magnitude(x[i]) >= least; \\
                *result += t[i] * (whole / x[i]); \\
            } \\
            return normal; \\
        } \\
        /* By division: gradients g of the product of each slice of lines, or tangents t. 0 if a \\
           factor, a product or this times its gradient is not normal. */ \\
        static int cytape_by_division_##type( \\
                const type *g, const type *x, const type *t, const type *product, type *result, \\
                type *whole, const npy_intp *lines, const npy_intp *starts, npy_intp n_slices, \\
                type least, type most) { \\
            const npy_intp n = lines[1], inner = lines[2]; \\
            npy_intp block, k, j; \\
            for (block = 0; block < lines[0]; block++) { \\
                if (!t) { memset(result, 0, starts[0] * inner * sizeof(type)); } \\
                for (k = 0; k < n_slices; k++) { \\
                    const npy_intp stop = k + 1 < n_slices ? starts[k + 1] : n; \\
                    const npy_intp first = starts[k] * inner, rows = stop - starts[k]; \\
                    if (product) { \\
                        memcpy(whole, product, inner * sizeof(type)); \\
                        product += inner; \\
                    } else if (!(inner > 1 ? cytape_multiply_columns_##type( \\
                                                 x + first, rows, inner, whole, least) \\
                                 : cytape_multiply_##type(x + first, rows, whole, least))) { \\
                        return 0; \\
                    } \\
                    for (j = 0; j < inner; j++) { \\
                        if (!(least <= magnitude(whole[j]) && magnitude(whole[j]) <= most)) { \\
                            return 0; \\
                        } \\
                        if (!t) { \\
                            whole[j] *= g[j]; \\
                            if (g[j] != 0 && !(least <= magnitude(whole[j]) \\
                                               && magnitude(whole[j]) <= most)) { \\
                                return 0; \\
                            } \\
                        } \\
                    } \\
                    if (!(t && inner > 1 ? cytape_move_columns_##type( \\
                              whole, x + first, t + first, rows, inner, result, least) \\
                          : t ? cytape_move_##type( \\
                              *whole, x + first, t + first, rows, result, least) \\
                          : inner > 1 ? cytape_divide_columns_##type( \\
                              whole, x + first, rows, inner, result + first, least) \\
                          : cytape_divide_##type( \\
                              *whole, x + first, rows, result + first, least))) { \\
                        return 0; \\
                    } \\
                    g += t ? 0 : inner; \\
                    result += t ? inner : 0; \\
                } \\
                x += n * inner; \\
                t += t ? n * inner : 0; \\
                result += t ? 0 : n * inner; \\
            } \\
            return 1; \\
        }
    CYTAPE_LINES(float, npy_int32, fabsf)
    CYTAPE_LINES(double, npy_int64, fabs)
    """
    bint cytape_by_division_float(
        const float*, const float*, const float*, const float*, float*, float*, const npy_intp*,
        const npy_intp*, npy_intp, float, float) noexcept nogil
    bint cytape_by_division_double(
        const double*, const double*, const double*, const double*, double*, double*,
        const npy_intp*, const npy_intp*, npy_intp, double, double) noexcept nogil

cdef extern from "<float.h>":
    const float FLT_MIN, FLT_MAX
    const double DBL_MIN, DBL_MAX


cdef bint by_division(
        int type_num, const char* g, const char* x, const char* t, const char* product,
        char* result, char* whole, const npy_intp* lines, const npy_intp* starts,
        npy_intp n_slices) noexcept nogil:
    if type_num == cnp.NPY_FLOAT:
        return cytape_by_division_float(
            <const float*>g, <const float*>x, <const float*>t, <const float*>product,
            <float*>result, <float*>whole, lines, starts, n_slices, FLT_MIN, FLT_MAX)
    if type_num == cnp.NPY_DOUBLE:
        return cytape_by_division_double(
            <const double*>g, <const double*>x, <const double*>t, <const double*>product,
            <double*>result, <double*>whole, lines, starts, n_slices, DBL_MIN, DBL_MAX)
    return False
