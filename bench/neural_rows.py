"""``python -m bench.neural_rows``: gradients of the functions of `cytape.nn` over the call.

A gradient includes the call itself, and is taken with respect to all arrays that are listed.
"""

import sys

import numpy as np

import cytape
from bench.timing import Effort, Program, best_seconds

LIMIT = 4.0  # times the call with arrays


def rows():
    """Return the name, the function and the arrays of each row."""
    nn, rng = cytape.nn, np.random.default_rng(0)
    x, scale = rng.normal(size=(256, 512)), rng.normal(size=512)
    image, filters = rng.normal(size=(16, 32, 32, 16)), rng.normal(size=(3, 3, 16, 32))
    heads = [rng.normal(size=(4, 4, 128, 32)) for _ in range(3)]
    scores, labels = rng.normal(size=(256, 512)), rng.integers(0, 512, 256)
    activations = [(name, getattr(nn, name), [x]) for name in (
        "relu", "softplus", "sigmoid", "silu", "mish", "gelu", "selu", "elu", "log_sigmoid",
        "softsign", "hard_silu", "glu", "softmax", "log_softmax")]
    return [
        *activations,
        ("gelu, approximate", lambda x: nn.gelu(x, approximate=True), [x]),
        ("leaky_relu in x and alpha", nn.leaky_relu, [x, np.array(0.1)]),
        ("layer_norm", nn.layer_norm, [x]),
        ("layer_norm with scale and offset", nn.layer_norm, [x, scale, scale]),
        ("rms_norm", nn.rms_norm, [x]),
        ("rms_norm with a scale", nn.rms_norm, [x, scale]),
        ("group_norm with scale and offset", lambda x, s, t: nn.group_norm(x, 4, s, t),
         [image, scale[:16], scale[:16]]),
        ("batch_norm", lambda x, s, t: nn.batch_normalization(x, *nn.moments(x, 0), t, s, 1e-5),
         [x, scale, scale]),
        ("conv2d", lambda x, w: nn.conv2d(x, w, 1, "SAME"), [image, filters]),
        ("max_pool", lambda x: nn.max_pool(x, 2, 2, "VALID"), [image]),
        ("avg_pool", lambda x: nn.avg_pool(x, 2, 2, "VALID"), [image]),
        ("attention, 16 heads of 128 x 32", nn.scaled_dot_product_attention, heads),
        ("attention, causal", lambda q, k, v: nn.scaled_dot_product_attention(
            q, k, v, is_causal=True), heads),
        ("huber_loss", nn.huber_loss, [x, x[::-1].copy()]),
        ("sparse softmax cross-entropy",
         lambda x: nn.sparse_softmax_cross_entropy_with_logits(labels, x), [scores]),
    ]


def main(smoke=False):
    effort = Effort(1, 0.0) if smoke else Effort(5, 0.05)
    print(f"{'gradient and call, over the call':45} {'ms':>8} {'ratio':>6}  limit {LIMIT}")
    ratios = {}
    for name, function, arrays in rows():
        gradient = cytape.grad(lambda *arrays, f=function: np.sum(f(*arrays)),
                               tuple(range(len(arrays))))
        plain, ours = best_seconds([
            Program(lambda _, f=function, xs=arrays: f(*xs)),
            Program(lambda _, f=gradient, xs=arrays: f(*xs))], effort)
        ratios[name] = ours / plain
        print(f"{name:45} {1000 * ours:8.2f} {ours / plain:6.2f}"
              + ("  above the limit" if ours > LIMIT * plain else ""), flush=True)
    return ratios


if __name__ == "__main__":
    main("--smoke" in sys.argv)
