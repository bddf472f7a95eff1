"""Functions that recompute intermediates for their derivative: memory for time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.repeatable_call import FirstRun, repeated_gradients, repeated_tangents
from cytape.autodiff.transform_arguments import warn_of_leaks
from cytape.autodiff.wrapped_calls import (
    call_with_own,
    is_plain_tensor,
    is_tensor,
    kept,
    lent,
    name_of,
    record,
    with_tensors,
)
from cytape.errors import TapeStateError
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.python.checkpoint_policy import NOTHING, Policy
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.recording.leaked_tensors import watch_of_leaks
from cytape.tensor.recording.state import anybody_records, current_graph
from cytape.tensor.structures import leaves_of_arguments
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["checkpoint", "checkpoint_sequential", "recompute_grad", "tensors_in"]


def recompute_grad(f: Callable, *arguments: Any) -> Callable[..., Any]:
    """Make a function recompute its intermediates for the gradient instead of keeping them.

    `f` runs once unrecorded, and again in every backward pass.

    Parameters
    ----------
    f : callable
        Must return the same values when it runs again with the same arguments, variables and random
        numbers. Gradients reach its arguments, the variables that it reads, and tensors that it
        finds elsewhere (in a closure).

    Returns
    -------
    callable
        Has the values and the gradients of `f`, which is its ``__wrapped__``.

    Raises
    ------
    TypeError
        If `f` is no function, or arguments follow it: they are for the function that is returned.
    TapeStateError
        If an array, attribute or element that `f` reads, and that is not restored, is another at
        the backward pass; where a graph is built of the backward pass of an eager call, also if a
        variable that `f` read has been assigned to since.

    See Also
    --------
    checkpoint : The same, with an optional policy for the values to keep.
    checkpoint_sequential : The same for parts of a chain of functions.

    Notes
    -----
    When `f` runs again, each variable that it read or assigned to has for it the value that it had
    before the first run; for other threads, and afterwards, it has its present one, so nothing is
    assigned twice. The random streams that `f` drew from draw the same numbers again, and then go
    on: cytape's own, and those of NumPy and Python that can be reached from `f`, by its arguments,
    its closure or the names that it uses. Other threads should leave such streams alone meanwhile.
    The closure of `f`, its defaults, the globals that it names, and those of functions that it
    calls, are restored as they were at the call, with the values of tensors and of arrays of at
    most 64 KiB; names that `f` assigns to are not. Of attributes of objects, elements of lists and
    larger arrays, changes by others than `f` are found and refused; what is in a file or in an
    object of a library must stay as it was.

    Results of `f` other than tensors are returned unchanged.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> block = cytape.recompute_grad(lambda x: np.tanh(np.tanh(x)))
    >>> round(float(cytape.grad(block)(0.5)), 6)
    0.639808
    """
    _check_function("recompute_grad", f, arguments)

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        structure = (args, kwargs)
        leaves = leaves_of_arguments(structure)
        graph = graph_for(leaves) or current_graph()
        if graph is not None:
            return _recomputed_calls().recomputed_in_graph(graph, f, args, kwargs, NOTHING)
        if not anybody_records():
            return call_with_own(f, args, kwargs)
        later = kept(structure)  # later writes to arrays do not change these
        arguments = [leaf for leaf in nest.flatten(later) if is_plain_tensor(leaf)]
        run = FirstRun(f, *later)
        result = run.take_result()
        variables = run.variables
        for leaf in leaves:
            if isinstance(leaf, Variable) and not any(leaf is variable for variable in variables):
                variables.append(leaf)
        elsewhere = variables + run.tensors

        def call_anew(*tensors: Tensor) -> list:
            args, kwargs = lent(with_tensors(later, tensors))
            with watch_of_leaks() as tape:
                results = run.again(lambda repeated: tensors_in(repeated(*args, **kwargs)))
            if tape is not None:
                warn_of_leaks(f, tape, results)
            return results

        def backward(*output_gradients: Tensor | None) -> list:
            assigned = run.assigned_since() if current_graph() is not None else None
            if assigned is not None:
                raise TapeStateError(
                    f"{name_of(f)} cannot be recomputed in a graph for its gradient: it read "
                    f"{assigned!r}, which has been assigned to since")
            found = repeated_gradients(call_anew, arguments, elsewhere, output_gradients)
            for source, gradient in zip(elsewhere, found[len(arguments):], strict=True):
                if gradient is None and is_found_no_more(source):
                    raise TapeStateError(
                        f"{name_of(f)} is recomputed for its gradient, but does not find "
                        f"{source!r} any more: an element of a list or dict, or an attribute, was "
                        "replaced or changed in place. Pass tensors that change as arguments")
            return found

        def is_found_no_more(source: Tensor) -> bool:
            if current_graph() is not None or not any(source is x for x in run.tensors):
                return False
            args, kwargs = lent(later)
            return not run.is_read_again(source, args, kwargs)

        def jvp(*tangents: Tensor | None) -> list:
            return repeated_tangents(call_anew, arguments, elsewhere, tangents)

        outputs = record(
            name_of(f), tensors_in(result), arguments + elsewhere, backward, jvp, optional=True)
        return with_tensors(result, outputs)

    return recomputed


@advising
def checkpoint(
    f: Callable | None = None, *arguments: Any, policy: str | Sequence[str] | None = None
) -> Callable[..., Any]:
    """Make a function keep the values that a policy selects, and recompute the rest.

    Parameters
    ----------
    f : callable, optional
        As for `recompute_grad`, which also says what is returned. Without it a decorator is.
    policy : str or list of str, optional
        The values that calls keep for the gradient, besides their arguments and results.

        - ``"nothing"``, the default: `recompute_grad` then.
        - ``"everything"``.
        - ``"dots"``: the results of matrix products and convolutions, which take the most time.
        - A list of names, given to values by `checkpoint_name`, and of op types ("Exp"), or
          ``"dots"``: the values of any of these. Those with a minus before them are not kept:
          ``["dots", "-logits"]``; without any others that is all but they: ``["-logits"]``.

    Raises
    ------
    TypeError, ValueError
        If the policy is invalid. In a call, if a name or op type does not occur in `f`: ops in
        branches and loops do not count, as these are recomputed as a whole.
    SymbolicTensorError
        In a call, if there is a policy and `f` asks for the value of a tensor while it is traced.

    See Also
    --------
    saved_values : The kept values.

    Notes
    -----
    With a policy, and where a recorder is active, each call of `f` is traced, as by
    `cytape.function`: that takes Python's time, which a `cytape.function` around it spends once.
    Ops that draw random numbers, assign or call Python do not run again; their results are kept.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.checkpoint(policy="dots")
    ... def layer(x, w):
    ...     return np.sum(np.tanh(np.exp(x @ w)))
    >>> x, w = cytape.constant([[1.0, 2.0]]), cytape.constant([[0.1], [0.2]])
    >>> cytape.grad(layer)(x, w)
    Tensor([[0.02267814, 0.04535627]])
    >>> [value.source for value in cytape.saved_values(layer, x, w)]
    ['argument x', 'argument w', 'MatMul']
    """
    chosen = Policy(policy)
    if f is None:
        return functools.partial(checkpoint, policy=policy)
    _check_function("checkpoint", f, arguments)
    if chosen.kept == NOTHING.kept:
        return recompute_grad(f)
    function = f

    @functools.wraps(f)
    def keeping(*args: Any, **kwargs: Any) -> Any:
        graph = graph_for(leaves_of_arguments((args, kwargs))) or current_graph()
        if graph is not None:
            return _recomputed_calls().recomputed_in_graph(graph, function, args, kwargs, chosen)
        if not anybody_records():
            return call_with_own(f, args, kwargs)
        return _recomputed_calls().called_by_a_trace(function, args, kwargs, chosen)

    return keeping


def _recomputed_calls() -> Any:
    from cytape.graph.checkpoint import recomputed_calls  # here: most programs import no graphs

    return recomputed_calls


def _check_function(name: str, f: Any, arguments: tuple) -> None:
    if not callable(f):
        raise TypeError(f"{name} takes a function, got {type(f).__name__}: {f!r}")
    if arguments:
        raise TypeError(
            f"{name} takes a function and returns one, but got {len(arguments)} more positional "
            f"argument{'s' * (len(arguments) > 1)}: call {name}({name_of(f)})(...) with them")


def checkpoint_sequential(functions: Sequence[Callable], segments: int, x: Any) -> Any:
    """Apply functions one after the other, in segments that are recomputed for the gradient.

    Memory holds the input of each segment and, during the backward pass, the intermediates of one
    segment; a number of segments near the square root of the number of functions takes the least.
    The last segment is not recomputed, since its gradient comes first.

    Parameters
    ----------
    functions : sequence of callable
        Each is called with the result of the one before.
    segments : int
        At least 1, at most one per function. They are as long as each other, or one longer.
    x : array_like, Tensor or structure of them
        The argument of the first function.

    Returns
    -------
    Tensor, ndarray or structure of them
        The result of the last function.

    Raises
    ------
    ValueError
        If there are no functions, or the number of segments is out of range.
    TypeError
        If it is no integer.

    See Also
    --------
    recompute_grad : Applied to each segment; its notes hold here.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> def deep(x):
    ...     return cytape.checkpoint_sequential([np.tanh] * 9, 3, x)
    >>> round(float(cytape.grad(deep)(0.5)), 6)
    0.245567
    """
    functions = list(functions)
    if isinstance(segments, bool) or not isinstance(segments, (int, np.integer)):
        raise TypeError(f"segments must be an integer, got {segments!r}")
    if not 1 <= segments <= len(functions):
        raise ValueError(
            f"segments must be at least 1 and at most the number of functions, {len(functions)}; "
            f"got {segments}")
    bounds = [len(functions) * i // segments for i in range(segments + 1)]
    for first, last in zip(bounds, bounds[1:-1], strict=False):
        x = recompute_grad(functools.partial(_applied, *functions[first:last]))(x)
    return _applied(*functions[bounds[-2]:], x)


def _applied(*functions_and_x: Any) -> Any:
    *functions, x = functions_and_x
    for function in functions:
        x = function(x)
    return x


def tensors_in(structure: Any) -> list[Tensor]:
    """Return the tensors among the leaves of a structure; variables are read."""
    leaves = nest.flatten(structure)
    return [convert_to_tensor(leaf) for leaf in leaves if is_tensor(leaf)]
