"""ForwardAccumulator: Jacobian-vector products while the program runs, without a tape."""

from cytape.tensor.making cimport convert_to_tensor
from cytape.tensor.nest cimport flatten
from cytape.tensor.recording.recorders cimport enter, leave
from cytape.tensor.recording.state cimport TangentRecorder, require_in_sight
from cytape.tensor.tensor cimport Tensor, another_handle
from cytape.tensor.values.value cimport is_symbolic
from cytape.tensor.variable cimport Variable

from .tape_arguments cimport in_places, leaves_of

import numpy as np

from cytape.autodiff.seeds import zeros
from cytape.autodiff.transform_arguments import refuse_arrays
from cytape.ops.adjoints.tangent_batches import zeros_in_batch
from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.ops.joining import stack
from cytape.ops.shapes.shape_rules import may_fit
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.nest import assert_same_structure
from cytape.tensor.structures import register_dataclasses
from cytape.tensor.unconnected_gradients import UnconnectedGradients, parse_unconnected
from cytape.tensor.values.user_warnings import warn

__all__ = ["ForwardAccumulator"]

cdef enum:
    WARNINGS = 5  # about primals without tangents: at most this many per process

_warned = 0
cdef object NONE = UnconnectedGradients.NONE


cdef class ForwardAccumulator:
    """Compute Jacobian-vector products as operations run (forward mode).

    A `GradientTape` multiplies a vector by a Jacobian from the left, after the program ran; an
    accumulator multiplies it from the right, while the program runs. That suits functions of few
    inputs, and Hessian-vector products; no intermediate result is kept for it.

    Inside its ``with`` block an accumulator tracks every operation on tensors that have a tangent,
    and computes the tangents of the results. It tracks only the thread that entered it. A tangent
    is released with its tensor.

    Parameters
    ----------
    primals : Tensor, Variable or structure of them
        Primals with a tangent. All other tensors have tangent zero.
    tangents : array_like or structure of them
        In which direction to move it: structured as `primals`, each of its primal's shape, and cast
        to its dtype.
    use_batch : bool
        Whether every tangent has a leading axis, of as many directions as you like. All are
        followed in one pass, and every JVP has that axis too.

    Raises
    ------
    ValueError
        If a primal is listed twice (sum its tangents instead), the structures differ, or a tangent
        does not have the shape of its primal.
    TypeError
        If a primal is neither a tensor nor a variable, or a tangent's kind (complex, say) is not
        its primal's.

    Warns
    -----
    UserWarning
        For a primal that is no floating point or complex tensor, and so has no tangent (the first
        few times).

    See Also
    --------
    jvp : The same for a function.

    Notes
    -----
    Accumulators and tapes can be nested. The ops that one of them runs are seen by those entered
    before it, never by those entered after it; so take higher orders from the outer one. That also
    makes the Hessian-vector product below cheap: the tape keeps no tangents.

    Examples
    --------
    The slope of a loss along one direction of its parameters:

    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = cytape.constant([[2.0, 3.0], [1.0, 4.0]])
    >>> kernel, bias = cytape.Variable([[0.5], [1.0]]), cytape.Variable([0.25])
    >>> def loss():
    ...     return np.sum((x @ kernel + bias - cytape.constant([[1.0], [-1.0]])) ** 2)
    >>> with cytape.ForwardAccumulator(kernel, cytape.constant([[1.0], [0.0]])) as accumulator:
    ...     y = loss()
    >>> float(accumulator.jvp(y))
    24.5

    Forward mode yields one column of a Jacobian at a time, reverse mode one row; this one has a
    single row:

    >>> columns = []
    >>> for unit in [[1.0], [0.0]], [[0.0], [1.0]]:
    ...     with cytape.ForwardAccumulator(kernel, cytape.constant(unit)) as accumulator:
    ...         columns.append(accumulator.jvp(loss()))
    >>> with cytape.GradientTape() as tape:
    ...     y = loss()
    >>> bool(np.allclose(np.stack(columns), tape.gradient(y, kernel)[:, 0]))
    True

    Both columns in one pass:

    >>> units = np.eye(2)[:, :, None]
    >>> with cytape.ForwardAccumulator(kernel, units, use_batch=True) as accumulator:
    ...     jvp = accumulator.jvp(loss())
    >>> bool(np.allclose(jvp, np.stack(columns)))
    True

    The second derivative of ``x**3.5``, from the outer accumulator:

    >>> x = cytape.constant(1.1)
    >>> with cytape.ForwardAccumulator(x, 1.0) as outer:
    ...     with cytape.ForwardAccumulator(x, 1.0) as inner:
    ...         y = x**3.5
    >>> first = inner.jvp(y)
    >>> round(float(first), 5), round(float(outer.jvp(first)), 5)
    (4.44171, 10.09479)

    A Hessian-vector product, forward over reverse:

    >>> v = cytape.Variable([1.0, 2.0])
    >>> with cytape.ForwardAccumulator(v, cytape.constant([1.0, 0.0])) as accumulator:
    ...     with cytape.GradientTape() as tape:
    ...         y = np.sum(v**3)
    ...     gradient = tape.gradient(y, v)
    >>> gradient.numpy(), accumulator.jvp(gradient).numpy()
    (array([ 3., 12.]), array([6., 0.]))
    """

    def __init__(self, primals, tangents, bint use_batch=False):
        self._recorder = TangentRecorder(tensor_vspace, use_batch)
        self.batch_shape = (0,) if use_batch else ()
        self.a_batch = None
        self.n_followed = 0
        self.follow(primals, tangents)

    # As those of GradientTape.

    def __enter__(self):
        enter(self._recorder)
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        if self._recorder.entry is not None:
            leave(self._recorder)

    def watch(self, primals, tangents):
        """Track further tensors from here on.

        Parameters
        ----------
        primals : Tensor, Variable or structure of them
            Tangents of one that is followed already are added.
        tangents : array_like or structure of them
            As for the constructor.

        Raises
        ------
        ValueError, TypeError
            As for the constructor.

        Examples
        --------
        >>> import cytape
        >>> with cytape.ForwardAccumulator([], []) as accumulator:
        ...     x = cytape.constant(3.0)
        ...     accumulator.watch(x, 10.0)
        ...     y = x * x
        >>> accumulator.jvp(y)
        Tensor(60.)
        """
        self.follow(primals, tangents)

    cdef int follow(self, primal_structure, tangent_structure) except -1:
        cdef TangentRecorder recorder = self._recorder
        cdef Tensor primal
        cdef Py_ssize_t i
        cdef list primals = flatten(primal_structure), tangents = flatten(tangent_structure)
        for leaf in primals:
            if not isinstance(leaf, Tensor) and register_dataclasses([leaf]):
                return self.follow(primal_structure, tangent_structure)
        refuse_arrays(primal_structure, "a primal {} a TensorArray: pass the tensors that are "
                      "written to it as primals")
        require_same_structure(primal_structure, tangent_structure)
        tangents = [converted(i, primals[i], tangents[i], recorder.use_batch)
                    for i in range(len(primals))]
        require_distinct(primals)
        followed = [tangent for tangent in tangents if tangent is not None]
        if recorder.use_batch and followed:
            shapes = {tangent.shape[:1] for tangent in followed}
            self.batch_shape = common_batch_shape(
                shapes | {self.batch_shape} if self.n_followed else shapes)
            # Tangents must not outlive their primals; but one batch is needed if its number of
            # directions is unknown.
            self.a_batch = followed[0] if None in self.batch_shape else None
        self.n_followed += len(followed)
        for i in range(len(primals)):
            if tangents[i] is None:
                continue
            primal = primals[i]
            if is_symbolic(primal.held):
                require_in_sight(recorder, primal.held.owner)
            if isinstance(primal, Variable) and fetch(recorder, primal.id) is not None:
                value = primal.value()  # it may already have the variable's tangent
                if fetch(recorder, value.id) is not None:
                    recorder.watch(value.id, tangents[i])
            recorder.watch(primal.id, tangents[i])
        return 0

    def jvp(self, primals, unconnected_gradients=UnconnectedGradients.NONE):
        """Look up the Jacobian-vector products of tensors. Nothing is computed.

        It may be called any number of times, inside the ``with`` block and after it. The tensor
        must have been computed inside, and so must a gradient whose product is requested.

        Parameters
        ----------
        primals : Tensor, Variable, IndexedSlices or structure of them
        unconnected_gradients : {"none", "zero"} or UnconnectedGradients
            Result for a tensor that does not depend on the accumulator's primals.

        Returns
        -------
        Tensor, IndexedSlices or None, or structure of them
            Packed like `primals`, each of its primal's shape (after the axis of directions, with
            ``use_batch``) and dtype.

        Raises
        ------
        TypeError
            If there is anything else among the primals.

        Examples
        --------
        >>> import cytape
        >>> x, y = cytape.constant(2.0), cytape.constant(5.0)
        >>> with cytape.ForwardAccumulator([x, y], [1.0, 0.0]) as accumulator:
        ...     z = {"product": x * y, "square": x**2}
        >>> accumulator.jvp(z)
        {'product': Tensor(5.), 'square': Tensor(4.)}
        """
        if unconnected_gradients is not NONE:
            unconnected_gradients = parse_unconnected(unconnected_gradients)
        if isinstance(primals, Tensor):
            return self.tangent_of_any(primals, unconnected_gradients)
        return in_places(primals, [
            self.tangent_of_any(primal, unconnected_gradients) for primal in leaves_of(primals)])

    cdef object tangent_of_any(self, primal, unconnected):
        if isinstance(primal, IndexedSlices):
            values = self.tangent_of_any(primal.values, unconnected)
            if values is None:
                return None
            if self._recorder.use_batch:
                return dense_batch(primal, values)
            return IndexedSlices(values, primal.indices, primal.dense_shape)
        if not isinstance(primal, Tensor):
            raise TypeError(
                f"jvp takes tensors and variables that an accumulator followed, got "
                f"{type(primal).__name__}")
        tangent = fetch(self._recorder, primal.id)
        if tangent is None and is_symbolic((<Tensor>primal).held):
            require_in_sight(self._recorder, (<Tensor>primal).held.owner)
        if tangent is None and unconnected is not NONE:
            return self.zeros_like(primal)
        return tangent

    cdef object zeros_like(self, primal):
        if not self.batch_shape:
            return zeros(primal.spec.extents, primal.dtype)
        if not primal.spec.known or None in self.batch_shape:
            batch = self.a_batch
            if batch is None:
                batch = zeros(self.batch_shape, primal.dtype)
            return zeros_in_batch(batch, primal)
        return zeros(self.batch_shape + primal.shape, primal.dtype)


def how_detached(ForwardAccumulator accumulator not None) -> str | None:
    """Return how the value of a tracked tensor was taken, None if none was."""
    return accumulator._recorder.detached


cpdef int require_same_structure(primals, tangents) except -1:
    """Raise if tangents and primals differ in structure."""
    try:
        assert_same_structure(primals, tangents)
    except ValueError as error:
        raise ValueError(
            f"the tangents must have the structure of the primals: {error}. A list is a structure; "
            "if the primal is one array, pass one array as its tangent (numpy.array)") from error
    return 0


cdef Tensor converted(Py_ssize_t position, primal, tangent, bint use_batch):
    """Return a tangent as a tensor of the primal's dtype; None if the primal can have none."""
    cdef Tensor result
    if not isinstance(primal, Tensor):
        raise TypeError(
            f"primal {position} is a {type(primal).__name__}: only tensors and variables can be "
            "followed; convert it with cytape.constant and compute with the result")
    if not (<Tensor>primal).held.spec.trainable:
        warn_of(position, primal)
        return None
    if tangent is None:
        raise TypeError(
            f"the tangent of primal {position} is None: leave the primal out, or pass zeros")
    result = another_handle(convert_to_tensor(tangent).held)  # the user may change it in place
    if not use_batch and result.held.spec is (<Tensor>primal).held.spec:
        return result
    expected = (*result.shape[:1], *primal.shape) if use_batch else primal.shape
    if not may_fit(result.shape, expected) or (use_batch and not result.ndim):
        raise ValueError(
            f"the tangent of primal {position} has shape {result.shape}, the primal {primal.shape}"
            + (
                ": with use_batch it needs one more leading axis"
                if use_batch
                else ": with use_batch=True it is a batch of directions"
                if result.shape[1:] == primal.shape
                else ""))
    if result.dtype == primal.dtype:
        return result
    if not np.can_cast(result.dtype, primal.dtype, "same_kind"):
        raise TypeError(
            f"the tangent of primal {position} is {result.dtype}, the primal {primal.dtype}")
    return result.astype(primal.dtype)


cdef int warn_of(Py_ssize_t position, primal) except -1:
    global _warned
    if _warned < WARNINGS:
        _warned += 1
        warn(f"primal {position} is of dtype {primal.dtype} and is not followed: only floating "
             "point and complex tensors have tangents")
    return 0


cdef int require_distinct(list primals) except -1:
    if len(primals) > 1 and len({primal.id for primal in primals}) < len(primals):
        raise ValueError(
            "a tensor is listed multiple times among the primals; if that is meant, list it once, "
            "with the sum of its tangents")
    return 0


cdef tuple common_batch_shape(set shapes):
    """Return the leading axis that all tangents share, as a shape."""
    if len(shapes) > 1:
        raise ValueError(
            f"the tangents have different numbers of directions, {sorted([n for n, in shapes])}")
    return shapes.pop()


cdef object dense_batch(slices, Tensor tangents):
    """Return the tangents of sparse values as dense tensors, along the axis of directions."""
    if not len(tangents):
        return zeros((0, *slices.to_tensor().shape), tangents.dtype)
    return stack([IndexedSlices(tangent, slices.indices, slices.dense_shape).to_tensor()
                  for tangent in tangents])
