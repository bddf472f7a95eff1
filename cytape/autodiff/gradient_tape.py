"""GradientTape: what a user records, and the gradients and Jacobians of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from cytape.autodiff.backward import convert_output_gradients, zeros
from cytape.autodiff.jacobian_rows import stack_rows, unit_seeds
from cytape.errors import SymbolicTensorError, TapeStateError
from cytape.ops.engine.gradients import compute_gradients
from cytape.ops.shapes import shape_rules
from cytape.tensor import nest, state
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.state import Recorder, enter_recording, leave_recording
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import (
    UnconnectedGradients,
    parse_unconnected,
    warn_of_dtype,
)
from cytape.tensor.variable import Variable

__all__ = ["GradientTape", "UnconnectedGradients"]


class GradientTape:
    """Record operations, to differentiate them backwards.

    Inside its ``with`` block a tape follows every operation on the tensors that it watches and on
    trainable variables. It follows only the thread that entered it. Tapes may be nested: a gradient
    that is taken inside an outer tape's block is recorded there, and can be differentiated again.

    The gradient of a complex target follows TensorFlow's convention: for a holomorphic function it
    is the conjugate of the derivative (so that moving against it descends).

    Parameters
    ----------
    persistent : bool
        Whether `gradient`, `jacobian` and `batch_jacobian` may be called more than once. The tape
        then keeps what it recorded until it is dropped.
    watch_accessed_variables : bool
        Whether trainable variables are watched when they are read. Otherwise only what is passed to
        `watch` counts.

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

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = bool(persistent)
        self._watch_accessed_variables = bool(watch_accessed_variables)
        self._entered = False
        self._recorder: Recorder | None = self._new_recorder()  # None: consumed by its gradient
        self._consumed_variables: list[Variable] = []
        self._warned_of: set[int] = set()  # ids of variables that can have no gradient

    def _new_recorder(self) -> Recorder:
        return Recorder(self._persistent, self._watch_accessed_variables)

    __enter__ = enter_recording
    __exit__ = leave_recording

    def watch(self, tensor: Any) -> None:
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
        leaves = nest.flatten(tensor)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(
                    f"only tensors and variables can be watched, got {type(leaf).__name__}: "
                    "convert it with cytape.constant and compute with the result"
                )
        recorder = self._usable_recorder()
        for leaf in leaves:
            if not leaf.spec.trainable:
                self._warn_of(leaf, f"watching a tensor of dtype {leaf.dtype} has no effect")
            elif isinstance(leaf, Variable):
                recorder.watch_variable(leaf)
            else:
                recorder.watch(leaf.id)

    def watched_variables(self) -> tuple[Variable, ...]:
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
        recorder = self._recorder
        variables = self._consumed_variables if recorder is None else recorder.variables
        return tuple(sorted(variables, key=_id))

    def stop_recording(self) -> AbstractContextManager[None]:
        """Suspend this tape, and no other, for the length of a ``with`` block.

        Returns
        -------
        context manager

        Raises
        ------
        TapeStateError
            If the tape was never entered or, not being persistent, has served.
        ValueError
            If its ``with`` block has been left.

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
        recorder = self._usable_recorder(entered=True)
        self._require_active(recorder)
        return state.suspended(recorder)

    def reset(self) -> None:
        """Forget everything recorded and watched so far, and go on recording.

        Raises
        ------
        TapeStateError, ValueError
            As for `stop_recording`.

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
        recorder = self._usable_recorder(entered=True)
        self._require_active(recorder)
        recorder.pop()
        self._recorder = self._new_recorder()
        self._recorder.push()

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
    ) -> Any:
        """Differentiate the sum of the targets with respect to each source.

        Parameters
        ----------
        target : Tensor or structure of Tensors
            What to differentiate.
        sources : Tensor, Variable or structure of them
            What to differentiate with respect to.
        output_gradients : Tensor, array_like or structure of them, optional
            A weight for every element of every target, instead of ones. A None among several means
            ones.
        unconnected_gradients : {"none", "zero"} or UnconnectedGradients
            What to return for a source that the target does not depend on.

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
        TypeError
            If a target or source is no tensor.
        ValueError
            If `unconnected_gradients` is another word.

        Examples
        --------
        >>> import cytape
        >>> w = cytape.Variable([1.0, 2.0])
        >>> with cytape.GradientTape() as tape:
        ...     loss = (w * w).sum()
        >>> tape.gradient(loss, {"w": w})["w"].numpy()
        array([2., 4.])
        """
        self._usable_recorder(entered=True)
        unconnected = parse_unconnected(unconnected_gradients)
        targets = _flat_targets(target)
        flat_sources = self._flat_sources(sources)
        seeds = convert_output_gradients(targets, output_gradients)
        gradients = compute_gradients(self._take_recorder(), targets, flat_sources, seeds)
        if unconnected is UnconnectedGradients.ZERO:
            gradients = [
                zeros(source.spec.extents, source.dtype) if gradient is None else gradient
                for gradient, source in zip(gradients, flat_sources, strict=True)
            ]
        return nest.pack_sequence_as(sources, gradients)

    def jacobian(
        self,
        target: Tensor,
        sources: Any,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Differentiate every element of a target with respect to each source.

        Parameters
        ----------
        target : Tensor
            What to differentiate.
        sources : Tensor, Variable or structure of them
            What to differentiate with respect to.
        unconnected_gradients : {"none", "zero"} or UnconnectedGradients
            What to return for a source that the target does not depend on.
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
        >>> tape.jacobian(y, x).numpy()
        array([[2., 0.],
               [0., 4.]])
        """
        unconnected = self._check_jacobian_call(unconnected_gradients, experimental_use_pfor)
        _require_tensor("target", target)
        flat_sources = self._flat_sources(sources)
        if target.size is None:
            raise SymbolicTensorError(
                "jacobian takes one backward pass for each element of the target, and of a target "
                f"of shape {target.shape} their number is known only when the graph runs. "
                "cytape.jacfwd, in forward mode, does not need to know it; or take the Jacobian "
                "outside of the traced function, or give the arguments shapes that are known"
            )
        units = unit_seeds(target, range(target.size), target.size)
        jacobians = [
            stack_rows(rows, source, target.shape, axis=0, unconnected=unconnected)
            for source, rows in zip(
                flat_sources, self._rows(target, flat_sources, units), strict=True
            )
        ]
        return nest.pack_sequence_as(sources, jacobians)

    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor | Variable,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | None:
        """Differentiate ``target[i]`` with respect to ``source[i]``, for every i.

        Each ``target[i]`` must depend on ``source[i]`` only.

        Parameters
        ----------
        target : Tensor
            What to differentiate, of shape ``(batch, ...)``.
        source : Tensor or Variable
            What to differentiate with respect to, of shape ``(batch, ...)``.
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
        >>> tape.batch_jacobian(y, x).numpy()
        array([[[2., 0.],
                [0., 4.]],
        <BLANKLINE>
               [[6., 0.],
                [0., 8.]]])
        """
        unconnected = self._check_jacobian_call(unconnected_gradients, experimental_use_pfor)
        _require_tensor("target", target)
        _require_tensor("source", source)
        self._flat_sources(source)
        shapes = [shape_rules.shape_of(x.spec, "batch_jacobian") for x in (target, source)]
        if min(map(len, shapes)) < 2 or shape_rules.differ(shapes[0][0], shapes[1][0]):
            raise ValueError(
                "target and source need at least two dimensions and the same first one, "
                f"got shapes {target.shape} and {source.shape}"
            )
        row_size = shape_rules.product(target.shape[1:])
        if row_size is None:
            raise SymbolicTensorError(
                "batch_jacobian takes one backward pass for each element of target[0], and of a "
                f"target of shape {target.shape} their number is known only when the graph runs: "
                "give the arguments shapes that are known but for the first extent, or take the "
                "Jacobian outside of the traced function"
            )
        units = unit_seeds(target, [slice(i, None, row_size) for i in range(row_size)], row_size)
        (rows,) = self._rows(target, [source], units)
        return stack_rows(rows, source, target.shape, axis=1, unconnected=unconnected)

    def _usable_recorder(self, entered: bool = False) -> Recorder:
        if self._recorder is None:
            raise TapeStateError(
                "a non-persistent tape serves only one set of gradients or Jacobians, and this one "
                "has served: create it with persistent=True, or enter it again to record anew"
            )
        if entered and not self._entered:
            raise TapeStateError(
                "this tape was never entered, so it recorded nothing (a non-persistent tape serves "
                "one set of gradients, once it was used as `with GradientTape() as tape:`)"
            )
        return self._recorder

    def _require_active(self, recorder: Recorder) -> None:
        if not recorder.active:
            raise ValueError("this tape is not recording: its `with` block has been left")

    def _take_recorder(self) -> Recorder:
        """Hand out the recorder for one set of gradients: for good, unless persistent."""
        recorder = self._recorder
        assert recorder is not None  # callers ask `_usable_recorder` first
        if not self._persistent:
            if recorder.active:
                recorder.pop()
            self._consumed_variables = recorder.variables
            self._recorder = None
        return recorder

    def _flat_sources(self, sources: Any) -> list[Tensor]:
        leaves = [_checked_leaf("source", leaf) for leaf in nest.flatten(sources)]
        for leaf in leaves:
            # A tensor draws a warning when it is watched, but variables are watched unasked.
            if isinstance(leaf, Variable) and not leaf.spec.trainable:
                self._warn_of(leaf, f"the gradient of {leaf.name!r} is None")
        return leaves

    def _warn_of(self, leaf: Tensor, what: str) -> None:
        if leaf.id not in self._warned_of:
            self._warned_of.add(leaf.id)
            warn_of_dtype(leaf, what)

    def _check_jacobian_call(
        self, unconnected_gradients: str | UnconnectedGradients, experimental_use_pfor: bool
    ) -> UnconnectedGradients:
        self._usable_recorder(entered=True)
        if not (experimental_use_pfor or self._persistent):
            raise TapeStateError(
                "with experimental_use_pfor=False the tape must be persistent: create it with "
                "persistent=True"
            )
        return parse_unconnected(unconnected_gradients)

    def _rows(self, target: Tensor, sources: list, seeds: Iterable[Tensor]) -> list[tuple]:
        """Collect, for each source, the gradients of the target weighted by each seed."""
        recorder = self._take_recorder()
        rows = [compute_gradients(recorder, [target], sources, [seed], keep=True) for seed in seeds]
        return list(zip(*rows, strict=True))


def noting_detached(tape: GradientTape) -> dict[int, Tensor]:
    """Have a tape note those of its tensors whose values are taken; return where it does."""
    noted: dict[int, Tensor] = {}
    recorder: Any = tape._recorder
    recorder.detached = noted
    return noted


def _id(item: Tensor) -> int:
    return item.id


def _flat_targets(target: Any) -> list[Tensor]:
    leaves = []
    for leaf in nest.flatten(target):
        while isinstance(leaf, IndexedSlices):  # the sum over the dense tensor is that over values
            leaf = leaf.values
        leaves.append(_checked_leaf("target", leaf))
    return leaves


def _checked_leaf(role: str, leaf: Any) -> Tensor:
    if not isinstance(leaf, Tensor):
        raise TypeError(
            f"a {role} must be a tensor or a variable, got {type(leaf).__name__}: "
            "gradients belong to the tensors that were computed with"
        )
    return leaf


def _require_tensor(role: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"the {role} must be one tensor, got {type(value).__name__}")
