from cpython.exc cimport PyErr_Fetch, PyErr_Occurred, PyErr_Restore
from cpython.ref cimport Py_DECREF
from cytape.core.accumulator cimport ForwardAccumulator, tangent_of
from cytape.core.op_store cimport OpStore, drop_handle
from libc.stdlib cimport realloc
from libc.string cimport memmove, memset

cdef Counts the_counts

memset(&the_counts, 0, sizeof(Counts))


cdef Counts* counts() noexcept:
    return &the_counts


cdef int register(Registry* registry, PyObject* member) except -1:
    cdef void* memory
    if registry.count == registry.capacity:
        memory = realloc(registry.members, (2 * registry.capacity + 8) * sizeof(PyObject*))
        if memory == NULL:
            raise MemoryError()
        registry.members = <PyObject**>memory
        registry.capacity = 2 * registry.capacity + 8
    registry.members[registry.count] = member
    registry.count += 1
    registry.registrations += 1
    return 0


cdef void unregister(Registry* registry, PyObject* member) noexcept:
    cdef int i = 0
    while registry.members[i] != member:
        i += 1
    registry.count -= 1
    registry.registrations += 1
    memmove(registry.members + i, registry.members + i + 1,
            (registry.count - i) * sizeof(PyObject*))


cdef void handle_died(id_t id) noexcept:
    """Delete a tensor's trace from every tape, wherever it records."""
    cdef int i
    cdef OpStore store
    cdef bint doomed = False
    for i in range(the_counts.tapes.count):
        doomed |= drop_handle(<OpStore>the_counts.tapes.members[i], id)
    # Releases may run any code, which may change the registry: search again each time.
    while doomed:
        doomed = False
        for i in range(the_counts.tapes.count):
            store = <OpStore>the_counts.tapes.members[i]
            if store.n_doomed and store.pinned == 0:
                store.release_doomed()
                store = None  # the tape may die here: not later, while the members are read
                doomed = True
                break


cdef void handle_revived(id_t id) noexcept:
    """Note that a saved value got a handle again: its trace must live until this one is gone."""
    cdef int i
    for i in range(the_counts.tapes.count):
        (<OpStore>the_counts.tapes.members[i]).revive(id)


cdef void value_died(id_t id) noexcept:
    """Drop the tangents of a value without handles from all accumulators."""
    cdef int i = 0
    cdef int registrations
    cdef void* tangent
    while i < the_counts.accumulators.count:
        tangent = NULL
        if tangent_of(<ForwardAccumulator>the_counts.accumulators.members[i], id) != NULL:
            tangent = (<ForwardAccumulator>the_counts.accumulators.members[i]).take(id)
        i += 1
        if tangent != NULL:
            # Releases may run any code; if it changes the registry, start again.
            registrations = the_counts.accumulators.registrations
            drop(<PyObject*>tangent)
            if registrations != the_counts.accumulators.registrations:
                i = 0


cdef void drop(PyObject* x) noexcept:
    """Release a reference while an exception may be set."""
    cdef PyObject* kind
    cdef PyObject* error
    cdef PyObject* traceback
    if x.ob_refcnt > 1 or PyErr_Occurred() == NULL:
        Py_DECREF(<object>x)
        return
    PyErr_Fetch(&kind, &error, &traceback)
    Py_DECREF(<object>x)
    PyErr_Restore(kind, error, traceback)
