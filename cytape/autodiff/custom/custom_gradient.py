"""Functions with a custom gradient, and functions without one."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from cytape.autodiff.custom.bound_rule import bound
from cytape.autodiff.custom.eager_derivatives import EagerCall
from cytape.autodiff.detached_rules import Trail, call_rule, content_of, require_an_end
from cytape.autodiff.wrapped_calls import (
    Arguments,
    Call,
    is_tensor,
    lending,
    lent,
    name_of,
    own_leaf,
    owned,
    record,
    require_positional,
    value_of,
)
from cytape.errors import DetachedError, InvalidGradientError
from cytape.ops.adjoints.missing_derivatives import without_derivative
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.creation import stop_gradient_op
from cytape.ops.python.python_ops import (
    attempted,
    given_results_op,
    python_values_op,
    specs_by_example,
)
from cytape.tensor import nest
from cytape.tensor.recording.state import anybody_records, building_into, current_graph
from cytape.tensor.structures import leaves_of_arguments
from cytape.tensor.tensor import Tensor

__all__ = ["custom_gradient", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """Return the value of `x`, as a constant to every tape.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Tensor or ndarray
        A tensor for a tensor or variable; any other `x` is returned unchanged.

    Examples
    --------
    >>> import cytape
    >>> float(cytape.grad(lambda x: x * cytape.stop_gradient(x))(3.0))
    3.0
    """
    return stop_gradient_op(x)


def custom_gradient(f: Callable) -> Callable[..., Any]:
    """Define the gradient of a function.

    Parameters
    ----------
    f : callable
        Returns a pair: its outputs (a tensor or a structure of tensors), and a function `grad_fn`,
        which is called with one gradient per output, zeros for unused outputs,
        and returns one gradient per positional argument of `f` (per leaf, where arguments are
        structures); None for no gradient. If `f` reads trainable variables that are not among its
        arguments, `grad_fn` must accept them as a keyword argument ``variables``, a list in the
        order of creation, and return a pair: the arguments' gradients and the variables'.
        For a variable among its arguments `f` gets the value, a tensor.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns its outputs. Plain arrays in, plain arrays out.

    Raises
    ------
    TypeError
        In a call, if `f` does not return such a pair, a tensor is passed by keyword, or `grad_fn`
        does not accept the variables that `f` read.
    InvalidGradientError
        In the backward pass, if `grad_fn` returns a wrong number of gradients.
    TapeStateError
        In the backward pass, if an object that `grad_fn` reads was written to, see below.
    DetachedError
        If an unknown derivative is needed: with respect to a captured tensor; of second order, if
        `grad_fn` computes with arrays or numbers taken from tensors; in forward mode, if the
        results of `grad_fn` do not depend on its arguments.

    See Also
    --------
    cytape.testing.check_grads : to check a rule against central differences, in both modes.

    Notes
    -----
    The gradient of a complex output follows TensorFlow's convention, see `GradientTape`. The ops
    that `grad_fn` runs on tensors, also on captured ones, can be differentiated. Forward mode
    transposes it.

    `grad_fn` reads its closure and globals in their state at the call, including the values of
    tensors. Arrays, variables, containers and attributes must not be written to before `grad_fn` is
    called: that raises `TapeStateError`. Let `grad_fn` read a copy that `f` made, or pass the array
    as an argument. Objects that `grad_fn` itself writes to may change. Not detected: writes to a
    few elements of an array of more than 64 KiB, to objects beyond the first 1000, and to objects
    of functions and modules of other packages.

    While a tape or an accumulator is entered, `f` gets copies of array arguments. Writes to these
    are copied back when `f` returns.

    In a graph or a trace, `f` and `grad_fn` become part of it if they use only functions of cytape.
    If they need the values of tensors, they become ops that call them in each run. Then `f` is
    called once with sample arrays, to infer the shapes and dtypes of its results; `numpy_function`
    takes these as an argument instead.

    Examples
    --------
    A stable ``log(1 + exp(x))``:

    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     def grad_fn(dy):
    ...         return dy * (1 - 1 / (1 + e))
    ...     return np.log(1 + e), grad_fn
    >>> round(float(cytape.grad(log1pexp)(0.5)), 6)
    0.622459
    """
    return _CustomGradient(f)


class _CustomGradient:
    """A function with its own gradient; a descriptor, so that it can be a method."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, f: Callable) -> None:
        functools.update_wrapper(self, f)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        if instance is None:
            return self
        return _CustomGradient(types.MethodType(self.__wrapped__, instance))

    def __repr__(self) -> str:
        return f"<custom_gradient of {name_of(self.__wrapped__)}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by reference, like the wrapped function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        f = self.__wrapped__
        name = name_of(f)
        require_positional(f, kwargs)
        given = leaves_of_arguments(args)
        graph = graph_for(given)
        # Rules get the present arguments, even if these are written to before the backward pass.
        with building_into(graph):
            args = nest.map_structure(value_of, args)
        leaves = nest.flatten(args)
        if graph is None:
            # The variables that f reads otherwise are not known yet.
            with lending((args, kwargs)) if anybody_records() else nullcontext(
                    owned((args, kwargs))) as (args, kwargs):
                call = Call(f, args, kwargs)
        else:
            args, kwargs = nest.map_structure(functools.partial(own_leaf, graph), (args, kwargs))
            leaves = nest.flatten(args)
            call = attempted(graph, lambda: Call(f, *lent((args, kwargs))))
            if call is NotImplemented:
                with building_into(graph):
                    return self._called_when_run(graph, args, leaves, kwargs)
        result, grad_fn = _checked_pair(name, call.returned)
        variables = [v for v in call.variables if not any(v is x for x in given)]
        if variables and not _accepts_variables(grad_fn):
            raise TypeError(
                f"{name} reads {len(variables)} variables that are not among its arguments, so its "
                "grad_fn must accept a keyword argument `variables`"
            )
        differentiable = [is_tensor(leaf) for leaf in leaves]
        rule = bound(f"the grad_fn of {name}", grad_fn) if (
            graph is not None or anybody_records()) else grad_fn
        of_arrays = call.known is not None and call.known.is_new_in(grad_fn)

        def gradients(output_gradients: Sequence[Tensor]) -> list:
            if variables:
                returned = rule(*output_gradients, variables=variables)
                if not (isinstance(returned, (tuple, list)) and len(returned) == 2):
                    raise InvalidGradientError(
                        f"the grad_fn of {name} must return a pair, the gradients of the arguments "
                        "and those of the variables"
                    )
                input_gradients, variable_gradients = map(nest.flatten, returned)
                _check_count(name, "variables", len(variables), len(variable_gradients))
            else:
                input_gradients = nest.flatten(rule(*output_gradients))
                variable_gradients = []
            _check_count(name, "arguments" + _with_arrays(args), len(differentiable),
                         len(input_gradients))
            of_tensors = [
                gradient
                for gradient, wanted in zip(input_gradients, differentiable, strict=True)
                if wanted
            ]
            return of_tensors + variable_gradients

        inputs = list(filter(is_tensor, leaves)) + variables
        primals = Trail(list(map(value_of, inputs))).tensors if graph is None else lambda: inputs

        def described() -> tuple:
            shown = nest.map_structure(
                lambda leaf: content_of(leaf) if is_tensor(leaf) else leaf, args)
            return f, repr((shown, kwargs))

        def backward(*output_gradients: Tensor) -> list:
            require_an_end(f"the grad_fn of {name}", described)
            seeds = owned(output_gradients)
            return call_rule(
                f"the grad_fn of {name}", lambda: gradients(seeds), seeds, primals, of_arrays)

        captured = [call.captured_by(leaf) for leaf in nest.flatten(result)]

        def recorded(backward: Callable) -> Any:
            outputs = record(name, result, inputs, backward)
            if not any(captured):
                return outputs
            return nest.pack_sequence_as(result, [
                _cut_off(name, leaf, tensors)
                for leaf, tensors in zip(nest.flatten(outputs), captured, strict=True)])

        if graph is None or variables:
            return recorded(backward)
        eager = self._eager(Arguments(args, leaves), kwargs, ())

        def symbolic_backward(*output_gradients: Tensor) -> list:
            found = attempted(current_graph(), lambda: backward(*output_gradients))
            if found is NotImplemented:
                wanted = [x.spec.trainable for x in inputs]
                return eager.gradients(inputs, list(output_gradients), wanted)
            return found

        return recorded(symbolic_backward)

    def _eager(self, arguments: Arguments, kwargs: dict, specs: Any) -> EagerCall:
        """Return a call of this function that is made when a graph runs."""
        arguments = arguments.without_tensors()
        return EagerCall(
            name_of(self.__wrapped__),
            lambda *tensors: self(*arguments.packed(tensors), **kwargs), specs)

    def _called_when_run(self, graph: Any, args: tuple, leaves: list, kwargs: dict) -> Any:
        """Add an op that calls this function to the graph that is being built."""
        name = name_of(self.__wrapped__)
        arguments = Arguments(args, [own_leaf(graph, leaf) for leaf in leaves])
        inputs, apart = arguments.tensors, arguments.without_tensors()

        def computed(*tensors: Tensor) -> Any:
            call = Call(self.__wrapped__, apart.packed(tensors), kwargs)
            if call.variables:
                raise TypeError(f"it reads {call.variables[0]!r}: pass variables as arguments")
            result = _checked_pair(name, call.returned)[0]
            if any(map(call.captured_by, nest.flatten(result))):
                raise DetachedError(_depends_on_another(name))
            return result

        result, specs = specs_by_example(name, computed, [x.spec for x in inputs], args)
        results = python_values_op(
            *inputs, call=EagerCall(name, computed, specs))
        if results:
            results = given_results_op(
                *inputs, *results, call=self._eager(arguments, kwargs, specs),
                n_results=len(results))
        return nest.pack_sequence_as(result, results)


def _cut_off(name: str, leaf: Any, captured: list[Tensor]) -> Any:
    """Make a result raise for derivatives in tensors that are not arguments."""
    return without_derivative(leaf, captured, _depends_on_another(name)) if captured else leaf


def _depends_on_another(name: str) -> str:
    return (
        f"{name} has a custom gradient, but depends on a tensor that is not among its arguments, "
        "so the derivative with respect to that tensor is not known: pass it as an argument, or "
        "stop_gradient it")


def _checked_pair(name: str, returned: Any) -> tuple[Any, Callable]:
    if not (isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1])):
        raise TypeError(f"{name} must return a pair, its outputs and a function grad_fn")
    return returned


def _accepts_variables(grad_fn: Callable) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _with_arrays(args: tuple) -> str:
    if all(nest.rules_of(leaf) is None for leaf in nest.flatten(args, expand=False)):
        return ""
    return ", three or a TensorArray of gradients for each TensorArray"


def _check_count(name: str, what: str, expected: int, received: int) -> None:
    if received != expected:
        raise InvalidGradientError(
            f"the grad_fn of {name} must return {expected} gradients for its {what} (None where "
            f"there is none), got {received}"
        )
