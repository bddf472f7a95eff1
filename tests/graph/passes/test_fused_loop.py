"""Fused ops run block by block: sums over blocks, operands that are broadcast, many threads."""


import numpy as np

from cytape.tensor.values.buffer import release_kept
from cytape.tensor.values.spec import Spec
from tests.cases import each
from tests.graph.passes.fused import SIZES, call, check, made, spec_of
from tests.threads import in_threads


@each(dtype=["float64", "float32"], size=[*SIZES, 1_000_003])
def test_sums_are_as_accurate_as_numpys(size, dtype):
    x = np.random.default_rng(0).uniform(size=size).astype(dtype)
    op = made(
        spec_of(x), [x],
        [call("Square", 0), call("Sum", 1, axis=None), call("Sum", 0, axis=None)],
        [2, 1, 3])
    total, squares, plain = op.forward(x)
    np.testing.assert_array_equal(squares, x * x)
    exact = np.sum((x * x).astype(np.longdouble))
    eps = np.finfo(dtype).eps
    assert abs(total - exact) <= 4 * eps * exact
    assert abs(plain - np.sum(x.astype(np.longdouble))) <= 4 * eps * size
    assert total.shape == plain.shape == ()


def test_a_sum_of_one_block_is_numpys_to_the_bit():
    x = np.random.default_rng(0).normal(size=300)
    check(spec_of(x), [x], [call("Exp", 0), call("Sum", 1, axis=None)], [2])


@each(
    "shapes",
    [
        [(4, 80), (80,)], [(4, 80), (4, 1)], [(4, 80), (4, 1), (80,)], [(4, 1), (80,)],
        [(3, 1, 5), (5,)], [(2, 3, 4), (3, 1), (2, 1, 1)], [(1, 1), (7,)],
        [(2, 1, 600), (2, 3, 1)], [(5, 1, 1), (5, 2, 70)], [(), (2, 2)],
        [(1, 3, 1, 4), (2, 1, 5, 1)],
    ],
    ids=str)
def test_operands_are_broadcast(shapes):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=shape) for shape in shapes]
    spec = Spec.of(np.broadcast_shapes(*shapes), float)
    calls = [call("Add", 0, 1)]
    for i in range(2, len(shapes)):
        calls.append(call("Multiply", i, len(shapes) + i - 2))
    calls += [call("Less", len(shapes) + len(calls) - 1, 0)]
    last = len(shapes) + len(calls) - 1
    if operands[0].shape != spec.shape:
        calls.pop()
        last -= 1
    calls.append(call("Sum", last if calls[-1][0] != "Less" else last - 1, axis=None))
    check(spec, operands, calls, list(range(len(shapes), len(shapes) + len(calls))), rtol=1e-13)


def test_nothing_is_kept_between_runs():
    x = np.linspace(-1, 1, 10_000)
    calls = [call("Exp", 0), call("Sin", 0), call("Multiply", 1, 2), call("Sum", 3, axis=None)]
    op = made(spec_of(x), [x], calls, [4])
    release_kept()
    op.forward(x)
    assert release_kept() == 0
    assert op.scratch.nbytes > 2 * 8 * op.block  # the caller brings it


def test_threads_share_an_op():
    x = np.linspace(-1, 1, 100_000)
    op = made(
        spec_of(x), [x], [call("Exp", 0), call("Multiply", 1, 0), call("Sum", 2, axis=None)], [2, 3]
    )
    expected = op.forward(x)

    def work(_):
        for _ in range(20):
            for a, b in zip(op.forward(x), expected, strict=True):
                np.testing.assert_array_equal(a, b)

    in_threads(work, *range(4))
