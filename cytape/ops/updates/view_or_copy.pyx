from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.ops.engine.index_op cimport IndexOp, holds_symbol, is_plain_slice
from cytape.tensor.values.value cimport array_of, is_symbolic, symbol_of
from cytape.tensor.view_links cimport COPY, EITHER, FOREIGN, UNKNOWN, VIEW, Kind
from libc.stdint cimport int32_t

import numpy as np

from cytape.ops.adjoints.extent_checks import checked_extents_op
from cytape.ops.indexing import template_of
from cytape.ops.shapes.index_shapes import filled_in
from cytape.ops.shaping import reshape_op

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # no fixed value means success
    void Py_LeaveRecursiveCall()


cdef bint is_view(Tensor tensor) except -1:
    cdef SymbolicGraph graph
    cdef int32_t node
    cdef Op op
    if tensor.link != NULL:
        return base_link(tensor.link) != tensor.link or tensor.link.kind == FOREIGN
    if not is_symbolic(tensor.held):
        return tensor.held.is_part
    graph = tensor.held.owner
    node = graph.symbols[symbol_of(tensor.held)].node
    op = graph.ops[node]
    if not op.makes_views:
        return False
    specs = [graph.spec_of(symbol) for symbol in graph.inputs_of(node)]
    if type(op) is IndexOp:
        return specs[0].ndim != 0 and is_basic(filled_in(graph.attrs[node]["index"], specs[1:]))
    return specs[0].ndim != 0


cdef bint may_be_view(Tensor tensor) except -1:
    return is_view(tensor) or tensor.link != NULL and tensor.link.kind == EITHER


cdef bint may_overlap(Tensor view) except -1:
    """Return whether one of the origins of a link is a sliding window (attribute `writeable`)."""
    cdef Link* link = view.link
    while link.origin != NULL:
        if type(<object>link.attrs) is dict and "writeable" in <object>link.attrs:
            return True
        link = link.origin
    return False


cdef bint is_basic(index) except -1:
    """Return whether NumPy's result for an index is a view; specs may stand for tensors in it."""
    for part in index if isinstance(index, tuple) else (index,):
        part = part.spec if isinstance(part, Tensor) else part
        if isinstance(part, Spec):
            if part.ndim != 0 or part.dtype.kind == "b":
                return False
        elif isinstance(part, (bool, np.bool)) or not (
                part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice))):
            return False
    return True


cdef Link* base_link(Link* link) except NULL:
    """Return the link of the array that a write goes to: the first origin that is not a view."""
    while link.origin != NULL and shows_origin(link):
        link = link.origin
    return link


cdef bint shows_origin(Link* link) except -1:
    """Return whether the last step is a view in NumPy for all extents."""
    if link.kind == UNKNOWN and <object>link.op is reshape_op:
        link.kind = kind_of_reshape(link)
    elif link.kind == UNKNOWN:
        if type(<object>link.op) is IndexOp:
            shows = is_basic(<object>link.attrs)
        else:
            shows = (<Spec>link.spec).ndim != 0 or not returns_number(link)
        link.kind = VIEW if shows else COPY
    return link.kind == VIEW


cdef bint returns_number(Link* link) except -1:
    """Return whether NumPy's function returns a scalar, not a 0-d array."""
    memory = stand_in(link.origin, LIKELY)
    result = None if memory is None else example_of_call(link, memory, LIKELY)
    return result is not None and type(result) is not np.ndarray


cdef Kind kind_of_reshape(Link* link) except? UNKNOWN:
    """Return whether NumPy's reshape is a view."""
    cdef bint in_order = True, has_slices = False, known = (<Spec>link.spec).known
    cdef Link* origin = link.origin
    for extent in (LIKELY, UNLIKELY):
        memory = stand_in(origin, extent)
        in_order = in_order and is_reshaped_in_order(link, memory)
    while origin.origin != NULL and shows_origin(origin):
        known = known and (<Spec>origin.spec).known
        has_slices = has_slices or takes_part_of_axis(origin)
        origin = origin.origin
    known = known and (<Spec>origin.spec).known
    if in_order and (known or not has_slices) and (origin.kind != EITHER or is_raveled(origin)):
        return VIEW
    if not known or origin.kind == EITHER:
        return EITHER
    result = example_of_call(link, memory, LIKELY)
    if not memory.size or is_raveled(link):
        return COPY
    return VIEW if np.may_share_memory(memory, result) else COPY


cdef bint takes_part_of_axis(Link* link) except -1:
    """Return whether contiguity of a slice or split depends on extents, as in `x[:, :30]`."""
    cdef bint is_first = True
    if link.output >= 0:
        return True
    if type(<object>link.op) is not IndexOp:
        return False
    index = <object>link.attrs
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            if part.step is not None and (type(part.step) is not int or part.step != 1) or (
                    not is_first and (not is_plain_slice(part) or part != slice(None))):
                return True
            is_first = False
        elif part is Ellipsis:
            is_first = False
    return False


cdef bint is_raveled(Link* link) except -1:
    """Return whether a reshape copies strided arrays: `ravel` passes its shape in a tuple."""
    return <object>link.op is reshape_op and (<dict>link.attrs).get("shape") == (-1,)


cdef object stand_in(Link* link, extent):
    """Return an array with NumPy's strides; None if they are known only at run time."""
    if link.origin == NULL or not shows_origin(link) and link.kind == COPY:
        return example_of(<Spec>link.spec, extent)
    Py_EnterRecursiveCall(b" for views of views")
    try:
        memory = stand_in(link.origin, extent)
    finally:
        Py_LeaveRecursiveCall()
    memory = None if memory is None else result_on(link, memory, extent)
    if memory is not None and memory.size == 0 and not (<Spec>link.spec).known:
        return None  # more extents than the example has
    return memory


cdef object example_of(Spec spec, extent):
    if spec.ndim < 0:
        return None
    return np.empty([extent if n is None else n for n in spec.shape], spec.dtype)


cdef object result_on(Link* link, memory, extent):
    """Call a view's op with an array; None if the result is known only at run time."""
    result = example_of_call(link, memory, extent)
    if result is None and is_reshaped_in_order(link, memory):
        result = example_of(<Spec>link.spec, extent)
        return None if result is None else result[...]
    return result


cdef object example_of_call(Link* link, memory, extent):
    """Call a view's op with an array; None if the example extents do not fit each other."""
    cdef tuple inputs = () if link.inputs == NULL else (
        tuple([example_input(x, extent) for x in <tuple>link.inputs]))
    if <object>link.op is checked_extents_op:  # its check fails for example extents
        return memory
    try:
        if type(<object>link.op) is IndexOp:
            return memory[example_index(<object>link.attrs, extent)]
        return called_with(link, memory, inputs)
    except (IndexError, TypeError, ValueError):
        return None


cdef bint is_reshaped_in_order(Link* link, memory) except -1:
    """Return whether an op changes the shape of a C-ordered array, for all extents."""
    return memory is not None and memory.flags.c_contiguous and (
        <object>link.op is reshape_op and (<dict>link.attrs).get("order", "C") == "C")


cdef object example_input(x, extent):
    """Return an array for an operand: ones if it has no value yet, which are valid indices."""
    if not isinstance(x, Tensor):
        return x
    if not is_symbolic((<Tensor>x).held):
        return array_of((<Tensor>x).held)
    example = example_of(x.spec, extent)
    if example is not None:
        example.fill(1)
    return example


cdef object example_index(index, extent):
    if not holds_symbol(index):
        return index
    template, tensors = template_of(index)
    return filled_in(template, [example_input(x, extent) for x in tensors])


def layout(Tensor tensor not None):
    """Return an array with the strides of NumPy's result for a view; None if they are unknown."""
    return stand_in(tensor.link, LIKELY)


cdef object called(Link* link, x):
    """Return the result of a view's op for an array or tensor."""
    return called_with(link, x, () if link.inputs == NULL else <tuple>link.inputs)


cdef object called_with(Link* link, x, tuple inputs):
    op = <object>link.op
    if isinstance(op, IndexOp):
        return (<IndexOp>op).call2(x, <object>link.attrs)
    result = op(x, *inputs, **<dict>link.attrs)
    return result if link.output < 0 else result[link.output]
