"""Derivatives in graphs that eager programs work out when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.backward import densify
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.gradient_tape import GradientTape
from cytape.ops.python_call import PythonCall, checked_results, described, python_call_op
from cytape.tensor import nest
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.state import building_into
from cytape.tensor.tensor import Tensor, convert_to_tensor, data_of, tensor_of

__all__ = ["EagerCall"]


class EagerCall(PythonCall):
    """A function of tensors that have values, called when a graph runs.

    Its derivatives, of any order, are calls of that kind too: they call the function again, under a
    tape or an accumulator.

    Parameters
    ----------
    name : str
        For messages.
    function : callable
        Of tensors; returns a tensor, an array or a structure of these.
    specs : sequence of Spec or int
        Of the leaves of that; an int: as that argument.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], specs: Sequence[Spec | int]
    ) -> None:
        self.name = name
        self._function = function
        # Not the specs, which may know the tensors of a graph.
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
        return list(map(convert_to_tensor, nest.flatten(self._function(*tensors))))

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        """Add a call that computes gradients."""
        return self.gradients(inputs, gradients, op.needs)

    def gradients(self, inputs: list[Tensor], gradients: list, needs: Sequence[bool]) -> list:
        """Return a gradient per input that needs one, given those of the results."""
        n = len(inputs)
        wanted = [i for i in range(n) if needs[i] and inputs[i].spec.trainable]
        arrived = [i for i, gradient in enumerate(gradients) if gradient is not None]

        def gradients_of(*tensors: Tensor) -> Any:
            sources = [tensors[i] for i in wanted]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                outputs = self._outputs(*tensors[:n])
            return [densify(gradient) for gradient in tape.gradient(
                [outputs[i] for i in arrived], sources, list(tensors[n:]),
                unconnected_gradients="zero")]

        call = EagerCall(f"the gradient of {self.name}", gradients_of, wanted)
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
            return accumulator.jvp([outputs[i] for i in wanted], unconnected_gradients="zero")

        call = EagerCall(
            f"the tangent of {self.name}", tangents_of, [op.output_specs[i] for i in wanted])
        found: list = [None] * len(op.output_specs)
        results = python_call_op(*inputs, *[tangents[i] for i in moving], call=call)
        for i, tangent in zip(wanted, results, strict=True):
            found[i] = tangent
        return found
