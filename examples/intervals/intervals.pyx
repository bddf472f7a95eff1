"""Interval arithmetic with gradients: bounds of a function and of its derivatives over a box.

A gradient is an interval, too, and so are the partial derivatives that the tape saves.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from cytape.core.op_store cimport is_known
from cytape.core.tape cimport Tape
from cytape.core.typedefs cimport id_t
from cytape.core.vspace cimport BackwardCall, OpType, VSpace
from libc.math cimport INFINITY, exp as c_exp, fmax, fmin, nextafter, pow as c_pow
from libc.stdint cimport int32_t, int64_t

from operator import index

cdef id_t last_id = 0
cdef Tape active = None  # the tape of the call of `value_and_gradient` that is running


@cython.final
@cython.freelist(64)
@cython.c_api_binop_methods(True)  # 1 + x calls __add__(1, x)
cdef class Interval:
    """The numbers from low to high."""

    cdef readonly double low, high
    cdef id_t id

    def __cinit__(self):
        global last_id
        last_id += 1
        self.id = last_id

    def __init__(self, double low, high=None):
        self.low, self.high = low, low if high is None else high
        if not (self.low <= self.high and self.low < INFINITY and self.high > -INFINITY):
            raise ValueError(f"an interval needs low <= high and a number between, got {self}")

    def __dealloc__(self):  # drops the op that made it, unless a later one needs it
        if active is not None and active.unlink(self.id):
            active.release_doomed()

    def __repr__(self):
        return f"Interval({self.low}, {self.high})"

    def __contains__(self, double number):
        return self.low <= number <= self.high

    def __add__(a, b):
        cdef Interval x = interval_of(a), y = interval_of(b)
        return recorded(add(x, y), x, ONE, y, ONE)

    def __neg__(self):
        return -1 * self

    def __sub__(a, b):
        return a + -1 * interval_of(b)

    def __mul__(a, b):
        cdef Interval x = interval_of(a), y = interval_of(b)
        return recorded(multiply(x, y), x, y, y, x)

    def __truediv__(a, b):
        return a * interval_of(b) ** -1

    def __pow__(base, exponent, modulus):
        cdef Interval x = interval_of(base), slope
        cdef int n = index(exponent)  # a TypeError unless it is an integer
        if n < 0 and x.low <= 0 <= x.high:
            raise ZeroDivisionError(f"the divisor {x} contains 0")
        slope = multiply(Interval(n), power(x, n - 1)) if n else Interval(0)
        return recorded(power(x, n), x, slope)


def exp(x):
    """Return bounds of exp(x)."""
    cdef Interval argument = interval_of(x)
    cdef double low = c_exp(argument.low), high = c_exp(argument.high)
    # The slope is another object than the result: an op on the tape must not own its own output.
    return recorded(outward(low, high), argument, outward(low, high))


# ---- arithmetic without a tape. The errors of +, *, pow and exp are less than one unit.

cdef Interval outward(double low, double high):
    cdef Interval result = Interval.__new__(Interval)
    result.low, result.high = nextafter(low, -INFINITY), nextafter(high, INFINITY)
    return result


cdef Interval interval_of(x):
    return x if type(x) is Interval else Interval(x)


cdef Interval add(Interval x, Interval y):
    return outward(x.low + y.low, x.high + y.high)


cdef double product(double x, double y) noexcept:
    return 0 if x == 0 or y == 0 else x * y  # of 0 and infinity, too


cdef Interval multiply(Interval x, Interval y):
    cdef double a = product(x.low, y.low), b = product(x.low, y.high)
    cdef double c = product(x.high, y.low), d = product(x.high, y.high)
    return outward(fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d)))


cdef Interval power(Interval x, int n):
    cdef double a = c_pow(x.low, n), b = c_pow(x.high, n)
    cdef bint has_minimum = n > 0 and n % 2 == 0 and x.low <= 0 <= x.high
    return outward(0 if has_minimum else fmin(a, b), fmax(a, b))


# ---- the tape

cdef Interval ZERO = Interval(0), ONE = Interval(1)
cdef OpType op = OpType("interval arithmetic")  # the one rule: slope times gradient, per operand


cdef void release_slopes(void** refs, int32_t n_refs, object keeper) noexcept:
    Py_DECREF(<object>refs[1])
    Py_DECREF(<object>refs[2])


op.kind.release = release_slopes


cdef Interval recorded(Interval result, Interval x, Interval dx, Interval y=ZERO, Interval dy=ZERO):
    """Record an op with its slopes, if the tape knows an operand, and return its result."""
    cdef id_t* inputs = [x.id, y.id]
    cdef void** refs = [NULL, <void*>dx, <void*>dy]  # the first describes the result: not needed
    if active is not None and (is_known(active, x.id) or is_known(active, y.id)):
        active.record_op(&op.kind, inputs, 2, &result.id, 1, refs, 3)
        Py_INCREF(dx)  # the tape owns references until it releases the op
        Py_INCREF(dy)
    return result


cdef void* new_reference(Interval gradient) noexcept:
    Py_INCREF(gradient)
    return <void*>gradient


cdef class IntervalSpace(VSpace):
    """The operations on gradients: one, sum, chain rule. The tape asks for no others."""

    cdef int64_t size(self, void* gradient) except -1:
        return 1

    cdef void* ones(self, void* info) except NULL:
        return new_reference(ONE)

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef Interval total = ZERO
        for i in range(count):
            total = add(total, <Interval>gradients[i])
            Py_DECREF(<object>gradients[i])
        return new_reference(total)

    cdef int backward(self, BackwardCall* call) except -1:
        cdef Interval gradient = <Interval>call.output_gradients[0]
        for i in range(2):
            if call.needed[i]:
                call.input_gradients[i] = new_reference(
                    multiply(gradient, <Interval>call.refs[1 + i]))
        call.output_gradients[0] = NULL
        Py_DECREF(gradient)
        return 0


def value_and_gradient(function, *box):
    """Return bounds of a function over a box, and a list of bounds of its partial derivatives."""
    global active
    cdef Tape tape = Tape()
    if active is not None:
        raise RuntimeError("the gradient of a gradient is not implemented")
    cdef list inputs = [Interval(x.low, x.high) for x in map(interval_of, box)]
    cdef list ids = [(<Interval>x).id for x in inputs]
    for id in ids:
        tape.watch(id)
    active = tape
    try:
        result = interval_of(function(*inputs))
    finally:
        active = None
    slopes = tape.compute_gradient(
        IntervalSpace(), [(<Interval>result).id], ids, dict.fromkeys(ids, ONE))
    return result, [ZERO if slope is None else slope for slope in slopes]
