"""Functions with a custom Jacobian-vector product."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.custom.bound_rule import bound
from cytape.autodiff.custom.eager_derivatives import EagerCall
from cytape.autodiff.detached_rules import call_rule, content_of, require_an_end
from cytape.autodiff.wrapped_calls import (
    Arguments,
    Call,
    followed,
    is_tensor,
    kept,
    lent,
    name_of,
    own_leaf,
    owned,
    record,
    require_positional,
    value_of,
    values_at_call,
)
from cytape.core import is_trainable
from cytape.errors import InvalidGradientError
from cytape.ops.adjoints.conform import fill_like
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.creation import stop_gradient_op
from cytape.ops.python.python_ops import (
    PythonCall,
    attempted,
    given_results_op,
    linear_transpose,
    python_values_op,
    specs_by_example,
)
from cytape.ops.shapes.shape_rules import may_fit
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph
from cytape.tensor.structures import leaves_of_arguments
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.variable import Variable

__all__ = ["custom_jvp"]


def custom_jvp(f: Callable) -> _CustomJvp:
    """Define the Jacobian-vector product of a function.

    Parameters
    ----------
    f : callable
        Returns a tensor or a structure of tensors. Its positional arguments are differentiated; it
        must not capture recorded tensors or trainable variables.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns its outputs. Its method ``defjvp`` decorates the
        rule: called with the tuple of arguments and an equal structure of tangents (zeros for
        arguments without a tangent, None for those that cannot have one), it returns a pair, the
        outputs and their tangents. These must be linear in the given tangents, so that reverse mode
        can transpose the rule.

    Raises
    ------
    TypeError
        In a call, if no rule was given, a tensor is passed by a keyword of the rule, or `f` depends
        on a trainable variable or a recorded tensor that is not among its arguments; and where a
        derivative is taken, if the rule does not return such a pair.
    SymbolicTensorError
        In a trace, if the results of `f` cannot be determined, see below.

    See Also
    --------
    cytape.testing.check_grads : to check a rule against central differences, in both modes.

    Notes
    -----
    Keyword arguments that the rule accepts are passed to it, and have no derivative. All others are
    converted to positional arguments, as in a call of `f`, and have one.

    The rule reads its closure like the `grad_fn` of `custom_gradient`.

    In a graph or a trace, `f` and its rule become part of it if they use only functions of cytape.
    If one needs the values of tensors (for `Tensor.numpy`, or a function of NumPy or SciPy without
    a version in cytape), it becomes an op that calls it in each run. Then `f` is called once with
    sample arrays, to infer the shapes and dtypes of its results; `numpy_function` takes these as an
    argument instead.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), dx / (1 + np.exp(-x))
    >>> x = cytape.constant(0.5)
    >>> with cytape.ForwardAccumulator(x, 2.0) as accumulator:
    ...     y = log1pexp(x)
    >>> round(float(accumulator.jvp(y)), 6), round(float(cytape.grad(log1pexp)(0.5)), 6)
    (1.244919, 0.622459)
    """
    return _CustomJvp(f)


class _CustomJvp:
    """A function with its forward-mode rule; a descriptor, so that it can be a method."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, f: Callable, rule: Callable | None = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self._rule = rule

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is None:
            return self
        rule = None if self._rule is None else types.MethodType(self._rule, instance)
        return _CustomJvp(types.MethodType(self.__wrapped__, instance), rule)

    def __repr__(self) -> str:
        return f"<custom_jvp of {name_of(self.__wrapped__)}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by reference, like the wrapped function

    def defjvp(self, rule: Callable) -> Callable:
        """Decorate the rule; returns it unchanged."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        f, rule = self.__wrapped__, self._rule
        if rule is None:
            raise TypeError(
                f"{name_of(f)} has no rule yet: decorate one with {name_of(f)}.defjvp")
        if kwargs:
            args, kwargs = _resolved(f, rule, args, kwargs)
            require_positional(f, kwargs)
        leaves = leaves_of_arguments(args)
        graph = graph_for(leaves)
        if graph is not None:
            with building_into(graph):
                return self._built(graph, _bound(f, rule), args, leaves, kwargs)
        arguments = Arguments(args, leaves)
        inputs = arguments.tensors
        values = values_at_call(inputs)
        options = kwargs
        if followed(values):
            rule = _bound(f, rule)
            args, options = kept((args, kwargs))
        result = self._computed(arguments, kwargs)
        call = _JvpCall(self, rule, Arguments(args, nest.flatten(args)), options, result)
        return record(
            call.name, result, inputs,
            lambda *gradients: call.gradients(values, gradients),
            lambda *tangents: call.tangents(values, tangents))

    def _computed(self, arguments: Arguments, kwargs: dict) -> Any:
        """Call the function; raise if it depends on other tensors than its arguments."""
        f = self.__wrapped__
        # No recorder follows the new tensors: a recorded result depends on a captured one.
        fresh = [tensor_of(data_of(value_of(x))) for x in arguments.tensors]
        call = Call(f, arguments.packed(fresh), kwargs)
        self._refuse_variables(call.variables, arguments)
        if any(map(call.captured_by, nest.flatten(call.returned))):
            raise TypeError(_depends_on_another(f))
        return call.returned

    def _refuse_variables(self, variables: list[Variable], arguments: Arguments) -> None:
        for variable in variables:
            if not any(variable is x for x in arguments.tensors):
                raise TypeError(
                    f"{name_of(self.__wrapped__)} has a custom JVP, but reads {variable!r}, which "
                    "is not among its arguments: pass it as an argument"
                )

    def _built(
        self, graph: Any, rule: Callable, args: tuple, leaves: list, kwargs: dict
    ) -> Any:
        """Add a call to the graph that is being built."""
        f = self.__wrapped__
        given = Arguments(args, leaves)
        arguments = Arguments(args, [own_leaf(graph, leaf) for leaf in leaves])
        inputs = arguments.tensors
        apart, kwargs = arguments.without_tensors(), kept(kwargs)
        # A tensor that is still connected to the results is a captured one.
        stopped = [stop_gradient_op(x, apart=True) for x in inputs]
        built = attempted(graph, lambda: Call(f, arguments.packed(stopped), kwargs), args)
        if built is NotImplemented:
            def computed(*tensors: Tensor) -> Any:
                args = apart.packed(tensors)
                return self._computed(Arguments(args, nest.flatten(args)), kwargs)

            result, specs = specs_by_example(name_of(f), computed, [x.spec for x in inputs], args)
            results = python_values_op(*stopped, call=EagerCall(name_of(f), computed, specs))
        else:
            result = built.returned
            self._refuse_variables(built.variables, given)
            results = list(map(convert_to_tensor, nest.flatten(result)))
        result = nest.pack_sequence_as(result, results)
        if results:
            results = given_results_op(
                *inputs, *results, call=_JvpCall(self, rule, apart, kwargs, result),
                n_results=len(results))
        return nest.pack_sequence_as(result, results)


class _JvpCall(PythonCall):
    """One call, as its derivatives see it."""

    def __init__(
        self, function: _CustomJvp, rule: Callable, arguments: Arguments, kwargs: dict, result: Any
    ) -> None:
        leaves = nest.flatten(result)
        self.name = name_of(function.__wrapped__)
        self._function, self._rule = function, rule
        self._arguments = arguments.without_tensors()
        self._kwargs = kwargs
        self._structure = nest.pack_sequence_as(result, [None] * len(leaves))
        self._shapes = [leaf.shape if is_tensor(leaf) else np.shape(leaf) for leaf in leaves]

    def tangents(self, values: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list:
        """Call the rule; return a tangent or None per output."""
        described = functools.partial(self._described, values)
        require_an_end(f"the JVP rule of {self.name}", described)
        return call_rule(
            f"the JVP rule of {self.name}", lambda: self._tangents(values, tangents), (),
            lambda: values)

    def _tangents(self, values: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list:
        returned = self._rule(
            lent(self._arguments.packed(values)),
            owned(self._arguments.packed(tangents, _still)), **lent(self._kwargs))
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise TypeError(
                f"the JVP rule of {self.name} must return a pair, the outputs and their tangents"
            )
        nest.assert_same_structure(self._structure, returned[1])
        results = [
            tangent if tangent is None else convert_to_tensor(tangent)
            for tangent in nest.flatten(returned[1])
        ]
        for shape, tangent in zip(self._shapes, results, strict=True):
            if tangent is not None and tangent.shape != shape and (
                    not may_fit(tangent.shape, shape)):
                raise InvalidGradientError(
                    f"the JVP rule of {self.name} returned a tangent of shape {tangent.shape} "
                    f"for an output of shape {shape}"
                )
        return results

    def gradients(self, values: Sequence[Tensor], output_gradients: Sequence[Any]) -> list:
        """Transpose the rule; return a gradient or None per tensor among the arguments."""
        described = functools.partial(self._described, values)
        require_an_end(f"the JVP rule of {self.name}", described)
        return linear_transpose(
            lambda probes: self.tangents(values, probes), [x.spec for x in values],
            output_gradients,
            f"the JVP rule of {self.name} cannot be transposed for reverse mode: a tangent that it "
            "returned was not computed from the given ones by functions that cytape knows. Write "
            "it with cytape.numpy; where a tangent is zero, it may return None")

    def _described(self, values: Sequence[Tensor]) -> tuple:
        arguments = self._arguments.packed([content_of(x) for x in values])
        return self._function.__wrapped__, repr((arguments, self._kwargs))

    # ---- in graphs

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        self.refuse_others(op.needs[len(inputs):])
        found = attempted(current_graph(), lambda: self.gradients(inputs, gradients))
        return self._eager(op).vjp(inputs, gradients, op) if found is NotImplemented else found

    def jvp(self, inputs: list[Tensor], tangents: list, op: Any) -> list:
        self.refuse_others(op.needs[len(inputs):])

        def symbolic() -> list:
            return self.tangents(inputs, [
                fill_like(x, 0) if tangent is None and x.spec.trainable else tangent
                for x, tangent in zip(inputs, tangents, strict=True)])

        found = attempted(current_graph(), symbolic)
        return self._eager(op).jvp(inputs, tangents, op) if found is NotImplemented else found

    def refuse_others(self, moving: Sequence[bool]) -> None:
        """Raise if a result depends on differentiable tensors other than the stopped arguments."""
        if any(moving):
            raise TypeError(_depends_on_another(self._function.__wrapped__))

    def _eager(self, op: Any) -> EagerCall:
        return EagerCall(
            self.name,
            lambda *tensors: self._function(*self._arguments.packed(tensors), **self._kwargs),
            op.output_specs)


def _bound(f: Callable, rule: Callable) -> Callable:
    return bound(f"the JVP rule of {name_of(f)}", rule)


def _still(leaf: Any) -> Any:
    """Return the tangent of an argument that is not a tensor."""
    dtype = np.asarray(leaf).dtype
    return np.zeros(np.shape(leaf), dtype) if is_trainable(dtype) else None


def _depends_on_another(f: Callable) -> str:
    return (
        f"{name_of(f)} has a custom JVP, but depends on a tensor that is being recorded and is not "
        "among its arguments: pass it as one, or stop_gradient it"
    )


def _resolved(f: Callable, rule: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Convert keywords that the rule does not accept to positional arguments."""
    parameters = list(inspect.signature(rule).parameters.values())
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return args, kwargs
    options = {
        parameter.name: kwargs[parameter.name]
        for parameter in parameters[2:]
        if parameter.name in kwargs
    }
    rest = {name: x for name, x in kwargs.items() if name not in options}
    positional = list(args)
    if rest:
        for parameter in list(_parameters(f))[len(args):]:
            if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.name in options:
                break
            if parameter.name not in rest and parameter.default is parameter.empty:
                break
            positional.append(rest.pop(parameter.name, parameter.default))
            if not rest:
                break
    if rest:
        raise TypeError(
            f"{name_of(f)} was called with the keyword arguments {', '.join(map(repr, rest))}, "
            "which its JVP rule does not take: give the rule parameters of these names"
        )
    return tuple(positional), options


def _parameters(f: Callable) -> Sequence[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except ValueError:  # some functions written in C
        return []
