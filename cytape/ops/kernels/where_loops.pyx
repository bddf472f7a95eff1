cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cytape.tensor.values.spec cimport boolean_spec
from cytape.tensor.values.value cimport new_value
from numpy cimport npy_intp

from .ufunc_loops cimport WORTH_THE_GIL, loop_t
from .walk cimport MAX_AXES, Walk, begin, join, join_memory, plan, run

cnp.import_array()

cdef extern from *:
    """
    #define CYTAPE_CHOOSE(type, first, second) \\
        CYTAPE_INDEPENDENT \\
        for (i = 0; i < count; i++) { \\
            const type mask = (type)-(type)(c[i] != 0), a = (first), b = (second); \\
            z[i] = b ^ ((a ^ b) & mask); \\
        }
    #define CYTAPE_SELECT(type) \\
        CYTAPE_FOR_CPU static void cytape_select_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            const npy_bool *c = (const npy_bool *)data[0]; \\
            const type *x = (const type *)data[1], *y = (const type *)data[2]; \\
            const npy_intp size = sizeof(type), count = *n; \\
            type *z = (type *)data[3]; \\
            npy_intp i; \\
            const int near = strides[0] == 1 && strides[3] == size; \\
            if (near && strides[1] == size && strides[2] == size) { \\
                CYTAPE_CHOOSE(type, x[i], y[i]) \\
            } else if (near && strides[1] == size && strides[2] == 0) { \\
                const type number = *y; \\
                CYTAPE_CHOOSE(type, x[i], number) \\
            } else if (near && strides[1] == 0 && strides[2] == size) { \\
                const type number = *x; \\
                CYTAPE_CHOOSE(type, number, y[i]) \\
            } else if (near && strides[1] == 0 && strides[2] == 0) { \\
                const type one = *x, other = *y; \\
                CYTAPE_CHOOSE(type, one, other) \\
            } else { \\
                for (i = 0; i < count; i++) { \\
                    const type mask = (type)-(type)(data[0][i * strides[0]] != 0); \\
                    const type a = *(const type *)(data[1] + i * strides[1]); \\
                    const type b = *(const type *)(data[2] + i * strides[2]); \\
                    *(type *)(data[3] + i * strides[3]) = b ^ ((a ^ b) & mask); \\
                } \\
            } \\
        }
    CYTAPE_SELECT(npy_uint8)
    CYTAPE_SELECT(npy_uint16)
    CYTAPE_SELECT(npy_uint32)
    CYTAPE_SELECT(npy_uint64)
    static void cytape_select_pair(char **data, const npy_intp *n, const npy_intp *strides,
                                   void *extra) {
        npy_intp i, j;
        for (i = 0; i < *n; i++) {
            const npy_uint64 mask = -(npy_uint64)(data[0][i * strides[0]] != 0);
            const npy_uint64 *x = (const npy_uint64 *)(data[1] + i * strides[1]);
            const npy_uint64 *y = (const npy_uint64 *)(data[2] + i * strides[2]);
            npy_uint64 *z = (npy_uint64 *)(data[3] + i * strides[3]);
            for (j = 0; j < 2; j++) { z[j] = y[j] ^ ((x[j] ^ y[j]) & mask); }
        }
    }
    """
    void cytape_select_npy_uint8() noexcept
    void cytape_select_npy_uint16() noexcept
    void cytape_select_npy_uint32() noexcept
    void cytape_select_npy_uint64() noexcept
    void cytape_select_pair() noexcept

cdef Loop loops[17]  # by itemsize
cdef double[2] zeros
cdef char* zero = <char*>zeros
cdef npy_intp[MAX_AXES] no_strides


cdef void enter_loops() noexcept:
    loops[1].function = <loop_t><void*>cytape_select_npy_uint8
    loops[2].function = <loop_t><void*>cytape_select_npy_uint16
    loops[4].function = <loop_t><void*>cytape_select_npy_uint32
    loops[8].function = <loop_t><void*>cytape_select_npy_uint64
    loops[16].function = <loop_t><void*>cytape_select_pair


enter_loops()


cdef Loop* select_loop(int itemsize) noexcept nogil:
    return NULL if itemsize > 16 or loops[itemsize].function == NULL else &loops[itemsize]


cdef Value selected(Value condition, Value x, Value y, Spec spec, Value into, bint as_numpy):
    cdef Loop* loop = select_loop(spec.itemsize)
    cdef char* data[4]
    cdef npy_intp strides[4]
    cdef npy_intp size = spec.itemsize, step
    cdef Walk walk
    cdef int i
    if (loop == NULL or condition.spec.type_num != cnp.NPY_BOOL
            or x is not None and x.spec.type_num != spec.type_num
            or y is not None and y.spec.type_num != spec.type_num):
        return None
    if (spec.nbytes < WORTH_THE_GIL and lies_flat(condition, boolean_spec(spec))
            and (x is None or lies_flat(x, spec)) and (y is None or lies_flat(y, spec))):
        if into is None:
            into = new_value(spec)
        data[0], data[3] = condition.data, into.data
        data[1] = zero if x is None else x.data
        data[2] = zero if y is None else y.data
        strides[0] = 1 if condition.spec.ndim else 0
        strides[1] = size if x is not None and x.spec.ndim else 0
        strides[2] = size if y is not None and y.spec.ndim else 0
        strides[3] = size
        loop.function(data, &spec.size, strides, NULL)
        return into
    if not plan(&walk, spec):
        return new_value(spec) if into is None else into
    if not join(&walk, condition) or not join_or_zero(&walk, x) or not join_or_zero(&walk, y):
        return None
    if into is None:
        into = new_value(spec)
    join(&walk, into)
    begin(&walk)
    for i in range(3 if as_numpy else 0):
        step = walk.steps[i]
        if step != 0 and step != (size if i else 1) and (step < 0 or spec.nbytes >= WORTH_THE_GIL):
            return None
    run(loop, &walk, spec.nbytes)
    return into


cdef bint lies_flat(Value value, Spec spec) noexcept:
    """Return whether a value has this spec and is contiguous, or is uniform."""
    return value.spec.ndim == 0 or value.spec is spec and value.contiguous


cdef bint join_or_zero(Walk* walk, Value value) noexcept:
    if value is not None:
        return join(walk, value)
    join_memory(walk, zero, no_strides)
    return True
