"""Cross-entropy of logits and labels, under TensorFlow's names.

Both ops have a second output, the gradient with respect to the logits, which costs little more in
the forward pass; the backward pass is then one multiplication.
"""

from operator import index
from typing import Any

import numpy as np

from cytape.ops.creation import astype
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.neural.neural_ops import log_softmax, log_softmax_of_array, softmax, softmax_product
from cytape.ops.reductions import sum
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import expand_dims
from cytape.tensor.recording.state import current_graph, is_recorded
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.user_warnings import warn

__all__ = ["softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits"]


def require_logits(labels, logits):
    """Raise an error if the dtypes of arrays show that labels and logits are exchanged."""
    if logits.dtype.kind in "biu" and labels.dtype.kind == "f":
        raise TypeError(
            f"logits, which come second, must be floating point numbers, got {logits.dtype}; "
            "labels come first")


def warn_of_exchange(labels, logits):
    """Warn if negative labels depend on differentiated tensors and logits do not.

    In traces, values are unknown.
    """
    if current_graph() is None and isinstance(labels, Tensor) and is_recorded(labels.id) and not (
            isinstance(logits, Tensor) and is_recorded(logits.id)) and (
            np.any(data_of(labels) < 0)):
        warn("the derivative of a cross-entropy is taken with respect to its labels, which come "
             "first, and not to its logits, which come second: were they exchanged?", UserWarning)


def _cross_entropy(logits, labels, *, axis):
    logits, labels = plain_array(logits), plain_array(labels)
    require_logits(labels, logits)
    if labels.shape != logits.shape:
        raise ValueError(
            f"labels and logits must have the same shape, got {labels.shape} and {logits.shape}; "
            "labels that are numbers of classes go to sparse_softmax_cross_entropy_with_logits"
        )
    log_probabilities = log_softmax_of_array(logits, axis=axis)
    labels = labels.astype(log_probabilities.dtype, copy=False)
    with np.errstate(invalid="ignore"):
        loss = -(labels * log_probabilities).sum(axis)
    if not np.isfinite(loss).all():
        # A label of 0 has no loss, even if the logarithm of the probability is infinite.
        loss = -np.multiply(labels, log_probabilities, where=labels != 0,
                            out=np.zeros_like(log_probabilities)).sum(axis)
    backprop = np.exp(log_probabilities, out=log_probabilities)
    backprop *= labels.sum(axis, keepdims=True)
    backprop -= labels
    return loss, backprop


def _logits_gradient(op, g_loss, weighted_g_backprop):
    """Return the gradient with respect to the logits.

    The gradient of the second output is multiplied by the sum of the labels before.
    """
    axis = op.attrs["axis"]
    gradient = expand_dims(g_loss, axis) * op.outputs[1]
    if weighted_g_backprop is not None:
        probabilities = softmax(op.inputs[0], axis)
        gradient = gradient + softmax_product(probabilities, weighted_g_backprop, axis)
    return gradient


def _labels(op):
    """Return the labels in the dtype of the loss."""
    labels, dtype = op.inputs[1], op.output_specs[0].dtype
    return labels if labels.dtype == dtype else astype(labels, dtype, copy=False)


def _cross_entropy_vjp(op, g_loss, g_backprop):
    logits, labels, axis = op.inputs[0], _labels(op), op.attrs["axis"]
    g_logits = g_labels = None
    if op.needs[0]:
        weighted = None
        if g_backprop is not None:
            weighted = sum(labels, axis, keepdims=True) * g_backprop
        g_logits = _logits_gradient(op, g_loss, weighted)
    if op.needs[1]:
        g_labels = -expand_dims(g_loss, axis) * log_softmax(logits, axis)
        if g_backprop is not None:
            expected = sum(softmax(logits, axis) * g_backprop, axis, keepdims=True)
            g_labels = g_labels + expected - g_backprop
    return g_logits, g_labels


def _axis_from_the_end(op):
    """Return the axis of the classes in a batch of tangents."""
    axis, ndim = index(op.attrs["axis"]), op.input_specs[0].ndim
    return axis - ndim if axis >= 0 else axis


def _cross_entropy_jvp(op, t_logits, t_labels):
    logits, labels, axis = op.inputs[0], _labels(op), _axis_from_the_end(op)
    t_loss = t_backprop = 0
    if t_logits is not None:
        t_loss = sum(op.outputs[1] * t_logits, axis)
        t_backprop = sum(labels, axis, keepdims=True) * softmax_product(
            softmax(logits, axis), t_logits, axis
        )
    if t_labels is not None:
        t_loss = t_loss - sum(log_softmax(logits, axis) * t_labels, axis)
        total = sum(t_labels, axis, keepdims=True)
        t_backprop = t_backprop + total * softmax(logits, axis) - t_labels
    return t_loss, t_backprop


def _in_batch(call):
    inputs = batch_axis.repeated(call)
    if inputs is None:
        return NotImplemented
    return call.again(inputs, axis=call.attrs["axis"] % call.input_specs[0].ndim + 1)


softmax_cross_entropy_op = general(
    "SoftmaxCrossEntropyWithLogits",
    forward=_cross_entropy,
    vjp=_cross_entropy_vjp,
    jvp=_cross_entropy_jvp,
    batched=_cross_entropy_jvp,
    saved_outputs=(1,),
    optional_gradients=(1,),
    optional_tangents=(0, 1),
    shape_rule=neural_shapes.cross_entropy,
    batch=_in_batch,
    is_passed_over=True,
)


def softmax_cross_entropy_with_logits(labels, logits, axis=-1) -> Any:
    """Return the cross-entropy between labels and the softmax of logits along `axis`.

    The labels come first, then the logits, which PyTorch exchanges; derivatives with respect
    to negative labels only are a warning, outside of traces. Other values are not checked.

    Parameters
    ----------
    labels : array_like
        Probabilities, of the same shape as `logits`.
    logits : array_like
        Unscaled logarithms of probabilities.
    axis : int, optional
        The axis of the classes.

    Returns
    -------
    Tensor or ndarray
        The losses, without the axis of the classes, in the dtype of `logits`.

    Raises
    ------
    ValueError
        If the shapes differ.
    TypeError
        If labels are floating point numbers and logits integers: they are exchanged.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[1e4, 1e4]]).round(6)
    array([0.693147])
    """
    warn_of_exchange(labels, logits)
    return softmax_cross_entropy_op(logits, labels, axis=axis)[0]


def _sparse_cross_entropy(logits, labels, *, axis):
    logits, labels = plain_array(logits), plain_array(labels)
    if labels.dtype.kind not in "iu":
        cure = ("one-hot labels go to softmax_cross_entropy_with_logits"
                if labels.shape == logits.shape else "write labels.astype(int)")
        raise TypeError(
            f"labels, which come first, must be integers, got {labels.dtype}: {cure}; logits come "
            "second")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"labels must have the shape of logits without the last axis, got {labels.shape} "
            f"for logits of shape {logits.shape}"
        )
    classes = logits.shape[-1]
    chosen = (np.arange(labels.size), labels.ravel())
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels must be in the range of the classes, 0 to {classes - 1}")
    log_probabilities = log_softmax_of_array(logits, axis=axis)
    loss = -log_probabilities.reshape(-1, classes)[chosen]
    backprop = np.exp(log_probabilities, out=log_probabilities)
    backprop.reshape(-1, classes)[chosen] -= 1
    return loss.reshape(labels.shape)[()], backprop


def _sparse_cross_entropy_jvp(op, t_logits, _):
    axis = _axis_from_the_end(op)
    return (
        sum(op.outputs[1] * t_logits, axis),
        softmax_product(softmax(op.inputs[0], axis), t_logits, axis),
    )


sparse_softmax_cross_entropy_op = general(
    "SparseSoftmaxCrossEntropyWithLogits",
    forward=_sparse_cross_entropy,
    vjp=lambda op, g_loss, g_backprop: (_logits_gradient(op, g_loss, g_backprop), None),
    jvp=_sparse_cross_entropy_jvp,
    batched=_sparse_cross_entropy_jvp,
    saved_inputs=(0,),
    saved_outputs=(1,),
    optional_gradients=(1,),
    shape_rule=neural_shapes.sparse_cross_entropy,
    batch=_in_batch,
    is_passed_over=True,
)


def sparse_softmax_cross_entropy_with_logits(labels, logits) -> Any:
    """Return the cross-entropy between classes and the softmax of logits along the last axis.

    Parameters
    ----------
    labels : array_like of int
        The number of the right class, for each row of logits.
    logits : array_like
        Unscaled logarithms of probabilities, of shape ``labels.shape + (number of classes,)``.

    Returns
    -------
    Tensor or ndarray
        The losses, in the shape of `labels`.

    Raises
    ------
    TypeError
        If the labels are not integers.
    ValueError
        If a label is out of range, or the shapes do not fit.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.sparse_softmax_cross_entropy_with_logits([1], [[1e4, 1e4]]).round(6)
    array([0.693147])
    """
    return sparse_softmax_cross_entropy_op(logits, labels, axis=-1)[0]
