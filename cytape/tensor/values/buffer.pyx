cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject_Call
from cpython.pycapsule cimport PyCapsule_New
from cytape.core.memory cimport (
    give_back_block, release, release_blocks, resized, take_block)
from libc.stdlib cimport calloc, malloc
from libc.string cimport memcpy, memset

cnp.import_array()

cdef extern from *:
    """
    #include "numpy/arrayobject.h"
    #ifndef PyDataMem_SetHandler  /* of NumPy 1.22 and later, where headers are for earlier ones */
    #define PyDataMem_SetHandler (*(PyObject *(*)(PyObject *))PyArray_API[304])
    #endif
    """
    object PyDataMem_SetHandler(object handler)  # returns the one that was set before

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void* context "ctx"
        void* (*malloc)(void* context, size_t nbytes) noexcept
        void* (*calloc)(void* context, size_t count, size_t item_size) noexcept
        void* (*realloc)(void* context, void* memory, size_t nbytes) noexcept
        void (*free)(void* context, void* memory, size_t nbytes) noexcept

    ctypedef struct PyDataMem_Handler:
        char[127] name
        unsigned char version
        PyDataMemAllocator allocator

cdef enum:
    WORTH_KEEPING = 1 << 15  # bytes
    CLEARED_HERE = 1 << 26   # ... up to which kept memory is cleared; more is mapped lazily

cdef PyDataMem_Handler handler


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Buffer:
    def __dealloc__(self):
        if self.data != NULL:
            give_back_block(self.data, self.nbytes)


cdef Buffer new_buffer(size_t nbytes):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.nbytes = nbytes
    buffer.data = <char*>take_block(&buffer.nbytes)
    if buffer.data == NULL:
        raise MemoryError(f"no memory for an array of {nbytes} bytes")
    return buffer


def release_kept() -> int:
    """Return all pooled memory to the system.

    The memory of released tensors and tapes is pooled for reuse, up to 256 MiB.

    Returns
    -------
    int
        How many bytes that were.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0] * 100] * 100) * 2.0
    >>> del x
    >>> release_kept() >= 80_000
    True
    >>> release_kept()
    0
    """
    return release_blocks()


# ---- arrays that NumPy allocates


cdef void* allocate(void* context, size_t nbytes) noexcept:
    return take_block(&nbytes) if nbytes >= WORTH_KEEPING else malloc(nbytes)


cdef void* allocate_zeros(void* context, size_t count, size_t item_size) noexcept:
    cdef size_t nbytes = count * item_size, held = nbytes
    cdef void* memory
    if not WORTH_KEEPING <= nbytes <= CLEARED_HERE or nbytes // item_size != count:
        return calloc(count, item_size)
    memory = take_block(&held)
    if memory != NULL:
        memset(memory, 0, nbytes)
    return memory


cdef void* reallocate(void* context, void* memory, size_t nbytes) noexcept:
    return memory if resized(&memory, nbytes, 1) else NULL


cdef void give_back(void* context, void* memory, size_t nbytes) noexcept:
    release(memory)


cdef object enter_handler():
    handler.version = 1
    handler.allocator.malloc = allocate
    handler.allocator.calloc = allocate_zeros
    handler.allocator.realloc = reallocate
    handler.allocator.free = give_back
    memcpy(handler.name, b"cytape", 7)
    return PyCapsule_New(&handler, "mem_handler", NULL)


cdef object kept_memory = enter_handler()


cdef object with_kept_memory(function, tuple operands, dict attrs):
    previous = PyDataMem_SetHandler(kept_memory)
    try:
        return PyObject_Call(function, operands, attrs)
    finally:
        PyDataMem_SetHandler(previous)


cdef object call_with_arrays(function, tuple operands, dict attrs):
    for x in operands:
        if type(x) is cnp.ndarray and cnp.PyArray_NBYTES(x) >= WORTH_LENDING:
            return with_kept_memory(function, operands, attrs)
    return PyObject_Call(function, operands, attrs)
