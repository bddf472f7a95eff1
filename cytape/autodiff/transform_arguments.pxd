# Common parts of transforms: callables, arguments as tensors, results as arrays.

from cytape.tensor.recording.recorders cimport Recorder
from cytape.tensor.tensor cimport Tensor

cdef class Transformed:
    cdef object rule
    cdef object fun
    cdef readonly tuple _options
    cdef object __weakref__
    cdef dict __dict__

cpdef tuple call_followed(fun, args, dict kwargs, bint has_aux)
cpdef bint has_tensors(structure) except -1
cpdef tuple replace_arguments(fun, tuple args, argnums, kwargs=*, bint as_float=*)
cpdef Tensor new_tensor(fun, position, value)
cpdef Tensor new_source(fun, position, value, bint as_float=*)
cpdef Tensor output_of(fun, value)
cpdef export(structure, bint arrays_out)
cpdef int warn_of_leaks(fun, Recorder recorder, list targets) except -1
cdef int note_other_leaks(set ids, results) except -1
cpdef int note_kept_results(recorder, list results, aux) except -1
