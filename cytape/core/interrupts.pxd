# Checks for signals (Ctrl-C) in long loops in C.
#
# Python runs signal handlers in the main thread, between two bytecode instructions, so a long C
# loop must check by itself. A check costs too much for a small op; it happens after a fixed amount
# of effort, counted in bytes.

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

cdef enum:
    OP_EFFORT = 1 << 13   # effort of any op, in bytes read or written: some microseconds
    ENOUGH = 1 << 22      # the effort between two checks: some milliseconds

# Effort since the last check, guarded by the GIL. Every loop over large arrays adds to it, and so
# does heavy arithmetic on small ones.
cdef int64_t* effort_so_far() noexcept

# Call a function (or a method of the listener) from a place that cannot raise, such as a release.
# Errors are reported as Python reports those of `__del__`. A KeyboardInterrupt is kept and raised
# at the next check; a pending signal does not prevent the call.
cdef void tell(object listener, str method, object argument) noexcept


cdef inline int spend(int64_t* effort, int64_t more) except -1:
    """Add to the effort; at the limit, check for signals and raise the handler's exception."""
    effort[0] += more
    if effort[0] < ENOUGH:
        return 0
    effort[0] = 0
    return PyErr_CheckSignals()


cdef enum:  # return codes of functions without the GIL
    NO_MEMORY = -1
    INTERRUPTED = -2  # the error has been raised

# Raise the error of such a code.
cdef int raise_failure(int failed) except -1

# Check for signals without the GIL; INTERRUPTED if a handler has raised an error.
cdef int look_without_gil() noexcept with gil


cdef inline int spend_without_gil(int64_t* effort, int64_t more) noexcept nogil:
    """Add to a separate count of effort, without the GIL; check at the limit."""
    effort[0] += more
    if effort[0] < ENOUGH:
        return 0
    effort[0] = 0
    return look_without_gil()
