"""Contexts of nodes: scope, device, control inputs and other settings, as one shared object."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from cytape.graph.model.lookup import Lookup
from cytape.graph.model.names import ROOT, checked_name
from cytape.graph.model.operation import Operation
from cytape.tensor.recording.state import building_under
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.cached_property import cached_property

Overrides = tuple[tuple[str, str], ...]  # names of gradient functions, sorted by op types


class Context(NamedTuple):
    """Settings under which nodes of a graph are built.

    Attributes
    ----------
    scope : int
        By number; see `Names`.
    controls : tuple of int
        Nodes that run before.
    device : str
    overrides : Overrides
        Op types, and whose gradient functions they have instead of their own.
    original : int
        The node that is being differentiated; -1 if there is none.
    recorded : bool
        Whether tapes and accumulators that record calls of the graph follow these nodes.

    Examples
    --------
    >>> Context(device="cpu:1").controls
    ()
    """

    scope: int = ROOT
    controls: tuple[int, ...] = ()
    device: str = ""
    overrides: Overrides = ()
    original: int = -1
    recorded: bool = True


OUTERMOST = Context()


def overrides_within(outer: Overrides, inner: Overrides) -> Overrides:
    """Return nested gradient functions combined: inner ones replace outer ones.

    Examples
    --------
    >>> overrides_within((("Exp", "A"), ("Tanh", "B")), (("Tanh", "C"),))
    (('Exp', 'A'), ('Tanh', 'C'))
    """
    return tuple(sorted({**dict(outer), **dict(inner)}.items()))


class BuiltUnderContexts(Lookup):
    """A graph whose operations are built under scopes, devices, control inputs and so on."""

    @cached_property
    def _numbers(self) -> dict[Context, int]:  # a context -> its position in `contexts`
        return {OUTERMOST: 0}

    def context_with(self, **changes: Any) -> int:
        """Return the number of the present context with some fields changed.

        Parameters
        ----------
        **changes
            Fields of `Context`.

        Returns
        -------
        int
            An argument of `enter_context`.
        """
        return self.context_number(self.contexts[self.present_context]._replace(**changes))

    def context_number(self, context: Context) -> int:
        """Return the position of a context in `contexts`, appended if it is new."""
        number = self._numbers.get(context)
        if number is None:
            number = self._numbers[context] = len(self.contexts)
            self.contexts.append(context)
            self.has_control_inputs |= bool(context.controls)
            self.has_overrides |= bool(context.overrides)
        return number

    def unrecorded_context(self) -> int:
        """Return the number of the present context, for nodes that recorders skip.

        Returns
        -------
        int
            An argument of `enter_context`.
        """
        return self.context_with(recorded=False)

    def name_scope(self, name: str | None) -> AbstractContextManager[Any]:
        """Build ops whose names begin with a name and a slash.

        Parameters
        ----------
        name : str or None
            Made unique within the present scope. With a slash at the end: exactly that scope, which
            may have been left before. None, or "": no scope, also inside another. An invalid name
            raises a ValueError.

        Returns
        -------
        context manager
            Its value is the full name of the scope, with a slash at the end.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> with graph.name_scope("layer") as scope:
        ...     x = graph.placeholder("float64", name="x")
        >>> scope, x.name
        ('layer/', 'layer/x:0')
        """
        number = self.scope_context(name)
        name = self._names.scope_name(self.contexts[number].scope, self)
        return building_under(self, number, name)

    def scope_context(self, name: str | None) -> int:
        """Return the number of the present context in a scope, without resolving names.

        Parameters
        ----------
        name : str or None
            As `name_scope` takes it.

        Returns
        -------
        int
            An argument of `enter_context`.
        """
        if not name:
            return self.context_with(scope=ROOT)
        checked_name(name.removesuffix("/") if isinstance(name, str) else name)
        parent = self.contexts[self.present_context].scope
        return self.context_with(scope=self._names.enter(parent, name, self.n_nodes))

    def unique_scope(self, name: str) -> str:
        """Create a scope that does not exist yet.

        Parameters
        ----------
        name : str
            The name to start from, independent of the present scope.

        Returns
        -------
        str
            The name made unique, with a slash at the end.
        """
        base = checked_name(name.removesuffix("/"))
        return self._names.scope_name(self._names.enter(ROOT, base, self.n_nodes), self)

    def differentiating(self, operation: Operation) -> AbstractContextManager[Any]:
        """Build ops of the derivative of an op, in a scope named after it.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> with graph.differentiating(x.op):
        ...     y = graph.constant(2.0)
        >>> y.name, y.op.original_op
        ('x_grad/Constant:0', <Operation 'x' (Placeholder)>)
        """
        return building_under(self, self.gradient_context(operation.node))

    def gradient_context(self, node: int, device: str | None = None) -> int:
        """Return the number of a context of ops that differentiate a node.

        Parameters
        ----------
        node : int
        device : str, optional
            By default the present one.

        Returns
        -------
        int
            An argument of `enter_context`.
        """
        present = self.contexts[self.present_context]
        scope = self._names.enter_after(node, "_grad", present.scope, self.n_nodes)
        if device is None:
            device = present.device
        # The scope is new, so no existing context equals this one.
        self.contexts.append(Context(
            scope, present.controls, device, present.overrides, node, present.recorded))
        return len(self.contexts) - 1

    def context_of_numbers(self) -> int:
        """Return the number of a context with only the present scope."""
        scope = self.contexts[self.present_context].scope
        return 0 if scope == ROOT else self.context_number(Context(scope))

    def original_op(self, operation: Operation | None) -> AbstractContextManager[Any]:
        """Build ops that store which op they differentiate.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> with graph.original_op(x.op):
        ...     y = graph.constant(2.0)
        >>> y.op.original_op
        <Operation 'x' (Placeholder)>
        """
        node = -1 if operation is None else self.as_node(operation)
        return building_under(self, self.context_with(original=node))

    def control_dependencies(self, control_inputs: Any) -> AbstractContextManager[Any]:
        """Build ops that run only after others have run.

        Parameters
        ----------
        control_inputs : iterable of Operation, Tensor or str; or one of these; or None
            Nodes that run before, in addition to those of the enclosing blocks. None clears the
            control inputs of the enclosing blocks. Tensors with values are ignored.

        Raises
        ------
        ValueError
            If one of them belongs to another graph.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> with graph.control_dependencies([x]):
        ...     y = graph.constant(2.0)
        >>> y.op.control_inputs
        (<Operation 'x' (Placeholder)>,)
        """
        if control_inputs is None:
            return building_under(self, self.context_with(controls=()))
        before = self.contexts[self.present_context].controls
        controls = set(before).union(self._nodes_of(control_inputs))
        return building_under(self, self.context_with(controls=tuple(sorted(controls))))

    def _nodes_of(self, control_inputs: Any) -> list[int]:
        if isinstance(control_inputs, (Operation, Tensor, str)):
            control_inputs = [control_inputs]
        return [
            self.as_node(item)
            for item in control_inputs
            if not (isinstance(item, Tensor) and item.graph is None)
        ]

    def device(self, label: str | None) -> AbstractContextManager[Any]:
        """Build ops with a device label.

        Parameters
        ----------
        label : str or None
            Replaces that of the blocks around; None, or "": anywhere.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> with graph.device("cpu:1"):
        ...     x = graph.placeholder("float64")
        >>> x.device
        'cpu:1'
        """
        if label is not None and not isinstance(label, str):
            raise TypeError(f"a device is a label, a string, got {label!r}")
        return building_under(self, self.context_with(device=label or ""))

    def colocate_with(self, op: Operation | Tensor) -> AbstractContextManager[Any]:
        """Build ops with the device label of another op.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> with graph.device("cpu:1"):
        ...     x = graph.placeholder("float64")
        >>> with graph.colocate_with(x):
        ...     y = graph.constant(2.0)
        >>> y.device
        'cpu:1'
        """
        context = self.contexts[self.context_of(self.as_node(op))]
        return building_under(self, self.context_with(device=context.device))

    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Build ops with the gradient functions of other op types instead of their own.

        Parameters
        ----------
        op_type_map : mapping of str to str
            From an op's type to the name under which a gradient function is registered; see
            `cytape.register_gradient`.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64")
        >>> with graph.gradient_override_map({"Tanh": "StraightThrough"}):
        ...     y = np.tanh(x)
        >>> graph.gradient_override_of(y.op.node)
        'StraightThrough'
        """
        if not isinstance(op_type_map, Mapping) or not all(
            isinstance(name, str) for pair in op_type_map.items() for name in pair
        ):
            raise TypeError(
                f"gradient_override_map takes a mapping from op types to names, got {op_type_map!r}"
            )
        overrides = overrides_within(
            self.contexts[self.present_context].overrides, tuple(op_type_map.items()))
        return building_under(self, self.context_with(overrides=overrides))

    def gradient_override_of(self, node: int) -> str | None:
        """Return the name of the gradient function that replaces a node's own, or None."""
        overrides = self.contexts[self.context_of(node)].overrides
        return dict(overrides).get(self.ops[node].name) if overrides else None

    def original_of(self, node: int) -> int | None:
        """Return the node whose derivative a node is part of."""
        original = self.contexts[self.context_of(node)].original
        return None if original < 0 else original
