"""First runs of recomputed calls, which keep only the inputs needed to repeat the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.contents import Contents
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.gradient_tape import GradientTape
from cytape.autodiff.transform_arguments import name_of
from cytape.autodiff.wrapped_calls import is_plain_tensor, lent, value_of, with_tensors
from cytape.core.vspace import VSpace
from cytape.errors import TapeStateError
from cytape.ops.creation import identity_op
from cytape.tensor import nest
from cytape.tensor.recording.state import Reads, TangentRecorder, stop_recording
from cytape.tensor.structures import leaves_of_arguments, leaves_of_result
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable, holding, holds, note_departure

__all__ = ["FirstRun", "repeated_gradients", "repeated_tangents"]


class FirstRun:
    """An unrecorded call, with the captured inputs that it reads.

    Values taken from tensors are errors, or noted, as if outer recorders recorded the call.

    Parameters
    ----------
    f : callable
        Called with copies of arrays and with tensors of its own.
    args : tuple
    kwargs : dict

    Attributes
    ----------
    tensors : list of Tensor
        Captured tensors that a recorder tracks.
    variables : list of Variable
        That it read and a derivative may be asked for, in the order of their creation.

    Examples
    --------
    >>> import cytape
    >>> v = cytape.Variable(2.0)
    >>> run = FirstRun(lambda: v.assign_add(1.0) * v, (), {})
    >>> run.take_result(), run.again(lambda f: f())
    (Tensor(9.), Tensor(9.))
    >>> v
    Variable(3.)
    """

    def __init__(self, f: Callable, args: tuple, kwargs: dict) -> None:
        from cytape.ops.python import repeated_draws  # here: numpy.random is slow to import
        from cytape.ops.python.bound_names import Bindings

        self._f, self._draws, self._bindings = f, repeated_draws, Bindings(f)
        self._contents = Contents(f, self._bindings.found, tensors=False)
        # New ids distinguish an argument from the same tensor in a closure.
        arguments = list(filter(is_plain_tensor, leaves_of_arguments((args, kwargs))))
        with stop_recording():
            fresh = list(map(identity_op, arguments))
        args, kwargs = with_tensors(lent((args, kwargs)), fresh)
        streams = repeated_draws.Streams(f, (*args, *kwargs.values()))
        states = streams.states()
        reads = Reads()
        with stop_recording(), TangentRecorder(VSpace(), reads=reads) as recorder, (
                streams.finding()):
            for x, new in zip(arguments, fresh, strict=True):
                if reads.follows(x.id):
                    recorder.watch(new.id, True)
            result = f(*args, **kwargs)
            leaves = [value_of(leaf) for leaf in leaves_of_result(result)]
            self._result = nest.pack_sequence_as(result, leaves)
        self._written = {*self._contents.changed()}  # by the call itself
        self._states = repeated_draws.moved(states) + streams.of_graphs
        self._values = reads.found_variables
        with holding(self._values):  # outer first runs note the values before this call
            for variable, _ in self._values:
                variable.value()
        found = {x.id: x for x in reads.found}
        for leaf in leaves:
            if isinstance(leaf, Tensor) and reads.follows(leaf.id):
                found[leaf.id] = leaf
        self.tensors = list(found.values())
        self.variables = sorted(
            (v for v, _ in reads.found_variables if v.trainable or reads.follows(v.id)),
            key=lambda v: v.id)
        if recorder.detached:
            for x in (*arguments, *self.tensors, *self.variables):
                note_departure(x, recorder.detached)  # notifies the outer recorders

    def take_result(self) -> Any:
        """Return the function's result once; variables in it are read."""
        result, self._result = self._result, None
        return result

    def again(self, call: Callable[[Callable], Any]) -> Any:
        """Call with the function, in the state before the first call, for this thread.

        Variables, random streams, and the closure and globals of the function are restored.

        Raises
        ------
        TapeStateError
            If anything else that the function reads was written to since, but by the call.
        """
        written = {*self._contents.changed()} - self._written
        if written:
            raise TapeStateError(
                f"{name_of(self._f)} runs again for its derivative, but reads "
                f"{min(written)!r}, which was replaced or changed in place since the call. Read a "
                "copy made before the call (x = x.copy()), or pass it as an argument")
        with holding(self._values), self._draws.repeating(self._states):
            return call(self._bindings.function())

    def is_read_again(self, tensor: Tensor, args: tuple, kwargs: dict) -> bool:
        """Call the function again; return whether it captures a given tensor again."""

        def all_found(f: Callable) -> list:
            reads = Reads()
            with stop_recording(), TangentRecorder(VSpace(), reads=reads):
                return nest.flatten(f(*args, **kwargs)) + reads.found

        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(tensor)
            found = self.again(all_found)
        return any(x.id == tensor.id for x in found if isinstance(x, Tensor))

    def assigned_since(self) -> Variable | None:
        """Return a variable that has been assigned to since the call."""
        return next((v for v, value in self._values if not holds(v, value)), None)


def repeated_gradients(
    call: Callable[..., Sequence[Tensor]], arguments: list, elsewhere: list,
    gradients: Sequence[Tensor | None],
) -> list:
    """Run a call again; return the gradients of its results in its arguments and other tensors.

    Parameters
    ----------
    call : callable
        Takes new tensors for the arguments, since it may also capture these.
    arguments, elsewhere : list of Tensor
    gradients : sequence of Tensor or None
        Of the results.
    """
    fresh = list(map(identity_op, arguments))
    sources = fresh + elsewhere
    moving = [source for source in sources if source.spec.trainable]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(moving)
        results = call(*fresh)
    reached = [i for i, gradient in enumerate(gradients) if gradient is not None]
    found = iter(tape.gradient(
        [results[i] for i in reached], moving, [gradients[i] for i in reached]))
    return [next(found) if source.spec.trainable else None for source in sources]


def repeated_tangents(
    call: Callable[..., Sequence[Tensor]], arguments: list, elsewhere: list,
    tangents: Sequence[Tensor | None],
) -> list:
    """Run a call again; return the tangents of its results, as `repeated_gradients`."""
    fresh = list(map(identity_op, arguments))
    pairs = [(source, tangent)
             for source, tangent in zip(fresh + elsewhere, tangents, strict=True)
             if tangent is not None]
    with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as accumulator:
        results = call(*fresh)
    return accumulator.jvp(results)
