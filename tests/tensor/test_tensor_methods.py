"""Attributes that tensors do not have: what an error names instead, and what is listed."""

import pytest

import cytape
from tests.cases import each


@each("name, words", [
    ("sort", "np.sort"), ("partition", "np.partition"), ("resize", "np.resize"), ("flat", "ravel"),
    ("fill", r"x\[\.\.\.\] = value"), ("put", r"x\[index\] = values"), ("view", "astype"),
    ("strides", r"x.numpy\(\)")])
def test_attributes_of_memory_name_their_replacement(name, words):
    x = cytape.constant([3.0, 1.0, 2.0])
    with pytest.raises(AttributeError, match=f"no '{name}'.*{words}"):
        getattr(x, name)
    assert not hasattr(x, name) and name not in dir(x)


@each("name", ["assign", "assign_add", "assign_sub", "name", "op", "value_index"])
def test_attributes_of_some_tensors_are_listed_for_them_alone(name):
    with cytape.Graph().as_default():
        v = cytape.Variable(1.0)
        symbolic, assigned = cytape.placeholder("float64", ()), v.assign(2.0)
    for x in (cytape.constant(1.0), v, symbolic, assigned):
        assert (name in dir(x)) == hasattr(x, name)
    assert "assign" not in dir(cytape.constant(1.0)) and "assign" in dir(assigned)
