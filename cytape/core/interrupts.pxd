# Interrupts. Python runs the handlers of signals in the main thread, between two instructions of
# its own. A loop in C that may take long has to look for signals itself: after so much effort, for
# looking costs more than a small op can afford.

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

cdef enum:
    OP_EFFORT = 1 << 13   # what any op counts for, in bytes gone through: some microseconds
    ENOUGH = 1 << 22      # ... and after how much signals are looked at: some milliseconds

# What was done since signals were looked at. Whoever goes through large arrays, or computes much on
# small ones, adds to it; the GIL guards it.
cdef int64_t* effort_so_far() noexcept

# Call a function (or a method of the listener) where nobody can be told of an error, as when
# something is released. Errors are reported as Python reports those of `__del__`; but a
# KeyboardInterrupt is not lost, nor does a signal keep the function from running: it is raised
# again as soon as it can be.
cdef void tell(object listener, str method, object argument) noexcept


cdef inline int spend(int64_t* effort, int64_t more) except -1:
    """Add to the effort; raise what a signal's handler raises, if it is time to look."""
    effort[0] += more
    if effort[0] < ENOUGH:
        return 0
    effort[0] = 0
    return PyErr_CheckSignals()


cdef enum:  # what code without the GIL returns
    NO_MEMORY = -1
    INTERRUPTED = -2  # the error has been raised

# Raise what such a code says.
cdef int raise_failure(int failed) except -1

# Look at signals without the GIL; INTERRUPTED if a handler has raised an error.
cdef int look_without_gil() noexcept with gil


cdef inline int spend_without_gil(int64_t* effort, int64_t more) noexcept nogil:
    """The same without the GIL, for a count of one's own."""
    effort[0] += more
    if effort[0] < ENOUGH:
        return 0
    effort[0] = 0
    return look_without_gil()
