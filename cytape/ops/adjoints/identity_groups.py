"""Ops on several tensors at once: sum of all, identity of each."""

from typing import Any

import numpy as np

from cytape.ops.calls.dispatch import partly_followed
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import ANY_OUTPUT, general, linear
from cytape.tensor import Tensor
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["add_n", "identity_n"]


def _add_n(*terms):
    if len(terms) == 1:
        return terms[0]
    dtype = terms[0].dtype
    total = np.empty(np.shape(terms[0]), np.float32 if dtype == np.float16 else dtype)
    np.add(terms[0], terms[1], out=total)
    for term in terms[2:]:
        total += term
    return total.astype(dtype, copy=False)[()]  # a NumPy scalar for scalars


def _same(*specs):
    """Return the most specific spec of tensors that have the same shape."""
    return next((spec for spec in specs if spec.known), specs[0])


def _unchanged(*values):
    return values


add_n_op = linear(
    "AddN", _add_n, transpose=lambda op, g: (g,) * len(op.input_specs),
    shape_rule=_same, batch=batch_axis.stacked, lowering="ADDED")
identity_n_op = linear(
    "IdentityN", _unchanged, transpose=lambda op, *gs: gs,
    shape_rule=_unchanged, batch=batch_axis.stacked, lowering="SHOWN", shows=-1,
    passes_gradients=True)
# A reader of one of its outputs waits for all of its inputs.
tuple_op = general(
    "Tuple", _unchanged, vjp=lambda op, *gs: gs, jvp=lambda op, *ts: ts, saved_inputs=(),
    optional_gradients=ANY_OUTPUT, batched=lambda op, *ts: ts,
    shape_rule=_unchanged, batch=batch_axis.stacked, lowering="SHOWN", shows=-1,
    passes_gradients=True)


def add_n(inputs) -> Any:
    """Add arrays of one shape and dtype, in one op.

    Parameters
    ----------
    inputs : sequence of array_like

    Returns
    -------
    Tensor or ndarray
        A tensor if one is among the inputs.

    Raises
    ------
    ValueError
        If there are no inputs, or they differ in shape or dtype.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.adjoints.identity_groups import add_n
    >>> add_n([cytape.constant([1.0, 2.0]), cytape.constant([10.0, 20.0])]).numpy()
    array([11., 22.])
    """
    inputs = [x if is_tensor(x) else plain_array(x) for x in inputs]
    if not inputs:
        raise ValueError("add_n needs at least one input, got none")
    for x in inputs[1:]:
        if x.dtype != inputs[0].dtype or not may_agree(x.shape, inputs[0].shape):
            raise ValueError(
                "add_n needs inputs of one shape and dtype, got "
                + ", ".join(f"{x.dtype}{x.shape}" for x in inputs)
            )
    return add_n_op(*inputs)


def may_agree(shape, other):
    """Return whether two shapes may be the same; unknown extents match any."""
    if shape is None or other is None:
        return True
    return len(shape) == len(other) and all(
        a == b or a is None or b is None for a, b in zip(shape, other, strict=True)
    )


def identity_n(*inputs) -> Any:
    """Return the inputs unchanged, as the outputs of one op.

    If one output has a gradient, all inputs have: zeros if no target depends on them.

    Parameters
    ----------
    *inputs : array_like

    Returns
    -------
    tuple of Tensor or ndarray
        Tensors if one is among the inputs.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.adjoints.identity_groups import identity_n
    >>> a, b = cytape.constant(1.0), cytape.constant(2.0)
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch([a, b])
    ...     c, d = identity_n(a, b)
    >>> tape.gradient(d, [a, b])
    [Tensor(0.), Tensor(1.)]
    """
    return identity_n_op(*[x if is_tensor(x) else plain_array(x) for x in inputs])


def together(*operands):
    """Return the operands of a function made of several ops, all of them recorded.

    If a tape tracks some of them, it records the others here. Otherwise an op of an untracked
    operand alone, say a reshape, would not be recorded, and a tape that watches this operand later
    would miss its use.

    Parameters
    ----------
    *operands
        Objects other than tensors are returned unchanged.

    Returns
    -------
    tuple

    Raises
    ------
    TypeError
        If one operand is a tensor and another a masked array, a matrix or the like.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.adjoints.identity_groups import together
    >>> x, y = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch(x)
    ...     a, b, _ = together(x, y, 3)
    ...     product = a * b.reshape(1, 2)
    ...     tape.watch(y)
    >>> tape.gradient(product, y)
    Tensor([1., 2.])
    """
    for x in operands:
        if type(x) is not Tensor:
            break
    else:
        return tuple(identity_n_op(*operands)) if partly_followed(operands) else operands
    if any(map(is_tensor, operands)):
        # NumPy's functions of one operand would drop the metadata of a subclass of ndarray before
        # an op could refuse it.
        operands = tuple(map(joined, operands))
        for x in operands:
            if not is_tensor(x):
                plain_array(x)
    if not partly_followed(operands):
        return operands
    outputs = iter(identity_n_op(*filter(is_tensor, operands)))
    return tuple(next(outputs) if is_tensor(x) else x for x in operands)
