"""``python -m bench.ops``: prices of the derivatives of all ops.

The value and gradient of ``sum(f(x))``, less those of ``sum(x)``, as a multiple of NumPy's
``f(x)``: op by op, through ``cytape.function``, and by autograd where it is installed. Of a
function that returns views, less those of ``sum(y)``, where y are the views that NumPy returns.
"""

import os

if __name__ == "__main__":  # one core against one core
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse
import importlib.util
import time
import warnings
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from bench.ops.calls import calls
from bench.ops.report import Price, draw, format_line, write_markdown
from bench.timing import Effort, Program, best_seconds
from cytape.errors import SymbolicTensorError
from cytape.tensor.tensor import tensor_of

SIZES = 10, 1_000, 1_000_000
EAGER, COMPILED, AUTOGRAD = "cytape", "cytape.function", "autograd"
LONG = 0.2  # seconds; longer calls are run once


def terms_of(result, path=()):
    """Return the indices of each term of a function's result, and whether it is complex.

    Computed once: a search in each call would be timed with it.
    """
    if isinstance(result, list | tuple):
        return [term for i, x in enumerate(result) for term in terms_of(x, (*path, i))]
    kind = np.dtype(result.dtype).kind
    return [(path, kind == "c")] if kind in "fc" else []


def total(n, result, terms):
    """Return the sum of all real numbers in a function's result."""
    value = None
    for path, is_complex in terms:
        term = result
        for i in path:
            term = term[i]
        term = n.sum(n.real(term) if is_complex else term)
        value = term if value is None else value + term
    return value


def cytape_gradient(function, sources, operands, compiled=False):
    """Return a function without arguments that returns a value and its gradients."""
    tensors = [
        cytape.constant(x) if compiled or x.flags.c_contiguous  # strided ones a function copies
        else tensor_of(x) for x in (operands[i] for i in sources)]

    def gradient(tensors):
        with cytape.GradientTape() as tape:
            tape.watch(tensors)
            value = function(cnp, *placed(tensors, sources, operands))
        return value, tape.gradient(value, tensors)

    if compiled:
        gradient = cytape.function(gradient)
    return lambda: gradient(tensors)


def placed(tensors, sources, operands):
    operands = list(operands)
    for i, tensor in zip(sources, tensors, strict=True):
        operands[i] = tensor
    return operands


def compiled_gradient(function, sources, operands):
    return cytape_gradient(function, sources, operands, compiled=True)


def autograd_gradient(function, sources, operands):
    import autograd.numpy

    gradient = autograd.value_and_grad(
        lambda *operands: function(autograd.numpy, *operands), tuple(sources))
    return lambda: gradient(*operands)


def libraries_for(call):
    """Return the names of the libraries that can differentiate a function as a whole.

    autograd makes arrays of objects for unknown operations, and differentiates each number alone: a
    million would take minutes.
    """
    if AUTOGRAD not in GRADIENTS:
        return list(GRADIENTS)
    import autograd.numpy

    drawn, operands = call.draw(10)

    def checked(x):
        result = call.function(autograd.numpy, *placed([x], [drawn.index(True)], operands))
        parts = result if isinstance(result, list | tuple) else [result]
        if any(part.dtype == object for part in parts):
            raise TypeError("an array of objects")
        return total(autograd.numpy, result, terms_of(result))

    try:
        autograd.grad(checked)(operands[drawn.index(True)])
    except Exception:
        return [EAGER, COMPILED]
    return list(GRADIENTS)


GRADIENTS = {EAGER: cytape_gradient, COMPILED: compiled_gradient} | (
    {AUTOGRAD: autograd_gradient} if importlib.util.find_spec("autograd") else {})


def agree(answers, expected):
    """Whether a value and gradients (None is zero) are the expected ones."""
    pairs = zip([answers[0], *answers[1]], [expected[0], *expected[1]], strict=True)
    return all(
        np.allclose(*[0.0 if x is None else x for x in pair], 1e-6, 1e-8, equal_nan=True)
        for pair in pairs)


def gradients_of(function, sources, operands, libraries):
    """Return programs for value and gradients, by name, that work and agree with the first."""
    programs, expected = {}, None
    for name in libraries:
        make = GRADIENTS[name]
        try:
            program = make(function, sources, operands)
            for _ in range(1 if name != COMPILED else 2):  # traced, then made a plan
                answers = program()
        except Exception as error:
            if name == AUTOGRAD or isinstance(error, SymbolicTensorError):
                continue
            raise
        expected = expected or answers
        if agree(answers, expected):
            programs[name] = program
        elif name != AUTOGRAD:
            raise AssertionError(f"{name} computes another gradient")
    return programs


def repeated(run, effort):
    """Return a program that runs for 20 us or more, and how many calls that takes."""
    start = time.perf_counter()
    run()
    taken = time.perf_counter() - start
    count = 1 if taken > 2e-5 or not effort.seconds else 1 + int(2e-5 / taken)

    def runs(_):
        for _ in range(count):
            run()

    return Program(runs), count, taken


def seconds_of(runs, effort):
    """Return the shortest times of functions that take turns."""
    programs, counts, taken = zip(*(repeated(run, effort) for run in runs), strict=True)
    if max(taken) > LONG:
        return [min(first, again) for first, again in zip(
            taken, best_seconds(programs, Effort(1, 0)), strict=True)]
    best = best_seconds(programs, effort)
    return [time / count for time, count in zip(best, counts, strict=True)]


def price(call, size, effort, libraries=tuple(GRADIENTS)):
    """Measure a function at a size."""
    drawn, operands = call.draw(size)
    sources = [i for i, is_drawn in enumerate(drawn)
               if is_drawn and operands[i].dtype.kind in "fc"]

    result = call.function(np, *operands)
    results = list(result) if isinstance(result, list | tuple) else [result]
    is_view = any(np.may_share_memory(x, operands[i]) for x in results for i in sources)
    summed = results if is_view else [operands[max(sources, key=lambda i: operands[i].size)]]
    terms, terms_of_sums = terms_of(result), terms_of(summed)

    def of_result(n, *operands):
        return total(n, call.function(n, *operands), terms)

    def of_operands(n, *operands):
        return total(n, operands, terms_of_sums)

    gradients = gradients_of(of_result, sources, operands, libraries)
    sums = gradients_of(of_operands, list(range(len(summed))), summed, libraries)
    if is_view:  # which takes the small difference of two times
        effort = Effort(4 * effort.rounds, effort.seconds)
    forward, *seconds = seconds_of(
        [lambda: call.function(np, *operands), *gradients.values(), *sums.values()], effort)
    base = dict(zip(sums, seconds[len(gradients):], strict=True))
    added = {name: max(taken - base[name], 0.0)
             for name, taken in zip(gradients, seconds, strict=False)}
    return Price(call.name, size, forward, added, is_view)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.ops")
    parser.add_argument("--smoke", action="store_true", help="run everything once, and tiny")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="functions")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    for option in "markdown", "plot":
        parser.add_argument(f"--{option}", type=Path, metavar="FILE")
    arguments = parser.parse_args()

    effort = Effort(1, 0) if arguments.smoke else Effort(3, 0.02)
    sizes = [10] if arguments.smoke else arguments.sizes
    prices = []
    print(format_line("", ["NumPy", *GRADIENTS] * len(sizes)))
    for call in calls():
        if not any(fnmatch(call.name, pattern) for pattern in arguments.only):
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            libraries = libraries_for(call)
            of_sizes = [price(call, size, effort, libraries) for size in sizes]
        print(format_line(call.name, [
            cell for x in of_sizes for cell in x.cells(GRADIENTS)]), flush=True)
        prices += of_sizes

    if arguments.markdown:
        write_markdown(arguments.markdown, prices, list(GRADIENTS), arguments.plot)
    if arguments.plot:
        draw(arguments.plot, prices, list(GRADIENTS))


if __name__ == "__main__":
    main()
