"""cytape.function: Python functions that are traced once per kind of arguments, and replayed."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from cytape.graph.concrete_function import ConcreteFunction
from cytape.graph.function_graph import FunctionGraph
from cytape.graph.signature import (
    describe,
    difference,
    generalised,
    is_array,
    shapes_agree,
    structures_of_specs,
)
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.spec import Spec
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor, convert_to_tensor

__all__ = ["Function", "function"]

MANY_TRACES = 5


def function(
    f: Callable | None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    grad_func: Callable | None = None,
    python_grad_func: Callable | None = None,
    name: str | None = None,
) -> Any:
    """Make a function that runs as a recorded graph, without Python.

    Parameters
    ----------
    f : callable
        Written with cytape's functions. It is called once for every new signature of its arguments:
        their structure, the shapes and dtypes of tensors and arrays, and the values of numbers,
        strings and the like; other objects are told apart by identity or what ``==`` says. What
        else Python does in it, it does at that time only. It may read and assign variables,
        and use tensors from outside; their values are those of the time of a call.
    input_signature : sequence of Spec, optional
        What `f` is traced for, once and for all. A shape may have unknown extents (None).
    reduce_retracing : bool
        Whether extents that differ between calls are taken as unknown from the second trace on.
    grad_func : callable, optional
        The gradient, instead of the one that follows from `f`: called with the tensors among the
        arguments, then one gradient per output; returns a gradient (or None) per such tensor. What
        `f` uses from outside gets none.
    python_grad_func : callable, optional
        The same, called with the call (which has ``inputs`` and ``outputs``) and the gradients.
    name : str, optional
        For messages and graphs; by default the name of `f`.

    Returns
    -------
    Function
        Takes the arguments of `f`, and returns what it returns, arrays and numbers as tensors.

    Raises
    ------
    ValueError
        If both gradient functions are given.
    SymbolicTensorError
        In a call, if `f` asks for the value of a tensor, say in ``if x > 0``.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def distance(x, y):
    ...     print("tracing")
    ...     return np.sqrt(np.sum((x - y) ** 2))
    >>> distance(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    tracing
    Tensor(5.)
    >>> distance(np.array([6.0, 0.0]), np.array([0.0, 8.0]))
    Tensor(10.)
    >>> gradient = cytape.function(cytape.grad(lambda x: np.sum(x**3)))
    >>> gradient(np.array([1.0, 2.0]))
    Tensor([ 3., 12.])
    """
    if grad_func is not None and python_grad_func is not None:
        raise ValueError("give grad_func or python_grad_func, not both: there is one gradient")
    options = input_signature, reduce_retracing, grad_func, python_grad_func, name
    return (lambda f: Function(f, *options)) if f is None else Function(f, *options)


class Function:
    """A Python function with its traces; `function` makes it."""

    __wrapped__: Callable
    __qualname__: str

    def __init__(
        self,
        f: Callable,
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        grad_func: Callable | None = None,
        python_grad_func: Callable | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(f):
            raise TypeError(f"only functions can be traced, got {type(f).__name__}")
        functools.update_wrapper(self, f, updated=())
        self.name: str = str(name or getattr(f, "__name__", type(f).__name__))
        self._input_signature = None if input_signature is None else tuple(input_signature)
        self._reduce_retracing = reduce_retracing
        self._gradients = {"grad_func": grad_func, "python_grad_func": python_grad_func}
        self._traces: dict[tuple, ConcreteFunction] = {}
        self._n_traces = 0

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<Function {self.name}, {self._n_traces} traces>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the trace for such arguments; trace first if there is none."""
        key, tensors = self._described(args, kwargs)
        trace = self._traces.get(key)
        if trace is None or not trace.fits_here():
            trace = self._trace(key, args, kwargs)
        return trace.call(tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for some arguments.

        Parameters
        ----------
        *args, **kwargs
            What the function could be called with; or a `Spec` in the place of a tensor, whose
            shape may have unknown extents. By default the input signature.

        Returns
        -------
        ConcreteFunction

        Examples
        --------
        >>> import cytape
        >>> import cytape.numpy as np
        >>> trace = cytape.function(np.tanh).get_concrete_function(cytape.Spec.of((None,), float))
        >>> trace(np.zeros(2)), trace(np.zeros(3))
        (Tensor([0., 0.]), Tensor([0., 0., 0.]))
        """
        if not args and not kwargs and self._input_signature is not None:
            args = self._input_signature
        key, _ = self._described(args, kwargs)
        trace = self._traces.get(key)
        if trace is None or not trace.fits_here():
            return self._trace(key, args, kwargs)
        return trace

    def experimental_get_tracing_count(self) -> int:
        """Return how often the Python function has been called to be traced."""
        return self._n_traces

    def _described(self, args: tuple, kwargs: dict) -> tuple[tuple, list]:
        """Return what tells traces apart, and the tensors that a call passes."""
        if self._input_signature is not None:
            return self._fitting(args, kwargs)
        key: list = []
        tensors: list = []
        for x in args:
            describe(x, key, tensors)
        for word in sorted(kwargs):
            key.append(word)
            describe(kwargs[word], key, tensors)
        return tuple(key), tensors

    def _fitting(self, args: tuple, kwargs: dict) -> tuple[tuple, list]:
        """Describe a call where there is an input signature; before that an object may come."""
        assert self._input_signature is not None
        if kwargs:
            args = inspect.signature(self.__wrapped__).bind(*args, **kwargs).args
        n_before = max(len(args) - len(self._input_signature), 0)
        key: list = []
        for x in args[:n_before]:
            describe(x, key, [])
        passed = args[n_before:]
        try:
            nest.assert_same_structure(passed, self._input_signature)
        except ValueError as error:
            raise TypeError(
                f"{self.name} is not called as its input signature says: {error}") from None
        tensors = []
        leaves, specs = nest.flatten(passed), nest.flatten(self._input_signature)
        for i, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
            tensor = leaf if isinstance(leaf, Spec) else convert_to_tensor(leaf)
            if tensor.dtype != spec.dtype or not shapes_agree(tensor.shape, spec.shape):
                raise TypeError(
                    f"{self.name} has the input signature {self._input_signature}, but tensor "
                    f"{i} is {tensor.dtype} of shape {tensor.shape}"
                )
            tensors.append(tensor)
        return tuple(key), tensors

    def _trace(self, key: tuple, args: tuple, kwargs: dict) -> ConcreteFunction:
        if self._input_signature is not None:
            signature = self._input_signature
            n_before = max(len(args) + len(kwargs) - len(signature), 0)
            args, kwargs = (*args[:n_before], *signature), {}
        elif self._reduce_retracing:
            for other in list(self._traces):
                general = generalised(key, other)
                if general is not None:
                    if general in self._traces and self._traces[general].fits_here():
                        self._traces[key] = self._traces[general]
                        return self._traces[key]
                    args, kwargs = structures_of_specs((args, kwargs), general)
                    trace = self._trace_anew(key, args, kwargs)
                    self._traces[key] = self._traces[general] = trace
                    return trace
        trace = self._trace_anew(key, args, kwargs)
        self._traces[key] = trace
        return trace

    def _trace_anew(self, key: tuple, args: tuple, kwargs: dict) -> ConcreteFunction:
        if self._n_traces + 1 == MANY_TRACES:
            warnings.warn(
                f"{self.name} is traced for the {MANY_TRACES}th time, which costs more than a "
                f"call: now because of {difference(key, list(self._traces))}. Pass numbers that "
                "change as arrays or tensors; for shapes that change give an input_signature with "
                "unknown extents (None), or reduce_retracing=True",
                stacklevel=4,
            )
        trace = self._traced(args, kwargs)
        self._n_traces += 1
        return trace

    def _traced(self, args: tuple, kwargs: dict) -> ConcreteFunction:
        graph = FunctionGraph(self.name, current_graph())
        arguments: list[int] = []

        def symbolic(leaf: Any) -> Any:
            if type(leaf) is Tensor and leaf.spec.known:
                arguments.append(graph.n_symbols)
                return graph.argument_like(leaf.spec)
            if isinstance(leaf, IndexedSlices):
                parts = symbolic(leaf.values), symbolic(leaf.indices)
                return IndexedSlices(*parts, leaf.dense_shape)
            if not is_array(leaf):
                return leaf
            dtype = leaf.dtype if leaf.dtype.isnative else leaf.dtype.newbyteorder("=")
            argument = graph.argument(leaf.shape, dtype)
            arguments.append(graph.symbol_of(argument))
            return argument

        with unrecorded(), building_into(graph):
            args = nest.map_structure(symbolic, args)
            kwargs = nest.map_structure(symbolic, kwargs) if kwargs else kwargs
            outputs = self.__wrapped__(*args, **kwargs)
            return ConcreteFunction(self.name, graph, arguments, outputs, **self._gradients)

