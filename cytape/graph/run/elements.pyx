cimport cython
from cytape.core.interrupts cimport INTERRUPTED
from cytape.ops.engine.node_store cimport Node
from cytape.ops.kernels.loops cimport Loop, kernel_of
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.spec cimport Spec
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy cimport NPY_INT64, npy_intp

from .instructions cimport CONTROL, Runner, Subprogram, loop_of
from .layout cimport DEFERRED, PLACED, Place

import numpy as np

cdef extern from "Python.h":
    void PyErr_Format(object kind, const char* text, ...) noexcept


cdef struct Element:
    const Loop* adding            # NULL: the block is copied
    int n_parts, last             # ... of the operands: the result
    int operands[MAX_AXES]        # which tell an index; 0: it is a number
    npy_intp numbers[MAX_AXES]
    npy_intp extents[MAX_AXES]
    npy_intp strides[MAX_AXES]
    npy_intp block, size, itemsize


cdef bint get_element(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], out = row.first_output
    cdef ElementProgram program
    cdef list symbols
    if not is_plain(code, x):
        return False
    symbols = index_symbols(code, node, 1)
    program = program_of(code, node, code.spec(x), code.spec(out))
    if symbols is None or program is None:
        return False
    code.place_output(out)
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, [x, *symbols, out], 2 * program.element.block)
    return True


cdef bint add_element(Code code, int32_t node, Op op) except -1:
    """Zeros with a value added in one place, which may be added to another sum instead."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], out = row.first_output, symbol
    cdef Place* place = &code.layout.places[out]
    cdef ElementProgram program
    cdef list symbols
    if not is_plain(code, x) or not code.spec(out).known:
        return False
    symbols = index_symbols(code, node, 2)
    program = program_of(code, node, code.spec(out), code.spec(x))
    if symbols is None or program is None:
        return False
    program.element.adding = loop_of(kernel_of(np.add), code.spec(x).type_num, code.spec(x))
    if program.element.adding == NULL:
        return False
    code.subprograms.append(program)
    code.elements[out] = (program, [x, *symbols])
    place.kind = DEFERRED
    place.source = x
    place.root = code.layout.places[x].root
    place.claims = 1
    for symbol in [x, *symbols]:
        code.layout.places[code.layout.places[symbol].root].claims += 1
    if place.uses != 1:
        code.settle(out)
    return True


cdef bint is_plain(Code code, int32_t symbol) except -1:
    return (code.layout.places[symbol].kind == PLACED and code.layout.places[symbol].strides < 0
            and code.spec(symbol).known)


cdef list index_symbols(Code code, int32_t node, int first):
    """The inputs that stand in an index: scalars, of the one type that is looked at."""
    cdef Node* row = &code.graph.nodes[node]
    cdef list symbols = [code.graph.args[row.inputs + i] for i in range(first, row.n_inputs)]
    cdef int32_t symbol
    for symbol in symbols:
        if not is_plain(code, symbol) or code.spec(symbol).ndim or (
                code.spec(symbol).type_num != NPY_INT64):
            return None
    return symbols


cdef ElementProgram program_of(Code code, int32_t node, Spec spec, Spec part):
    """What goes to a part of a value; None if its index is of another kind."""
    cdef ElementProgram program = ElementProgram()
    cdef Element* element = &program.element
    cdef int i
    cdef npy_intp stride = spec.nbytes
    index = code.graph.attrs[node]["index"]
    parts = index if isinstance(index, tuple) else (index,)
    if not 0 < len(parts) <= spec.ndim or spec.size == 0 or part.type_num != spec.type_num:
        return None
    for i, number in enumerate(parts):
        if type(number) is not str and type(number) is not int:
            return None
        stride //= spec.dims[i]
        element.extents[i], element.strides[i] = spec.dims[i], stride
        element.operands[i] = 1 + int(number[1:]) if type(number) is str else 0
        element.numbers[i] = 0 if type(number) is str else number
    element.adding = NULL
    if part.nbytes != stride:
        return None
    element.n_parts, element.block, element.size = <int>len(parts), stride, part.size
    element.itemsize, element.last = spec.itemsize, 1 + <int>max(
        [element.operands[i] for i in range(element.n_parts)])
    return program


@cython.final
cdef class ElementProgram(Subprogram):
    cdef Element element

    cdef Runner new_runner(self):
        cdef ElementRunner runner = ElementRunner()
        runner.element = self.element
        return runner


@cython.final
cdef class ElementRunner(Runner):
    cdef Element element

    cdef int run(self, char** data) noexcept nogil:
        cdef Element* element = &self.element
        cdef npy_intp offset = 0, place
        cdef npy_intp strides[3]
        cdef char* operands[3]
        cdef int i
        for i in range(element.n_parts):
            place = element.numbers[i]
            if element.operands[i]:
                place = (<int64_t*>data[element.operands[i]])[0]
            if place < -element.extents[i] or place >= element.extents[i]:
                return beyond(place, i, element.extents[i])
            offset += (place + element.extents[i] if place < 0 else place) * element.strides[i]
        if element.adding == NULL:
            memcpy(data[element.last], data[0] + offset, element.block)
            return 0
        operands[0] = operands[2] = data[element.last] + offset
        operands[1] = data[0]
        strides[0] = strides[1] = strides[2] = element.itemsize
        element.adding.function(operands, &element.size, strides, element.adding.data)
        return 0


cdef int beyond(npy_intp place, int axis, npy_intp extent) noexcept with gil:
    """Raise what NumPy does about an index."""
    PyErr_Format(IndexError, b"index %zd is out of bounds for axis %d with size %zd",
                 place, axis, extent)
    return INTERRUPTED
