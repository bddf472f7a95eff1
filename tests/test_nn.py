"""cytape.nn: the functions of neural networks under one name, ready for arrays and tensors."""

from importlib import import_module

import numpy as np

import cytape
from tests.cases import each

FAMILIES = [import_module(f"cytape.ops.neural.{name}") for name in (
    "activation_functions", "attention", "convolution", "cross_entropy", "initial_weights",
    "losses", "neural_ops", "normalisation", "pooling", "sequence_losses")]


def test_it_has_the_functions_of_the_op_families_and_nothing_else():
    assert sorted(cytape.nn.__all__) == sorted(sum((family.__all__ for family in FAMILIES), []))
    for family in FAMILIES:
        for name in family.__all__:
            assert getattr(cytape.nn, name) is getattr(family, name)
    public = {name for name in vars(cytape.nn) if not name.startswith("_")}
    assert public == set(cytape.nn.__all__)


IMAGE, FILTERS = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 5))
SIGNAL, VOLUME = np.ones((1, 6, 2)), np.ones((1, 2, 3, 2, 2))
X, Y = np.array([[-1.0, 2.0], [0.5, -3.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
CALLS = {
    "avg_pool": (SIGNAL, 2, 1, "VALID"),
    "avg_pool2d": (IMAGE, 2, 1, "VALID"),
    "batch_normalization": (X, Y[0], Y[1], None, Y[0], 0.1),
    "conv1d": (SIGNAL, np.ones((2, 2, 3)), 1, "CAUSAL"),
    "conv2d": (IMAGE, FILTERS, 1, "SAME"),
    "conv3d": (VOLUME, np.ones((2, 2, 2, 2, 3)), 1, "SAME"),
    "conv_transpose": (SIGNAL, np.ones((2, 3, 2))),
    "convolution": (SIGNAL, np.ones((2, 1, 4)), 2, "VALID", None, 1, 2),
    "cosine_similarity": (X, Y),
    "ctc_loss": (np.array([[1]]), np.ones((3, 1, 2)), np.array([1]), np.array([3])),
    "depthwise_conv2d": (IMAGE, np.ones((2, 2, 2, 3)), 1, "SAME"),
    "dropout": (np.eye(3), 0.5, 3),
    "embedding_lookup": (X, np.array([1, 1, 0])),
    "fused_batch_norm": (np.eye(3), np.ones(3), np.zeros(3)),
    "group_norm": (X, 1),
    "l2_loss": (X,),
    "max_pool": (VOLUME, 2, 1, "VALID"),
    "max_pool2d": (IMAGE, 2, 2, "SAME"),
    "moments": (X, 0),
    "scaled_dot_product_attention": (X, Y, X),
    "sparse_softmax_cross_entropy_with_logits": (np.array([0, 2]), np.eye(3)[:2]),
    "triplet_loss": (X, Y, X + Y),
    **dict.fromkeys(
        ("absolute_error", "hinge_loss", "huber_loss", "kl_divergence", "log_cosh_loss",
         "log_poisson_loss", "sigmoid_cross_entropy_with_logits", "squared_error",
         "softmax_cross_entropy_with_logits"), (Y, Y[::-1])),
}
OF_ARRAYS = {"glorot_uniform", "he_normal", "lecun_normal", "orthogonal"}  # weights of variables


def as_leaves(result):
    return result if isinstance(result, tuple) else (result,)


@each("name", [name for name in cytape.nn.__all__ if name not in OF_ARRAYS | {"batch_norm"}])
def test_arrays_give_arrays_and_tensors_give_the_same_as_tensors(name):
    function, arguments = getattr(cytape.nn, name), CALLS.get(name, (X,))
    plain = as_leaves(function(*arguments))
    tensors = [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in arguments]
    lists = [x.tolist() if isinstance(x, np.ndarray) else x for x in arguments]
    for tensor, array in zip(as_leaves(function(*tensors)), plain, strict=True):
        assert isinstance(array, np.ndarray | np.generic)
        assert type(tensor) is cytape.Tensor
        np.testing.assert_array_equal(tensor.numpy(), array)
    if name != "dropout":
        for found, array in zip(as_leaves(function(*lists)), plain, strict=True):
            np.testing.assert_array_equal(found, array)


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
