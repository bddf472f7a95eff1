"""Writes to tensors: ``x[index] = value``, ``x += value`` and ``out=``.

A write gives the handle a new value; the base of a view and other views of it get NumPy's values,
too. Errors are raised if the base is gone, if a tape relies on the old value (a watched tensor),
and if a graph is being built that the tensor does not belong to.
"""

from cytape.ops.engine.index_op cimport IndexOp
from cytape.ops.updates.update_op cimport UpdateOp, is_watched, note_change
from cytape.ops.updates.view_or_copy cimport base_link, is_view, may_be_view, may_overlap
from cytape.ops.updates.written_views cimport (
    base_in_some_runs, base_of, index_in_base, let_go, nearest_to_base, others_see,
    positions_in_base, remake, seen_in_some_runs, stand_alone, views_in_some_runs, views_of)
from cytape.tensor.noted_views cimport has_views
from cytape.tensor.operators cimport Operator
from cytape.tensor.recording.leaked_tensors cimport forget_leak
from cytape.tensor.recording.state cimport Recorder, building, followers_of, recording
from cytape.tensor.tensor cimport Tensor, another_handle, take_on
from cytape.tensor.values.value cimport Value, is_symbolic
from cytape.tensor.variable cimport Variable
from cytape.tensor.view_links cimport EITHER, FOREIGN

import numpy as np

from cytape.errors import DetachedError, TapeStateError
from cytape.ops.calls.operands import operand, values_of, written_to_array
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.creation import astype, identity_op
from cytape.ops.elementwise import where as select
from cytape.ops.engine.index_op import holds_symbol, static
from cytape.ops.shaping import ravel, reshape
from cytape.ops.updates.at_index import At
from cytape.ops.updates.part_updates import set_item_op, set_part
from cytape.ops.updates.view_or_copy import layout
from cytape.tensor import convert_to_tensor
from cytape.tensor.operators import install

# Points at which ufuncs and their partials are finite; 1 for all others.
cdef dict REGULAR_POINTS = {"arccos": 0, "arccosh": 2, "arcsin": 0, "arctanh": 0}


def assign(Tensor tensor not None, index, value):
    """Assign to a part of a tensor, ``tensor[index] = value``."""
    forget_leak(tensor.held.id)
    if isinstance(tensor, Variable):
        require_unfollowed(tensor, value, "variable[index] = value")
        tensor.assign(set_part(convert_to_tensor(tensor), index, value))
        return
    if is_view(tensor):
        write_to_base(tensor, index, value)
    elif has_views(tensor):
        assign_with_views(tensor, index, value)
    else:
        require_changeable(tensor)
        take_result(tensor, set_part(tensor, index, value))


cdef int assign_with_views(Tensor tensor, index, value) except -1:
    """Assign to a part of a tensor that has views, which change with it."""
    cdef list views = changeable_views(tensor, index)
    if type(value) is Tensor:
        value = another_handle((<Tensor>value).held)  # it may be one of the views
    elif type(value) not in (float, int, np.ndarray):
        take_result(tensor, set_part(tensor, index, value))  # may read the views
        remake(views)
        return pass_on(tensor)
    let_go(views)
    try:
        if not (<UpdateOp>set_item_op).write(tensor, index, value):
            take_result(tensor, set_part(tensor, index, value))
    finally:
        remake(views)
    return pass_on(tensor)


cdef int write_to_base(Tensor view, index, value) except -1:
    """Write to a part of a view, by a write to its base."""
    cdef Tensor base = base_of(view), own, flat
    cdef bint fits
    if base is None:
        if view.link == NULL or base_link(view.link).kind == FOREIGN:
            raise read_only(
                "the tensor is a view of a variable, or of a value that another tensor has. Write "
                "to a variable itself (variable[index] = value, or variable.assign(value)), or to "
                "a copy (row = variable[0].copy())")
        own = nearest_to_base(view)
        if others_see(own):
            raise read_only(
                "the tensor is a view of one that nothing names any more, and other views show "
                "the same elements. Name that first (y = f(x); a, b = y[:-1], y[1:]), or write to "
                "a copy (a = a.copy())")
        stand_alone(own)
        assign(view, index, value)
        return 0
    inside = index_in_base(view, index)
    if inside is not None:
        assign(base, inside, value)
        return 0
    fits = index is Ellipsis and type(value) is Tensor and value.spec is view.held.spec
    if view.link.origin == base.link and isinstance(<object>view.link.op, IndexOp):
        assign(base, <object>view.link.attrs, value if fits else set_part(view, index, value))
        return 0
    positions = positions_in_base(view)
    if positions is None:
        raise read_only(
            "the tensor is a part of complex numbers, a diagonal, or what repeats elements. Write "
            "to the tensor that it is a view of (x[index] = value), or to a copy (y = y.copy())")
    if not fits and may_overlap(view):
        index = index if holds_symbol(index) else static(index)
        flat = set_part(ravel(base), convert_to_tensor(positions)[index], value)
        return take_everywhere(base, reshape(flat, base.spec.extents))
    if not fits and (holds_symbol(index) or type(positions) is Tensor):
        value, fits = set_part(view, index, value), True
    if not fits:
        flat = set_part(ravel(base), positions[static(index)], value)
    elif type(positions) is Tensor:  # known to be distinct, so `set_part` need not check
        flat = set_item_op(ravel(base), ravel(value), ravel(positions), index="@0")
    else:
        flat = set_item_op(ravel(base), ravel(value), index=positions.ravel())
    return take_everywhere(base, reshape(flat, base.spec.extents))


cdef int take_everywhere(Tensor tensor, Tensor result) except -1:
    """Set the value of a tensor that is not a view, and update its views."""
    cdef list views = changeable_views(tensor, None)
    take_result(tensor, result)
    remake(views)
    return pass_on(tensor)


cdef int pass_on(Tensor written, Tensor by=None) except -1:
    """Update tensors that are views of the written one for some run-time extents only."""
    cdef Tensor base, view
    if written.link == NULL or not is_symbolic(written.held):
        return 0
    if written.link.kind == EITHER:
        base = base_in_some_runs(written)
        if base is not None and base is not by:
            is_shown, places, _ = seen_in_some_runs(written, base)
            flat = set_item_op(ravel(base), ravel(written), ravel(places), index="@0")
            take_in_some_runs(base, is_shown, flat)
            pass_on(base, written)
    for view in views_in_some_runs(written):
        if view is not by:
            is_shown, _, shown = seen_in_some_runs(view, written)
            take_in_some_runs(view, is_shown, shown)
            pass_on(view, written)
    return 0


cdef int take_in_some_runs(Tensor tensor, where, result) except -1:
    """Set the value of a tensor if a scalar condition holds, and update its views."""
    cdef list views = changeable_views(tensor, None)
    if where is not None:
        result = select(where, ravel(result), ravel(tensor))
    take_result(tensor, reshape(result, tensor.spec.extents))
    return remake(views)


cdef int take_result(Tensor tensor, Tensor result) except -1:
    note_change(tensor.held.id, result.held.id)
    take_on(tensor, result.held)
    return 0


def in_place(Tensor x not None, op, y, bint temporary):
    """Return the result of ``x op= y``.

    Parameters
    ----------
    x : Tensor
    op : callable
    y : object
    temporary : bool
        Whether nothing but the expression has `x`, as in ``a[0] += y``, which then assigns to it.
    """
    if isinstance(x, Variable):
        require_unfollowed(x, y, "variable += value")
        x.assign(fitting(x, op(convert_to_tensor(x), y), op))
        return x
    if x.held.spec.ndim == 0 and not is_view(x):  # a scalar in NumPy
        return op(x, y)
    result = (<Operator>op).call2(x, y) if isinstance(op, Operator) else op(x, y)
    if result is NotImplemented:
        return result
    return fitting(x, result, op) if temporary else replaced(x, result, op)


def replaced(Tensor x not None, result, op):
    """Set the value of a tensor to a result, cast as NumPy does for arrays; return the tensor."""
    cdef Tensor fitted = fitting(x, result, op)
    if is_view(x):
        write_to_base(x, Ellipsis, fitted)
    else:
        take_everywhere(x, fitted)
    return x


def into(op, tuple inputs, dict arguments):
    """Call an op with ``out=``, tensors, and maybe ``where=``, as NumPy's ufuncs take them."""
    given, where = arguments.pop("out"), arguments.pop("where", True)
    outs = given if isinstance(given, tuple) else (given,)
    if where is not True:
        inputs = with_masked_replaced(inputs, where, op)
    results = op(*inputs, **arguments)
    cdef bint several = isinstance(results, tuple)
    if not several:
        results = (results,)
    if len(outs) != len(results):
        raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
    cdef list made = [result if out is None else fitted(out, result, where, op)
                      for out, result in zip(outs, results)]  # or an error, before any is written
    cdef Py_ssize_t i
    for i, out in enumerate(outs):
        if out is not None:
            if i and where is not True:  # masked elements may have been written by another output
                made[i] = fitted(out, results[i], where, op)
            made[i] = written(out, made[i], where, op)
    return tuple(made) if several else made[0]


cdef tuple with_masked_replaced(tuple inputs, where, op):
    """Return operands that are replaced by a regular point of the op where the mask is false.

    So masked elements, which NumPy does not compute, cause no warnings and no NaN in gradients.
    """
    if getattr(op, "signature", None) is not None:
        raise TypeError(f"{name_of(op)}() got an unexpected keyword argument 'where'")
    point = REGULAR_POINTS.get(name_of(op), 1)
    mask = values_of(where)
    cdef bint all_masked = mask is not None and not mask.any()
    cdef list operands = []
    for x in inputs:
        if type(x) in (bool, int, float, complex):  # stays weak
            operands.append(type(x)(point) if all_masked else x)
        else:
            x = operand(x)
            operands.append(select(where, x, np.array(point, x.dtype)))
    return tuple(operands)


cdef object fitted(out, result, where, op):
    """Return a result as it is written to a tensor or array, where a mask is true."""
    if not isinstance(out, Tensor):
        if type(out) is np.ndarray and None not in np.shape(result) and (
                np.broadcast_shapes(np.shape(result), out.shape) != out.shape):
            raise ValueError(
                f"non-broadcastable output operand with shape {out.shape} doesn't match the "
                f"broadcast shape {np.shape(result)}")
        return result
    if where is not True:
        result = select(where, result, out)
    if out.spec.known and may_broadcast(np.shape(result), out.shape):
        result = np.broadcast_to(result, out.shape)
    return fitting(out, result, op)


cdef object written(out, result, where, op):
    """Write a `fitted` result to a tensor, or its values to an array; return that."""
    if not isinstance(out, Tensor):
        return written_to_array(name_of(op), out, result, where)
    if isinstance(out, Variable):
        require_unfollowed(out, result, "out=variable")
        out.assign(result)
        return out
    return replaced(out, result, op)


cdef bint may_broadcast(shape, tuple target) except -1:
    """Return whether a shape may differ from one that it broadcasts to."""
    return shape is not None and tuple(shape) != target and len(shape) <= len(target) and all([
        n is None or n == 1 or n == m for n, m in zip(tuple(shape)[::-1], target[::-1])])


def refuse_temporary(Tensor x not None):
    """Raise for a write to an unnamed tensor, unless it is a view of a named one."""
    if base_of(x) is not None:
        return
    raise ValueError(
        "assignment to a part of a temporary tensor, which would be lost: give the tensor a name "
        "first; for variables write x[i, j] = value, not x[i][j] = value")


cdef str name_of(op):
    """Return NumPy's name of an op."""
    return getattr(op, "__name__", None) or op.name.lower()


cdef Tensor fitting(Tensor x, result, op):
    """Return a result as NumPy writes it to an array."""
    name = name_of(op)
    if not isinstance(result, Tensor):
        result = convert_to_tensor(result)
    if result.dtype != x.dtype:
        if not np.can_cast(result.dtype, x.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc {name!r} output from {result.dtype!r} to {x.dtype!r} with "
                "casting rule 'same_kind'")
        result = astype(result, x.dtype)
    if result.shape is not None and x.shape is not None and (
            len(result.shape) != len(x.shape) or any([
                n is not None and m is not None and n != m
                for n, m in zip(result.shape, x.shape)])):
        raise ValueError(
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast "
            f"shape {result.shape}")
    return identity_op(result) if may_be_view(result) else result


def own_in_graph(Tensor tensor not None) -> Tensor:
    """Return a tensor of the graph being built, for a function that may write to it."""
    graph = building()
    if graph is not None:  # a tensor of an outer graph cannot be written to here
        tensor = in_graph(graph, tensor)
    return identity_op(tensor) if may_be_view(tensor) else another_handle(tensor.held)


cdef object read_only(str why):
    return ValueError(
        f"assignment destination is read-only: {why}; or name a new tensor: y = y + 1")


cdef list changeable_views(Tensor tensor, index):
    """Return the views of a part of a tensor, with their ids; raise if one must not change."""
    cdef list views = views_of(tensor, index) if has_views(tensor) else []
    cdef Tensor view
    for view, _ in views:
        require_changeable(view)
    require_changeable(tensor)
    return views


cdef int require_changeable(Tensor x) except -1:
    """Raise if a tape or a graph relies on the value of a tensor."""
    cdef Value held = x.held
    cdef Recorder recorder
    graph = building()
    if graph is None and is_symbolic(held):
        graph = held.owner
    if graph is not None and (
            held.owner is not graph if is_symbolic(held) else held.id <= graph.first_id):
        raise TapeStateError(
            "a tensor from outside of the function, branch or loop body that is being traced was "
            "about to be changed in place, which would happen once, while it is traced: make a "
            "copy inside (x = x.copy()), or return the new value; a loop changes tensors that are "
            "loop variables")
    if held.handles > 1:
        return 0
    for recorder in recording() or ():
        if is_watched(recorder, held.id):
            raise TapeStateError(
                "a tensor that a tape watches was about to be changed in place: no name would be "
                "left for the tensor that gradients are asked for. Write x = x + 1 instead of x += "
                "1, or change a copy (y = x.copy()), or x.at[index].set(value)")
    return 0


cdef int require_unfollowed(Variable variable, value, str what) except -1:
    """Raise if an assignment to a variable would lose a gradient."""
    if variable.trainable and recording() is not None and bool(
            followers_of(variable.id, variable.held.id, True)):
        raise DetachedError(
            f"{what}: {variable.name!r} is assigned while a tape records ops that read it, and no "
            "gradient flows through assignments. Write x = variable + value for another tensor; or "
            "say variable.assign(...)")
    if isinstance(value, Tensor) and not isinstance(value, Variable) and (
            bool(followers_of(value.id, (<Tensor>value).held.id, False))):
        raise DetachedError(
            f"{what}: the value is being recorded, and no gradient flows into assignments of "
            "variables. Fill what cytape.numpy.zeros makes; or say variable.assign(...) if the "
            "gradient should stop here")
    return 0


set_item_op.general = assign
install(
    {"set_item": set_item_op}, {"at": At, "in_place": in_place, "into": into, "layout": layout,
                                "refuse_temporary": refuse_temporary})
