"""What tests of recorders share."""

import threading

import numpy as np

import cytape
from cytape.ops.engine.gradients import tensor_vspace
from cytape.tensor.state import TangentRecorder


def in_thread(function, *args):
    """Run a function in another thread; return its result or raise its exception."""
    outcome = {}

    def run():
        try:
            outcome["result"] = function(*args)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def following(x, tangent=1.0, **arguments):
    """Make an accumulator that follows x."""
    accumulator = TangentRecorder(tensor_vspace, **arguments)
    accumulator.watch(x.id, cytape.constant(np.full(x.shape, tangent)))
    return accumulator
