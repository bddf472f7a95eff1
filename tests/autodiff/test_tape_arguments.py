"""Structures that tapes take, and the errors for other leaves than tensors."""

import numpy as np
import pytest

import cytape
from tests import ways
from tests.cases import each


def test_of_an_object_without_registration_the_error_says_what_to_pass():
    class Model:
        def __init__(self):
            self.weight = cytape.Variable(2.0)

    model = Model()
    tape, loss = ways.taped(lambda: model.weight * 2.0)
    with pytest.raises(TypeError, match=r"got Model: .*model\.weights.*register_structure"):
        tape.gradient(loss, [model])


@each("wrong", [None, 3.0, "text", np.ones(2), object()])
def test_targets_and_sources_must_be_tensors(wrong):
    x = cytape.constant(3.0)
    tape, y = ways.taped(lambda x: x * x, x)
    for target, sources in ((wrong, x), ([y, wrong], x), (y, wrong), (y, [x, wrong])):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            tape.gradient(target, sources)
    with pytest.raises(TypeError, match=r"make x a cytape\.Variable, or a cytape\.constant"):
        tape.gradient(np.float64(2.0), x)
    assert float(tape.gradient(y, x)) == 6.0
