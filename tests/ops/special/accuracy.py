"""First derivatives of special functions against mpmath's at 80 digits.

``python -m tests.ops.special.accuracy --points 3000 [names]`` prints per function and argument
the largest relative error, and how many points lie beyond 1e-10, or the tolerance if it is wider.
`references.py` has the functions of mpmath, the points and the tolerances. A name may be followed
by a part of the domain, where SciPy is less precise. mpmath is several times faster if gmpy2 is
installed.
"""

import argparse
import functools
import time

import numpy as np

import cytape
from cytape.ops import special as ours
from tests.ops.special.checks import Related
from tests.ops.special.references import REFERENCES, mp

DIGITS = 80


def derivatives(function, arguments, place, **keywords):
    """Return derivatives in one argument: an array per output."""

    def along(x):
        return function(*arguments[:place], x, *arguments[place + 1:], **keywords)

    x = arguments[place]
    with np.errstate(all="ignore"):
        found = cytape.jvp(along, (x,), (np.ones_like(x),))[1]
    return list(found if isinstance(found, (list, tuple)) else np.atleast_2d(found))


@functools.lru_cache(20_000)  # for derivatives of two orders, of two outputs
def value(function, *point):
    return function(*point)


def expected(reference, arguments, place, i):
    """Return the derivative of the reference at point i, by relative steps of 1e-25.

    References with a method `slope` return their derivatives themselves.
    """
    related = reference if isinstance(reference, Related) else Related(reference, 1)
    point = [mp.mpmathify(complex(a[i])) if np.iscomplexobj(a) else mp.mpf(float(a[i]))
             for a in arguments]
    x = point[place]

    def at(x):
        return value(related.function, *point[:place], x, *point[place + 1:])

    if related.order == 0:
        with mp.workdps(DIGITS // 2):
            return complex(at(x))
    with mp.workdps(DIGITS):
        if hasattr(reference, "slope"):
            return complex(reference.slope(place, *point))
        step = (x or 1) * mp.mpf(10)**-25
        after, before = at(x + step), at(x - step)
        if related.order == 1:
            return complex((after - before) / (2 * step))
        return complex((after - 2 * at(x) + before) / (step * step))


def change(reference, arguments, place, i, right):
    """Return how much the derivative changes if its argument is rounded otherwise, by one ulp."""
    moved = list(arguments)
    moved[place] = arguments[place] * (1 + 2.0**-52)
    return abs(expected(reference, moved, place, i) - right)


def errors(name, check, n, seed=0):
    """Yield the argument, the output, the points and their relative errors.

    Errors beyond the tolerance, near zeros say, are less the effect of the argument's rounding.
    """
    rng = np.random.default_rng(seed)
    arguments = (check.samples(rng, n) if callable(check.samples)
                 else [sample(rng, n) for sample in check.samples])
    references = check.reference if isinstance(check.reference, list) else [check.reference]
    for place in check.places:
        found = derivatives(
            check.call or getattr(ours, name.split()[0]), arguments, place, **check.keywords)
        for output, reference in enumerate(references):
            if reference is None:
                continue
            right = np.array([expected(reference, arguments, place, i) for i in range(n)])
            size = np.abs(right)
            # the smallest and largest numbers of double precision, where SciPy's values end
            fits = (size > 1e-290) & (size < 1e290)
            with np.errstate(all="ignore"):
                error = np.where(fits, np.abs(found[output] - right), 0)
            for i in np.flatnonzero(error > check.tolerance * size):
                error[i] -= min(error[i], change(reference, arguments, place, i, right[i]))
            yield (place, output, arguments, found[output], right,
                   error / np.where(size > 0, size, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--worst", action="store_true", help="print the worst point")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wrong = 0
    for name, check in REFERENCES.items():
        if options.names and name.split()[0] not in options.names:
            continue
        start = time.perf_counter()
        for place, output, arguments, found, right, error in errors(name, check, options.points):
            beyond = ~(error <= check.tolerance)
            worst = np.argmax(np.where(np.isnan(error), np.inf, error))
            wrong += beyond.sum()
            print(f"{name:24} in {place} of output {output}: {error[worst]:8.1e}", *[
                f"beyond {limit:.0e}: {(~(error <= limit)).sum()}"
                for limit in sorted({1e-10, check.tolerance})], sep=", ", flush=True)
            if options.worst and beyond.any():
                point = [a[worst] for a in arguments]
                print(f"    at {point}: {found[worst]}, expected {right[worst]}")
        print(f"    {time.perf_counter() - start:.1f} s", flush=True)
    print(f"{wrong} derivatives beyond their tolerances")


if __name__ == "__main__":
    main()
