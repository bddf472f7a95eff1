from cpython.ref cimport PyObject
from cytape.ops.engine.index_op cimport IndexOp, find_bytes, is_plain_slice
from cytape.ops.kernels.moves cimport COPIED_BYTES
from cytape.ops.updates.update_op cimport note_change
from cytape.tensor.view_links cimport ALONE, EITHER, FOREIGN, Link, cut
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.recording.state cimport building
from cytape.tensor.tensor cimport take_on
from cytape.tensor.values.value cimport (
    Value, array_of, copy_of_array, is_exclusive, is_symbolic, value_of_array)
from cytape.tensor.noted_views cimport LAST
from libc.stdint cimport int64_t

from .view_or_copy cimport (
    LIKELY, UNLIKELY, base_link, called, example_of, is_raveled, result_on, shows_origin, stand_in)

import numpy as np

from cytape.errors import GraphError
from cytape.ops.elementwise import where
from cytape.ops.shaping import ravel, reshape, reshape_op, transpose
from cytape.ops.updates.part_updates import places_op, shows_memory_op

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # no fixed value means success
    void Py_LeaveRecursiveCall()

cdef Value NOTHING = value_of_array(np.empty(0))
cdef enum:
    MOST_STEPS = 8  # in a chain of links kept only for strides


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
    for view in near:  # strong references, whatever code runs here
        if (not is_symbolic(view.held) or view.held.owner is graph) and (
                base_link(view.link) == own):
            found.append((view, view.held.id))
    return found


cdef bint shares_memory(PyObject* held) noexcept:
    """Return whether a view is the only handle of its value, and the memory is shared."""
    return held.ob_refcnt == 1 and not is_exclusive(held) and (
        (<Value>held).data != NULL and (<Value>held).spec.nbytes > COPIED_BYTES)


cdef int copy_memory(Tensor view) except -1:
    """Give a view a copy of its data in memory of its own, with the same id."""
    cdef Value held = view.held, copied = copy_of_array(array_of(held))
    held.data, held.owner, held.contiguous = copied.data, copied.owner, True
    return 0


cdef int let_go(list views) except -1:
    for view, _ in views:
        take_on(view, NOTHING)
    return 0


cdef int remake(list views) except -1:
    cdef dict made = {}  # by link: values of views that are gone, from which others were made
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


cdef Tensor nearest_to_base(Tensor view):
    """Return the tensor nearest to a lost base: the view or one of its origins that lives."""
    cdef Link* link = view.link
    cdef Tensor nearest = view
    while link.origin != NULL and shows_origin(link):
        if link.tensor != NULL:
            nearest = <Tensor>link.tensor
        link = link.origin
    return nearest


cdef bint is_view_of(Link* link, Link* origin) except -1:
    """Return whether a link is another one or that of a view of it."""
    while link != origin and link.origin != NULL and shows_origin(link):
        link = link.origin
    return link == origin


cdef bint others_see(Tensor view) except -1:
    """Return whether other views of a lost base share elements with this one."""
    cdef Link* base = base_link(view.link)
    cdef Link* link = view.link.next
    cdef list others = []
    cdef Tensor other
    while link != view.link:
        others.append(<Tensor>link.tensor)
        link = link.next
    others = [other for other in others
              if base_link(other.link) == base and not is_view_of(other.link, view.link)]
    if not others or not (<Spec>base.spec).known:
        return bool(others)
    memory = example_of(<Spec>base.spec, 0)
    part = made_of(view.link, memory)
    for other in others:
        of_other = made_of(other.link, memory)
        if type(part) is Tensor or type(of_other) is Tensor or share(part, of_other):
            return True
    return False


cdef bint share(x, y) except -1:
    """Return whether arrays share memory, by a test of bounded effort."""
    try:
        return np.shares_memory(x, y, max_work=1000)
    except np.exceptions.TooHardError:
        return True


cdef int stand_alone(Tensor view) except -1:
    """Make a view its own base from now on; long histories are dropped."""
    cdef Link* link = view.link
    cdef int steps = 0
    if base_link(link).kind == EITHER:
        link.kind = EITHER
        return 0
    while link.origin != NULL:
        link = link.origin
        steps += 1
    if steps > MOST_STEPS and view.link.uses == 1:  # not views, which have byte offsets in the base
        cut(view.link)
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
    """Return the composition of two indices; None if they are not integers and slices."""
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
    except IndexError:  # NumPy's message says more
        return None
    return tuple([part if type(part) is int else slice_of(part) for part in parts])


cdef list part_of_each_axis(index, Py_ssize_t ndim):
    """Return the integers and slices of an index; None if it has other parts."""
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
    cdef Tensor base = base_of(view)
    cdef Spec spec = base.held.spec
    if view.held.spec.dtype != spec.dtype:
        return None
    for extent in (LIKELY, UNLIKELY, 1):  # 1 for `squeeze`
        example = example_of(spec, extent)
        example = None if example is None else seen_through(view.link, example, extent)
        if example is not None:
            break
    if example is None or not example.flags.writeable:
        return None
    if spec.known:
        return made_of(view.link, np.arange(spec.size).reshape(spec.shape))
    return made_of(view.link, reshape(places_op(base, index=...), spec.extents))


cdef list views_in_some_runs(Tensor base):
    cdef Link* link = base.link.next
    cdef Link* between
    cdef dict found = {}
    while link != base.link:
        between = base_link(link)
        if between.kind == EITHER and named_origin(between) == base.link:
            nearest = between.tensor if between.tensor != NULL else link.tensor
            found[<size_t>nearest] = <Tensor>nearest
        link = link.next
    return list(found.values())


cdef Tensor base_in_some_runs(Tensor view):
    cdef Link* base = view.link
    cdef Link* link = view.link.next
    cdef Tensor nearest
    while base.kind == EITHER:
        base = base.origin
        nearest = None
        while True:
            if base.tensor != NULL:
                nearest = <Tensor>base.tensor
            if base.origin == NULL or not shows_origin(base):
                break
            base = base.origin
        if nearest is not None and nearest.link.kind != FOREIGN:
            if nearest.link != base:  # a view of a base that is gone
                if others_see(nearest):
                    raise unknown_layout(view)
                stand_alone(nearest)
            return nearest
    while link != view.link:
        if base_link(link) != view.link:
            raise unknown_layout(view)
        link = link.next
    return None


cdef Link* named_origin(Link* link) except? NULL:
    """Return the first origin with a live tensor that may be the base."""
    while link.kind == EITHER:
        link = base_link(link.origin)
        if link.tensor != NULL and link.kind != FOREIGN:
            return link
    return NULL


cdef object unknown_layout(Tensor view):
    return GraphError(
        f"whether NumPy makes a view or a copy by {(<object>base_link(view.link).op).name} depends "
        "on extents that are not known while a graph is built, and the assignment would change "
        "another tensor in the first case only. Write to a copy (y = y.copy()), reshape a copy "
        "(x.copy().reshape(shape)), or give the function's signature known extents")


cdef tuple seen_in_some_runs(Tensor view, Tensor base):
    if view.held.spec.dtype != base.held.spec.dtype:
        raise unknown_layout(view)
    return seen_from(base, view.link, positions_of(base), memory_places(base, view))


cdef tuple seen_from(Tensor base, Link* link, positions, memory):
    """Return positions and memory of a link's elements, given those of the base."""
    if link == base.link:
        return None, positions, base
    Py_EnterRecursiveCall(b" for views of views")
    try:
        is_shown, before, shown = seen_from(base, link.origin, positions, memory)
    finally:
        Py_LeaveRecursiveCall()
    positions = called(link, before)
    if link.kind == EITHER and <object>link.op is reshape_op:
        shows = shows_memory_op(
            at(memory, before), positions, order=(<dict>link.attrs).get("order", "C"),
            is_raveled=is_raveled(link))
        is_shown = shows if is_shown is None else is_shown & shows
    return is_shown, positions, called(link, shown)


cdef object at(memory, positions):
    """Return the memory locations of elements at some positions."""
    return positions if memory is None else ravel(memory)[positions]


cdef object positions_of(Tensor tensor):
    return reshape(places_op(tensor, index=...), tensor.spec.extents)


cdef object memory_places(Tensor tensor, Tensor view):
    """Return the locations of a tensor's elements in NumPy's memory; None: in C order."""
    cdef Tensor base = base_in_some_runs(tensor) if tensor.link.kind == EITHER else None
    if base is not None:
        is_shown, positions, _ = seen_in_some_runs(tensor, base)
        places = at(memory_places(base, view), positions)
        return places if is_shown is None else where(is_shown, places, positions_of(tensor))
    memory = stand_in(tensor.link, LIKELY)
    if memory is None:
        raise unknown_layout(view)
    axes = np.argsort([-stride for stride in memory.strides], kind="stable").tolist()
    if not memory.transpose(axes).flags.c_contiguous:
        raise unknown_layout(view)
    if axes == list(range(len(axes))):
        return None
    return transpose(positions_of(transpose(tensor, axes)), np.argsort(axes).tolist())


cdef object seen_through(Link* link, example, extent):
    """Apply the ops that made a view to an array; None if the result is known only at run time."""
    if link.origin == NULL or not shows_origin(link):
        return example
    Py_EnterRecursiveCall(b" for views of views")
    try:
        example = seen_through(link.origin, example, extent)
    finally:
        Py_LeaveRecursiveCall()
    return None if example is None else result_on(link, example, extent)


cdef object made_of(Link* link, x):
    """Return the result of a view's ops for an array or tensor as the base."""
    if link.origin == NULL or not shows_origin(link):
        return x
    Py_EnterRecursiveCall(b" for views of views")
    try:
        x = made_of(link.origin, x)
    finally:
        Py_LeaveRecursiveCall()
    return called(link, x)
