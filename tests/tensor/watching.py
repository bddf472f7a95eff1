"""Accumulators for the tests of recorders."""

import numpy as np

import cytape
from cytape.ops.engine.tensor_vspace import tensor_vspace
from cytape.tensor.recording.state import TangentRecorder


def following(x, tangent=1.0, **arguments):
    """Make an accumulator that follows x."""
    accumulator = TangentRecorder(tensor_vspace, **arguments)
    accumulator.watch(x.id, cytape.constant(np.full(x.shape, tangent)))
    return accumulator
