"""Traces with nodes of users' classes."""

import warnings

import numpy as onp
import pytest

import cytape
import cytape.numpy as np
from cytape.autograd.core import VJPNode
from cytape.autograd.extend import defvjp, primitive, register_notrace
from cytape.autograd.tracer import Node, isbox, new_box, trace, trace_stack


class Recorded(Node):
    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        self.call = value, fun, args, kwargs, parent_argnums
        self.parents = parents

    def initialize_root(self, name):
        self.call, self.parents = name, ()


@primitive
def scaled(x, factor, power=1):
    return factor * x**power


defvjp(scaled, lambda ans, x, factor, power=1: lambda g: g * factor * power * x ** (power - 1))


def names(node):
    return [] if not node.parents else [
        *names(node.parents[0]), getattr(node.call[1], "__name__", None)]


def test_nodes_have_the_calls_of_functions():
    root = Recorded.new_root("x")
    value, node = trace(root, lambda x: scaled(np.sin(x), 2.0, power=3) + 1.0, 0.5)
    assert value == 2 * onp.sin(0.5) ** 3 + 1 and names(node) == ["sin", "scaled", "add"]
    value, fun, args, kwargs, argnums = node.parents[0].call
    assert fun is scaled and args == (onp.sin(0.5), 2.0) and argnums == (0,)
    assert kwargs == {"power": 3} and value == fun(*args, **kwargs)
    value, fun, args, kwargs, argnums = node.call
    assert fun(*args, **kwargs) == value and argnums == (0,)
    assert node.parents[0].parents[0].parents == (root,)


def test_primitives_need_no_rules_here_and_can_be_left_out():
    rounded = primitive(onp.round)
    root = Recorded.new_root("x")
    assert names(trace(root, lambda x: rounded(x * 2), 0.4)[1]) == ["multiply", "round"]
    register_notrace(Recorded, rounded)
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert trace(root, lambda x: rounded(x * 2), 0.4) == (1, None)


def test_containers_and_inner_derivatives_are_traced():
    root = Recorded.new_root("x")
    _, node = trace(root, lambda pair: scaled([pair[0], 1.0][0], pair["b"] if 0 else pair[1]),
                    (2.0, 3.0))
    assert [len(parent.parents) for parent in node.parents] == [1, 1]
    assert node.parents[0].parents == (root,)
    value, node = trace(root, cytape.grad(lambda x: x**3), 2.0)
    assert value == 12 and names(node)


def test_a_trace_leaves_derivatives_to_recorders_around_it():
    def value(x):
        with warnings.catch_warnings():
            return trace(Recorded.new_root("x"), lambda x: x * scaled(x, 2.0), x)[0]

    assert cytape.grad(value)(3.0) == 12


def test_boxes_of_a_tuple_are_made_outside_of_transforms():
    with trace_stack.new_trace() as t:
        x, y = new_box((2.0, onp.ones(2)), t, VJPNode.new_root())
    assert isbox(x) and isbox(y) and (x * y).tolist() == [2, 2]
