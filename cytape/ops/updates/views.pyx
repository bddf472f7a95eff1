from cpython.ref cimport PyObject
from cytape.ops.engine.dispatch cimport Op
from cytape.ops.engine.index_op cimport IndexOp, find_bytes, is_plain_slice
from cytape.ops.engine.symbolic cimport SymbolicGraph
from cytape.ops.kernels.moves cimport COPIED_BYTES
from cytape.ops.updates.update_op cimport note_change
from cytape.tensor.links cimport ALONE, COPY, FOREIGN, UNKNOWN, VIEW, Link
from cytape.tensor.spec cimport Spec
from cytape.tensor.state cimport building
from cytape.tensor.tensor cimport leave, take_on
from cytape.tensor.value cimport (
    Value, array_of, copy_of_array, is_exclusive, is_symbolic, symbol_of, value_of_array)
from cytape.tensor.views cimport LAST
from libc.stdint cimport int32_t, int64_t

import numpy as np

from cytape.ops.indexing import dynamic_get_item_op, filled_in, get_item_op

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # what else it returns varies
    void Py_LeaveRecursiveCall()

cdef Value NOTHING = value_of_array(np.empty(0))
cdef enum:
    MOST_STEPS = 8  # by which the strides are known of what stands alone


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
    if op is get_item_op or op is dynamic_get_item_op:
        specs = [graph.spec_of(symbol) for symbol in graph.inputs_of(node)]
        return is_basic(filled_in(graph.attrs[node]["index"], specs[1:]))
    return op.makes_views


cdef bint is_basic(index) except -1:
    """Whether NumPy makes a view of what an index selects; specs stand for tensors in it."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Spec):
            if part.ndim != 0 or part.dtype.kind == "b":
                return False
        elif isinstance(part, (bool, np.bool)) or not (
                part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice))):
            return False
    return True


cdef Link* base_link(Link* link) except NULL:
    """The link of what a write goes to: not of a view, as NumPy makes them."""
    while link.origin != NULL and shows_origin(link):
        link = link.origin
    return link


cdef bint shows_origin(Link* link) except -1:
    """Whether NumPy made a view in the last step; what only a run can tell is taken for one."""
    if link.kind == UNKNOWN:
        if <object>link.op is get_item_op:
            shows = is_basic(<object>link.attrs)
        elif <object>link.op is dynamic_get_item_op:
            index = (<dict>link.attrs)["index"]
            specs = [x.spec if isinstance(x, Tensor) else x for x in <tuple>link.inputs]
            shows = (<Spec>link.spec).ndim != 0 and is_basic(filled_in(index, specs))
        else:
            memory = stand_in(link.origin) if link.inputs == NULL else None
            # A shape in a tuple is what `ravel` asks for, which copies what has gaps.
            shows = memory is None or np.may_share_memory(memory, called(link, memory)) and (
                (<dict>link.attrs).get("shape") != (-1,) or memory.flags.c_contiguous)
        link.kind = VIEW if shows else COPY
    return link.kind == VIEW


cdef object stand_in(Link* link):
    """An array with strides as NumPy's would have them; None: they are not known."""
    cdef Spec spec = <Spec>link.spec
    if link.origin == NULL or not shows_origin(link) and link.kind == COPY:
        return np.empty(spec.shape, spec.dtype) if spec.known else None
    Py_EnterRecursiveCall(b" for views of views")
    try:
        memory = stand_in(link.origin)
    finally:
        Py_LeaveRecursiveCall()
    return None if memory is None or link.inputs != NULL else called(link, memory)


cdef object called(Link* link, x):
    """What the op that made a view makes of something."""
    op = <object>link.op
    if isinstance(op, IndexOp):
        return (<IndexOp>op).call2(x, <object>link.attrs)
    result = op(x, *(<tuple>link.inputs if link.inputs != NULL else ()), **<dict>link.attrs)
    return result if link.output < 0 else result[link.output]


cdef list views_of(Tensor base, index):
    cdef Link* own = base.link
    cdef Link* link = own.next
    cdef int64_t start = 0, stop = LAST
    cdef list near = [], found = []
    cdef Tensor view
    graph = building()
    if graph is None and is_symbolic(base.held):
        graph = base.held.owner
    if index is not None and own.origin == NULL:
        find_bytes(index, base.held.spec, &start, &stop)
    while link != own:
        view, link = <Tensor>link.tensor, link.next
        if view.link.start < stop and start < view.link.stop:
            near.append(view)
        elif shares_memory(<PyObject*>view.held):
            copy_memory(view)
    for view in near:  # which live now, whatever code runs here
        if (not is_symbolic(view.held) or view.held.owner is graph) and (
                base_link(view.link) == own):
            found.append((view, view.held.id))
    return found


cdef bint shares_memory(PyObject* held) noexcept:
    """Whether nobody else has the value of a view, but its memory."""
    return held.ob_refcnt == 1 and not is_exclusive(held) and (
        (<Value>held).data != NULL and (<Value>held).spec.nbytes > COPIED_BYTES)


cdef int copy_memory(Tensor view) except -1:
    """Have a view show the same in memory of its own; to recorders it is what it was."""
    cdef Value held = view.held, copied = copy_of_array(array_of(held))
    held.data, held.owner, held.contiguous = copied.data, copied.owner, True
    return 0


cdef int let_go(list views) except -1:
    for view, _ in views:
        take_on(view, NOTHING)
    return 0


cdef int remake(list views) except -1:
    cdef dict made = {}  # by link: what views were that are gone, of which others were made
    cdef Tensor view, anew
    for view, before in views:
        anew = called(view.link, tensor_of(view.link.origin, made))
        note_change(before, anew.held.id)
        take_on(view, anew.held)
    return 0


cdef Tensor tensor_of(Link* link, dict made):
    if link.tensor != NULL:
        return <Tensor>link.tensor
    if <size_t>link not in made:
        Py_EnterRecursiveCall(b" for views of views")
        try:
            made[<size_t>link] = called(link, tensor_of(link.origin, made))
        finally:
            Py_LeaveRecursiveCall()
    return made[<size_t>link]


cdef Tensor base_of(Tensor view):
    cdef Link* link
    if view.link == NULL:
        return None
    link = base_link(view.link)
    return None if link.tensor == NULL or link.kind == FOREIGN else <Tensor>link.tensor


cdef bint others_see(Tensor view) except -1:
    """Whether other views of a base that is gone show elements of this one."""
    cdef Link* base = base_link(view.link)
    cdef Link* link = view.link.next
    cdef list others = []
    cdef Tensor other
    while link != view.link:
        others.append(<Tensor>link.tensor)
        link = link.next
    others = [other for other in others if base_link(other.link) == base]
    if not others or not (<Spec>base.spec).known:
        return bool(others)
    memory = np.empty((<Spec>base.spec).shape, (<Spec>base.spec).dtype)
    shown = made_of(view.link, memory)
    for other in others:
        of_other = made_of(other.link, memory)
        if shown is None or of_other is None or share(shown, of_other):
            return True
    return False


cdef bint share(x, y) except -1:
    """Whether arrays have memory in common, as far as can be told soon."""
    try:
        return np.shares_memory(x, y, max_work=1000)
    except np.exceptions.TooHardError:
        return True


cdef int stand_alone(Tensor view) except -1:
    """Have a view be written to itself from now on; long histories are forgotten."""
    cdef Link* link = view.link
    cdef int steps = 0
    while link.origin != NULL:
        link = link.origin
        steps += 1
    if steps > MOST_STEPS:
        leave(view)
    else:
        view.link.kind = ALONE
    return 0


cdef object index_in_base(Tensor view, index):
    cdef Link* link = view.link
    cdef Link* base = base_link(link)
    while link != base and index is not None:
        if not isinstance(<object>link.op, IndexOp) or not (<Spec>link.origin.spec).known:
            return None
        index = composed(<object>link.attrs, index, (<Spec>link.origin.spec).shape)
        link = link.origin
    return index


cdef object composed(first, second, tuple shape):
    """The index that does what two do, one after the other; None if they are not that simple."""
    cdef list parts = part_of_each_axis(first, len(shape)), axes
    if parts is None:
        return None
    parts = [range(extent)[part] for extent, part in zip(shape, parts)]
    axes = [axis for axis, part in enumerate(parts) if type(part) is range]
    rest = part_of_each_axis(second, len(axes))
    if rest is None:
        return None
    try:
        for axis, part in zip(axes, rest):
            parts[axis] = parts[axis][part]
    except IndexError:  # NumPy's says more
        return None
    return tuple([part if type(part) is int else slice_of(part) for part in parts])


cdef list part_of_each_axis(index, Py_ssize_t ndim):
    """Integers and slices that an index consists of; None if it does not."""
    cdef list parts = list(index) if type(index) is tuple else [index]
    cdef Py_ssize_t i, place = len(parts)
    for i, part in enumerate(parts):
        if part is Ellipsis and place == len(parts):
            place = i
        elif type(part) is not int and not is_plain_slice(part):
            return None
    if len(parts) - (place < len(parts)) > ndim:
        return None
    rest = parts[place + 1:]
    return parts[:place] + [slice(None)] * (ndim - place - len(rest)) + rest


cdef object slice_of(places):
    if not places:
        return slice(0, 0)
    return slice(places.start, places.stop if places.stop >= 0 else None, places.step)


cdef object positions_in_base(Tensor view):
    cdef Spec spec = base_of(view).held.spec
    if not spec.known or view.held.spec.dtype != spec.dtype:
        return None
    positions = made_of(view.link, np.arange(spec.size).reshape(spec.shape))
    return positions if positions is not None and positions.flags.writeable else None


cdef object made_of(Link* link, array):
    """What NumPy makes of an array as a view was made of its base; None: that takes a run."""
    if link.origin == NULL or not shows_origin(link):
        return array
    Py_EnterRecursiveCall(b" for views of views")
    try:
        array = made_of(link.origin, array)
    finally:
        Py_LeaveRecursiveCall()
    return None if array is None or link.inputs != NULL else called(link, array)
