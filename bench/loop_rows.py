"""Rows about control flow in graphs: an iteration, a branch, and their gradients."""

import numpy as np

import cytape
import cytape.numpy as cnp
from bench.peak_memory import peak_of_loop
from bench.program_rows import call
from bench.report import Row, multiple
from bench.timing import Effort, best_seconds

GROUP = "control flow in graphs"


def looped(step, n, **options):
    """Return a traced function that takes n steps, counted by an integer."""
    @cytape.function
    def loop(x):
        _, y = cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, step(y)), (cytape.constant(0), x), **options)
        return cnp.sum(y)

    return loop


def ten_ops(namespace):
    def step(y):
        for _ in range(2):
            y = namespace.tanh(y * 0.9 + 0.1) * 1.1 - 0.01
        return y

    return step


def branching(x):
    return cytape.cond(x > 1.0, lambda: x * 0.5, lambda: x * 1.5 + 0.1)


def warm(function, *arguments):
    for _ in range(3):
        function(*arguments)
    return call(function, *arguments)


def loop_rows(smoke):
    """Yield all rows about loops and branches."""
    effort = Effort(2, 0.001) if smoke else Effort(10, 0.1)
    n = 100 if smoke else 10_000
    yield row_of_gradient(n, effort)
    yield row_of_iteration(n, effort)
    yield row_of_branch(10 if smoke else 1000, effort)
    yield row_of_gradient_with_branch(n, effort)
    yield row_of_elements([100, 200] if smoke else [50_000, 100_000], effort)
    yield row_of_writes([100, 200] if smoke else [20_000, 40_000, 100_000, 200_000], effort)
    yield from rows_of_checkpoints(100 if smoke else 100_000, effort)


def row_of_gradient(n, effort):
    x, step = np.linspace(0.1, 1.0, 8), ten_ops(np)

    def forward():
        y, i = x, 0
        while i < n:
            y, i = step(y), i + 1
        return y.sum()

    loop = looped(ten_ops(cnp), n)
    np.testing.assert_allclose(float(loop(x)), forward(), rtol=1e-9)
    gradient = cytape.function(cytape.grad(loop))
    baseline, seconds = best_seconds([call(forward), warm(gradient, x)], effort)
    return multiple(
        GROUP, f"gradient of {n:,} steps of 10 ops on 8 numbers, of NumPy's forward loop",
        baseline, seconds, at_most=0.15)


def row_of_iteration(n, effort):
    loop = looped(lambda y: y * 1.0001, n)
    (seconds,) = best_seconds([warm(loop, np.array(1.0))], effort)
    return Row(GROUP, "an iteration of a scalar loop, counted by an integer", 1e6 * seconds / n,
               unit="us", at_most=0.05, details={"cytape_s": seconds})


def row_of_branch(n, effort):
    @cytape.function
    def branches(x):
        for _ in range(n):
            x = branching(x)
        return x

    (seconds,) = best_seconds([warm(branches, np.array(0.7))], effort)
    return Row(GROUP, "a branch", 1e6 * seconds / n, unit="us", at_most=0.05,
               details={"cytape_s": seconds})


def row_of_elements(lengths, effort):
    def gradient_of(n):
        @cytape.function
        def last(x):
            _, y = cytape.while_loop(
                lambda i, y: i < n, lambda i, y: (i + 1, cnp.tanh(y + x[i])),
                (cytape.constant(0), cytape.constant(0.0)))
            return y

        return warm(cytape.function(cytape.grad(last)), np.linspace(-1, 1, n))

    baseline, seconds = best_seconds([gradient_of(n) for n in lengths], effort)
    short, long = lengths
    return multiple(
        GROUP, f"gradient of a loop over the elements of {long:,} numbers, of {short:,}",
        baseline, seconds, at_most=2.3)


def row_of_writes(lengths, effort):
    """Return a row about a carried array: the worst of the ratios of pairs of lengths."""
    def gradient_of(n):
        @cytape.function
        def total(x):
            array = cytape.TensorArray("float64", size=n, element_shape=()).write(0, x)
            _, array = cytape.while_loop(
                lambda i, array: i < n,
                lambda i, array: (i + 1, array.write(i, cnp.sin(array.read(i - 1)))),
                (cytape.constant(1), array))
            return cnp.sum(array.stack())

        return warm(cytape.function(cytape.grad(total)), cytape.constant(0.7))

    seconds = best_seconds([gradient_of(n) for n in lengths], effort)
    pairs = zip(seconds[::2], seconds[1::2], strict=True)
    short, long = max(pairs, key=lambda pair: pair[1] / pair[0])
    return multiple(
        GROUP, f"gradient of {lengths[1]:,} or {lengths[-1]:,} writes to an array, of half as many",
        short, long, at_most=2.3)


def row_of_gradient_with_branch(n, effort):
    def eager(x):
        y, i = x, 0
        while i < n:
            y, i = branching(y), i + 1
        return y

    x = cytape.constant(0.7)
    gradient = cytape.function(cytape.grad(looped(branching, n)))
    np.testing.assert_allclose(gradient(x), cytape.grad(eager)(x), rtol=1e-9)
    baseline, seconds = best_seconds(
        [call(cytape.grad(eager), x), warm(gradient, x)], effort)
    return multiple(GROUP, f"gradient of {n:,} branches in a loop, of the eager tape's",
                    baseline, seconds, at_most=0.1)


def rows_of_checkpoints(n, effort):
    x = np.linspace(0.1, 1.0, 8)
    options = {"auto": 2.0, 100: None}  # checkpoints, and the allowed multiple of the plain time
    plain, *others = [
        warm(cytape.function(cytape.grad(looped(ten_ops(cnp), n, checkpoints=checkpoints))), x)
        for checkpoints in (None, *options)]
    baseline, *seconds = best_seconds([plain, *others], effort)
    for (checkpoints, at_most), own_seconds in zip(options.items(), seconds, strict=True):
        yield multiple(
            GROUP, f"gradient of {n:,} steps, checkpoints={checkpoints!r}, of the plain one's",
            baseline, own_seconds, at_most=at_most)
    grown = [max(peak_of_loop(n, checkpoints), 1) for checkpoints in (None, "auto")]
    yield Row(GROUP, f"peak memory of {n:,} steps, checkpoints='auto', of the plain one's",
              grown[1] / grown[0], at_most=0.01, details={"plain": grown[0], "auto": grown[1]})
