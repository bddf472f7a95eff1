cimport numpy as cnp
from cytape.ops.kernels.ufunc_loops cimport loop_t
from libc.math cimport NAN, fabs, fmax, rint
from numpy cimport PyUFuncGenericFunction, npy_intp

cnp.import_array()
cnp.import_ufunc()

cdef extern from "<fenv.h>":
    int FE_ALL_EXCEPT
    int feraiseexcept(int excepts) noexcept nogil
    int fetestexcept(int excepts) noexcept nogil

ctypedef void* address
ctypedef float complex complex64
ctypedef double complex complex128
ctypedef fused argument:
    double
    complex64
    complex128
ctypedef fused number:
    double
    complex128

cdef enum:
    N_ARGUMENTS = 3
    MOST_STEPS = 1000000  # a loop cannot be interrupted

cdef int[N_ARGUMENTS] argument_types = [cnp.NPY_DOUBLE, cnp.NPY_CFLOAT, cnp.NPY_CDOUBLE]
cdef list kept = []  # memory of the ufuncs, which have no owner of their data


cdef inline bint is_whole(double n) noexcept nogil:
    return fabs(n) <= MOST_STEPS and rint(n) == n


cdef inline double real_part(argument x) noexcept nogil:
    if argument is double:
        return x
    else:
        return x.real


cdef inline argument* at(argument* x, npy_intp offset) noexcept nogil:
    return <argument*>(<char*>x + offset)


cdef npy_intp n_equal(argument* x, npy_intp step, npy_intp limit) noexcept nogil:
    """Return how many of the first elements are equal, up to a limit."""
    cdef npy_intp i = 1
    if step == 0:
        return limit
    while i < limit and at(x, i * step)[0] == x[0]:
        i += 1
    return i


# ---- values ----------------------------------------------------------------------------------


cdef void evaluate(argument** data, const npy_intp* size, const npy_intp* strides,
                   Degrees* degrees) noexcept nogil:
    cdef npy_intp done = 0, count, i
    cdef int before = fetestexcept(FE_ALL_EXCEPT)  # SciPy's loops clear the flags
    cdef double n
    cdef float single
    cdef long whole
    cdef Loop* loop
    cdef char* operands[3]
    cdef npy_intp[3] steps = [0, strides[1], strides[2]]
    while done < size[0]:
        count = n_equal(at(data[0], done * strides[0]), strides[0], size[0] - done)
        n = real_part(at(data[0], done * strides[0])[0])
        single = <float>n
        whole = <long>n
        loop = &degrees.real
        operands[0] = <char*>&n
        operands[1] = <char*>at(data[1], done * strides[1])
        operands[2] = <char*>at(data[2], done * strides[2])
        if argument is complex64:
            operands[0] = <char*>&single
        elif argument is double:
            if is_whole(n):
                operands[0] = <char*>&whole
                loop = &degrees.whole
        if loop.function == NULL:
            for i in range(count):
                at(data[2], (done + i) * strides[2])[0] = NAN
        else:
            loop.function(operands, &count, steps, loop.data)
        done += count
    if before:
        feraiseexcept(before)


# ---- derivatives -----------------------------------------------------------------------------


cdef void differentiate(number* x, int size, double n, int order,
                        Polynomials* family) noexcept nogil:
    """Replace at most N_BLOCK arguments by the derivative."""
    cdef double a = family.a, factor = family.amplitude, p, q, k = 0
    cdef int i
    cdef number[N_BLOCK] value, step
    cdef bint is_gegenbauer = not family.is_hermite
    if a == 1:
        factor *= n + 1
    for i in range(order):
        factor *= (n - i) * family.scale
        if is_gegenbauer:
            factor *= (n + 2 * a + i) / (2 * a + 1 + 2 * i)
    if is_gegenbauer:
        n = fmax(n, -n - 2 * a) if n == n else n
    elif not (is_whole(n) and n >= 0):
        factor = NAN
    if factor == 0:
        for i in range(size):
            x[i] = 0
        return
    a += order
    n -= order
    if is_gegenbauer:
        for i in range(size):
            x[i] = family.scale * x[i] + (family.shift - 1)
    if not is_whole(n):
        for i in range(size):
            x[i] = factor * hypergeometric(n, a, -0.5 * x[i], family)
        return
    for i in range(size):
        value[i] = 1
        step[i] = 0
    while k < n:
        if is_gegenbauer:  # as SciPy: differences of R, that cancel less near 1 than R
            p, q = 2 * (k + a) / (k + 2 * a), k / (k + 2 * a)
            for i in range(size):
                step[i] = p * x[i] * value[i] + q * step[i]
                value[i] = value[i] + step[i]
        else:
            for i in range(size):
                step[i], value[i] = value[i], x[i] * value[i] - k * step[i]
        k += 1
    for i in range(size):
        x[i] = factor * value[i]


cdef number hypergeometric(double n, double a, number z, Polynomials* family) noexcept nogil:
    cdef double[3] parameters = [-n, n + 2 * a, a + 0.5]
    cdef number result
    cdef char* operands[5]
    cdef npy_intp size = 1
    cdef npy_intp[5] strides = [0, 0, 0, 0, 0]
    cdef Loop* loop = &family.hypergeometric[1 if number is complex128 else 0]
    operands[0] = <char*>&parameters[0]
    operands[1] = <char*>&parameters[1]
    operands[2] = <char*>&parameters[2]
    operands[3] = <char*>&z
    operands[4] = <char*>&result
    loop.function(operands, &size, strides, loop.data)
    return result


cdef void differentiate_all(argument** data, const npy_intp* size, const npy_intp* strides,
                            Polynomials* family) noexcept nogil:
    cdef npy_intp done = 0, count, i
    cdef double n
    cdef int order
    cdef double[N_BLOCK] reals
    cdef complex128[N_BLOCK] complexes
    while done < size[0]:
        count = n_equal(at(data[0], done * strides[0]), strides[0], min(N_BLOCK, size[0] - done))
        count = n_equal(at(data[1], done * strides[1]), strides[1], count)
        n = real_part(at(data[0], done * strides[0])[0])
        order = <int>real_part(at(data[1], done * strides[1])[0])
        if argument is double:
            for i in range(count):
                reals[i] = at(data[2], (done + i) * strides[2])[0]
            differentiate(reals, <int>count, n, order, family)
            for i in range(count):
                at(data[3], (done + i) * strides[3])[0] = reals[i]
        else:
            for i in range(count):
                complexes[i] = at(data[2], (done + i) * strides[2])[0]
            differentiate(complexes, <int>count, n, order, family)
            for i in range(count):
                at(data[3], (done + i) * strides[3])[0] = <argument>complexes[i]
        done += count


# ---- ufuncs ----------------------------------------------------------------------------------


cdef Loop loop_of_types(cnp.ufunc function, list types):
    """Return a ufunc's loop for types of inputs and output; its function is NULL if it has none."""
    cdef Loop loop
    cdef int i, j
    loop.function = NULL
    for i in range(function.ntypes):
        for j in range(function.nargs):
            if function.types[i * function.nargs + j] != types[j]:
                break
        else:
            loop.function = <loop_t><void*>function.functions[i]
            loop.data = function.data[i]
    return loop


cdef object ufunc(str name, int n_inputs, void** loops, int n_types, list data):
    """Return a ufunc of arguments of one type; its loops get the data."""
    cdef int i, j
    cdef bytes encoded = name.encode()
    cdef bytearray memory = bytearray(n_types * (2 * sizeof(void*) + n_inputs + 1))
    cdef void** functions = <void**><char*>memory
    cdef void** extra = functions + n_types
    cdef char* types = <char*>(extra + n_types)
    for i in range(n_types):
        functions[i] = loops[i]
        extra[i] = <void*><char*>(<bytearray>data[i])
        for j in range(n_inputs + 1):
            types[i * (n_inputs + 1) + j] = argument_types[i]
    kept.extend([encoded, memory, data])
    return cnp.PyUFunc_FromFuncAndData(
        <PyUFuncGenericFunction*>functions, extra, types, n_types, n_inputs, 1, cnp.PyUFunc_None,
        encoded, NULL, 0)


def by_degrees(cnp.ufunc function not None):
    """Return a polynomial of `scipy.special` as a ufunc of degrees and arguments of one type."""
    cdef Degrees degrees
    cdef address[N_ARGUMENTS] loops = [
        <void*>evaluate[double], <void*>evaluate[complex64], <void*>evaluate[complex128]]
    cdef list data = []
    degrees.whole = loop_of_types(function, [cnp.NPY_LONG, cnp.NPY_DOUBLE, cnp.NPY_DOUBLE])
    for order, x in (
            (cnp.NPY_DOUBLE, cnp.NPY_DOUBLE), (cnp.NPY_FLOAT, cnp.NPY_CFLOAT),
            (cnp.NPY_DOUBLE, cnp.NPY_CDOUBLE)):
        degrees.real = loop_of_types(function, [order, x, x])
        data.append(bytearray((<char*>&degrees)[:sizeof(degrees)]))
    return ufunc(function.__name__, 2, loops, 1 if function.ntypes == 1 else N_ARGUMENTS, data)


def derivatives(str name, cnp.ufunc hyp2f1, double a=0, double amplitude=1, double scale=1,
                double shift=0, bint is_hermite=False):
    """Return the ufunc of derivatives of ``amplitude * R(n, a; scale * x + shift)``."""
    cdef Polynomials family
    cdef address[N_ARGUMENTS] loops = [
        <void*>differentiate_all[double], <void*>differentiate_all[complex64],
        <void*>differentiate_all[complex128]]
    cdef int real = cnp.NPY_DOUBLE, of_complex = cnp.NPY_CDOUBLE
    family.a, family.amplitude, family.scale, family.shift = a, amplitude, scale, shift
    family.is_hermite = is_hermite
    family.hypergeometric[0] = loop_of_types(hyp2f1, [real] * 5)
    family.hypergeometric[1] = loop_of_types(hyp2f1, [real] * 3 + [of_complex] * 2)
    data = bytearray((<char*>&family)[:sizeof(family)])
    return ufunc(name, 3, loops, N_ARGUMENTS, [data] * N_ARGUMENTS)
