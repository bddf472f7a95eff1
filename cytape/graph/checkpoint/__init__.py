"""Gradients of graphs in less memory, by recomputing intermediates."""

from __future__ import annotations

from typing import Any

from cytape.graph.checkpoint.checkpoint_choice import chosen
from cytape.graph.checkpoint.kept_symbols import kept_of
from cytape.graph.checkpoint.memory_plan import (
    Checkpoints,
    Plan,
    check_no_budget,
    is_planned,
    plan_of,
    planned,
    tensors_of,
)
from cytape.graph.checkpoint.op_copies import Recomputation
from cytape.graph.differentiation.graph_gradients import differentiated

__all__ = [
    "MIN_CHECKPOINT_NODE_SIZE",
    "gradients",
    "gradients_collection",
    "gradients_memory",
    "gradients_speed",
    "plan",
]

MIN_CHECKPOINT_NODE_SIZE = 1024  # "memory" keeps tensors of more elements than this


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    checkpoints: Any = "collection",
    memory_budget: float | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Add ops to a graph that compute gradients in less memory, with more ops.

    The backward pass keeps only `xs`, the checkpoints, and results that must not be recomputed. All
    other values are recomputed from these, segment by segment, when the backward pass needs them.
    With about sqrt(n) checkpoints along n layers that takes the memory of about 2 sqrt(n) layers,
    and the time of another forward pass.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    checkpoints : str, list or Plan, optional
        The tensors to keep.

        - A list of tensors; or of strings: tensors with one of them in their names are kept. Those
          that do not lie between `xs` and `ys` are left out, and so are `xs` and `ys` themselves.
        - ``"collection"``: the graph's collection of the name "checkpoints", see
          `Graph.add_to_collection`.
        - ``"speed"``: results of ops whose names contain ``MatMul``, ``Conv`` or ``conv2d``: they
          take the most time.
        - ``"memory"``: about sqrt(n) of the bottlenecks, tensors on which all that comes later
          depends and which depend on all that came before. Only those with more than 1024 elements
          count; ``cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE`` changes that number.
        - ``"auto"``: the best choice of `plan`. Or a plan, or the checkpoints of one.
    memory_budget : int or float, optional
        For ``"auto"``, as `plan` takes it.
    **kwargs
        As `cytape.gradients` takes them.

    Returns
    -------
    list of Tensor, IndexedSlices, structure or None
        The same as those of `cytape.gradients`, to the bit: the same ops add up in the same order.

    Raises
    ------
    TypeError
        If `checkpoints` is neither a string nor a list, or the list holds something else than
        tensors and strings.
    ValueError
        If there is nothing to keep, the string is none of these, or for the same reasons as
        `cytape.gradients`.

    Notes
    -----
    Stateful ops (those that draw random numbers, read or assign variables, call Python) are never
    recomputed, nor are ops that do not depend on `xs`: their results are kept. So a mask of dropout
    is the same in both passes. Branches and loops are recomputed as a whole.

    Plans fuse elementwise ops, but not across checkpoints. If fusion alone saves as much memory,
    runs recompute nothing.

    A value that several segments read, and that is not a checkpoint, is recomputed for each of
    them, but at most three times.

    The second forward pass waits, by control inputs, for the gradient that arrives at its segment,
    and reads kept tensors through identities that wait for it, so that no pass merges an op with
    its copy. Gradients can be differentiated in turn.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", (2000,), name="x")
    >>> y = x
    >>> for _ in range(9):
    ...     y = np.tanh(y)
    >>> [dx] = cytape.graph.checkpoint.gradients(y, x, checkpoints="memory")
    >>> [plain] = cytape.gradients(y, x)
    >>> session = cytape.Session(graph)
    >>> bool(np.all(session.run(dx == plain, {x: np.ones(2000)})))
    True
    """
    checkpoints = tensors_of(checkpoints)
    if is_planned(checkpoints):
        made, model = planned(
            ys, xs, grad_ys, checkpoints, memory_budget, MIN_CHECKPOINT_NODE_SIZE, kwargs)
        checkpoints, memory_budget = made.checkpoints, None
        if isinstance(checkpoints, Checkpoints):
            return differentiated(
                ys, xs, grad_ys, stand_ins=model.stand_ins(made.schedule), **kwargs)
    check_no_budget(memory_budget)
    symbols = chosen(ys, xs, grad_ys, checkpoints, MIN_CHECKPOINT_NODE_SIZE, kwargs)
    return differentiated(
        ys, xs, grad_ys, **kwargs, stand_ins=lambda places, targets, sources: Recomputation(
            places, targets, sources, symbols))


def gradients_collection(ys: Any, xs: Any, grad_ys: Any = None, **kwargs: Any) -> list[Any]:
    """Return `gradients` that keep the tensors of the collection "checkpoints"."""
    return gradients(ys, xs, grad_ys, checkpoints="collection", **kwargs)


def gradients_speed(ys: Any, xs: Any, grad_ys: Any = None, **kwargs: Any) -> list[Any]:
    """Return `gradients` that keep the results of matrix products and convolutions."""
    return gradients(ys, xs, grad_ys, checkpoints="speed", **kwargs)


def gradients_memory(ys: Any, xs: Any, grad_ys: Any = None, **kwargs: Any) -> list[Any]:
    """Return `gradients` that keep about sqrt(n) bottlenecks."""
    return gradients(ys, xs, grad_ys, checkpoints="memory", **kwargs)


def plan(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    checkpoints: Any = "auto",
    memory_budget: float | None = None,
    **kwargs: Any,
) -> Plan:
    """Return the tensors that `gradients` would keep and recompute, and the memory, without ops.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    checkpoints : str or list, optional
        As `gradients` takes them. ``"auto"`` chooses: with a budget the fastest plan that is found
        within it, else the smallest that takes no more than 1.33 times the plain gradient's time.
    memory_budget : int or float, optional
        For ``"auto"``: bytes, an integer, or a fraction of the plain gradient's peak, a float.
    **kwargs
        As `cytape.gradients` takes them.

    Returns
    -------
    Plan
        With the attributes ``peak_bytes`` and ``seconds``, and ``plain_peak_bytes`` and
        ``plain_seconds`` if everything is kept; ``recomputed_ops`` and ``checkpoints``; and the
        methods ``pareto()`` and ``picture()``.

    Raises
    ------
    MemoryBudgetError
        If no plan is found within the budget; its ``smallest_bytes`` says which would do.
    TypeError, ValueError
        If the budget is no number, or out of range; and as `gradients` raises them.

    Notes
    -----
    The graph and its gradient are copied, and the ops and the tensors that they read become a
    numerical problem. For up to 15 ops between `xs` and `ys` the best schedule is searched. For
    larger graphs a dynamic program over cuts of the graph finds schedules: on chains that of Chen
    et al. and of Beaumont, Herrmann et al. ("rotor"), elsewhere a heuristic. Then recomputations
    are dropped where memory allows. "memory" and "speed" are tried, too. Ops may be recomputed more
    than once; stateful ones never are. Peaks are those of the executor's plans for the copy;
    seconds are estimated from sizes. An unknown extent counts as 64.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = h = graph.placeholder("float64", (1000, 50))
    >>> w = cytape.Variable(np.eye(50))
    >>> with graph.as_default():
    ...     for _ in range(12):
    ...         h = np.tanh(h @ w)
    ...     y = np.sum(h)
    >>> plan = cytape.graph.checkpoint.plan(y, [w], memory_budget=0.6)
    >>> plan.peak_bytes <= 0.6 * plan.plain_peak_bytes
    True
    >>> again = cytape.graph.checkpoint.plan(y, [w], checkpoints=plan.checkpoints)
    >>> again.recomputed_ops == plan.recomputed_ops
    True
    """
    return plan_of(
        ys, xs, grad_ys, checkpoints, memory_budget, MIN_CHECKPOINT_NODE_SIZE, kwargs)


def kept_values(trace: Any, checkpoints: Any, outputs: bool) -> Any:
    """Return the values that calls of a trace keep for their derivatives."""
    return kept_of(trace, checkpoints, outputs, MIN_CHECKPOINT_NODE_SIZE)


checkpointed_gradients = gradients


def __dir__() -> list[str]:
    return sorted(__all__)
