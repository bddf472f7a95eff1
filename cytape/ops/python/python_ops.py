"""Ops that call Python functions when their graph runs, with derivatives computed in Python.

`python_values_op` calls a function with arrays; it is stateful, so a run calls it exactly once, and
its results have no derivative. `given_results_op` returns results that were computed before, with
the derivative of its attribute ``call``, a `PythonCall`. `python_call_op` combines both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.errors import (
    DetachedError,
    InvalidGradientError,
    SymbolicTensorError,
)
from cytape.ops.adjoints.conform import broadcast_to, cast
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.engine.tensor_vspace import compute_gradients
from cytape.ops.shapes.shape_rules import may_fit
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import Recorder, building_into, current_graph
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import Spec, symbolic_spec
from cytape.tensor.variable import assignments_refused

__all__ = [
    "PythonCall",
    "attempted",
    "checked_results",
    "described",
    "given_results_op",
    "python_call_op",
    "python_values_op",
    "specs_by_example",
    "linear_transpose",
]

LEAVES_CYTAPE = (SymbolicTensorError, DetachedError)  # errors of a function that needs values
UNKNOWN_EXTENTS = 24, 36  # trial values for unknown extents
SMALL_EXTENT = 2  # another trial value: some extents equal others only if these are large
ANY_INPUTS = range(1 << 30)  # more than an op has


class PythonCall:
    """Function of a Python op, with its derivatives.

    Attributes
    ----------
    name : str
        For messages.
    """

    name: str

    def run(self, *arrays: np.ndarray) -> list:
        """Return the results, as arrays that cannot change."""
        raise NotImplementedError

    def refuse_others(self, moving: Sequence[bool]) -> None:
        """Raise if results must not depend on recorded tensors by another path, and do."""

    def result_specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the results, for those of the inputs."""
        raise NotImplementedError

    def for_members(self, extent: int | None) -> Any:
        """Call the function once for all members of a batch, or return NotImplemented."""
        return NotImplemented

    def for_seeds(self, call: Any) -> Any:
        """Compute a gradient for a batch of seeds in one call, or return NotImplemented."""
        return NotImplemented

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        """Return a gradient or None per input, given those of the results; `op` is an `OpCall`."""
        raise NotImplementedError

    def jvp(self, inputs: list[Tensor], tangents: list, op: Any) -> list:
        """Return a tangent or None per result; a tangent of an input is None where it is zero."""
        raise NotImplementedError


def _as_tensors(xs: Sequence[Any]) -> list:
    return [None if x is None else convert_to_tensor(x) for x in xs]


def _vjp(op: Any, *gradients: Any) -> list:
    n = len(op.input_specs) - op.attrs.get("n_results", 0)
    call = op.attrs["call"]
    found = call.vjp(_as_tensors(op.inputs[:n]), _as_tensors(gradients), op)
    for i, (gradient, spec) in enumerate(zip(found, op.input_specs, strict=False)):
        if gradient is not None and not may_fit(np.shape(gradient), spec.shape):
            raise InvalidGradientError(
                f"the gradient of {call.name} with respect to its input {i} has shape "
                f"{np.shape(gradient)}, but the input has shape {spec.shape}"
            )
    return [*found, *[None] * (len(op.input_specs) - n)]


def _jvp(op: Any, *tangents: Any) -> list:
    n = len(op.input_specs) - op.attrs.get("n_results", 0)
    return op.attrs["call"].jvp(_as_tensors(op.inputs[:n]), _as_tensors(tangents[:n]), op)


def _run(*arrays: Any, call: PythonCall) -> list:
    return call.run(*arrays)


def _result_specs(*specs: Spec, call: PythonCall) -> list[Spec]:
    return call.result_specs(specs)


_RULES: dict[str, Any] = {"vjp": _vjp, "jvp": _jvp, "optional_tangents": ANY_INPUTS}
python_call_op = general(
    "PythonCall", _run, shape_rule=_result_specs, stateful=True, **_RULES,
    batch=lambda call: call.attrs["call"].for_seeds(call),
    repeated=lambda inputs, outputs, attrs: given_results_op(
        *inputs, *outputs, **attrs, n_results=len(outputs)) if outputs else [])
python_values_op = nondifferentiable(
    "PythonValues", _run, shape_rule=_result_specs, stateful=True,
    batch=lambda call: call.attrs["call"].for_members(call.extent))
given_results_op = general(
    "GivenResults", lambda *arrays, call, n_results: list(arrays[len(arrays) - n_results:]),
    shape_rule=lambda *specs, call, n_results: list(specs[len(specs) - n_results:]),
    lowering="SHOWN", shows=-1, **_RULES)


# ---- results


def described(spec: Spec) -> tuple[tuple | None, np.dtype]:
    """Return a spec without a reference to a tensor of the graph."""
    return None if spec.shape is None else tuple(spec.shape), spec.dtype


def checked_results(name: str, results: Sequence[Any], specs: Sequence[Spec]) -> list[np.ndarray]:
    """Return results of a user's function as new arrays; raise if they differ from the specs.

    Parameters
    ----------
    name : str
        The function's.
    results : sequence of array_like
    specs : sequence of Spec

    Returns
    -------
    list of ndarray

    Raises
    ------
    ValueError
        If a result has another shape or dtype.
    TypeError
        If it is a masked array, a matrix or the like.
    """
    arrays = []
    for i, (result, spec) in enumerate(zip(results, specs, strict=True)):
        weak = type(result) in (int, float, complex)
        fits = weak and np.result_type(spec.dtype, result) == spec.dtype
        array = np.array(plain_array(result), spec.dtype if fits else None)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype != spec.dtype or not _is_such(array.shape, spec.shape):
            raise ValueError(
                f"result {i} of {name} has the shape {array.shape} and the dtype {array.dtype}; "
                f"its spec says {spec.shape} and {spec.dtype}"
            )
        arrays.append(array)
    return arrays


def _is_such(shape: tuple, pattern: tuple | None) -> bool:
    return pattern is None or (
        len(shape) == len(pattern)
        and all(b is None or a == b for a, b in zip(shape, pattern, strict=True))
    )


def specs_by_example(
    name: str, function: Callable[..., Any], specs: Sequence[Spec], arguments: tuple = ()
) -> tuple[Any, list[Spec]]:
    """Infer the specs of a function's results by calling it with sample values.

    Matrices are symmetric and positive definite, and all numbers between 0 and 1, so that few
    functions reject them. Random streams are restored afterwards.

    Parameters
    ----------
    name : str
    function : callable
        Of tensors.
    specs : sequence of Spec
        Of its arguments.
    arguments : tuple
        What it uses besides.

    Returns
    -------
    structure : object
        The results of the function.
    specs : list of Spec
        Of the leaves of `structure`; extents that depend on unknown ones are unknown.

    Raises
    ------
    SymbolicTensorError
        If the call failed, or the number of axes of an argument is not known.
    """
    from cytape.ops.python.repeated_draws import saved_draws  # numpy.random is slow to import

    advice = (
        f"{name} needs the values of tensors, which it has when the graph runs; so it becomes an "
        "op that calls it with arrays then. The specs of its result must be known now: call the "
        "part of it that needs values by cytape.numpy_function(f, *arguments, specs=...)"
    )
    if any(spec.shape is None for spec in specs):
        raise SymbolicTensorError(
            f"{advice}. It was not tried out because the number of axes of an argument is not known"
        )
    examples: list[list] = []
    result: Any = None
    restore_draws = saved_draws(function, arguments)
    extents_tried = (*UNKNOWN_EXTENTS, SMALL_EXTENT)
    for extent in extents_tried if any(not spec.known for spec in specs) else (0,):
        tensors = [tensor_of(_example(spec, extent)) for spec in specs]
        try:
            with building_into(None), np.errstate(all="ignore"), assignments_refused():
                returned = function(*tensors)
                leaves = nest.flatten(returned)
                if any(isinstance(leaf, Tensor) and leaf.graph is not None for leaf in leaves):
                    raise TypeError(
                        "it depends on a tensor of the graph that is not among its arguments"
                    )
                example = list(map(convert_to_tensor, leaves))
                if examples and not _alike(returned, result):
                    raise TypeError("its result has another structure for other extents")
        except Exception as error:
            if extent == SMALL_EXTENT:  # too small for this function
                break
            raise SymbolicTensorError(
                f"{advice}. To find out, it was called with made-up arrays of the arguments' "
                f"shapes, which failed: {type(error).__name__}: {error}"
            ) from error
        finally:
            restore_draws()
        if not examples:
            result = returned
        examples.append(example)
    found = []
    for several in zip(*examples, strict=True):
        shapes = [x.shape for x in several]
        if len({len(shape) for shape in shapes}) > 1:
            found.append(symbolic_spec(None, several[0].dtype))
            continue
        extents = [set(extents) for extents in zip(*shapes, strict=True)]
        shape = tuple(each.pop() if len(each) == 1 else None for each in extents)
        found.append(symbolic_spec(shape, several[0].dtype))
    return result, found


def _alike(structure: Any, other: Any) -> bool:
    try:
        nest.assert_same_structure(structure, other)
    except (TypeError, ValueError):
        return False
    return True


def _example(spec: Spec, unknown: int) -> np.ndarray:
    assert spec.shape is not None
    shape = [unknown if extent is None else extent for extent in spec.shape]
    if spec.dtype.kind not in "fc":
        return np.ones(shape, spec.dtype)
    if len(shape) < 2:
        return np.full(shape, 0.5, spec.dtype)
    matrix = (1 + np.eye(shape[-2], shape[-1])) / (2 + max(shape[-2:]))
    return np.broadcast_to(matrix, shape).astype(spec.dtype)


def attempted(graph: Any, function: Callable[[], Any], arguments: tuple = ()) -> Any:
    """Call a function that adds ops to a graph; return NotImplemented if it needs values.

    Parameters
    ----------
    graph : SymbolicGraph
    function : callable
    arguments : tuple
        What it uses besides.

    Returns
    -------
    object
    """
    from cytape.ops.python.repeated_draws import saved_draws  # numpy.random is slow to import

    n_stateful = len(graph.stateful)
    restore_draws = saved_draws(function, arguments)
    succeeded = False
    graph.begin_attempt()
    try:
        result = function()
        succeeded = True
    except LEAVES_CYTAPE:
        del graph.stateful[n_stateful:]  # the built nodes are unused, and must not run
        restore_draws()
        return NotImplemented
    finally:
        graph.end_attempt(succeeded)
    return result


# ---- derivatives


def linear_transpose(
    function: Callable[[list], Sequence[Any]],
    specs: Sequence[Spec],
    seeds: Sequence[Any],
    refusal: str | None = None,
) -> list:
    """Transpose a linear function of tensors.

    Parameters
    ----------
    function : callable
        Called with a list of tensors, None where a spec can have no derivative; returns tensors or
        None.
    specs : sequence of Spec
        Of what it is called with.
    seeds : sequence of Tensor or None
        The gradients of its results.
    refusal : str, optional
        The error if a result was not computed by functions that cytape knows. Without it that is
        constant.

    Returns
    -------
    list of Tensor or None
        One per spec.

    Raises
    ------
    DetachedError
        In that case.
    """
    probes = [_ones(spec) if spec.trainable else None for spec in specs]
    moving = [probe for probe in probes if probe is not None]
    recorder = Recorder(False, False)
    for probe in moving:
        recorder.watch(probe.id)
    with recorder:
        results = function(probes)
    pairs = [
        (result, seed)
        for result, seed in zip(results, seeds, strict=True)
        if result is not None and seed is not None and result.spec.trainable
    ]
    for result, _ in pairs if refusal is not None else ():
        if not recorder.is_known(result.id) and (
                result.graph is not None or np.any(data_of(result))):
            raise DetachedError(refusal)
    targets = [result for result, _ in pairs]
    cast_seeds = [cast(seed, result.dtype) for result, seed in pairs]
    gradients = iter(compute_gradients(recorder, targets, moving, cast_seeds))
    return [None if probe is None else next(gradients) for probe in probes]


def _ones(spec: Spec) -> Tensor:
    if current_graph() is None:
        return tensor_of(np.ones(spec.shape, spec.dtype))
    return broadcast_to(tensor_of(np.ones((), spec.dtype)), spec.extents)
