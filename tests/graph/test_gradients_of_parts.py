"""Gradients of what an index that is a tensor reads of a part of an array, beside other uses of it.

Plans add the gradients of parts where they belong, elements in places that a run finds among them.
"""

from itertools import product

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import passes
from tests.tables import table
from tests.ways import in_graph, reverse

SIZE = 6
U = np.linspace(1.0, 2.0, SIZE)
VIEWS = {
    "all": lambda x: x,
    "slice": lambda x: x[1:],
    "step": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "row": lambda x: cnp.reshape(x, (2, 3))[1],
    "column": lambda x: cnp.reshape(x, (2, 3))[:, 1],
    "slice of a slice": lambda x: x[1:][:-1],
}
READS = {
    "mask": lambda v: v[v > -0.3],
    "nonzero": lambda v: v[np.nonzero(v > 0)],
    "argsort": lambda v: v[np.argsort(v)] ** 2,
    "take_along_axis": lambda v: np.take_along_axis(v, np.argsort(-v), axis=0) * v,
    "extract": lambda v: np.extract(v > 0, v),
    "compress": lambda v: np.compress(v > 0, v),
    "take": lambda v: np.take(v, np.argsort(v)[:2]),
    "element": lambda v: v[np.argmax(v)] * v[np.argmin(v)],
    "largest": np.max,
    "median": np.median,
    "loop": lambda v: cytape.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, s + np.sin(v[i % v.shape[0]])), (0, 0.0))[1],
}
OTHERS = {
    "no other": lambda x: 0.0,
    "all": lambda x: x * x,
    "slice": lambda x: np.sin(x[2:]),
    "elements": lambda x: x[0] * x[-1] + x[2],
    "mask": lambda x: x[x > 0] ** 3,
    "neighbours": lambda x: x[1:] * np.exp(x[:-1]),
}


def slope(f):
    return lambda x: cytape.jvp(f, (x,), (U,))[1]


def turned(f):
    return lambda x: cnp.sum(cytape.grad(f)(x) * U)


MODES = {
    "gradient in a function": lambda f: cytape.function(cytape.grad(f)),
    "gradient of a function": lambda f: cytape.grad(cytape.function(f)),
    "slope in a function": lambda f: cytape.function(slope(f)),
    "reverse of reverse in a function": lambda f: cytape.function(cytape.grad(turned(f))),
    "reverse of reverse of a function": lambda f: cytape.grad(turned(cytape.function(f))),
    "forward of reverse in a function": lambda f: cytape.function(slope(cytape.grad(f))),
    "reverse of forward in a function": lambda f: cytape.function(cytape.grad(slope(f))),
}
ORDERS = {"gradient": cytape.grad, "slope": slope, "reverse": lambda f: cytape.grad(turned(f)),
          "forward": lambda f: slope(cytape.grad(f))}
PROGRAMS = list(product(VIEWS, READS, OTHERS))
SAMPLED = PROGRAMS[::7]


def array():
    return np.random.default_rng(0).normal(size=SIZE)


def program(view, read, other):
    return lambda x: cnp.sum(np.cos(READS[read](VIEWS[view](x)))) + cnp.sum(OTHERS[other](x))


@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
@pytest.mark.parametrize(
    "view, read, other",
    [pytest.param(*one, marks=() if one in SAMPLED else pytest.mark.exhaustive)
     for one in PROGRAMS])
def test_calls_of_all_modes_are_the_eager_ones(view, read, other):
    f, x = program(view, read, other), array()
    expected = {order: take(f)(x) for order, take in ORDERS.items()}
    for mode, way in MODES.items():
        traced = way(f)
        for _ in range(4):
            np.testing.assert_allclose(
                traced(x), expected[mode.split()[0]], rtol=1e-12, atol=1e-14, err_msg=mode)
    np.testing.assert_allclose(
        *in_graph(reverse, f, [x], None), expected["gradient"], rtol=1e-12, atol=1e-14)


@pytest.fixture
def left_out():
    yield passes.left_out
    passes.left_out.clear()


def sum_of_parts(rng):
    """Return a random sum of what is read of parts of an array."""
    terms = [OTHERS[name] for name in rng.choice(list(OTHERS), 2)]
    for view, read in zip(rng.choice(list(VIEWS), 5), rng.choice(list(READS), 5), strict=True):
        terms.append(lambda x, view=VIEWS[view], read=READS[read]: read(view(x)))
    terms = [terms[i] for i in rng.permutation(len(terms))[: rng.integers(2, 7)]]
    return lambda x: sum(cnp.sum(term(x) * scale) for scale, term in enumerate(terms, 1))


@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
@pytest.mark.parametrize("seed", table(range(4), range(4, 200)))
def test_all_calls_give_the_same_bits_whichever_passes_run(seed, left_out):
    x, f = array(), sum_of_parts(np.random.default_rng(seed))
    subsets = [set(), set(passes.PASSES), *({one} for one in passes.PASSES),
               *(set(passes.PASSES) - {one} for one in passes.PASSES)]
    for mode, way in MODES.items():
        expected = None
        for subset in subsets:
            left_out.clear()
            left_out |= subset
            traced = way(f)
            for _ in range(3):
                result = np.asarray(traced(x))
                expected = result if expected is None else expected
                np.testing.assert_array_equal(result, expected, err_msg=f"{mode}, {subset}")
