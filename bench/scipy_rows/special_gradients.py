"""Gradients of special functions beside the values of SciPy.

``python -m bench.scipy_rows.special_gradients [names]``

The gradient of the sum, forward and backward pass, in all arguments with a derivative, over SciPy's
call. Prints the functions above the limit, the slowest first. Arrays of functions that take long
are smaller than 10**6 elements.
"""

import argparse

import numpy as np
from scipy import special

import cytape
from bench.timing import Effort, Program, best_seconds
from cytape.errors import NotDifferentiableError
from cytape.ops import special as ours

LIMIT = 4
LARGEST, MOST_SECONDS = 1_000_000, 0.02
# Orders, degrees and parameters, which have no derivative; the others are all differentiated.
LEADING = {
    **dict.fromkeys(
        ["jv", "jve", "yv", "yve", "iv", "ive", "kv", "kve", "hankel1", "hankel1e", "hankel2",
         "hankel2e", "struve", "modstruve", "hyp0f1", "pbdv", "pbvv", "pbwa"], (1.5,)),
    **dict.fromkeys(["kn", "yn", "jn", "expn"], (2,)),
    **dict.fromkeys(["hyp1f1", "hyperu", "wright_bessel", "log_wright_bessel"], (0.7, 1.5)),
    "hyp2f1": (0.7, 1.3, 2.6), "eval_gegenbauer": (4, 0.7), "eval_genlaguerre": (4, 0.7),
    "eval_jacobi": (4, 0.7, 1.2), "eval_sh_jacobi": (4, 2.7, 1.2), "lpmv": (1.0, 3.5),
    **dict.fromkeys(["smirnov", "smirnovi"], (7,)),
    **dict.fromkeys(["mathieu_a", "mathieu_b"], (2,)),
    **dict.fromkeys([f"mathieu_{name}" for name in (
        "cem", "sem", "modcem1", "modcem2", "modsem1", "modsem2")], (2, 1.5)),
    **dict.fromkeys(["pro_cv", "obl_cv"], (1, 2)),
    **dict.fromkeys([f"{kind}_{name}" for kind in ("pro", "obl") for name in (
        "ang1", "rad1", "rad2")], (1, 2, 1.3)),
    **dict.fromkeys([f"pro_{name}_cv" for name in ("ang1", "rad1", "rad2")], (1, 2, 1.3, 6.4)),
    **dict.fromkeys([f"obl_{name}_cv" for name in ("ang1", "rad1", "rad2")], (1, 2, 1.3, 5.2)),
    **dict.fromkeys(["pdtr", "pdtrc", "pdtri"], (3,)),
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"], (3, 7)),
}
TRAILING = {"besselpoly": (1.5, 2.0)}
SHIFT = {"pro_rad1": 1.0, "pro_rad2": 1.0, "pro_rad1_cv": 1.0, "pro_rad2_cv": 1.0, "zetac": 1.0}
NONE = {"round", "gammasgn"}


def functions():
    """Return the ufuncs of `scipy.special` with a rule."""
    return sorted({
        name for name in special.__all__ if name not in NONE
        and isinstance(getattr(special, name), np.ufunc) and hasattr(ours, name)})


def given(name, n):
    rng = np.random.default_rng(0)
    ufunc = getattr(special, name)
    leading = LEADING.get(name, (4,) if name.startswith("eval_") else ())
    trailing = TRAILING.get(name, ())
    moving = [rng.uniform(0.1, 0.9, n) + SHIFT.get(name, 0)
              for _ in range(ufunc.nin - len(leading) - len(trailing))]
    if all("d" not in types for types in ufunc.types) or name.startswith("hankel"):
        moving = [x + 0.1j for x in moving]
    return leading, moving, trailing


def has_derivative(ufunc, operands, x):
    try:
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = ufunc(*[z[:1] if isinstance(z, cytape.Tensor) else z for z in operands])
        tape.gradient(y, x)
    except NotDifferentiableError:
        return False
    return True


def programs(name, n):
    ufunc = getattr(special, name)
    leading, moving, trailing = given(name, n)
    sources = [cytape.constant(x) for x in moving]
    operands = [*leading, *sources, *trailing]

    def forward(_):
        ufunc(*leading, *moving, *trailing)

    def gradient(_):
        with cytape.GradientTape() as tape:
            tape.watch(sources)
            y = ufunc(*operands)
        tape.gradient(y, sources)

    sources[:] = [x for x in sources if has_derivative(ufunc, operands, x)]
    return [Program(forward), Program(gradient)]


def ratio(name, n, effort):
    forward, gradient = best_seconds(programs(name, n), effort)
    return gradient / forward, forward


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one round of small arrays")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    effort = Effort(1, 0.0) if options.smoke else Effort(4, 0.01)
    rows = []
    with np.errstate(all="ignore"):
        for name in options.names or functions():
            small, seconds = ratio(name, 1_000, effort)
            n = min(LARGEST, int(MOST_SECONDS / seconds * 1_000))
            large = small if options.smoke or n <= 1_000 else ratio(name, n, effort)[0]
            rows.append((max(small, large), name, small, large, n))
    for most, name, small, large, n in sorted(rows, reverse=True):
        if most > LIMIT or options.names:
            print(f"{name:18} {small:6.1f}x at 10**3 elements, {large:6.1f}x at {max(n, 1000):,}")
    above = sum(row[0] > LIMIT for row in rows)
    print(f"special functions with a gradient above {LIMIT}x SciPy's call: {above} of {len(rows)}")


if __name__ == "__main__":
    main()
