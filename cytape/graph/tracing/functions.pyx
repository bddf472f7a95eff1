"""cytape.function: Python functions that are traced once per signature and then replayed."""

from cytape.ops.calls.node_store cimport NodeStore
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.spec cimport Spec

from .cache_keys cimport describe_arguments, has_attributes, with_tensors
from .concrete_function cimport ConcreteFunction
from .frozen_draws cimport call_traced
from .trace_cache cimport Traces

import functools
import inspect
import operator
import types

import numpy as np

from cytape.graph.model.graph import placeholder_op
from cytape.graph.tracing.cache_keys import structures_of_specs
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.signature import (
    difference,
    differs_in_caches,
    generalised,
    is_object,
    shapes_agree,
)
from cytape.tensor.names_elsewhere import advising
from cytape.ops.python.checkpoint_policy import Automatic, Policy, check_budget
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.user_warnings import warn
from cytape.tensor.values.value import newest_id
from cytape.tensor.variable import Variable

__all__ = ["Function", "function"]

cdef enum:
    MANY_TRACES = 5

cdef tuple KINDS_OF_CHECKPOINTS = ("auto", "memory", "speed", "collection")


@advising
def function(
    f=None, *, input_signature=None, reduce_retracing=False, grad_func=None, python_grad_func=None,
    name=None, max_traces=128, max_bytes=1 << 30, checkpoints=None, memory_budget=None,
):
    """Make a function that runs as a recorded graph, without Python.

    Parameters
    ----------
    f : callable
        Written with cytape's functions. It is called once for every new signature of its arguments:
        their structure, the shapes and dtypes of tensors and arrays, and the values of numbers,
        strings, frozen dataclasses and similar objects; other objects are distinguished by
        identity, dataclasses also by their attributes. Side effects of Python code happen during
        this call only. It may read and assign variables, and capture tensors, with their values at
        each call. In its first call it may create variables, for itself or for its arguments.
    input_signature : sequence of Spec, optional
        Signature for a single trace. A shape may have unknown extents:
        ``[cytape.Spec.of((None, 2), float)]``.
    reduce_retracing : bool
        Whether extents that differ between calls are taken as unknown from the second trace on.
    grad_func : callable, optional
        The gradient, instead of that of `f`: called with the tensors among the arguments, then one
        gradient per output; returns a gradient (or None) per such tensor. Captured tensors get
        none.
    python_grad_func : callable, optional
        The same, called with an object with attributes ``inputs`` and ``outputs``, and the
        gradients.
    name : str, optional
        For messages and graphs; by default the name of `f`.
    max_traces, max_bytes : int or None, optional
        The limits on the number of traces, and on the bytes of traces and their plans; None: no
        limit. The least recently used ones are dropped. See `Function.cache_info`.
    checkpoints : str or list of str, optional
        The values that a call keeps for its derivatives, which recompute all others, as in
        `cytape.graph.checkpoint.gradients`: "memory", "speed", "collection" (of the graph that is
        traced), or parts of names of tensors. By default all values are kept. "memory" keeps only
        tensors of more than ``cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE`` elements (1024),
        which can be set. "auto" chooses by the memory of calls and their gradients. Calls inside
        other functions, and in graphs, keep the same. If `f` itself computes a gradient, give the
        checkpoints to its inner function: ``function(grad(function(net, checkpoints="auto")))``.
    memory_budget : int or float, optional
        For "auto": an integer limits the bytes of a call, and those of its kept values and
        gradient; a float is a fraction of the bytes with all values kept. The fastest choice within
        the limit is taken, otherwise the smallest that takes at most a third more time. An unknown
        extent counts as 64.

    Returns
    -------
    Function
        Takes the arguments of `f`, and returns its results: arrays and NumPy's numbers, if there is
        no tensor or variable among the arguments or the captured objects; otherwise, and in a
        graph, tensors.

    Raises
    ------
    ValueError
        If both gradient functions are given, or one of them and checkpoints; if checkpoints are
        unknown; if a budget is given without "auto", or is out of range. For a derivative, if there
        is nothing to keep.
    MemoryBudgetError
        For a derivative, if nothing was found within the budget; its ``smallest_bytes`` is the
        smallest one found.
    SymbolicTensorError
        In a call, if `f` needs the value of a tensor, say in ``if x > 0``.

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
    np.float64(5.0)
    >>> distance(np.array([6.0, 0.0]), np.array([0.0, 8.0]))
    np.float64(10.0)
    >>> gradient = cytape.function(cytape.grad(lambda x: np.sum(x**3)))
    >>> gradient(np.array([1.0, 2.0])), gradient(cytape.constant([1.0, 2.0]))
    (array([ 3., 12.]), Tensor([ 3., 12.]))
    """
    if grad_func is not None and python_grad_func is not None:
        raise ValueError("give grad_func or python_grad_func, not both: there is one gradient")
    if checkpoints is not None and (grad_func is not None or python_grad_func is not None):
        raise ValueError("give checkpoints or a gradient function, not both: checkpoints are for "
                         "the gradient that cytape derives")
    options = (
        input_signature, reduce_retracing, grad_func, python_grad_func, name, max_traces, max_bytes,
        checkpoints, memory_budget)
    return (lambda f: Function(f, *options)) if f is None else Function(f, *options)


cdef class Function:
    """A Python function with its traces; `function` makes it."""

    def __init__(
        self, f, input_signature=None, reduce_retracing=False, grad_func=None,
        python_grad_func=None, name=None, max_traces=128, max_bytes=1 << 30, checkpoints=None,
        memory_budget=None,
    ):
        if not callable(f):
            raise TypeError(f"only functions can be traced, got {type(f).__name__}")
        functools.update_wrapper(self, f, updated=())
        self.f = f
        self.name = str(name or getattr(f, "__name__", type(f).__name__))
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self.places = [] if input_signature is None else places_of(self.input_signature)
        self.reduce_retracing = reduce_retracing
        if isinstance(checkpoints, list):
            if not all(isinstance(part, str) for part in checkpoints):
                raise TypeError(
                    f"checkpoints of a function must be parts of names, got {checkpoints!r}")
            checkpoints = list(checkpoints)
        elif checkpoints is not None and not isinstance(checkpoints, (str, Policy, Automatic)):
            raise TypeError(
                "checkpoints must be a string or a list of strings, got "
                f"{type(checkpoints).__name__}: {checkpoints!r}")
        elif isinstance(checkpoints, str) and checkpoints not in KINDS_OF_CHECKPOINTS:
            raise ValueError(
                f"checkpoints={checkpoints!r} is unknown: say 'auto', 'memory', 'speed' or "
                "'collection', or give a list of parts of names of tensors")
        if checkpoints is not None and getattr(f, "is_derivative", False):
            warn(
                f"{getattr(f, '__name__', 'f')} is traced with checkpoints, but it is a derivative "
                "itself, and checkpoints are for derivatives of the traced function: give them to "
                "the inner function, as in grad(function(f, checkpoints=...))")
        check_budget(memory_budget)
        if memory_budget is not None and checkpoints != "auto":
            raise ValueError("memory_budget needs checkpoints='auto', which chooses the tensors to "
                             "keep")
        self.grad_func, self.python_grad_func = grad_func, python_grad_func
        self.checkpoints = Automatic(memory_budget) if checkpoints == "auto" else checkpoints
        for limit, bound in (("max_traces", max_traces), ("max_bytes", max_bytes)):
            if bound is not None and operator.index(bound) < 1:
                raise ValueError(f"{limit} must be at least 1, or None, got {bound}")
        self._traces = Traces(max_traces, max_bytes)
        self.keyword_order_counts = takes_any_keywords(f)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return Function, (
            self.f, self.input_signature, self.reduce_retracing, self.grad_func,
            self.python_grad_func, self.name, self._traces.max_traces, self._traces.max_bytes,
            self.checkpoints), vars(self)

    def __repr__(self) -> str:
        return f"<Function {self.name}, {self.n_traces} trace{'s' * (self.n_traces != 1)}>"

    def __call__(self, *args, **kwargs):
        """Run the trace for such arguments; trace first if there is none."""
        cdef ConcreteFunction trace
        cdef list tensors
        key, tensors, objects, plain = self.described(args, kwargs)
        trace = self.trace_for(key, objects, args, kwargs)
        if trace.variable_places:
            tensors += variables_at(objects, trace.variable_places)
        return trace.call_plainly(tensors) if plain else trace.call(tensors)

    def get_concrete_function(self, *args, **kwargs) -> ConcreteFunction:
        """Return the trace for some arguments.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function; or a `Spec` in the place of a tensor, whose shape may have
            unknown extents. By default the input signature.

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
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        key, _, objects, _ = self.described(args, kwargs)
        return self.trace_for(key, objects, args, kwargs)

    def experimental_get_tracing_count(self) -> int:
        """Return the number of times that the Python function has been traced."""
        return self.n_traces

    def cache_info(self):
        """Return the number and size of the traces and plans in the cache, and the limits.

        Returns
        -------
        CacheInfo

        Examples
        --------
        >>> import cytape
        >>> import cytape.numpy as np
        >>> double = cytape.function(lambda x: 2.0 * x)
        >>> _ = double(np.ones(2)), double(np.ones(3))
        >>> info = double.cache_info()
        >>> info.traces, info.plans, info.max_traces
        (2, 2, 128)
        """
        return self._traces.info()

    def cache_clear(self) -> None:
        """Drop all traces and their captures."""
        self._traces.clear()

    cdef tuple described(self, tuple args, dict kwargs):
        """Describe a call as `describe_arguments` does."""
        return (describe_arguments(args, kwargs, self.keyword_order_counts)
                if self.input_signature is None else self.fitting(args, kwargs))

    cdef tuple fitting(self, tuple args, dict kwargs):
        """Describe a call with an input signature, perhaps of a method."""
        cdef tuple passed
        if kwargs:
            args = inspect.signature(self.f).bind(*args, **kwargs).args
        n_before = max(len(args) - len(self.input_signature), 0)
        key, _, objects, plain = describe_arguments(args[:n_before], {}, True)
        passed = args[n_before:]
        try:
            nest.assert_same_structure(passed, self.input_signature)
        except ValueError as error:
            raise TypeError(
                f"the arguments of {self.name} do not match its input signature: {error}") from None
        tensors = []
        leaves, specs = nest.flatten(passed), nest.flatten(self.input_signature)
        for i, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
            plain = plain and not isinstance(leaf, Tensor)
            tensor = leaf if isinstance(leaf, Spec) else convert_to_tensor(leaf)
            if tensor.dtype != spec.dtype or not shapes_agree(tensor.shape, spec.shape):
                raise TypeError(
                    f"{self.name} has the input signature {self.input_signature}, but tensor "
                    f"{i} is {tensor.dtype} of shape {tensor.shape}"
                )
            tensors.append(tensor)
        return key, [tensors[place] for place in self.places], objects, plain

    cdef ConcreteFunction trace_for(self, tuple key, list objects, tuple args, dict kwargs):
        """Return the trace for such arguments; trace first if there is none."""
        cdef ConcreteFunction trace = self._traces.by_key.get(key)
        if trace is None or not trace.fits_here():
            trace = self.new_trace(key, objects, args, kwargs)
        self.n_uses += 1
        trace.last_use = self.n_uses
        return trace

    cdef ConcreteFunction new_trace(self, tuple key, list objects, tuple args, dict kwargs):
        """Return a new trace, or one of more extents."""
        cdef tuple kept_as = key, described = args
        cdef dict described_words
        cdef ConcreteFunction trace
        if kwargs and not self.keyword_order_counts:
            kwargs = {word: kwargs[word] for word in sorted(kwargs)}
        described_words = kwargs
        if self.input_signature is not None:
            n_before = max(len(args) + len(kwargs) - len(self.input_signature), 0)
            args, kwargs = (*args[:n_before], *self.input_signature), {}
        else:
            for other in list(self._traces.by_key) if self.reduce_retracing else ():
                general = generalised(key, other)
                if general is not None:
                    trace = self._traces.by_key.get(general)
                    if trace is not None and trace.fits_here():
                        self._traces.add_alias(key, trace, [])
                        return trace
                    kept_as = general
                    args, kwargs = structures_of_specs((args, kwargs), general)
                    break
        trace = self.traced_anew(key, objects, args, kwargs)
        self._traces.add(kept_as, trace, objects)
        if kept_as is not key:
            self._traces.add_alias(key, trace, [])
        if has_attributes(key):
            self.allow_for_caches(key, objects, described, described_words, trace)
        return trace

    cdef int allow_for_caches(
        self, tuple key, list objects, tuple args, dict kwargs, ConcreteFunction trace
    ) except -1:
        """Find a trace whose key changed because tracing cached properties of the arguments."""
        if self.input_signature is None:
            try:  # tensors need no description
                args, kwargs = structures_of_specs((args, kwargs), key)
            except StopIteration:  # tracing registered a dataclass
                return 0
        else:
            args, kwargs = args[:len(args) + len(kwargs) - len(self.input_signature)], {}
        later, _, more, _ = describe_arguments(args, kwargs, self.keyword_order_counts)
        if differs_in_caches(key, later):
            known = set(map(id, objects))
            more = [x for x in more if id(x) not in known]
            if not any(isinstance(x, Variable) for x in more):  # calls pass variables by place
                self._traces.add_alias(later, trace, more)
        return 0

    cdef ConcreteFunction traced_anew(self, tuple key, list objects, tuple args, dict kwargs):
        cdef ConcreteFunction trace
        if self.n_new_keys + 1 == MANY_TRACES:
            why = difference(key, list(self._traces.by_key))
            warn(
                f"{self.name} is traced for the {MANY_TRACES}th time, which costs more than a "
                f"call: now because of {why}. Pass numbers that change as arrays or tensors; for "
                "shapes that change give an input_signature with unknown extents, such as "
                "[cytape.Spec.of((None, 2), float)], or reduce_retracing=True")
        variables = [x for x in objects if isinstance(x, Variable)]
        trace = self.traced(
            args, kwargs, variables, functools.partial(is_first, self._traces.by_key, key))
        if trace.graph.n_variables_made:  # trace again with these; it must not create more
            trace = self.traced(args, kwargs, variables, no)
        self.n_new_keys += 1
        return trace

    cdef ConcreteFunction traced(
        self, tuple args, dict kwargs, list variables, may_make_variables
    ):
        cdef ConcreteFunction trace
        cdef list arguments = [], given = []
        cdef NodeStore graph
        newest = newest_id()
        graph = FunctionGraph(self.name, current_graph())
        graph.called_again = True
        graph.may_make_variables = may_make_variables

        def symbolic(leaf):
            cdef Tensor tensor = None
            cdef Spec spec
            arguments.append(graph.n_symbols)
            if type(leaf) is Tensor:
                spec = (<Tensor>leaf).held.spec
                if spec.known:
                    tensor = graph.new_source(
                        placeholder_op, {"shape": spec.shape, "dtype": spec.dtype}, spec)
            if tensor is None:
                if not isinstance(leaf, (Tensor, Spec)):
                    leaf = plain_array(leaf)
                dtype = leaf.dtype if leaf.dtype.isnative else leaf.dtype.newbyteorder("=")
                tensor = graph.argument(leaf.shape, dtype)
            given.append((tensor, tensor.held))
            return tensor

        with unrecorded():  # outside of the graph, which would capture elements of TensorArrays
            args = with_tensors(args, symbolic)
            kwargs = with_tensors(kwargs, symbolic) if kwargs else {}
        with unrecorded(), building_into(graph):
            try:
                outputs = call_traced(graph, self.f, args, kwargs)
            except TypeError as error:
                graph.note_extents(error)
                raise
            trace = ConcreteFunction(
                self.name, graph, arguments, outputs, self.grad_func, self.python_grad_func,
                variables, self.checkpoints)
        self.warn_of_changes(given, trace)
        # Tensors created during the trace are not users' tensors.
        trace.uses_tensors = bool(trace.variable_places) or any([
            x.id <= newest or isinstance(x, Variable) for x in trace.captured_inputs])
        graph.may_make_variables = no  # not called any more
        self.n_traces += 1
        return trace

    cdef int warn_of_changes(self, list given, ConcreteFunction trace) except -1:
        """Warn of arguments that the function changed, since calls of the trace do not."""
        for tensor, held in given:
            if (<Tensor>tensor).held is not held and (
                    trace.graph.symbol_of(tensor) not in trace.output_symbols):
                warn(
                    f"{self.name} changes an argument (of shape {tensor.shape}) in place, which "
                    "its caller does not see, unlike NumPy's: return it, or change a copy "
                    "(x = x.copy()), or a new tensor (x = x + 1)")
        return 0


cdef list variables_at(list objects, tuple places):
    """Return the variables at some places among objects."""
    variables = [x for x in objects if isinstance(x, Variable)]
    return [variables[place] for place in places]


cdef list places_of(tuple signature):
    """Return the places of tensors in the flattened arguments, in the order of a trace.

    Dicts are flattened in the order of sorted keys, while a trace uses their insertion order.
    """
    cdef list places = []
    numbered = [np.intp(i) for i in range(len(nest.flatten(signature)))]
    with_tensors(nest.pack_sequence_as(signature, numbered), lambda i: places.append(int(i)))
    return places


def no() -> bool:
    """Return False."""
    return False


def is_first(dict by_key, tuple key) -> bool:
    """Return whether no trace has a key with the same objects."""
    mine = list(filter(is_object, key))
    return all(list(filter(is_object, other)) != mine for other in list(by_key))


cdef bint takes_any_keywords(f) except -1:
    """Return whether a function can depend on the order of keyword arguments."""
    return type(f) is not types.FunctionType or bool(
        f.__code__.co_flags & inspect.CO_VARKEYWORDS)
