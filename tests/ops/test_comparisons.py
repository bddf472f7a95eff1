"""Functions that are not connected."""


import cytape.numpy as cnp
from tests.cases import each
from tests.ways import gradients


@each("f", [cnp.floor, cnp.round, cnp.sign, lambda x: x > 1, cnp.isnan])
def test_D_2_18_step_functions_are_not_connected(f):
    assert gradients(f, 3.3) == [None]
