"""cytape.nn: the functions of neural networks under one name, ready for arrays and tensors."""

import numpy as np

import cytape
from cytape.ops.neural import cross_entropy, neural_ops
from tests.cases import each


def test_it_has_the_functions_of_the_op_families_and_nothing_else():
    assert sorted(cytape.nn.__all__) == sorted(neural_ops.__all__ + cross_entropy.__all__)
    for name in cytape.nn.__all__:
        family = cross_entropy if name in cross_entropy.__all__ else neural_ops
        assert getattr(cytape.nn, name) is getattr(family, name)
    public = {name for name in vars(cytape.nn) if not name.startswith("_")}
    assert public == set(cytape.nn.__all__)


IMAGE, FILTERS = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 5))
CALLS = {
    "avg_pool2d": (IMAGE, 2, 1, "VALID"),
    "conv2d": (IMAGE, FILTERS, 1, "SAME"),
    "dropout": (np.eye(3), 0.5, 3),
    "fused_batch_norm": (np.eye(3), np.ones(3), np.zeros(3)),
    "log_softmax": (np.eye(3),),
    "logsumexp": (np.eye(3),),
    "max_pool2d": (IMAGE, 2, 2, "SAME"),
    "relu": (np.array([-1.0, 2.0]),),
    "sigmoid": (np.array([-1.0, 2.0]),),
    "softmax": (np.eye(3),),
    "softmax_cross_entropy_with_logits": (np.eye(3), np.eye(3)),
    "softplus": (np.array([-1.0, 2.0]),),
    "sparse_softmax_cross_entropy_with_logits": (np.array([0, 2]), np.eye(3)[:2]),
}


@each("name", cytape.nn.__all__)
def test_arrays_give_arrays_and_tensors_give_the_same_as_tensors(name):
    function, arguments = getattr(cytape.nn, name), CALLS[name]
    plain = function(*arguments)
    tensors = function(*[cytape.constant(x) if isinstance(x, np.ndarray) else x for x in arguments])
    for array, tensor in zip(*[r if isinstance(r, tuple) else (r,) for r in (plain, tensors)],
                             strict=True):
        assert isinstance(array, np.ndarray | np.generic)
        assert type(tensor) is cytape.Tensor
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_a_small_network_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 4))
    labels = (x[:, 0] > 0).astype(int)
    w = cytape.Variable(0.1 * rng.normal(size=(4, 2)))
    losses = []
    for _ in range(20):
        with cytape.GradientTape() as tape:
            loss = np.mean(cytape.nn.sparse_softmax_cross_entropy_with_logits(labels, x @ w))
        w.assign_sub(tape.gradient(loss, w))
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]
