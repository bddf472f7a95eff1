"""Rows about arrays that a program fills row by row: ``found[i] = state``."""

import numpy as np

import cytape
import cytape.numpy as cnp
from bench.program_rows import call
from bench.report import multiple
from bench.timing import Effort, best_seconds

GROUP = "arrays filled row by row"
STATE = np.array([1.0, 2.0, 3.0])


def kept(namespace, x, n):
    found = namespace.zeros((n, 3))
    for i in range(n):
        found[i] = x
    return namespace.sum(found)


def simulated(namespace, x, n):
    found = namespace.zeros((n, 3))
    for i in range(n):
        x = x + 0.001 * namespace.sin(x)
        found[i] = x
    return namespace.sum(found)


def read_again(namespace, x, n):
    found = namespace.zeros((n, 3))
    found[0] = x
    for i in range(1, n):
        found[i] = found[i - 1] + 0.001 * namespace.sin(found[i - 1])
    return namespace.sum(found)


def looped(x, n):
    def body(i, x, found):
        x = x + 0.001 * cnp.sin(x)
        found[i] = x
        return i + 1, x, found

    start = cytape.constant(0), x, cnp.zeros((n, 3))
    return cnp.sum(cytape.while_loop(lambda i, *_: i < n, body, start)[2])


PROGRAMS = {"that is kept": kept, "that moves": simulated, "of the row before": read_again}


def update_rows(smoke):
    """Yield all rows about arrays that are filled."""
    effort = Effort(2, 0.001) if smoke else Effort(10, 0.1)
    n = 50 if smoke else 10_000
    for name, program in PROGRAMS.items():
        yield from rows_of_program(name, program, n, effort)
    gradient = warm(looped, n)
    baseline, seconds = best_seconds([call(simulated, np, STATE, n), gradient], effort)
    yield multiple(GROUP, f"gradient of {n:,} writes in a traced while_loop, of NumPy's loop",
                   baseline, seconds, at_most=0.5)
    yield from rows_of_lengths(n, effort)


def gradient_of(function, n):
    return cytape.grad(lambda x: function(x, n))


def warm(function, n):
    traced = cytape.function(gradient_of(function, n))
    x = cytape.constant(STATE)
    traced(x)
    return call(traced, x)


def eager_and_traced(program, n):
    def function(x, n):
        return program(cnp, x, n)

    return call(gradient_of(function, n), STATE), warm(function, n)


def rows_of_program(name, program, n, effort):
    eager, traced = eager_and_traced(program, n)
    baseline, seconds, of_trace = best_seconds([call(program, np, STATE, n), eager, traced], effort)
    yield multiple(GROUP, f"gradient of {n:,} writes of a state {name}, of NumPy's loop",
                   baseline, seconds, at_most=4.0)
    yield multiple(GROUP, f"the same traced, a state {name}", baseline, of_trace, at_most=0.5)


def rows_of_lengths(n, effort):
    (short, short_trace), (long, long_trace) = (
        eager_and_traced(read_again, rows) for rows in (n // 4, n))
    times = best_seconds([short, long, short_trace, long_trace], effort)
    for what, baseline, seconds in (("", *times[:2]), (", traced", *times[2:])):
        yield multiple(GROUP, f"gradient of {n:,} writes, of a quarter as many{what}",
                       baseline, seconds, at_most=5.0)
