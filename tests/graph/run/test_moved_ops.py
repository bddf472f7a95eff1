"""Structural ops in plans, computed and differentiated without Python."""

import numpy as np

import cytape
from cytape.graph.model.graph import Graph
from tests.cases import each
from tests.graph.plans import assert_as_reference

MOVED = {
    "reshape in Fortran's order": lambda x: np.reshape(x, (4, 3), order="F"),
    "concatenate": lambda x: np.concatenate([x, x.T[:2, :3].T, x], axis=1),
    "concatenate all": lambda x: np.concatenate([x, x[0]], axis=None),
    "stack": lambda x: np.stack([x[0], x[2]], axis=-1),
    "stack of scalars": lambda x: np.stack([x[0, 1], x[1, 2], x[0, 0]]),
    "hstack": lambda x: np.hstack([x, x[:, :1]]),
    "dstack": lambda x: np.dstack([x, x]),
    "split": lambda x: np.split(x, [1, 3], axis=1)[1],
    "all parts": lambda x: np.concatenate(np.array_split(x.T, 3)[::-1]),
    "unstack": lambda x: cytape.numpy.unstack(x, axis=1)[2],
    "unstack to scalars": lambda x: cytape.numpy.unstack(x[1])[2],
    "roll": lambda x: np.roll(x, (1, -2), axis=(0, 1)),
    "roll all": lambda x: np.roll(x.T, 5),
    "tile": lambda x: np.tile(x[:, ::-1], (2, 1, 2)),
    "repeat": lambda x: np.repeat(x.T, 3, axis=1),
    "pad": lambda x: np.pad(x[::2], ((1, 0), (0, 2))),
    "pad by copies": lambda x: np.pad(x, 2, mode="reflect"),
    "pad by edges": lambda x: np.pad(x, ((0, 3), (1, 1)), mode="edge"),
    "diag": lambda x: np.diag(x[1], -1),
    "diagonal": lambda x: np.diagonal(x, 1),
    "trace": lambda x: np.trace(x) * x,
    "tril": lambda x: np.tril(x, 1),
    "triu": lambda x: np.triu(x.T),
    "flip": lambda x: np.flip(x),
    "rot90": lambda x: np.rot90(x),
    "swapaxes": lambda x: np.swapaxes(x[None], 0, 2),
    "moveaxis": lambda x: np.moveaxis(x[None], 0, 1),
    "meshgrid": lambda x: np.meshgrid(x[0], x[:, 0])[1],
}


@each("function", MOVED.values(), ids=MOVED)
@each("dtype", ["float64", "float32", "complex128"])
def test_ops_that_only_move_numbers(function, dtype):
    graph = Graph()
    x = graph.placeholder(dtype, (3, 4))
    with graph.as_default():
        y = function(x)
        gradient = cytape.gradients(y, x, grad_ys=y * 2)[0]
    array = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    plan = assert_as_reference(graph, [x], [y * 1, gradient], [array])
    assert plan.n_calls == 0


REPEATED = {
    "tile": (lambda x: np.tile(x, (2, 3)), 6.0),
    "repeat": (lambda x: np.repeat(x, 5, axis=1), 5.0),
    "resize": (lambda x: np.resize(x, (3, *x.shape)), 3.0),
    "stack": (lambda x: np.stack([x, x, x]), 3.0),
}


@each("function, times", REPEATED.values(), ids=REPEATED)
@each("dtype", ["float64", "float32", "complex128"])
def test_a_gradient_that_is_repeated_alike_is_one_item(function, times, dtype):
    graph = Graph()
    x = graph.placeholder(dtype, (30, 40))
    with graph.as_default():
        y = np.sum(function(x)) * 0.1
        gradient = cytape.gradients(y, x, np.ones((), dtype))[0]
    array = np.random.default_rng(0).normal(size=(30, 40)).astype(dtype)
    plan = assert_as_reference(graph, [x], [gradient], [array])
    for _ in range(2):
        (result,) = plan.run([array])
        assert result.numpy().strides == (0, 0)
        np.testing.assert_allclose(result, np.full((30, 40), times * 0.1), rtol=1e-6)


@each("function", [
    lambda x: np.pad(x, 1, mode="reflect"), lambda x: np.concatenate([x, x[:, :3]], axis=1),
    lambda x: np.pad(x.T, ((0, 3), (1, 1)), mode="edge")])
def test_a_gradient_that_is_one_item_is_moved_without_being_written_out(function):
    graph = Graph()
    x = graph.placeholder("float64", (30, 40))
    with graph.as_default():
        gradient = cytape.gradients(np.sum(function(x)), x)[0]
    plan = assert_as_reference(graph, [x], [gradient], [np.ones((30, 40))])
    assert plan.peak_bytes < 3 * 30 * 40 * 8
