"""Placeholders that replace tensors in edits, and are named after them."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import DTypeLike

from cytape.graph.model.default_graph import get_default_graph
from cytape.graph.model.graph import Graph
from cytape.tensor.tensor import Tensor

__all__ = [
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "placeholder_name",
]

PREFIX = "geph"


def placeholder_name(
    t: Tensor | None = None, scope: str | None = None, prefix: str = PREFIX
) -> str:
    """Return the name of a placeholder for a tensor.

    Parameters
    ----------
    t : Tensor, optional
        Of a graph.
    scope : str, optional
        Scope of the placeholder; by default the tensor's.
    prefix : str, optional

    Returns
    -------
    str
        The prefix, the name of the tensor's operation, and the position of the tensor among its
        outputs. Names of placeholders that already have this form are returned unchanged.

    Raises
    ------
    TypeError
        If `t` is no tensor of a graph.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="model/x")
    >>> placeholder_name(x), placeholder_name(x, scope="copy")
    ('model/geph__x_0', 'copy/geph__x_0')
    """
    if t is None:
        return finished_scope(scope) + prefix
    if not isinstance(t, Tensor) or t.graph is None:
        raise TypeError(f"expected a tensor of a graph, got {t!r}")
    around, slash, name = t.op.name.rpartition("/")
    scope = around + slash if scope is None else finished_scope(scope)
    if name.startswith(f"{prefix}__"):
        return scope + name
    return f"{scope}{prefix}__{name}_{t.value_index}"


def make_placeholder_from_tensor(
    t: Tensor, scope: str | None = None, prefix: str = PREFIX, graph: Graph | None = None
) -> Tensor:
    """Add a placeholder of a tensor's dtype and shape.

    Parameters
    ----------
    t : Tensor
        Of a graph.
    scope, prefix
        As `placeholder_name` takes them.
    graph : Graph, optional
        To which it is added: by default the one that is being built.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", (2,), name="x")
    >>> make_placeholder_from_tensor(x, graph=graph)
    <Tensor 'geph__x_0:0' (float64, shape (2,))>
    """
    name = placeholder_name(t, scope, prefix)
    return _placeholder(graph, t.dtype, t.shape, name)


def make_placeholder_from_dtype_and_shape(
    dtype: DTypeLike, shape: Iterable[int | None] | None = None, scope: str | None = None,
    prefix: str = PREFIX, graph: Graph | None = None,
) -> Tensor:
    """Add a placeholder.

    Parameters
    ----------
    dtype : dtype
    shape : iterable of int or None, optional
        As `cytape.placeholder` takes it.
    scope, prefix, graph
        As for `make_placeholder_from_tensor`.

    Examples
    --------
    >>> import cytape
    >>> make_placeholder_from_dtype_and_shape("float64", (2,), graph=cytape.Graph())
    <Tensor 'geph:0' (float64, shape (2,))>
    """
    return _placeholder(graph, dtype, shape, placeholder_name(None, scope, prefix))


def _placeholder(
    graph: Graph | None, dtype: DTypeLike, shape: Iterable[int | None] | None, name: str
) -> Tensor:
    graph = get_default_graph() if graph is None else graph
    with graph.name_scope(None), graph.control_dependencies(None):
        return graph.placeholder(dtype, shape, name)


def finished_scope(scope: str | None) -> str:
    """Return a scope with a slash at the end; "" for no scope."""
    return "" if not scope else scope if scope.endswith("/") else scope + "/"
