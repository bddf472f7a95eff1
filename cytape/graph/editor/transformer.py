"""Transformer: copies of parts of graphs, in the same graph or another, made by handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cytape.graph.editor.placeholders import finished_scope, make_placeholder_from_tensor
from cytape.graph.editor.subgraph_view import SubGraphView
from cytape.graph.editor.view_makers import make_view
from cytape.graph.model.contexts import Context
from cytape.graph.model.graph import Graph
from cytape.graph.model.graph_variables import variable_handle_op
from cytape.graph.model.names import ROOT
from cytape.graph.model.operation import Operation
from cytape.graph.tracing.replay import build_again
from cytape.tensor import nest
from cytape.tensor.recording.state import building_into
from cytape.tensor.tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerInfo",
    "assign_renamed_collections_handler",
    "copy_op_handler",
    "keep_t_if_possible_handler",
    "replace_t_with_placeholder_handler",
    "transform_op_if_inside_handler",
]


# ---- handlers


def replace_t_with_placeholder_handler(info: TransformerInfo, t: Tensor) -> Tensor:
    """Replace a tensor from outside by a placeholder.

    Returns
    -------
    Tensor
        For the handle of a variable, its handle in the other graph, since it cannot be fed.
    """
    graph, node = info.graph, info.graph.as_node(t)
    if graph.ops[node] is variable_handle_op:
        return info.graph_.variable_handle(graph.attrs[node]["variable"])
    return make_placeholder_from_tensor(t, info.scope_, graph=info.graph_)


def keep_t_if_possible_handler(info: TransformerInfo, t: Tensor) -> Tensor:
    """Keep a tensor from outside in the same graph; replace it by a placeholder in another one."""
    return t if info.graph is info.graph_ else replace_t_with_placeholder_handler(info, t)


def transform_op_if_inside_handler(
    info: TransformerInfo, op: Operation, keep_if_possible: bool = True
) -> Operation | None:
    """Replace a control input or original operation by its copy, if there is one.

    Parameters
    ----------
    info : TransformerInfo
    op : Operation
    keep_if_possible : bool, optional
        Whether it is itself if there is none, in the same graph.
    """
    kept = op if keep_if_possible and info.graph is info.graph_ else None
    return info.transformed_ops.get(op, kept)


def assign_renamed_collections_handler(
    info: TransformerInfo, elem: Operation | Tensor, elem_: Operation | Tensor
) -> None:
    """Add a copy to the collections that contain its original, under the new names.

    Parameters
    ----------
    info : TransformerInfo
    elem, elem_ : Operation or Tensor
        The original, and its copy.
    """
    for name in info.collections_of(elem):
        info.graph_.add_to_collection(info.new_name(name) if isinstance(name, str) else name, elem_)


def copy_op_handler(
    info: TransformerInfo, op: Operation, new_inputs: list[Tensor]
) -> tuple[Operation, tuple[Tensor, ...]]:
    """Copy an operation.

    Parameters
    ----------
    info : TransformerInfo
    op : Operation
    new_inputs : list of Tensor

    Returns
    -------
    Operation
    tuple of Tensor
        Its outputs.
    """
    graph, into, node = info.graph, info.graph_, op.node
    if graph.ops[node] is variable_handle_op:  # a graph has one handle for each variable
        handle = into.variable_handle(graph.attrs[node]["variable"])
        return handle.op, (handle,)
    name = info.new_name(op.name)  # before the copy is built, since reading names would name it
    context = graph.contexts[graph.context_of(node)]
    number = into.context_number(Context(
        device=context.device, overrides=context.overrides, recorded=context.recorded))
    node_, outputs = build_again(graph, node, new_inputs, into, number)
    op_ = into.operation_at(node_)
    into.give_name_of(op_, op, name)
    return op_, tuple(outputs)


# ---- results of a transformation


class TransformerInfo:
    """The copies of operations and tensors in a transformation.

    Attributes
    ----------
    sgv : SubGraphView
        The transformed view.
    graph, graph_ : Graph
        Its graph, and the graph of the copies.
    scope, scope_ : str
        Prefixes of the old and the new names.
    transformed_ops : dict of Operation to Operation
    transformer : Transformer
    """

    def __init__(
        self, transformer: Transformer, view: SubGraphView, graph_: Graph, scope_: str, scope: str
    ) -> None:
        self.transformer = transformer
        self.sgv = view
        self.graph, self.graph_ = view.graph, graph_
        self.scope, self.scope_ = scope, scope_
        self.transformed_ops: dict[Operation, Operation] = {}
        self._symbols: dict[int, Tensor] = {}
        self._outside: dict[int, Tensor] = {}
        self._inputs = set(view.input_symbols)
        self._collections: dict[Any, list[Any]] = {}  # an op, or a symbol -> names
        for name in self.graph.get_all_collection_keys():
            for item in self.graph.get_collection_ref(name):
                key = self._key(item)
                if key is not None:
                    self._collections.setdefault(key, []).append(name)

    @property
    def transformed_ts(self) -> dict[Tensor, Tensor]:
        """Copies of the tensors that are computed inside."""
        return {self.graph.tensor_at(symbol): t for symbol, t in self._symbols.items()}

    def _key(self, item: Any) -> Any:
        if isinstance(item, Tensor) and item.graph is self.graph:
            return self.graph.symbol_of(item)
        return item if isinstance(item, Operation) and item.graph is self.graph else None

    def collections_of(self, elem: Operation | Tensor) -> list[Any]:
        """Return the names of the collections that contain an operation or tensor."""
        return list(dict.fromkeys(self._collections.get(self._key(elem), ())))

    @property
    def has_collections(self) -> bool:
        """Whether any collection contains operations or tensors of the graph."""
        return bool(self._collections)

    def new_name(self, name: str) -> str:
        """Return the new name for an old one.

        Raises
        ------
        ValueError
            If the name does not begin with the source scope.
        """
        if not name.startswith(self.scope):
            raise ValueError(f"{name!r} is not in the source scope, {self.scope!r}")
        return self.scope_ + name[len(self.scope) :]

    def input_for(self, symbol: int) -> Tensor:
        """Return the tensor that a copied operation reads in place of a symbol."""
        t = self._symbols.get(symbol)
        if t is None:
            t = self._outside.get(symbol)
        if t is None:
            handler = (
                self.transformer.transform_external_input_handler if symbol in self._inputs
                else self.transformer.transform_external_hidden_input_handler)
            t = self._outside[symbol] = handler(self, self.graph.tensor_at(symbol))
        return t

    def note(self, op: Operation, op_: Operation, outputs: Iterable[Tensor]) -> None:
        """Note the copy of an operation."""
        self.transformed_ops[op] = op_
        self._symbols.update(zip(self.graph.outputs_of(op.node), outputs, strict=True))

    def transformed(
        self, original: Any, missing_fn: Callable[[Any], Any] | None = None
    ) -> Any:
        """Return the copies of operations and tensors.

        Parameters
        ----------
        original : Operation, Tensor or str, or a structure of these
            Strings are names, of tensors if they have a colon.
        missing_fn : callable, optional
            Called for objects without a copy; by default None is returned for these.

        Returns
        -------
        Operation or Tensor, or a structure of these
        """
        def found(item: Any) -> Any:
            element = _element(self.graph, item)
            if isinstance(element, Tensor):
                return self._symbols.get(self.graph.symbol_of(element))
            return self.transformed_ops.get(element)

        return _mapped(found, original, missing_fn)

    def original(self, transformed: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """Return the originals of operations and tensors.

        Parameters
        ----------
        transformed, missing_fn
            As for the method `transformed`.
        """
        ops = {op_: op for op, op_ in self.transformed_ops.items()}
        symbols = {self.graph_.symbol_of(t): symbol for symbol, t in self._symbols.items()}

        def found(item: Any) -> Any:
            element = _element(self.graph_, item)
            if isinstance(element, Tensor):
                symbol = symbols.get(self.graph_.symbol_of(element))
                return None if symbol is None else self.graph.tensor_at(symbol)
            return ops.get(element)

        return _mapped(found, transformed, missing_fn)

    def __str__(self) -> str:
        return "\n".join([
            f"{len(self.transformed_ops)} operations transformed",
            *[f"{op.name} -> {op_.name}" for op, op_ in self.transformed_ops.items()]])


def _element(graph: Any, item: Any) -> Any:
    """Return the operation or tensor given as an object or a name; None if there is none."""
    if isinstance(item, str):
        try:
            return graph.as_graph_element(item)
        except KeyError:
            return None
    if not isinstance(item, (Operation, Tensor)):
        raise TypeError(f"expected an operation, a tensor or a name of one, got {item!r}")
    return item if item.graph is graph else None


def _mapped(
    function: Callable[[Any], Any], items: Any, missing_fn: Callable[[Any], Any] | None
) -> Any:
    def mapped(item: Any) -> Any:
        found = function(item)
        return missing_fn(item) if found is None and missing_fn is not None else found

    return nest.map_structure(mapped, items)


class Transformer:
    """Copier of parts of graphs, in the same graph or another; handlers define the copies.

    Attributes
    ----------
    transform_op_handler : callable
        Called with the info, an operation and its new inputs; returns the new operation and its
        outputs. By default a copy.
    transform_external_input_handler : callable
        Called with the info and an input of the view; returns its replacement. By default a
        placeholder.
    transform_external_hidden_input_handler : callable
        The same for tensors that the operations read and that are not inputs of the view. By
        default the tensor itself in the same graph, and a placeholder in another one.
    transform_control_input_handler, transform_original_op_handler : callable
        Called with the info and an operation that others wait for, or differentiate; returns the
        operation that new ones wait for, or None. By default the new one; if there is none, itself
        in the same graph, and None in another one.
    assign_collections_handler : callable
        Called with the info, each operation and tensor, and its copy. By default copies are added
        to collections under the new names.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", (), name="x")
    >>> y = np.tanh(x) * 2.0
    >>> def without_tanh(info, op, new_inputs):
    ...     if op.type == "Tanh":
    ...         return new_inputs[0].op, new_inputs
    ...     return copy_op_handler(info, op, new_inputs)
    >>> transformer = Transformer()
    >>> transformer.transform_op_handler = without_tanh
    >>> view, info = transformer(graph, cytape.Graph(), "")
    >>> print(view.graph)
    Graph of 3 operations
    x        = Placeholder()   -> float64 ()
    Multiply = Multiply(x, 2.) -> float64 ()
    """

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Any] = copy_op_handler
        self.transform_control_input_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.transform_external_input_handler: Callable[..., Any] = (
            replace_t_with_placeholder_handler)
        self.transform_external_hidden_input_handler: Callable[..., Any] = (
            keep_t_if_possible_handler)
        self.transform_original_op_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.assign_collections_handler: Callable[..., Any] = assign_renamed_collections_handler

    def __call__(
        self, sgv: Any, dst_graph: Graph, dst_scope: str, src_scope: str = "",
        reuse_dst_scope: bool = False,
    ) -> tuple[SubGraphView, TransformerInfo]:
        """Transform a view.

        Parameters
        ----------
        sgv, dst_graph, dst_scope, src_scope, reuse_dst_scope
            As for `copy`, which also says what is returned. After an error nothing has been built.
        """
        view = make_view(sgv)
        if not isinstance(dst_graph, Graph):
            raise TypeError(f"dst_graph must be a graph, got {dst_graph!r}")
        if not view:
            raise ValueError("there is nothing to transform: the view is empty")
        with dst_graph.all_or_nothing(), building_into(dst_graph):
            scope = finished_scope(dst_scope)
            if scope and not reuse_dst_scope:
                scope = dst_graph.unique_scope(scope)
            info = TransformerInfo(self, view, dst_graph, scope, finished_scope(src_scope))
            self._build(info)
            result = view.with_elements_replaced(
                dst_graph, info.transformed_ops.get,
                lambda symbol: dst_graph.symbol_of(info.input_for(symbol)))
        return result, info

    def _build(self, info: TransformerInfo) -> None:
        graph, first = info.graph, info.graph_.n_nodes
        for node in sorted(info.sgv.nodes):
            op = graph.operation_at(node)
            new_inputs = [info.input_for(symbol) for symbol in graph.inputs_of(node)]
            op_, outputs = self.transform_op_handler(info, op, new_inputs)
            info.note(op, op_, outputs)
            if op_.node >= first:
                self._set_context(info, node, op_.node)
            if info.has_collections:
                for elem, elem_ in zip((op, *op.outputs), (op_, *outputs), strict=True):
                    self.assign_collections_handler(info, elem, elem_)

    def _set_context(self, info: TransformerInfo, node: int, node_: int) -> None:
        """Copy the control inputs of a node to its copy, with replacements."""
        graph, into = info.graph, info.graph_
        original = graph.original_of(node)
        controls = graph.control_inputs_of(node) if graph.has_control_inputs else []
        if original is None and not controls:
            return
        new = [self.transform_control_input_handler(info, graph.operation_at(before))
               for before in controls]
        if original is not None:
            op_ = self.transform_original_op_handler(info, graph.operation_at(original))
            original = None if op_ is None else op_.node
        context = into.contexts[into.context_of(node_)]
        into.set_context(node_, into.context_number(context._replace(
            scope=ROOT, controls=tuple(sorted({op.node for op in new if op is not None})),
            original=-1 if original is None else original)))
