"""Ops of graphs whose derivatives run as eager programs when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cytape.autodiff.forward_accumulator import ForwardAccumulator, how_detached
from cytape.autodiff.gradient_tape import GradientTape, noting_detached
from cytape.autodiff.seeds import densify, zeros
from cytape.errors import DetachedError
from cytape.ops.joining import stack
from cytape.ops.python.python_ops import PythonCall, checked_results, described, python_call_op
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import Recorder, building_into, how_left
from cytape.tensor.tensor import Tensor, another, data_of, tensor_of
from cytape.tensor.values.spec import Spec, symbolic_spec

__all__ = ["EagerCall"]


class EagerCall(PythonCall):
    """A function of eager tensors, called when a graph runs.

    Its derivatives, of any order, are such calls, too: they call the function again, under a tape
    or an accumulator.

    Parameters
    ----------
    name : str
        For messages.
    function : callable
        Of tensors; returns a tensor, an array or a structure of these.
    specs : sequence of Spec or int
        Of the leaves of that; an int: as that argument.
    n_primals : int, optional
        The results are linear in the arguments after the first so many.
    of_rows : callable, optional
        The function of a batch of some of these, called with a list that says which, then with all
        arguments.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], specs: Sequence[Spec | int],
        n_primals: int | None = None, of_rows: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self._of_rows = name, of_rows
        self._n_primals = n_primals
        self._function = function
        # Not the specs, which may refer to tensors of a graph.
        self._specs = [x if isinstance(x, int) else described(x) for x in specs]

    def result_specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the results."""
        return [specs[x] if isinstance(x, int) else symbolic_spec(*x) for x in self._specs]

    def run(self, *arrays: np.ndarray) -> list:
        """Call the function."""
        with building_into(None):
            tensors = list(map(tensor_of, arrays))
            results = [data_of(result) for result in self._outputs(*tensors)]
            specs = self.result_specs([tensor.spec for tensor in tensors])
            return checked_results(self.name, results, specs)

    def _outputs(self, *tensors: Tensor) -> list[Tensor]:
        results = self._function(*map(another, tensors))  # the function may write to its arguments
        return list(map(convert_to_tensor, nest.flatten(results)))

    def for_seeds(self, call: Any) -> Any:
        """Compute a gradient for a batch of seeds in one call, or return NotImplemented."""
        seeds = call.mapped[self._n_primals:]
        if self._of_rows is None or not call.extent or sum(seeds) != sum(call.mapped):
            return NotImplemented
        specs = [symbolic_spec((call.extent, *spec.shape), spec.dtype)
                 for spec in call.output_specs]
        return call.again(
            call.inputs, call=EagerCall(self.name, partial(self._of_rows, seeds), specs))

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        """Add a call that computes gradients."""
        return self.gradients(inputs, gradients, op.needs)

    def gradients(self, inputs: list[Tensor], gradients: list, needs: Sequence[bool]) -> list:
        """Return a gradient per input that needs one, given those of the results."""
        n = len(inputs)
        wanted = [i for i in range(n) if needs[i] and inputs[i].spec.trainable]
        arrived = [i for i, gradient in enumerate(gradients) if gradient is not None]

        def gradients_of(mapped: list[bool], *tensors: Tensor) -> Any:
            sources = [tensors[i] for i in wanted]
            with GradientTape(any(mapped), watch_accessed_variables=False) as tape:
                tape.watch(sources)
                detached = noting_detached(tape)
                outputs = self._outputs(*tensors[:n])

            def of_seeds(seeds: list) -> list:
                found = tape.gradient([outputs[i] for i in arrived], sources, seeds)
                if detached:
                    self._require_connected(
                        call.name, how_left(detached), tensors[:n],
                        [i for i, gradient in zip(wanted, found, strict=True) if gradient is None],
                        [i for i, seed in zip(arrived, seeds, strict=True) if _is_nonzero(seed)])
                return [
                    zeros(source.shape, source.dtype) if gradient is None else densify(gradient)
                    for gradient, source in zip(found, sources, strict=True)
                ]

            seeds = list(tensors[n:])
            if not any(mapped):
                return of_seeds(seeds)
            return list(map(stack, zip(*[
                of_seeds([seed[i] if is_batch else seed
                          for seed, is_batch in zip(seeds, mapped, strict=True)])
                for i in range(seeds[mapped.index(True)].shape[0])], strict=True)))

        call = EagerCall(
            f"the gradient of {self.name}", partial(gradients_of, []), wanted, n, gradients_of)
        found: list = [None] * n
        results = python_call_op(*inputs, *[gradients[i] for i in arrived], call=call)
        for i, gradient in zip(wanted, results, strict=True):
            found[i] = gradient
        return found

    def jvp(self, inputs: list[Tensor], tangents: list, op: Any) -> list:
        """Add a call that computes tangents."""
        n = len(inputs)
        moving = [i for i, tangent in enumerate(tangents) if tangent is not None]
        wanted = [i for i, spec in enumerate(op.output_specs) if spec.trainable]

        def tangents_of(*tensors: Tensor) -> Any:
            with ForwardAccumulator([tensors[i] for i in moving], list(tensors[n:])) as accumulator:
                outputs = self._outputs(*tensors[:n])
            how = how_detached(accumulator)
            if how is not None:
                self._require_connected(
                    call.name, how, tensors[:n],
                    [i for i, dx in zip(moving, tensors[n:], strict=True) if _is_nonzero(dx)],
                    wanted)
            return accumulator.jvp([outputs[i] for i in wanted], unconnected_gradients="zero")

        call = EagerCall(
            f"the tangent of {self.name}", tangents_of, [op.output_specs[i] for i in wanted], n)
        found: list = [None] * len(op.output_specs)
        results = python_call_op(*inputs, *[tangents[i] for i in moving], call=call)
        for i, tangent in zip(wanted, results, strict=True):
            found[i] = tangent
        return found

    def _require_connected(
        self, name: str, how: str, tensors: Sequence[Tensor], sources: list[int],
        targets: list[int],
    ) -> None:
        """Raise if a value was taken from its tensor between a source and the results that matter.

        A path whose derivative is zero by a rule counts, too.
        """
        n = self._n_primals
        for i in sources if targets else ():
            if n is not None and i < n and not any(map(_is_nonzero, tensors[n:])):
                continue  # the results are zero for any such input
            recorder = Recorder(False, False)
            recorder.watch(tensors[i].id)
            recorder.push()
            try:
                results = self._outputs(*tensors)
            finally:
                recorder.pop()
            if not any(recorder.is_known(results[k].id) for k in targets):
                raise DetachedError(
                    f"{name} was lost: a value left its tensor by {how} where it is computed. "
                    "Compute with the tensors themselves, by cytape.numpy; where the derivative is "
                    "to stop, take the value of cytape.stop_gradient(tensor)")


def _is_nonzero(tensor: Tensor) -> bool:
    return bool(np.any(data_of(tensor)))

