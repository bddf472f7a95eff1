"""How the op tests compute tangents: by calling an op under an accumulator."""

import contextlib

from cytape.ops.calls.tangents import fetch
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor import convert_to_tensor
from cytape.tensor.recording.state import TangentRecorder


def as_tuple(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def recorder_of(inputs, tangents, use_batch=False, by_transposition=False):
    """Return an accumulator that follows those inputs whose tangent is not None."""
    recorder = TangentRecorder(tensor_vspace, use_batch, by_transposition)
    for x, tangent in zip(inputs, tangents, strict=True):
        if tangent is not None:
            recorder.watch(x.id, convert_to_tensor(tangent))
    return recorder


@contextlib.contextmanager
def entered(recorder):
    """Have a recorder (or tape) on the stack of the thread."""
    if not isinstance(recorder, TangentRecorder):
        with recorder:
            yield
        return
    recorder.push()
    try:
        yield
    finally:
        recorder.pop()


def followed(function, inputs, tangents, use_batch=False, by_transposition=False):
    """Call a function of tensors; return its outputs and their tangents, tensors or None."""
    recorder = recorder_of(inputs, tangents, use_batch, by_transposition)
    with entered(recorder):
        outputs = as_tuple(function(*inputs))
    return outputs, tuple(fetch(recorder, y.id) for y in outputs)


def tangent_of(function, *inputs_and_tangents, **attrs):
    """Return the tangent of a function's only output.

    Each input comes as a pair with its tangent; one that does not move with None.
    """
    inputs, tangents = zip(*inputs_and_tangents, strict=True)
    inputs = [convert_to_tensor(x) for x in inputs]
    _, (tangent,) = followed(lambda *xs: function(*xs, **attrs), inputs, tangents)
    return tangent
