"""GradientTape: recording of operations, and gradients and Jacobians of the recorded ones."""

from cytape.core.op_store cimport is_known
from cytape.core.typedefs cimport id_t
from cytape.ops.engine.tensor_vspace cimport gradients_of
from cytape.tensor.nest cimport flatten
from cytape.tensor.recording.recorders cimport enter, leave, new_recorder
from cytape.tensor.recording.state cimport Recorder, require_in_sight
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport is_symbolic
from cytape.tensor.variable cimport Variable

from .tape_arguments cimport in_places, leaves_of, require_tensor, require_tensor_leaf, warn_of_none

from functools import partial

from cytape.autodiff.jacobian_rows import columns, element_seeds, member_seeds, stack_rows
from cytape.autodiff.recorded_call import gradients_by
from cytape.autodiff.seeds import convert_output_gradients, zeros
from cytape.errors import TapeStateError
from cytape.ops.python.progress_reports import progress_of
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.names_elsewhere import advise
from cytape.tensor.recording import state
from cytape.tensor.unconnected_gradients import (
    UnconnectedGradients, parse_unconnected, warn_of_dtype)

__all__ = ["GradientTape", "UnconnectedGradients"]

cdef object NONE = UnconnectedGradients.NONE


cdef class GradientTape:
    """Record operations for differentiation in reverse mode.

    Inside its ``with`` block a tape records every operation on the tensors that it watches and on
    trainable variables, in the thread that entered it. Tapes may be nested: a gradient
    that is taken inside an outer tape's block is recorded there, and can be differentiated again.

    The gradient of a complex target follows TensorFlow's convention: for a holomorphic function it
    is the conjugate of the derivative (so that moving against it descends).

    Parameters
    ----------
    persistent : bool
        Whether `gradient`, `jacobian` and `batch_jacobian` may be called more than once. The tape
        then keeps its records until it is dropped.
    watch_accessed_variables : bool
        Whether trainable variables are watched when they are read, without a call of `watch`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant(3.0)
    >>> with cytape.GradientTape() as outer:
    ...     outer.watch(x)
    ...     with cytape.GradientTape() as inner:
    ...         inner.watch(x)
    ...         y = x**3
    ...     dy_dx = inner.gradient(y, x)
    >>> float(dy_dx), float(outer.gradient(dy_dx, x))
    (27.0, 18.0)
    """

    def __init__(self, bint persistent=False, bint watch_accessed_variables=True):
        self.persistent = persistent
        self.watch_accessed_variables = watch_accessed_variables
        self.entered = False
        self._recorder = new_recorder(persistent, watch_accessed_variables)
        self.consumed_variables = None
        self.warned_of = None

    # Interrupts occur only before or after the code in C: an entered recorder is always left.
    def __enter__(self):
        if self._recorder is None:
            self._recorder = new_recorder(self.persistent, self.watch_accessed_variables)
        self.entered = True
        enter(self._recorder)
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        if self._recorder is not None and self._recorder.entry is not None:
            leave(self._recorder)
        if error is not None:
            advise(error)

    def watch(self, tensor):
        """Record operations on a tensor or variable, or on those in a structure.

        Parameters
        ----------
        tensor : Tensor, Variable or structure of them
            Integers and booleans only draw a warning: they have no gradient.

        Raises
        ------
        ValueError
            If anything else, say an ndarray, is among them.
        TapeStateError
            If the tape is not persistent and has served.
        """
        cdef Recorder recorder
        cdef Tensor leaf
        cdef list leaves = leaves_of(tensor)
        for item in leaves:
            if not isinstance(item, Tensor):
                raise ValueError(
                    f"only tensors and variables can be watched, got {type(item).__name__}: "
                    "convert it with cytape.constant and compute with the result")
        recorder = self.usable_recorder(False)
        for leaf in leaves:
            if is_symbolic(leaf.held):
                require_in_sight(recorder, leaf.held.owner)
            if not leaf.held.spec.trainable:
                self.warn_of(leaf, f"watching a tensor of dtype {leaf.dtype} has no effect")
            elif isinstance(leaf, Variable):
                recorder.watch_variable_of(leaf, (<Variable>leaf).variable_id)
            else:
                recorder.watch_tensor(leaf.held.id)

    def watched_variables(self):
        """Return the variables watched so far, in the order in which they were created.

        Returns
        -------
        tuple of Variable
            Also after the one gradient of a tape that is not persistent.

        Examples
        --------
        >>> import cytape
        >>> v, w = cytape.Variable(1.0, name="v"), cytape.Variable(2.0, name="w")
        >>> with cytape.GradientTape() as tape:
        ...     loss = w * v
        >>> [variable.name for variable in tape.watched_variables()]
        ['v', 'w']
        """
        watched = self.consumed_variables if self._recorder is None else self._recorder.watched
        return tuple([watched[id] for id in sorted(watched or ())])

    def stop_recording(self):
        """Suspend this tape, and no other, within a ``with`` block.

        Returns
        -------
        context manager

        Raises
        ------
        TapeStateError, ValueError
            If the tape was never entered, was left or, not being persistent, has served.

        Examples
        --------
        >>> import cytape
        >>> x = cytape.constant(3.0)
        >>> with cytape.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        ...     with tape.stop_recording():
        ...         scale = cytape.constant(1.0) / y
        ...     loss = y * scale
        >>> round(float(tape.gradient(loss, x)), 6)
        0.666667
        """
        return state.suspended(self.active_recorder())

    def reset(self):
        """Drop everything recorded and watched so far, and continue to record.

        Examples
        --------
        >>> import cytape
        >>> v = cytape.Variable(1.0)
        >>> with cytape.GradientTape() as tape:
        ...     loss = v * v
        ...     tape.reset()
        ...     loss = loss + 3 * v
        >>> float(tape.gradient(loss, v))
        3.0
        """
        leave(self.active_recorder())
        self._recorder = new_recorder(self.persistent, self.watch_accessed_variables)
        enter(self._recorder)

    def recorded_ops(self) -> list:
        """List the ops on the tape in the order of recording.

        Returns
        -------
        list of (str, list of int, list of int)
            The name of an op, the ids of its inputs and of its outputs, as in `Tensor.id`. An id is
            None for a constant, and for an output that another op has recorded since. A variable
            that is read is the input of an op "Identity", whose output is its value.

        Examples
        --------
        >>> import cytape
        >>> x = cytape.constant(2.0)
        >>> with cytape.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.recorded_ops() == [("Multiply", [x.id, x.id], [y.id])]
        True
        """
        return [] if self._recorder is None else self._recorder.recorded_ops()

    def draw(self, names=None, most=1000):
        """Return a picture of the recorded ops, a `Picture` that notebooks show.

        Parameters
        ----------
        names : dict of str to Tensor, optional
            Names of tensors in the picture.
        most : int, optional
            The largest number of boxes; a ValueError is raised if there are more.

        Examples
        --------
        >>> import cytape
        >>> x = cytape.Variable([1.0, 2.0])
        >>> with cytape.GradientTape() as tape:
        ...     loss = (x * x).sum()
        >>> "Multiply" in str(tape.draw({"loss": loss}))
        True
        """
        from cytape.ops.calls.tape_drawing import diagram_of_tape
        return diagram_of_tape(self._recorder, {} if names is None else names).draw(most)

    def __repr__(self):
        return f"<GradientTape of {len(self.recorded_ops())} operations>"

    def _repr_svg_(self):
        from cytape.ops.calls.tape_drawing import MOST_SHOWN, diagram_of_tape
        return str(diagram_of_tape(self._recorder, {}, MOST_SHOWN).draw())

    def gradient(self, target, sources, output_gradients=None,
                 unconnected_gradients=UnconnectedGradients.NONE, *, progress=None):
        """Differentiate the sum of the targets with respect to each source.

        Parameters
        ----------
        target : Tensor or structure of Tensors
            The result to differentiate.
        sources : Tensor, Variable or structure of them
            The tensors to differentiate with respect to.
        output_gradients : Tensor, array_like or structure of them, optional
            A weight for every element of every target, instead of ones. A None among several means
            ones.
        unconnected_gradients : {"none", "zero"} or UnconnectedGradients
            Result for a source that the target does not depend on.
        progress : callable or bool, optional
            Called with the number of ops that are done and of those on the tape, at most ten times
            a second and at the end. True: a bar, by tqdm if that is installed.

        Returns
        -------
        Tensor, IndexedSlices or None, or structure of them
            Packed like `sources`.

        Raises
        ------
        TapeStateError
            If the tape was never entered or, not being persistent, has served before.
        InvalidGradientError
            If `output_gradients` do not fit the targets in number, shape or dtype.
        TypeError, ValueError
            If a target or source is no tensor; if `unconnected_gradients` is another word.

        Examples
        --------
        >>> import cytape
        >>> w = cytape.Variable([1.0, 2.0])
        >>> with cytape.GradientTape() as tape:
        ...     loss = (w * w).sum()
        >>> tape.gradient(loss, {"w": w})["w"].numpy()
        array([2., 4.])
        """
        cdef list targets, flat_sources, gradients, seeds = None
        cdef Recorder recorder = self.usable_recorder(True)
        if unconnected_gradients is not NONE:
            unconnected_gradients = parse_unconnected(unconnected_gradients)
        targets = self.flat_targets(target)
        flat_sources = self.flat_sources(sources)
        if output_gradients is not None:
            seeds = convert_output_gradients(targets, output_gradients)
        reports = None if progress is None else progress_of(progress, self._recorder.num_ops)
        gradients = gradients_of(self.take_recorder(), targets, flat_sources, seeds, False,
                                 None if reports is None else reports.step)
        if reports is not None:
            reports.finish()
        if unconnected_gradients is NONE:
            warn_of_none(recorder, gradients, targets, flat_sources)
        else:
            gradients = [zeros(x.spec.extents, x.dtype) if gradient is None else gradient
                         for gradient, x in zip(gradients, flat_sources, strict=True)]
        return gradients[0] if isinstance(sources, Tensor) else in_places(sources, gradients)

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE,
                 parallel_iterations=None, experimental_use_pfor=True):
        """Differentiate every element of a target with respect to each source.

        Parameters
        ----------
        target : Tensor
            The result to differentiate.
        sources : Tensor, Variable or structure of them
            The tensors to differentiate with respect to.
        unconnected_gradients : {"none", "zero"} or UnconnectedGradients
            Result for a source that the target does not depend on.
        parallel_iterations : int, optional
            Without effect; TensorFlow's signature has it.
        experimental_use_pfor : bool
            As in TensorFlow, a tape that is not persistent serves only with True.

        Returns
        -------
        Tensor or None, or structure of them
            Packed like `sources`; each has the shape of the target followed by that of the source.

        Raises
        ------
        TapeStateError
            If the tape was never entered or, not being persistent, has served before or is called
            with ``experimental_use_pfor=False``.
        TypeError, ValueError
            As for `gradient`.

        Examples
        --------
        >>> import cytape
        >>> x = cytape.constant([1.0, 2.0])
        >>> with cytape.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.jacobian(y, x).numpy().tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        cdef list flat_sources, jacobians
        unconnected = self.check_jacobian_call(unconnected_gradients, experimental_use_pfor)
        require_tensor("target", target)
        self.require_seen(target)
        flat_sources = self.flat_sources(sources)
        units = element_seeds(target)
        jacobians = [
            stack_rows(rows, source, target.shape, axis=0, unconnected=unconnected)
            for source, rows in zip(
                flat_sources, self.rows(target, flat_sources, units), strict=True)]
        return in_places(sources, jacobians)

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE,
                       parallel_iterations=None, experimental_use_pfor=True):
        """Differentiate ``target[i]`` with respect to ``source[i]``, for every i.

        Each ``target[i]`` must depend on ``source[i]`` only.

        Parameters
        ----------
        target : Tensor
            The result to differentiate, of shape ``(batch, ...)``.
        source : Tensor or Variable
            The tensor to differentiate with respect to, of shape ``(batch, ...)``.
        unconnected_gradients, parallel_iterations, experimental_use_pfor
            As for `jacobian`.

        Returns
        -------
        Tensor or None
            Of shape ``(batch, *target.shape[1:], *source.shape[1:])``.

        Raises
        ------
        TapeStateError, TypeError
            As for `jacobian`.
        ValueError
            If target and source have not two axes at least and the same number of members, or
            `unconnected_gradients` is another word.

        Examples
        --------
        >>> import cytape
        >>> x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with cytape.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).numpy().tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        unconnected = self.check_jacobian_call(unconnected_gradients, experimental_use_pfor)
        require_tensor("target", target)
        require_tensor("source", source)
        self.require_seen(target)
        self.flat_sources(source)
        units = member_seeds(target, source)
        (rows,) = self.rows(target, [source], units)
        return stack_rows(rows, source, target.shape, axis=1, unconnected=unconnected)

    cdef Recorder usable_recorder(self, bint entered):
        """Return the recorder; raise if it was consumed, or, if required, was never entered."""
        if self._recorder is None:
            raise TapeStateError(
                "a non-persistent tape serves only one set of gradients or Jacobians, and this one "
                "has served: create it with persistent=True, or enter it again to record anew")
        if entered and not self.entered:
            raise TapeStateError(
                "this tape was never entered, so it recorded nothing: compute in a block "
                "`with GradientTape() as tape:`. A non-persistent tape serves one set of gradients")
        return self._recorder

    cdef Recorder active_recorder(self):
        cdef Recorder recorder = self.usable_recorder(True)
        if recorder.entry is None:
            raise ValueError("this tape is not recording: its `with` block has been left")
        return recorder

    cdef Recorder take_recorder(self):
        """Take the recorder for one set of gradients; a persistent tape keeps it."""
        cdef Recorder recorder = self._recorder
        if not self.persistent:
            if recorder.entry is not None:
                leave(recorder)
            self.consumed_variables = recorder.watched
            self._recorder = None
        return recorder

    cdef list flat_targets(self, target):
        if isinstance(target, Tensor):
            require_tensor_leaf("target", target)
            self.require_seen(target)
            return [target]
        cdef list leaves
        cdef Py_ssize_t i
        cdef bint enters = self._recorder.entry is None
        if enters:
            enter(self._recorder)
        try:
            leaves = flatten(target)  # a TensorArray stacks its elements, recorded
        finally:
            if enters:
                leave(self._recorder)
        for i in range(len(leaves)):
            # The sum of the dense tensor is the sum of the values.
            while not isinstance(leaves[i], Tensor) and isinstance(leaves[i], IndexedSlices):
                leaves[i] = leaves[i].values
            require_tensor_leaf("target", leaves[i])
            self.require_seen(leaves[i])
        return leaves

    cdef int require_seen(self, Tensor target) except -1:
        """Raise for a target that the tape cannot have recorded; its gradient would be None."""
        if is_symbolic(target.held) and not is_known(self._recorder, target.held.id):
            require_in_sight(self._recorder, target.held.owner)
        return 0

    cdef list flat_sources(self, sources):
        cdef Recorder recorder = self._recorder
        cdef list leaves = leaves_of(sources)
        cdef id_t id
        for leaf in leaves:
            require_tensor_leaf("source", leaf)
            id = (<Tensor>leaf).held.id
            if recorder.changed is not None and id in recorder.changed and (
                    not is_known(recorder, id)):
                raise TapeStateError(
                    "a tensor that this tape watched was changed in place, so the target was not "
                    "computed from its present value. Take the gradient before; or write x = x + 1 "
                    "instead of x += 1 and pass the tensor that was watched; or, within a `with` "
                    "block, watch it again")
            # Watching a tensor warns, but variables are watched implicitly.
            if isinstance(leaf, Variable) and not leaf.spec.trainable:
                self.warn_of(leaf, f"the gradient of {leaf.name!r} is None")
        return leaves

    cdef int warn_of(self, Tensor leaf, str what) except -1:
        if self.warned_of is None:
            self.warned_of = set()
        if leaf.id not in self.warned_of:
            self.warned_of.add(leaf.id)
            warn_of_dtype(leaf, what)
        return 0

    cdef object check_jacobian_call(self, unconnected_gradients, bint experimental_use_pfor):
        self.usable_recorder(True)
        if not (experimental_use_pfor or self.persistent):
            raise TapeStateError(
                "with experimental_use_pfor=False the tape must be persistent: create it with "
                "persistent=True")
        return parse_unconnected(unconnected_gradients)

    cdef list rows(self, Tensor target, list sources, seeds):
        """Return for each source the gradients of the target weighted by each seed."""
        cdef Recorder recorder = self.take_recorder()
        return columns(partial(gradients_by, recorder, target, sources), target, sources, seeds)


def noting_detached(GradientTape tape not None):
    """Make a tape note its tensors whose values are taken; return the dict of these."""
    cdef Recorder recorder = tape.usable_recorder(False)
    recorder.detached = {}
    return recorder.detached
