cimport cython
from cytape.core.accumulator cimport tangent_of
from cytape.core.op_store cimport is_known
from cytape.core.vspace cimport OpKind
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t

from cytape.tensor.recording.conversion_guards cimport (
    ASSIGNED, detached, require_unrecorded, seen, views)
from cytape.tensor.recording.leaked_tensors cimport watch_leak
from cytape.tensor.recording.recorders cimport Reads, Recorder, TangentRecorder, mark
from cytape.tensor.recording.state cimport note_detachment
from cytape.tensor.recording.thread_stack cimport accumulating, building, recording
from cytape.tensor.values.plain_arrays cimport as_ndarray
from cytape.tensor.values.released_ids cimport Counts, counts, handle_died, value_died
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport (
    array_of, copy_of_array, is_exclusive, is_symbolic, new_id, new_value, value_of_array)

from .tensor cimport another_handle, hold

from functools import partial
from threading import get_ident

import numpy as np

from cytape.tensor.names_elsewhere import unexpected
from cytape.tensor.recording.conversion_guards import install_variable
from cytape.tensor.recording.entered_blocks import between, building_into
from cytape.tensor.values.plain_arrays import plain_array

cdef Counts* recorders = counts()

cdef void release_spec(void** refs, int32_t n_refs, object keeper) noexcept:
    Py_DECREF(<object>refs[0])

cdef dict trials = {}  # thread -> an id at the entry to the innermost `assignments_refused`

# A read is an op from the variable to its value, which passes the gradient unchanged.
cdef OpKind read_kind
read_kind.optional_gradients = 0
read_kind.release = release_spec
read_kind.owner = NULL


@cython.final
@cython.no_gc
cdef class Variable(Tensor):
    """Variable(initial_value, trainable=True, name=None, dtype=None)\n--\n\n\
    A tensor-like whose value can be replaced between (or during) recordings.

    Parameters
    ----------
    initial_value : array_like, Tensor or callable
        The data, which is copied. A callable is called for it, eagerly even where a graph is being
        built.
    trainable : bool, optional
        Whether tapes watch the variable on their own when an op reads it.
    name : str, optional
        For error messages.
    dtype : dtype, optional
        The dtype of the variable; by default that of the data.

    Attributes
    ----------
    trainable : bool
    name : str

    Raises
    ------
    TypeError, ValueError, DetachedError
        As for `constant`, of the initial value.

    Examples
    --------
    >>> from cytape import Variable
    >>> import cytape
    >>> v = Variable([1.0, 2.0])
    >>> with cytape.GradientTape() as tape:
    ...     loss = (v * v).sum()
    >>> v.assign_sub(0.1 * tape.gradient(loss, v))
    Variable([0.8, 1.6])
    """

    def __cinit__(self, initial_value, trainable=True, name=None, dtype=None, **unknown):
        for keyword in unknown:
            raise unexpected("Variable", keyword)
        if not isinstance(trainable, (bool, np.bool_)):
            raise TypeError(
                f"trainable must be a bool, got {trainable!r}" + (
                    f". To name the variable, pass name={trainable!r}"
                    if isinstance(trainable, str) else ""))
        graph = building()
        value = initial_value
        if callable(initial_value):
            with building_into(None):  # the value is needed now, also in a graph
                value = initial_value()
        if isinstance(value, Tensor) and is_symbolic((<Tensor>value).held):
            value = value.graph.initial_value(value)
        if isinstance(value, Tensor):
            require_unrecorded(value, (<Tensor>value).held, "cytape.Variable")
        hold(self, copy_of_array(detached_array(value, dtype)))
        self.variable_id = new_id()
        self.trainable = trainable
        self.name = "Variable" if name is None else name
        if graph is not None:
            graph.variable_made(self)

    def __dealloc__(self):
        if recorders.accumulators.count:
            value_died(self.variable_id)

    @property
    def id(self) -> int:
        """The id of this variable on tapes, whatever its value."""
        return self.variable_id

    def value(self) -> Tensor:
        """Return the present value, as a tensor connected to the variable.

        Examples
        --------
        >>> from cytape import Variable
        >>> v = Variable(1.0)
        >>> before = v.value()
        >>> _ = v.assign(5.0)
        >>> before, v
        (Tensor(1.), Variable(5.))
        """
        return another_handle(read(self))

    def assign(self, value):
        """Replace the value; ops recorded before keep the old one.

        Parameters
        ----------
        value : array_like or Tensor
            Of the variable's shape; cast to its dtype. No gradient flows into it.

        Returns
        -------
        Variable
            The variable itself. While a `Graph` is built, a tensor, which can be fetched.

        Raises
        ------
        ValueError
            If the shape differs.
        TypeError
            If the value is of another kind (say, fractions for an integer variable).

        Examples
        --------
        >>> from cytape import Variable
        >>> Variable([1.0, 2.0]).assign([3, 4])
        Variable([3., 4.])
        """
        graph = building()
        if graph is not None:
            return graph.assign(self, dense(value), "assign")
        replace(self, detached_array(value, None))
        return self

    def assign_add(self, delta):
        """Add `delta` to the value.

        Parameters
        ----------
        delta : array_like or Tensor
            Must broadcast to the variable's shape. Result and errors are those of `assign`.

        Examples
        --------
        >>> from cytape import Variable
        >>> Variable([1.0, 2.0]).assign_add(1)
        Variable([2., 3.])
        """
        graph = building()
        if graph is not None:
            return graph.assign(self, dense(delta), "assign_add")
        replace(self, array_of(seen(self, self.held)) + detached_array(delta, None))
        return self

    def assign_sub(self, delta):
        """Subtract `delta` from the value; otherwise as `assign_add`.

        Examples
        --------
        >>> from cytape import Variable
        >>> Variable([1.0, 2.0]).assign_sub(1)
        Variable([0., 1.])
        """
        graph = building()
        if graph is not None:
            return graph.assign(self, dense(delta), "assign_sub")
        replace(self, array_of(seen(self, self.held)) - detached_array(delta, None))
        return self

    def __reduce__(self):
        return Variable, (array_of(seen(self, self.held)), self.trainable, self.name)

    def __copy__(self):
        return Variable(array_of(seen(self, self.held)), self.trainable, self.name)

    def __deepcopy__(self, memo):
        return Variable(array_of(seen(self, self.held)), self.trainable, self.name)


cdef object in_this_thread(dict values, value):
    """Return a context manager that sets a value for this thread in a dict."""
    thread = get_ident()
    if thread in values:
        end = partial(values.__setitem__, thread, values[thread])
    else:
        end = partial(values.pop, thread)
    return between([partial(values.__setitem__, thread, value)], [end])


def assignments_refused():
    """Make assignments to variables raise in this thread, during the trial call of a function.

    Variables that the function creates may be assigned to.
    """
    return in_this_thread(trials, new_id())


cpdef int note_departure(Tensor tensor, str how) except -1:
    if not is_symbolic(tensor.held):
        detached(tensor, tensor.held, how)
    elif recorders.entered and tensor.held.spec.trainable:
        note_detachment(tensor, tensor.id, tensor.held.id, False, how)
    return 0


def note_assignment(Tensor tensor not None):
    """Notify recorders of a tensor that a variable is assigned a value that depends on it."""
    note_departure(tensor, ASSIGNED)


cdef object dense(value):
    """Return an assigned value; slices become a tensor."""
    if not isinstance(value, Tensor) and hasattr(value, "to_tensor"):
        return value.to_tensor()
    return value


cdef object detached_array(value, dtype):
    value = dense(value)
    if isinstance(value, Tensor):
        value = detached(value, (<Tensor>value).held, ASSIGNED)
    return as_ndarray(plain_array(value, dtype))


cdef int refuse_in_trial(Variable variable) except -1:
    if trials and variable.variable_id < trials.get(get_ident(), 0):
        raise RuntimeError(
            f"variable {variable.name!r} was about to be assigned a value that is made up: the "
            "function is only tried out to learn the specs of its results. Pass them, as in "
            "cytape.numpy_function(f, *arguments, specs=...)")
    return 0


cdef int replace(Variable variable, array) except -1:
    """Set the value to a copy of an array, in the variable's dtype."""
    cdef Spec spec = variable.held.spec
    refuse_in_trial(variable)
    if not np.can_cast(np.asarray(array).dtype, spec.dtype, "same_kind"):
        raise TypeError(f"variable {variable.name!r} is {spec.dtype}, cannot assign a value of "
                        f"dtype {np.asarray(array).dtype}; convert it with astype")
    array = np.array(array, dtype=spec.dtype)
    if array.shape != spec.shape:
        raise ValueError(f"variable {variable.name!r} has shape {spec.shape}, cannot assign a "
                         f"value of shape {array.shape}")
    return take_value(variable, value_of_array(array))


cdef int take_value(Variable variable, Value new) except -1:
    cdef Value old = seen(variable, variable.held)
    cdef dict view
    if recorders.accumulators.count:
        for accumulator in accumulating() or ():
            if (<TangentRecorder>accumulator).reads is not None:
                note((<TangentRecorder>accumulator).reads, variable)
    view = views.get(get_ident()) if views else None
    if view is not None and variable.variable_id in view:
        view[variable.variable_id] = new, another_handle(new)
        return 0
    new.handles = 1
    variable.held = new
    old.handles -= 1
    if old.handles == 0 and recorders.tapes.count:
        handle_died(old.id)
    return 0


cdef Value begin_write(Variable variable):
    cdef bint alone = is_exclusive(<PyObject*>variable.held)
    refuse_in_trial(variable)
    if alone and variable.held.handles == 1 and not views and not recorders.accumulators.count:
        return variable.held
    return new_value(variable.held.spec)


cdef int end_write(Variable variable, Value value) except -1:
    cdef id_t before = value.id
    if value is not variable.held:
        return take_value(variable, value)
    value.id = new_id()
    if recorders.tapes.count:
        handle_died(before)
    return 0


cdef Value read(Variable variable):
    cdef Recorder recorder
    cdef TangentRecorder accumulator
    cdef list active = recording()
    cdef Value value = variable.held
    if views:
        value = seen(variable, value)
    graph = building()
    if graph is not None:
        value = (<Tensor>graph.variable_value(variable)).held
    if active is not None:
        for recorder in active:
            if not is_known(recorder, value.id):
                announce(recorder, variable, value)
    if recorders.accumulators.count:
        for accumulator in accumulating() or ():
            if accumulator.reads is not None:
                note(accumulator.reads, variable)
                accumulator.reads.found_variable(variable.trainable, value)
                if variable.trainable and accumulator.reads.watch_variables and (
                        not accumulator.reads.silent):
                    mark(accumulator, value.id)
            pass_tangent_on(accumulator, variable.variable_id, value)
    return value


cdef int note(Reads reads, Variable variable) except -1:
    """Note a variable that is about to be read or assigned to, with its value."""
    if variable.variable_id not in reads.variables:
        reads.variables[variable.variable_id] = (
            variable, another_handle(seen(variable, variable.held)))
    return 0


def holding(values):
    """Give variables other values for this thread in a block, which may assign to them.

    Other threads do not see them. Recorders that track the variables are not notified.

    Parameters
    ----------
    values : iterable of (Variable, Tensor)

    Examples
    --------
    >>> v = Variable(1.0)
    >>> before = v.value()
    >>> with holding([(v.assign(5.0), before)]):
    ...     v.assign_add(1.0)
    Variable(2.)
    >>> v
    Variable(5.)
    """
    cdef Tensor value
    cdef dict view = dict(views.get(get_ident(), ()))
    for variable, value in values:
        view[variable.id] = value.held, value
    return in_this_thread(views, view)


def holds(Variable variable not None, Tensor value not None) -> bool:
    """Return whether a variable holds the same value object as a tensor, not only an equal one.

    Examples
    --------
    >>> v = Variable(1.0)
    >>> before = v.value()
    >>> holds(v, before), holds(v.assign(1.0), before)
    (True, False)
    """
    return seen(variable, variable.held) is value.held


cdef int follow_as(id_t id, Value value) except -1:
    cdef Recorder recorder
    cdef TangentRecorder accumulator
    for recorder in recording() or ():
        if (is_known(recorder, id) or recorder.began and watch_leak(recorder, id)) and (
                not is_known(recorder, value.id)):
            record_identity(recorder, id, value)
    for accumulator in accumulating() or ():
        pass_tangent_on(accumulator, id, value)
        if accumulator.reads is not None:
            accumulator.reads.renamed(id, value.id)
    return 0


def followed_as(id_t id, Tensor tensor not None) -> Tensor:
    """Return a tensor that is tracked by all recorders that track an id."""
    follow_as(id, tensor.held)
    return tensor


cdef int pass_tangent_on(TangentRecorder accumulator, id_t id, Value value) except -1:
    """Give a value the tangent of another id of the same tensor."""
    cdef bint is_silent = accumulator.reads is not None and accumulator.reads.silent
    cdef void* tangent = NULL if is_silent else tangent_of(accumulator, id)
    if tangent != NULL and tangent_of(accumulator, value.id) == NULL:
        Py_INCREF(<object>tangent)
        accumulator.store(value.id, tangent)
    return 0


cdef int announce(Recorder recorder, Variable variable, Value value) except -1:
    """Make a recorder track the variable's present value, if it tracks the variable."""
    if not (variable.trainable and recorder.watch_accessed_variables
            or is_known(recorder, variable.variable_id)):
        return 0
    recorder.watch_variable_of(variable, variable.variable_id)
    return record_identity(recorder, variable.variable_id, value)


cdef int record_identity(Recorder recorder, id_t id, Value value) except -1:
    cdef void* spec = <void*><PyObject*>value.spec
    recorder.record_op(&read_kind, &id, 1, &value.id, 1, &spec, 1)
    Py_INCREF(value.spec)
    return 0


install_variable(Variable)
