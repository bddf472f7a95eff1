"""Errors and warnings of the package."""

__all__ = [
    "CytapeError",
    "DetachedError",
    "GraphFileError",
    "GraphError",
    "InvalidGradientError",
    "InvalidIdError",
    "LeakedTensorWarning",
    "MemoryBudgetError",
    "NotDifferentiableError",
    "SymbolicTensorError",
    "TapeStateError",
    "UnconnectedGradientWarning",
]


class CytapeError(Exception):
    """Base of the errors below; each of them is also the built-in exception it resembles.

    Examples
    --------
    >>> issubclass(TapeStateError, CytapeError), issubclass(TapeStateError, RuntimeError)
    (True, True)
    """


class TapeStateError(CytapeError, RuntimeError):
    """A tape cannot compute a gradient in its present state.

    The ops were released because a non-persistent tape was used before, or a backward function is
    wrong, say by returning a wrong number of gradients.

    Examples
    --------
    >>> from cytape.core.reference import Tape, VSpace
    >>> tape = Tape()
    >>> tape.watch(1)
    >>> tape.record("Double", [2], [1], ["float64"], lambda: "the backward object")
    True
    >>> class Numbers(VSpace):
    ...     def ones_like(self, info): return 1.0
    ...     def call_backward_function(self, op_type, backward, unneeded, gradients): return []
    >>> try:
    ...     tape.compute_gradient(Numbers(), targets=[2], sources=[1])
    ... except TapeStateError as error:
    ...     print("expected 1, received 0" in str(error))
    True
    """


class InvalidGradientError(CytapeError, ValueError):
    """A gradient given by the user does not fit its target or source.

    It has another shape or an unknown type, or a list of gradients has the wrong length.

    Examples
    --------
    >>> from cytape.core.reference import Tape, VSpace
    >>> try:
    ...     Tape().compute_gradient(VSpace(), targets=[1, 2], sources=[1], output_gradients=[1.0])
    ... except InvalidGradientError as error:
    ...     print(error)
    output_gradients must have one entry (None means ones) for each of the 2 targets, got 1
    """


class InvalidIdError(CytapeError, ValueError):
    """An id that is invalid, or invalid in that place.

    Examples
    --------
    >>> from cytape.core.reference import Tape
    >>> try:
    ...     Tape().watch(-1)
    ... except InvalidIdError as error:
    ...     print(error)
    tensor ids are at least 0, got -1
    """


class MemoryBudgetError(CytapeError, ValueError):
    """A gradient cannot be computed within the requested memory.

    Parameters
    ----------
    message : str
    smallest_bytes : int
        The smallest number of bytes that a plan was found for.

    Examples
    --------
    >>> MemoryBudgetError("no plan was found", 1024).smallest_bytes
    1024
    """

    def __init__(self, message: str, smallest_bytes: int) -> None:
        super().__init__(message)
        self.smallest_bytes = smallest_bytes

    def __reduce__(self) -> tuple:
        return MemoryBudgetError, (*self.args, self.smallest_bytes)


class DetachedError(CytapeError, TypeError):
    """A tensor that is being recorded would silently have become a plain array or number.

    Its gradient would be lost without notice; `Tensor.numpy`, `item` and `tolist` convert
    explicitly. It is also raised if a gradient is requested that was lost by one of these.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> x = cytape.constant([1.0, 2.0])
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     try:
    ...         np.asarray(x)
    ...     except DetachedError as error:
    ...         print("tensor.numpy()" in str(error))
    True
    """


class UnconnectedGradientWarning(UserWarning):
    """A derivative is zero, or missing, because no differentiable function leads to it.

    It is shown once for each line that requests such a derivative.

    Examples
    --------
    >>> import warnings
    >>> import cytape
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     gradient = cytape.grad(lambda x: 3.0)(1.0)
    >>> float(gradient), caught[0].category.__name__
    (0.0, 'UnconnectedGradientWarning')
    """


class LeakedTensorWarning(UserWarning):
    """A tensor of one differentiated call is used in another, where it is a constant.

    Its part of the derivative is missing. The warning is shown once for each line.

    Examples
    --------
    >>> import warnings
    >>> import cytape
    >>> kept = {}
    >>> def f(x):
    ...     if "square" not in kept:
    ...         kept["square"] = x * x
    ...     return kept["square"] + x
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(*[float(cytape.grad(f)(3.0)) for _ in range(2)])
    7.0 1.0
    >>> caught[0].category.__name__
    'LeakedTensorWarning'
    """


class GraphError(CytapeError, ValueError):
    """A tensor of a graph cannot be computed, or a graph cannot be built.

    For example a placeholder is not fed, a fed value does not fit its tensor, or a write depends on
    extents that only a run knows.

    Examples
    --------
    >>> from cytape.graph import Graph
    >>> from cytape.graph.run.plan import Plan
    >>> from cytape.graph.model.subgraph import Subgraph
    >>> graph = Graph()
    >>> x = graph.placeholder("float64", ())
    >>> try:
    ...     Plan(Subgraph(graph, (), (graph.symbol_of(x * 2.0),)))
    ... except GraphError as error:
    ...     print("a value must be fed" in str(error))
    True
    """


class NotDifferentiableError(CytapeError, LookupError, NotImplementedError):
    """An op between targets and sources has no registered gradient, or none in this argument.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.declare import general
    >>> opaque = general("DoctestOpaque", lambda x: 2 * x)
    >>> try:
    ...     cytape.grad(opaque)(1.0)
    ... except NotDifferentiableError as error:
    ...     print("register one with cytape.register_gradient" in str(error))
    True
    """


class SymbolicTensorError(CytapeError, TypeError):
    """The value of a symbolic tensor was requested, which exists only when its graph runs.

    Examples
    --------
    >>> import cytape
    >>> @cytape.function
    ... def absolute(x):
    ...     return x if x > 0 else -x
    >>> try:
    ...     absolute(cytape.constant(-1.0))
    ... except SymbolicTensorError as error:
    ...     print("cytape.cond" in str(error))
    True
    """


class GraphFileError(CytapeError, ValueError):
    """A graph cannot be saved, or a file is not a valid graph.

    Examples
    --------
    >>> import os, tempfile
    >>> import cytape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "other")
    ...     with open(path, "w") as file:
    ...         _ = file.write("something else")
    ...     try:
    ...         cytape.Graph.load(path)
    ...     except GraphFileError as error:
    ...         print("not a saved graph" in str(error))
    True
    """
