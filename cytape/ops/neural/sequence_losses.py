"""Connectionist temporal classification: the loss of label sequences without an alignment.

Graves et al., "Connectionist temporal classification" (2006). Sums over alignments are computed by
logarithms of forward and backward sums, for all examples at once. The labels of an example are
interleaved with blanks; a state of the sums is a position in that sequence.
"""

from typing import Any

import numpy as np

from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import logaddexp, where
from cytape.ops.indexing import take_along_axis
from cytape.ops.joining import concatenate
from cytape.ops.neural.alignment_sums import forward_sums, state_shares
from cytape.ops.neural.neural_ops import log_softmax
from cytape.ops.shaping import ndim, shape, swapaxes
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["ctc_loss"]

_NEVER = -1e30  # logarithm of a probability of 0, whose differences are finite


class Sequences:
    """The labels between blanks, lengths, and the states that may follow the one before the last.

    Padding of `labels` beyond the lengths is blank.
    """

    def __init__(self, labels, n_labels, n_steps, blank):
        self.n_labels, self.n_steps = n_labels, n_steps
        self.states = np.full((len(labels), 2 * labels.shape[1] + 1), blank)
        self.states[:, 1::2] = labels
        self.skips = np.zeros(self.states.shape, bool)
        self.skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
        # Indices of the two states that alignments end in; without labels they are the same.
        self.examples = np.arange(len(labels))
        self.ends = [(self.examples, 2 * n_labels),
                     (self.examples, np.maximum(2 * n_labels - 1, 0))]

    def scores(self, log_shares):
        """Return the logarithms of the shares of all states, by time and example."""
        return take_along_axis(log_shares, np.broadcast_to(
            self.states, (log_shares.shape[0], *self.states.shape)), 2)


def _later(sums, steps):
    """Move sums to later states, or to earlier ones for negative steps."""
    gap = np.full((sums.shape[0], abs(steps)), _NEVER, sums.dtype)
    if steps > 0:
        return concatenate([gap, sums], 1)[:, :sums.shape[1]]
    return concatenate([sums, gap], 1)[:, -steps:]


def _forward_sums(scores, sequences):
    """Return the logarithms of the sums over beginnings of alignments, for each time."""
    skips, n_steps = sequences.skips, sequences.n_steps
    first = np.arange(skips.shape[1]) < 2
    found = [where(first, scores[0], _NEVER)]
    for t in range(1, scores.shape[0]):
        before = found[-1]
        total = logaddexp(before, _later(before, 1))
        total = logaddexp(total, where(skips, _later(before, 2), _NEVER))
        found.append(where((t < n_steps)[:, None], total + scores[t], before))
    return found


def _ends(last, n_labels):
    ends = np.stack([2 * n_labels, np.maximum(2 * n_labels - 1, 0)], 1)
    parts = take_along_axis(last, ends, 1)
    return where(n_labels > 0, logaddexp(parts[:, 0], parts[:, 1]), parts[:, 0])


def _loss(log_shares, *, sequences):
    sums = _forward_sums(sequences.scores(log_shares), sequences)
    return -_ends(sums[-1], sequences.n_labels)


def _arrays_for_loops(log_shares, sequences):
    """Return the scores of all states, and where states are skipped and examples end."""
    scores = log_shares[:, sequences.examples[:, None], sequences.states]
    return (np.ascontiguousarray(scores, np.float64), sequences.skips.view(np.uint8),
            sequences.n_steps.astype(np.int64))


def _totals(last, sequences):
    blank, label = sequences.ends
    return np.where(sequences.n_labels > 0, np.logaddexp(last[blank], last[label]), last[blank])


def _loss_of_arrays(log_shares, *, sequences):
    if not len(log_shares) or not len(sequences.states):
        return _loss(log_shares, sequences=sequences)
    sums = forward_sums(*_arrays_for_loops(log_shares, sequences))
    return -_totals(sums[-1], sequences).astype(log_shares.dtype)


def _gradient(op, g):
    (log_shares,), sequences = op.inputs, op.attrs["sequences"]
    scores, skips, n_steps = _arrays_for_loops(log_shares, sequences)
    sums, after = forward_sums(scores, skips, n_steps), np.full(sequences.states.shape, _NEVER)
    for states in sequences.ends:
        after[states] = 0
    weights = state_shares(scores, skips, n_steps, sums, after, _totals(sums[-1], sequences))
    weights *= -g[:, None]
    n_times, n_examples, n_classes = log_shares.shape
    rows = n_classes * np.arange(n_times * n_examples).reshape(n_times, n_examples, 1)
    result = np.bincount((rows + sequences.states).ravel(), weights.ravel(), log_shares.size)
    return [result.reshape(log_shares.shape).astype(log_shares.dtype, copy=False)]


ctc_op = composed(
    "CtcLoss", _loss_of_arrays, _loss,
    shape_rule=lambda log_shares, **_: symbolic_spec((log_shares.shape[1],), log_shares.dtype),
    vjp_of_arrays=_gradient)


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True,
             blank_index=0) -> Any:
    """Return the negative logarithm of the probability of each example's labels.

    The probability is the sum over all alignments of the labels with the times. It takes time and
    memory proportional to ``time * batch * (2 * max_label_length + 1)``.

    Parameters
    ----------
    labels : array_like of int
        Of shape (batch, max_label_length); elements after the length of an example do not count.
    logits : array_like
        Of shape (time, batch, classes), or (batch, time, classes) if not `logits_time_major`.
    label_length, logit_length : array_like of int
        One number per example.
    logits_time_major : bool, optional
    blank_index : int, optional
        The class of blanks; negative ones count from the last.

    Returns
    -------
    Tensor or ndarray
        Of shape (batch,); 1e30 or more, with the gradient 0, for labels that do not fit into the
        times.

    Raises
    ------
    ValueError
        If shapes, lengths or labels do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> logits = np.log([[[0.4, 0.6]], [[0.5, 0.5]]])  # two times, one example, a blank and a label
    >>> np.exp(-cytape.nn.ctc_loss([[1]], logits, [1], [2])).round(3)  # 1 - 0.4 * 0.5
    array([0.8])
    """
    logits = joined(logits)
    logits = logits if is_tensor(logits) else np.asarray(logits)
    logits = logits.astype(np.float32) if logits.dtype == np.float16 else logits
    logits = logits if logits_time_major or ndim(logits) != 3 else swapaxes(logits, 0, 1)
    labels, n_labels, n_steps = map(np.asarray, (labels, label_length, logit_length))
    if ndim(logits) != 3 or None in shape(logits) or labels.ndim != 2 or not (
            labels.shape[:1] == n_labels.shape == n_steps.shape == shape(logits)[1:2]):
        raise ValueError(
            "ctc_loss takes labels of shape (batch, n), logits of known shape (time, batch, "
            f"classes) and two lengths per example; got shapes {labels.shape}, {shape(logits)}, "
            f"{n_labels.shape} and {n_steps.shape}")
    if any(x.size and x.dtype.kind not in "iu" for x in (labels, n_labels, n_steps)):
        raise TypeError("ctc_loss takes integers as labels and lengths, got dtypes "
                        f"{labels.dtype}, {n_labels.dtype} and {n_steps.dtype}")
    n_times, _, n_classes = shape(logits)
    used = labels[np.arange(labels.shape[1]) < n_labels[:, None]]
    if not -n_classes <= blank_index < n_classes:
        raise ValueError(
            f"ctc_loss takes a blank_index from {-n_classes} to {n_classes - 1} of logits with "
            f"{n_classes} classes, got {blank_index}")
    blank = blank_index % n_classes
    if (n_labels < 0).any() or (n_labels > labels.shape[1]).any() or (n_steps < 1).any() or (
            n_steps > n_times).any() or ((used < 0) | (used >= n_classes) | (used == blank)).any():
        raise ValueError(
            f"ctc_loss takes labels from 0 to {n_classes - 1} other than the blank, {blank}, at "
            f"most {labels.shape[1]} per example, and 1 to {n_times} times")
    labels = np.where(np.arange(labels.shape[1]) < n_labels[:, None], labels, blank)
    return ctc_op(log_softmax(logits), sequences=Sequences(labels, n_labels, n_steps, blank))
