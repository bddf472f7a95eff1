"""vmap in bodies: arrays mapped that belong to an outer graph, beside values of inner ones.

Every function of pairs is mapped twice over the same array. Outside of any body this does not cross
graphs, so it is the reference; `tests/graph/batching/test_vmap.py` checks that against NumPy.
"""

import functools

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import grouped, sampled

X = np.array([0.5, 1.3, 2.1])
ONES = np.ones(3)
SCALE = cytape.Variable(np.array([0.7, 1.9, 0.3]))
product_of_two = cytape.function(lambda p, q: p * q * q)
with_own_gradient = cytape.custom_gradient(lambda p, q: (p * q, lambda g: (g * q, g * p)))

OF_PAIRS = {
    "product": lambda p, q: p * q,
    "gradient": lambda p, q: cytape.grad(lambda s: s * s * q)(p),
    "tangent": lambda p, q: cytape.jvp(lambda s: s * s * p, (q,), (p,))[1],
    "cond": lambda p, q: cytape.cond(p > q, lambda: p * q, lambda: p * q * q),
    "case": lambda p, q: cytape.case(
        [(p < 1.0, lambda: p * q), (q < 1.0, lambda: q * q * p)], lambda: p * p * q),
    "while_loop": lambda p, q: cytape.while_loop(
        lambda s: s < 3.0, lambda s: (s * (1.5 + p),), (q * q + 0.1,))[0],
    "scan": lambda p, q: cnp.sum(cytape.scan(lambda c, e: c * e * p, cnp.stack([p, q, q * p]))),
    "map_fn": lambda p, q: cnp.sum(cytape.map_fn(lambda e: e * p, cnp.stack([p, q, q * p]))),
    "recompute_grad": lambda p, q: cytape.recompute_grad(lambda s: s * p * cnp.sin(q))(q),
    "custom_gradient": with_own_gradient,
    "function": product_of_two,
    "function that closes over a member": lambda p, q: cytape.function(lambda s: s * p * q)(q),
    "variable": lambda p, q: p * q * SCALE[0],
    "draw": lambda p, q: p * q + 0.0 * cnp.random.normal(size=()),
    "third vmap": lambda p, q: cnp.sum(cytape.vmap(lambda r: p * q * r)(X)),
}

# Each calls a function of X in a body, X being from outside or, where it says so, from inside.
BODIES = {
    "function": cytape.function,
    "vmap": lambda f: lambda x: cnp.sum(cytape.vmap(lambda s: f(x) * s)(ONES / 3), 0),
    "vmap in a function": lambda f: cytape.function(
        lambda x: cnp.sum(cytape.vmap(lambda s: f(x) * s)(ONES / 3), 0)),
    "cond": lambda f: cytape.function(
        lambda x: cytape.cond(cnp.sum(x) > 0, lambda: f(x), lambda: 2 * f(x))),
    "case": lambda f: cytape.function(
        lambda x: cytape.case([(x[0] < 0, lambda: 2 * f(x)), (x[1] < 0, lambda: f(x))],
                              lambda: f(x))),
    "while_loop": lambda f: cytape.function(
        lambda x: cytape.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, y + f(x) / 2), (0, cnp.zeros((3, 3))))[1]),
    "scan": lambda f: cytape.function(
        lambda x: cytape.scan(lambda y, s: y + f(x) * s, ONES / 3, cnp.zeros((3, 3)))[-1]),
    "map_fn": lambda f: cytape.function(
        lambda x: cnp.sum(cytape.map_fn(lambda s: f(x) * s, ONES / 3), 0)),
    "map_fn, from inside": lambda f: cytape.function(
        lambda x: cnp.sum(cytape.map_fn(lambda s: f(x * s), ONES), 0) / 3),
    "recompute_grad": lambda f: lambda x: cytape.recompute_grad(f)(x),
    "recompute_grad in a function": lambda f: cytape.function(
        lambda x: cytape.recompute_grad(lambda s: f(x) * s)(cnp.ones(()))),
    "gradient of a function": lambda f: lambda x: cytape.grad(
        lambda s: cnp.sum(cytape.function(lambda t: f(x) * t)(s)))(np.array(1.0)) * x,
}

MODES = {
    "value": lambda f: f,
    "reverse": cytape.jacrev,
    "forward": cytape.jacfwd,
    "forward over reverse": lambda f: cytape.hessian(lambda x: cnp.sum(f(x) ** 2)),
    "reverse over reverse": lambda f: cytape.jacrev(cytape.grad(lambda x: cnp.sum(f(x) ** 2))),
}


WAYS_OF_MAPPING = {
    "axis": lambda x, s: cytape.vmap(lambda row: row * s, in_axes=1)(cnp.outer(x, x)),
    "shared": lambda x, s: cytape.vmap(lambda p, y: p * y * s, in_axes=(0, None))(x, x),
    "keyword": lambda x, s: cytape.vmap(lambda p, y: p * y * s)(x, y=x),
    "two arguments": lambda x, s: cytape.vmap(lambda p, q: p * q * s * x)(x, x * s),
    "chunks": lambda x, s: cytape.vmap(lambda p: p * s * x, chunk_size=2)(x),
    "not of the member": lambda x, s: cytape.vmap(
        lambda p: (p * x, s * x), out_axes=(0, None))(x)[0] * s,
    "structure": lambda x, s: cytape.vmap(lambda d: d["p"] * s * x)({"p": x}),
    "written to": lambda x, s: cytape.vmap(lambda p: cnp.stack([p, s, p * s]).at[0].add(s))(x),
}


def of_all_pairs(of_pair):
    return lambda x: cytape.vmap(lambda p: cytape.vmap(lambda q: of_pair(p, q))(x))(x)


def outside(body, f):
    """Return what a body computes without it."""
    return (lambda x: cnp.sum(f(x)) * x) if body == "gradient of a function" else f


@functools.cache
def expected_of_pairs(is_summed, of_pair, mode):
    """Return the derivatives of all pairs outside of bodies, or of their sum."""
    f = outside("gradient of a function" if is_summed else "", of_all_pairs(OF_PAIRS[of_pair]))
    return MODES[mode](f)(X)


@grouped("body, of_pair", [
    (body, f"{body}, {of_pair}", (body, of_pair), (i + k) % 4 > 0)
    for i, body in enumerate(BODIES) for k, of_pair in enumerate(OF_PAIRS)])
def test_all_pairs_in_a_body(body, of_pair):
    inside, is_summed = BODIES[body](of_all_pairs(OF_PAIRS[of_pair])), body == [*BODIES][-1]
    for mode, derivative in MODES.items():
        np.testing.assert_allclose(
            derivative(inside)(X), expected_of_pairs(is_summed, of_pair, mode),
            rtol=1e-12 if mode == "value" else 1e-9, atol=1e-12 * (mode != "value"), err_msg=mode)


@sampled(4, body=BODIES, way=WAYS_OF_MAPPING)
def test_other_ways_to_map_an_outer_array(body, way):
    mapped = WAYS_OF_MAPPING[way]

    def f(x):
        return cytape.vmap(lambda s: mapped(x, s))(x)[:, 0]

    inside, expected = BODIES[body](f), outside(body, f)
    np.testing.assert_allclose(inside(X), expected(X), rtol=1e-12)
    np.testing.assert_allclose(
        cytape.jacrev(inside)(X), cytape.jacrev(expected)(X), rtol=1e-9, atol=1e-12)


def test_a_product_of_all_pairs():
    @cytape.function
    def gram(x):
        return cytape.vmap(lambda p: cytape.vmap(lambda q: p * q)(x))(x)

    np.testing.assert_array_equal(gram(X), np.outer(X, X))
    expected = np.einsum("ik,j->ijk", np.eye(3), X) + np.einsum("i,jk->ijk", X, np.eye(3))
    np.testing.assert_array_equal(cytape.jacrev(gram)(X), expected)
    np.testing.assert_array_equal(cytape.jacfwd(gram)(X), expected)
