"""Calls of ops recorded on a tape, with the shapes and dtypes of their operands and results.

`ops/engine/tape_entry.pxd` has the layout of entries that this module reads.
"""

from cpython.ref cimport PyObject
from cytape.core.op_store cimport Op as StoredOp
from cytape.core.typedefs cimport index_t
from cytape.tensor.recording.state cimport Recorder
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value, array_of

from typing import Any, NamedTuple

__all__ = ["Operand", "RecordedCall", "recorded_calls"]


class Operand(NamedTuple):
    """A tensor that a recorded call reads or returns.

    Attributes
    ----------
    id : int or None
        None for a constant.
    spec : Spec or None
        None if the entry does not have it.
    number : str
        The value of a constant of one element, if the entry saves it.
    """

    id: Any
    spec: Any
    number: str = ""


class RecordedCall(NamedTuple):
    """A call on a tape.

    Attributes
    ----------
    name : str
    inputs, outputs : list of Operand
    attrs : dict
        Static arguments, if the entry has them.
    """

    name: str
    inputs: list
    outputs: list
    attrs: dict


def recorded_calls(Recorder recorder not None) -> list:
    """List the calls on a recorder in the order of recording.

    Examples
    --------
    >>> import cytape
    >>> from cytape.tensor.recording.state import Recorder
    >>> x, recorder = cytape.constant([1.0, 2.0]), Recorder()
    >>> recorder.watch(x.id)
    >>> with recorder:
    ...     y = x * 3.0
    >>> [call] = recorded_calls(recorder)
    >>> call.name, call.inputs[1].number, call.outputs[0].spec.shape
    ('Multiply', '3.0', (2,))
    """
    cdef index_t op = 0, n_out
    cdef list found = []
    for op, (name, inputs, outputs) in zip(live_ops(recorder), recorder.recorded_ops()):
        n_out = recorder.table.ops[op].n_outputs
        made = [Operand(id, spec_or_none(ref_at(recorder, op, i)))
                for i, id in enumerate(outputs)]
        if recorder.table.ops[op].kind == NULL or recorder.table.ops[op].kind.owner == NULL:
            read = [Operand(id, made[0].spec) for id in inputs]  # a variable
            found.append(RecordedCall(name, read, made, {}))
            continue
        read = [operand_of(id, ref_at(recorder, op, n_out + i)) for i, id in enumerate(inputs)]
        last = ref_at(recorder, op, recorder.table.ops[op].n_refs - 1)
        found.append(RecordedCall(name, read, made, last if type(last) is dict else {}))
    return found


cdef list live_ops(Recorder recorder):
    cdef index_t op
    cdef list found = []
    for op in range(recorder.table.n_ops):
        if recorder.table.ops[op].kind != NULL:
            found.append(op)
    return found


cdef object ref_at(OpStore store, index_t op, index_t i):
    """Return a ref; the array is looked up each time, since any allocation may run other code."""
    cdef StoredOp* entry = &store.table.ops[op]
    cdef void* ref
    if op >= store.table.n_ops or entry.kind == NULL or i >= entry.n_refs:
        return None
    ref = store.table.refs[entry.refs + i]
    return None if ref == NULL else <object><PyObject*>ref


cdef object spec_or_none(ref):
    return ref if type(ref) is Spec else None


cdef object operand_of(id, ref):
    cdef Value value
    if type(ref) is not Value:
        return Operand(id, spec_or_none(ref))
    value = ref
    number = ""
    if id is None and value.spec.size == 1:
        number = str(array_of(value).item())
    return Operand(id, value.spec, number)
