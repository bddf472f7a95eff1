"""Shapes that are told before anything runs: errors at once, unknown rank, no example computed."""

import subprocess
import sys

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape import nn
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.shapes import shape_rules
from cytape.tensor.values.spec import Spec, symbolic_spec
from tests import ways
from tests.cases import each

FLOAT = np.dtype(float)


def placeholders(*shapes, dtype=FLOAT):
    graph = Graph()
    return graph, [graph.placeholder(np.dtype(dtype), shape) for shape in shapes]


def value(tensor, *fed):
    graph = tensor.graph
    feeds = {graph.symbol_of(x): np.asarray(array) for x, array in fed}
    return run(graph, [graph.symbol_of(tensor)], feeds)[0]


# -- no op is asked to compute to tell a shape -----------------------------------------------------


def test_every_op_has_a_rule():
    # In a process of its own: other tests declare ops too.
    script = (
        "import cytape, cytape.graph\n"
        "from cytape.ops.engine.elementwise_op import ElementwiseOp\n"
        "print(*[name for name, op in cytape.ops.OPS.items()"
        " if not isinstance(op, ElementwiseOp) and op.shape_rule is None])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == []


def test_huge_tensors_take_no_memory():
    n = 10**6
    _, (x, v) = placeholders((n, n), (n,))
    with x.graph.as_default():
        outputs = [
            x @ v, x.T @ x, cnp.cumsum(x, axis=0), cnp.flip(x), nn.softmax(x), cnp.tril(x),
            cnp.outer(v, v), cnp.concatenate([x, x]), cnp.stack([x, x]), x[3:, ::2], x.std(axis=0),
            cnp.pad(x, 1), cnp.tile(x, 3), cnp.diag(v), cnp.einsum("ij,jk->ik", x, x),
            x.reshape(-1), cnp.take(x, [0, 1]), cnp.argsort(x), cnp.where(x > 0, x, 0),
            cnp.zeros_like(x), cnp.linalg.norm(x), cnp.kron(v, v), cnp.roll(x, 1), cnp.round(x),
            cnp.prod(x, axis=1)]
    assert all(y.spec.known for y in outputs)


# -- errors where the call is, naming the shapes ---------------------------------------------------

MISTAKES = {
    "matmul": (lambda x, y: x @ y, (3, 4), (5, 2)),
    "matmul of a vector": (lambda x, y: x @ y, (3, 4), (3,)),
    "matmul of stacks": (lambda x, y: x @ y, (2, 3, 4), (5, 4, 2)),
    "add": (lambda x, y: x + y, (3, 4), (3,)),
    "where": (lambda x, y: cnp.where(x > 0, x, y), (3, 4), (4, 3)),
    "tensordot": (lambda x, y: cnp.tensordot(x, y, 1), (3, 4), (3, 4)),
    "einsum": (lambda x, y: cnp.einsum("ij,jk->ik", x, y), (3, 4), (5, 2)),
    "isclose": (lambda x, y: cnp.isclose(x, y), (3, 4), (4, 3)),
    "cross entropy": (lambda x, y: nn.softmax_cross_entropy_with_logits(x, y), (3, 4), (4, 3))}


@each("name", MISTAKES)
def test_an_error_names_both_shapes_and_has_the_type_of_the_eager_one(name):
    call, *shapes = MISTAKES[name]
    with pytest.raises(Exception) as eager:  # noqa: B017, PT011
        call(*[cytape.constant(np.ones(shape)) for shape in shapes])
    _, xs = placeholders(*shapes)
    with pytest.raises(type(eager.value)) as error:
        call(*xs)
    assert all(str(shape) in str(error.value) for shape in shapes)


@each("call", [
    lambda x: x.reshape(7), lambda x: x.reshape(-1, 5), lambda x: x.sum(axis=2), lambda x: x[2, 0],
    lambda x: x[0, 0, 0], lambda x: cnp.transpose(x, (0, 0)), lambda x: cnp.squeeze(x, 0),
    lambda x: cnp.broadcast_to(x, (3,)), lambda x: cnp.broadcast_to(x, (3, 3)),
    lambda x: cnp.cumsum(x, axis=3), lambda x: cnp.flip(x, 2), lambda x: cnp.diagonal(x[0]),
    lambda x: cnp.expand_dims(x, 4), lambda x: cnp.argsort(x, axis=2), lambda x: cnp.roll(x, 1, 5),
    lambda x: cnp.rot90(x, 1, (0, 2)), lambda x: cnp.max(x, axis=(0, 0))])
def test_errors_of_one_operand_have_the_type_of_the_eager_one(call):
    with pytest.raises(Exception) as eager:  # noqa: B017, PT011
        call(cytape.constant(np.ones((2, 3))))
    _, (x,) = placeholders((2, 3))
    with pytest.raises(type(eager.value)):
        call(x)


# -- unknown rank ----------------------------------------------------------------------------------

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])


@each("call", [
    np.tanh, lambda x: x * x + 1.0, lambda x: -x, np.sum, np.mean, np.max, np.var, np.std, np.prod,
    lambda x: np.where(x > 0, x, 0.0), lambda x: np.clip(x, -1, 1), np.zeros_like, np.ravel,
    lambda x: np.reshape(x, (3, -1)), lambda x: x.astype("float32"), np.argmax, np.all,
    lambda x: np.maximum(x, 0.3), np.squeeze, lambda x: nn.relu(x), np.copy,
    lambda x: nn.softmax(x), lambda x: np.cumsum(x), lambda x: np.round(x), lambda x: x.sum(axis=0),
    lambda x: np.expand_dims(x, -1)])
def test_of_unknown_rank(call):
    _, (x,) = placeholders(None)
    y = call(x)
    expected = np.asarray(call(X))
    found = value(y, (x, X))
    assert y.dtype == found.dtype
    assert y.shape is None or len(y.shape) == found.ndim
    np.testing.assert_allclose(found, expected)


@each("call", [
    np.tanh, lambda x: x * x, np.sum, np.mean, np.max, np.var, np.std, np.prod, np.ravel,
    np.squeeze, lambda x: x.sum(axis=0), lambda x: x.mean(axis=-1), lambda x: np.expand_dims(x, 1),
    lambda x: x.max(axis=(0,), keepdims=True), lambda x: nn.log_softmax(x, axis=0),
    lambda x: np.where(x > 0, x * x, x), lambda x: nn.softmax(x), lambda x: np.reshape(x, (3, -1))])
def test_gradients_of_unknown_rank(call):
    graph, (x,) = placeholders(None)
    with ways.watching(x) as tape:
        y = call(x)
        loss = (y * y).sum()
    gradient = tape.gradient(loss, x)
    eager = cytape.grad(lambda x: (call(x) ** 2).sum())(X)
    np.testing.assert_allclose(value(gradient, (x, X)), eager, rtol=1e-12)


@each("call", [
    lambda x: x[0], np.transpose, lambda x: x @ x, lambda x: np.concatenate([x, x]),
    lambda x: np.broadcast_arrays(x, 1.0), lambda x: np.ndim(x), lambda x: np.linalg.norm(x),
    lambda x: np.flip(x, 0) @ x, lambda x: np.pad(x, 1)])
def test_rules_that_need_the_rank_raise_without_it(call):
    _, (x,) = placeholders(None)
    with pytest.raises(SymbolicTensorError, match="axes"):
        call(x)


# -- relations of unknown extents ------------------------------------------------------------------


def test_ops_that_keep_the_shape_keep_whose_it_is():
    _, (x,) = placeholders((None, 3))
    for y in (np.tanh(x), x * 2.0, x > 0, x.astype("float32"), nn.softmax(x), np.round(x),
              np.copy(x), x + np.ones(3), np.zeros_like(x), np.cumsum(x, axis=0)):
        assert y.spec.extents is x.spec.extents


def test_so_gradients_are_not_summed_or_broadcast_needlessly():
    graph, (x,) = placeholders((None, 3))
    with graph.as_default():
        ways.gradient(lambda x: (np.tanh(x) * x + 1.0).sum(), x)
    names = [op.name for op in graph.ops]
    assert "SumTo" not in names
    assert names.count("BroadcastTo") == 1  # of the sum


def test_two_unknown_extents_may_differ():
    graph, (x, y) = placeholders((None,), (None,))
    with graph.as_default():
        by_x, by_y = ways.gradients(lambda x, y: (x * y).sum(), x, y)
    fed = (x, [1.0, 2.0, 3.0]), (y, [2.0])
    np.testing.assert_array_equal(value(by_x, *fed), [2, 2, 2])
    np.testing.assert_array_equal(value(by_y, *fed), [6])


def test_helpers():
    assert shape_rules.product((2, None)) is None
    assert shape_rules.product((None, 0)) == 0
    assert shape_rules.total((1, None)) is None
    assert shape_rules.broadcast((None, 1), (3,)) == (None, 3)
    assert shape_rules.broadcast((None,), (3,)) == (3,)
    assert shape_rules.broadcast((2,), None) is None
    assert shape_rules.may_fit((None, 3), (2, 3)) and not shape_rules.may_fit((2,), (2, 2))
    spec = symbolic_spec((None, 2), FLOAT)
    assert OPS["Concatenate"].shape_rule(spec, Spec.of((3, 2), FLOAT), axis=0).shape == (None, 2)
    assert OPS["Concatenate"].shape_rule(spec, Spec.of((3, 2), FLOAT), axis=1).shape == (3, 4)


@each("move", [
    lambda x: np.swapaxes(x, 0, 23), lambda x: np.rot90(x, 3, (1, 0)),
    lambda x: np.moveaxis(x, 0, 23), lambda x: np.rollaxis(x, 23)])
def test_axes_of_many_are_moved(move):
    x = np.arange(6.0).reshape(2, 3, *22 * [1])
    for actual in move(cytape.constant(x)), cytape.function(move)(x):
        np.testing.assert_array_equal(actual, move(x))
    np.testing.assert_array_equal(cytape.vmap(move)(x[None]), move(x)[None])
