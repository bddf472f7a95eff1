"""Graph: a program as a graph of operations, for users."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cytape.graph.model.contexts import OUTERMOST
from cytape.graph.model.graph_edits import Editable
from cytape.graph.model.listing import listing
from cytape.graph.model.names import checked_name
from cytape.graph.model.operation import Operation
from cytape.ops.creation import constant_op
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.tensor.making import tensor_of_copy
from cytape.tensor.pictures.picture import Picture
from cytape.tensor.recording.state import building_into
from cytape.tensor.tensor import Tensor, another
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.value import newest_id

__all__ = ["Graph"]

def _not_fed(shape, dtype):
    raise RuntimeError("a placeholder has no value: feed one")


placeholder_op = nondifferentiable(
    "Placeholder", _not_fed, shape_rule=lambda shape, dtype: symbolic_spec(shape, dtype),
    lowering="UNFED")
no_op = nondifferentiable("NoOp", lambda: (), shape_rule=lambda: ())


class Graph(Editable):
    """A program as a graph of operations, which a `Session` runs.

    Calls of ops with a tensor of a graph are added to it; inside `as_default` all calls are. The
    graph consists of `Operation` objects, which are connected by tensors without values. The name
    of an operation is its type (or the user's name for it), made unique. The name of a tensor is
    the operation's, a colon, and the index of the output.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> with graph.as_default():
    ...     x = cytape.placeholder("float64", shape=(None, 3), name="x")
    ...     y = np.tanh(x) @ cytape.constant([1.0, 2.0, 3.0])
    >>> y
    <Tensor 'MatMul:0' (float64, shape (None,))>
    >>> cytape.Session(graph).run(y, {x: np.zeros((2, 3))})
    array([0., 0.])
    """

    def __init__(self) -> None:
        self.first_id = newest_id()  # ids of objects made before are smaller
        self.contexts[0] = OUTERMOST

    def as_default(self) -> AbstractContextManager[Graph]:
        """Build this graph inside a ``with`` block, for any operands of ops.

        Examples
        --------
        >>> import cytape
        >>> with cytape.Graph().as_default() as graph:
        ...     y = -cytape.constant(1.0)
        >>> y.graph is graph
        True
        """
        return building_into(self)

    # ---- building

    def capture(self, tensor: Tensor) -> Tensor:
        """Return this graph's tensor for one with a value; raise a ValueError for another graph's.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.capture(cytape.constant(1.0)).graph is graph
        True
        """
        if tensor.graph is None:
            return self.constant(tensor)
        return tensor if tensor.graph is self else super().capture(tensor)

    def placeholder(
        self, dtype: DTypeLike, shape: Iterable[int | None] | None = None, name: str | None = None
    ) -> Tensor:
        """Add a tensor whose value is given when the graph runs.

        Parameters
        ----------
        dtype : dtype
        shape : iterable of int or None, optional
            Extents of the axes, None where it is not known; by default not even their number is.
        name : str, optional

        Raises
        ------
        ValueError
            If an extent is negative, or the name not valid.
        TypeError
            If an extent is no integer, or the dtype is not one of tensors.

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().placeholder("float32", (None, 3), name="x")
        <Tensor 'x:0' (float32, shape (None, 3))>
        """
        return self._named(name, placeholder_op, shape=checked_shape(shape), dtype=np.dtype(dtype))

    def constant(
        self, value: Tensor | ArrayLike, name: str | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Add a tensor with a value that never changes.

        Parameters
        ----------
        value : Tensor or array_like
            With a value.
        name : str, optional
        dtype : dtype, optional

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().constant([1.0, 2.0], name="c")
        <Tensor 'c:0' (float64, shape (2,))>
        """
        if dtype is not None or type(value) is not Tensor or value.graph is not None:
            array = value.numpy() if isinstance(value, Tensor) else value
            value = tensor_of_copy(plain_array(array, dtype))
        else:
            value = another(value)
        return self._named(name, constant_op, value=value)

    def no_op(self, name: str | None = None) -> Operation:
        """Add an operation that does nothing but wait for its control inputs.

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().no_op(name="nothing")
        <Operation 'nothing' (NoOp)>
        """
        if name is not None:
            checked_name(name)
        self.build(no_op)
        node = self.n_nodes - 1
        if name is not None:
            self._names.give(node, name)
        return Operation(self, node)

    def group(self, *inputs: Any, name: str | None = None) -> Operation:
        """Add an operation that runs after all of some others.

        Parameters
        ----------
        *inputs : Operation, Tensor or str
        name : str, optional

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.group(graph.no_op("a"), graph.no_op("b")).control_inputs
        (<Operation 'a' (NoOp)>, <Operation 'b' (NoOp)>)
        """
        with self.control_dependencies(inputs):
            return self.no_op("group" if name is None else name)

    def _named(self, name: str | None, op: Any, *inputs: Any, **attrs: Any) -> Tensor:
        if name is not None:
            checked_name(name)
        result = self.build(op, *inputs, **attrs)
        if name is not None:
            self.give_name(result, name)
        return result

    def give_name(self, op: Operation | Tensor, name: str) -> None:
        """Set the name of an operation that was just built.

        Parameters
        ----------
        op : Operation or Tensor
        name : str
            Made unique in the scope that the operation was built in.

        Raises
        ------
        ValueError
            If the name is not valid, or the operation's name has been asked for before.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> y = np.tanh(graph.placeholder("float64"))
        >>> graph.give_name(y, "activation")
        >>> y.name
        'activation:0'
        """
        self._names.give(self.as_node(op), name)

    def give_name_of(self, op: Operation, other: Operation, name: str) -> None:
        """Set the name of an operation that was just built as if another op had been called.

        Parameters
        ----------
        op, other : Operation
            Only if the other one was given a name, this one is.
        name : str
            Made unique in the scope that the operation was built in.
        """
        give = self._names.give if other.graph.was_named(other.node) else self._names.copy
        give(self.as_node(op), name)

    def describe(self, symbol: int) -> str:
        """Return the name of a symbol for messages."""
        spec = self.spec_of(symbol)
        shape = "unknown shape" if spec.shape is None else f"shape {spec.shape}"
        return f"{self.tensor_name_of(symbol)!r} ({spec.dtype}, {shape})"

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, with the present values of its variables.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        GraphFileError
            If an op has a type that is not declared under its name, or an argument that is not
            made of numbers, strings and the like; or a collection holds something of that kind.

        Examples
        --------
        >>> import os, tempfile
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", (), name="x")
        >>> y = cytape.identity(x * x, name="y")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "square.graph")
        ...     graph.save(path)
        ...     loaded = cytape.Graph.load(path)
        >>> cytape.Session(loaded).run("y:0", {"x:0": 3.0})
        np.float64(9.0)
        """
        from cytape.graph.model.graph_files import (  # here: most programs save no graph
            save,
        )

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Graph:
        """Return the graph in a file, with new variables.

        Loading runs no code from the file: ops are looked up by type among the declared ones, and
        checked as in calls.

        Raises
        ------
        GraphFileError
            If it is no saved graph, is damaged, or has ops that are not declared.
        OSError
            If it cannot be read.
        """
        from cytape.graph.model.graph_files import load

        return load(cls(), path)

    # ---- listings and drawings

    def listing(self) -> str:
        """Return the graph as text, one line per operation.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", (None, 3), name="x")
        >>> with graph.name_scope("loss"):
        ...     y = np.sum(2.0 * x**2, axis=1)
        >>> print(graph)
        Graph of 5 operations
        x          = Placeholder()              -> float64 (None, 3)
        loss/
          Square   = Square(x)                  -> float64 (None, 3)
          Multiply = Multiply(2., loss/Square)  -> float64 (None, 3)
          Sum      = Sum(loss/Multiply, axis=1) -> float64 (None,)
        """
        return listing(self)

    def __str__(self) -> str:
        return listing(self)

    def to_dot(self) -> str:
        """Return the graph in the language of Graphviz.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> "Placeholder" in graph.to_dot()
        True
        """
        from cytape.graph.model.drawing import diagram_of

        return diagram_of(self).to_dot()

    def draw(self, depth: int | None = None, most: int = 1000) -> Picture:
        """Return a picture of the graph, which notebooks show.

        It is drawn by the program ``dot`` of Graphviz if that is installed. Placeholders are
        rounded, variables are cylinders, constants have a folded corner, results that nothing
        reads have a double outline. Dashed arrows are control inputs.

        Parameters
        ----------
        depth : int, optional
            The number of nested scopes that are opened; each deeper scope is one box. By default
            all are opened.
        most : int, optional
            The largest number of boxes.

        Returns
        -------
        Picture
            With the method `save`; ``str(picture)`` is its SVG.

        Raises
        ------
        ValueError
            If there are more boxes than `most`.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", (2,), name="x")
        >>> with graph.name_scope("layer"):
        ...     y = np.tanh(2.0 * x)
        >>> picture = graph.draw()
        >>> str(picture).startswith("<svg") and "Tanh" in str(picture)
        True
        >>> "Tanh" in str(graph.draw(depth=0))
        False
        """
        from cytape.graph.model.drawing import diagram_of

        return diagram_of(self, depth).draw(most, (
            "fold scopes by depth=0 or more, or pass a larger `most`"))

    def _repr_svg_(self) -> str | None:
        from cytape.graph.model.drawing import diagram_of
        from cytape.tensor.pictures.diagram import LARGEST

        for depth in (None, 1, 0):
            diagram = diagram_of(self, depth)
            if len(diagram.boxes) <= LARGEST:
                return str(diagram.draw())
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.n_nodes} operations>"


def checked_shape(shape: Any) -> tuple[int | None, ...] | None:
    """Return a shape, possibly with unknown extents, as a tuple, or raise."""
    if shape is None:
        return None
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    shape = tuple(None if extent is None else operator.index(extent) for extent in shape)
    if any(extent is not None and extent < 0 for extent in shape):
        raise ValueError(f"extents are not negative (None: unknown), got shape {shape}")
    return shape
