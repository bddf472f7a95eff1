"""Traces: graphs of nodes of users' classes, one per call of a function."""

import functools
import warnings
from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace

from cytape.autodiff.custom.boxes import (
    ArrayBox,
    Box,
    Call,
    boxed,
    getval,
    isbox,
    new_box,
    seen,
    token_of,
)
from cytape.autodiff.custom.boxes import primitive as primitive
from cytape.autodiff.custom.primitive_op import PrimitiveCall
from cytape.autograd.util import subvals, toposort
from cytape.ops.calls.tangents import fetch
from cytape.ops.creation import identity, identity_op
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor.nest import flatten, map_structure
from cytape.tensor.recording.state import TangentRecorder, anybody_records, possible_gradient_types
from cytape.tensor.tensor import Tensor

notrace_primitives: defaultdict[type, set] = defaultdict(set)


def notrace_primitive(fun):
    """Make a function of plain values that takes boxes, whose result has no derivative."""
    @functools.wraps(fun)
    def called(*args, **kwargs):
        return fun(*map(getval, args), **kwargs)

    called._is_primitive = True
    return called


def register_notrace(node_type, primitive_fun):
    """Leave the calls of a primitive out of the traces made of a class of nodes."""
    notrace_primitives[node_type].add(primitive_fun)


class Node:
    """Base class of the nodes that `trace` makes: one per call of a function.

    Parameters
    ----------
    value : object
        Result of the call.
    fun : callable
    args, kwargs
        Arguments of the call.
    parent_argnums : tuple of int
        Numbers of the arguments that other calls computed.
    parents : tuple of Node
        Nodes of these calls.
    """

    __slots__ = []

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        raise NotImplementedError(type(self).__name__)

    def initialize_root(self, *args, **kwargs):
        """Set the attributes of a node without parents."""
        raise NotImplementedError(type(self).__name__)

    @classmethod
    def new_root(cls, *args, **kwargs):
        """Return a node for an argument of a traced function."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


trace_stack = SimpleNamespace(new_trace=nullcontext)  # here boxes need no trace


class TupleBox(tuple):
    """A tuple of boxes, which `new_box` makes of a tuple."""

    _trace = 0

    def __new__(cls, value, trace, node):  # noqa: D102
        return super().__new__(cls, map(boxed, value))


Box.type_mappings[tuple] = TupleBox


def trace(start_node, fun, x):
    """Call a function and make a node of each call inside that depends on the argument.

    Parameters
    ----------
    start_node : Node
        The argument's. Its class makes the other nodes.
    fun : callable
    x : object

    Returns
    -------
    value : object
        Result of the function.
    node : Node or None
        The node that computed it; None if it does not depend on the argument.
    """
    node_type = type(start_node)

    def item_node(value, i):
        if value is x:
            return start_node

        def container_take(structure, i):
            return flatten(structure)[i]

        return node_type(value, container_take, (x, i), {}, (0,), (start_node,))

    def node_of_call(op, inputs, outputs, stored, attrs):
        if not getattr(op, "differentiable", True):
            return [None] * len(outputs)
        if op is identity_op:
            return stored
        kwargs, call = attrs, attrs.get("call")
        if type(call) is PrimitiveCall:
            function, args, kwargs, numbers = op, call.args[1:], call.kwargs, call.argnums
        elif isinstance(call := getattr(attrs.get("backward"), "__self__", None), Call):
            function, args, kwargs, numbers = (
                call.op, seen(call.args, False), call.kwargs, call.argnum_of)
        else:
            args, numbers = tuple(map(visible, inputs)), range(len(stored))
            function = functools.partial(op)
            function.__name__ = getattr(op, "__name__", op.name.lower())
        if function in notrace_primitives[node_type]:
            return [None] * len(outputs)
        moving = [(n, node) for n, node in zip(numbers, stored, strict=True) if node is not None]
        argnums, parents = zip(*moving, strict=True)
        node = node_type(visible(outputs[0]), function, args, kwargs, argnums, parents)
        return [node] * len(outputs)

    def visible(tensor):
        return tensor if anybody_records() else getval(tensor)

    boxes = map_structure(
        lambda leaf: identity(leaf) if isinstance(leaf, Tensor) else boxed(leaf), x)
    recorder = TangentRecorder(tensor_vspace, rule=node_of_call)
    for i, (box, leaf) in enumerate(zip(flatten(boxes), flatten(x), strict=True)):
        recorder.watch(token_of(box).id, item_node(leaf, i))
    with recorder:
        end = fun(boxes)
    node = fetch(recorder, token_of(end).id) if isbox(end) else None
    if node is None:
        warnings.warn("Output seems independent of input.")  # noqa: B028
        return end, None
    return end if possible_gradient_types([token_of(end)]) else getval(end), node
