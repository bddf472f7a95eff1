"""primitive: functions of plain values whose derivatives are users' rules."""

import functools
import types

import numpy as np

from cytape.autodiff.custom.custom_gradient import custom_gradient
from cytape.autodiff.custom.custom_jvp import custom_jvp
from cytape.autodiff.custom.primitive_op import PrimitiveOp
from cytape.autograd.boxes import (
    Box,
    SparseObject,
    boxed,
    conjugated,
    getval,
    isbox,
    pending,
    token_of,
)
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.engine.custom_op import GradientsIfNeeded, record_custom
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.nest import flatten, flatten_up_to, map_structure, pack_sequence_as
from cytape.tensor.recording.state import anybody_records, possible_gradient_types
from cytape.tensor.tensor import Tensor, data_of, restored, without_handle
from cytape.tensor.variable import Variable


class _Kept:
    """A box without its handle, which would keep the trace on tapes alive."""

    __slots__ = ["_held", "_kind", "value"]

    def __init__(self, box):
        self.value, self._kind, self._held = getval(box), type(box), without_handle(token_of(box))

    def seen(self, observed):
        """Return the value, or a box that recorders track as they tracked the given one."""
        if not observed:
            return self.value
        token = restored(self._held)
        return token if self._kind is Tensor else self._kind(self.value, 0, token)

    def pending_id(self):
        """Return the id by which `pending` has the gradient; None for an array."""
        return None if self._kind is Tensor else restored(self._held).id


def seen(structure, observed):
    """Return a structure with values, or with boxes if recorders observe the caller."""
    return map_structure(
        lambda x: x.seen(observed) if type(x) is _Kept else x, structure)


class Call:
    """A call of a primitive that recorders track."""

    def __init__(self, op, args, kwargs):
        self.op, self.kwargs = op, kwargs
        self.args = map_structure(lambda x: _Kept(x) if isbox(x) else x, args)
        self.argnum_of = [i for i, arg in enumerate(args) for x in flatten(arg) if isbox(x)]

    def record(self, outputs, tokens):
        """Record the call, whose results are given boxes; return these."""
        self.ans = map_structure(_Kept, outputs)
        record_custom(self.op.__name__, [token_of(x) for x in flatten(outputs)], tokens,
                      self.backward, None if self.op.jvps is None else self.jvp)
        return outputs

    def backward(self, *gradients):
        """Return the gradients of the boxes among the arguments, computed if needed."""
        observed = anybody_records()
        ids = [kept.pending_id() for kept in flatten(self.ans)]
        g = pack_sequence_as(self.ans, [
            (g if observed else getval(g)) if id is None else pending.passes[-1].pop(id)
            for g, id in zip(gradients, ids, strict=True)])

        def computed(needed):
            argnums = tuple(sorted(
                {n for n, is_needed in zip(self.argnum_of, needed, strict=True) if is_needed}))
            found = self.op.gradients(argnums, seen(self.ans, observed),
                                      seen(self.args, observed), self.kwargs, g)
            return [_given(kept, x) for kept, x in zip(flatten(self.args), found, strict=True)
                    if type(kept) is _Kept]

        return GradientsIfNeeded(computed)

    def jvp(self, *tangents):
        """Return the tangents of the results."""
        observed, remaining = anybody_records(), iter(tangents)
        moving = map_structure(
            lambda x: next(remaining) if type(x) is _Kept else x, self.args)
        argnums = tuple(sorted(set(self.argnum_of)))
        gs = [moving[i] if observed else map_structure(getval, moving[i]) for i in argnums]
        return flatten(self.op.jvps(
            argnums, gs, seen(self.ans, observed), seen(self.args, observed), self.kwargs))


def _given(kept, gradient):
    """Return a gradient for the tape; one of a user's class is added to the pending ones."""
    if gradient is None or kept.pending_id() is None:
        return gradient
    pending.add(kept.pending_id(), gradient)
    return np.zeros(())


def _call_in_graph(op, args, kwargs):
    """Call a primitive with symbolic tensors, by a function with a custom derivative."""
    def packed(xs):
        remaining = iter(xs)
        return map_structure(lambda x: next(remaining) if isinstance(x, Tensor) else x, args)

    def seen(xs):
        observed = anybody_records() or graph_for(xs) is not None
        return packed(xs if observed else map(getval, xs))

    def called(*xs):  # the error for symbolic tensors makes it an op that is called in each run
        return map_structure(
            convert_to_tensor, op.fun(*packed([data_of(x)[()] for x in xs]), **kwargs))

    def rule(primals, tangents):
        given = seen(primals)
        ans = op(*given, **kwargs)
        gs = packed(tangents)
        return ans, op.jvps(argnums, [gs[i] for i in argnums], ans, given, kwargs)

    def with_gradient(*xs):
        def grad_fn(*gradients):
            given = seen(xs)
            ans = op(*given, **kwargs)
            found = op.gradients(argnums, ans, given, kwargs, pack_sequence_as(ans, gradients))
            return [g for g, x in zip(found, flatten(args), strict=True)
                    if isinstance(x, Tensor)]

        return called(*xs), grad_fn

    called.__name__ = with_gradient.__name__ = op.__name__
    argnums = tuple([
        i for i, arg in enumerate(args) if any(isinstance(x, Tensor) for x in flatten(arg))])
    if op.vjps is None and op.jvps is not None:
        fun = custom_jvp(called)
        fun.defjvp(rule)
    else:
        fun = custom_gradient(with_gradient)
    return fun(*[x for x in flatten(args) if isinstance(x, Tensor)])


class primitive(PrimitiveOp):
    """Make a function whose derivative is given by rules: see `defvjp` and `defjvp`.

    Parameters
    ----------
    fun : callable
        Takes plain arrays: in a call with tensors it gets their values.

    Examples
    --------
    >>> from cytape import grad
    >>> from cytape.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
    >>> float(grad(cube)(2.0)), float(grad(grad(cube))(2.0))
    (12.0, 12.0)
    """

    _is_autograd_primitive = True

    def __init__(self, fun):
        super().__init__(getattr(fun, "__name__", type(fun).__name__), fun)
        functools.update_wrapper(self, fun, updated=())

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def call_in_general(self, args, kwargs):
        """Call the function with plain values for boxes in any places, and record the call."""
        args = map_structure(lambda x: x.value() if isinstance(x, Variable) else x, args)
        tokens = [token_of(x) for x in flatten(args) if isbox(x)]
        if not tokens:
            return self.fun(*args, **kwargs)
        if graph_for(tokens) is not None:
            return _call_in_graph(self, args, kwargs)
        return self.box_result(self.fun(*map_structure(getval, args), **kwargs), args, kwargs)

    def box_result(self, ans, args, kwargs):
        """Return the boxes of the results of a call, after recording it."""
        tokens = [token_of(x) for x in flatten(args) if isbox(x)]
        if not possible_gradient_types(tokens) and any(
                type(x) not in Box.type_mappings for x in flatten(ans)):
            return ans
        call = Call(self, args, kwargs)
        self.require_rules(call.argnum_of, tokens)
        return call.record(map_structure(boxed, ans), tokens)

    def gradients(self, argnums, ans, args, kwargs, g):
        """Return per leaf of the arguments its gradient by the user's rule; None: it has none."""
        if self.vjps is None:
            raise self.not_defined(argnums)
        found = dict(zip(
            argnums, self.vjps(argnums, ans, args, kwargs)(conjugated(g)), strict=True))
        leaves = []
        for i, arg in enumerate(args):
            gradient = found.get(i)
            leaves += [None] * len(flatten(arg)) if gradient is None else (
                flatten_up_to(arg, gradient))
        return [conjugated(self.dense(x)) for x in leaves]

    @staticmethod
    def dense(gradient):
        """Return a gradient as an array or an element of a user's vector space."""
        if type(gradient) is SparseObject:
            return gradient.mut_add(gradient.vs.zeros())
        return gradient


