"""Gradients of special functions beside the values of SciPy, and beside autograd's and JAX's.

``python -m bench.scipy_rows.special_gradients [--peers] [names]``

The gradient of the sum, forward and backward pass, in all arguments with a derivative, over SciPy's
call. Prints the functions above the limit. Slow functions have arrays of fewer elements. With
``--peers`` prints the functions whose gradient takes longer than that of autograd or JAX (compiled,
float64), where these are installed (.venv-peers) and have the function.
"""

import argparse
import importlib

import numpy as np
from scipy import special

import cytape
from bench.timing import Effort, Program, best_seconds
from cytape.errors import NotDifferentiableError
from cytape.ops import special as rules
from cytape.scipy import special as ours

LIMIT = 4
SMALL, LARGEST = 1_000, 1_000_000
SMALL_SECONDS, MOST_SECONDS = 0.002, 0.01  # of SciPy's call, for smaller arrays
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
SHIFT = {
    **dict.fromkeys(["pro_rad1", "pro_rad2", "pro_rad1_cv", "pro_rad2_cv"], 1.0),
    **dict.fromkeys(["zetac", "zeta", "multigammaln"], 1.5)}
NO_GRADIENT = {"round", "gammasgn"}
OTHERS = {  # functions that are not ufuncs, and the number of their arguments
    **dict.fromkeys([
        "zeta", "lambertw", "factorial", "logsumexp", "softmax", "log_softmax"], 1),
    **dict.fromkeys([
        "polygamma", "multigammaln", "comb", "perm", "spherical_jn", "spherical_yn", "spherical_in",
        "spherical_kn"], 2), "sph_harm_y": 4}
LEADING |= {
    **dict.fromkeys([f"spherical_{letter}n" for letter in "jyik"], (2,)), "polygamma": (1,),
    "sph_harm_y": (3, 1)}
TRAILING["multigammaln"] = (2,)


def functions():
    """Return the names of functions with derivatives."""
    return sorted({
        name for name in special.__all__ if name not in NO_GRADIENT
        and isinstance(getattr(special, name), np.ufunc) and hasattr(rules, name)} | set(OTHERS))


def given(name, n):
    """Return leading arguments, arrays of n elements, and trailing arguments."""
    rng = np.random.default_rng(0)
    function = getattr(special, name)
    leading = LEADING.get(name, (4,) if name.startswith("eval_") else ())
    trailing = TRAILING.get(name, ())
    n_arguments = OTHERS[name] if name in OTHERS else function.nin
    moving = [rng.uniform(0.1, 0.9, n) + SHIFT.get(name, 0)
              for _ in range(n_arguments - len(leading) - len(trailing))]
    types = getattr(function, "types", "d")
    if all("d" not in signature for signature in types) or name.startswith("hankel"):
        moving = [x + 0.1j for x in moving]
    return leading, moving, trailing


def forward_program(name, n):
    """Return SciPy's call as a program."""
    leading, moving, trailing = given(name, n)
    return Program(lambda _: getattr(special, name)(*leading, *moving, *trailing))


def gradient_program(name, n, chosen=None):
    """Return a gradient in the chosen ones of the arrays, by default in all with a derivative."""
    leading, moving, trailing = given(name, n)
    sources = [cytape.constant(x) for x in moving]
    function = getattr(ours, name)

    def gradient(watched, operands):
        with cytape.GradientTape() as tape:
            tape.watch(watched)
            y = function(*leading, *operands, *trailing)
        return tape.gradient(y, watched)

    def has_derivative(i):
        ones = [x[:1] for x in sources]
        try:
            gradient(ones[i], ones)
        except NotDifferentiableError:
            return False
        return True

    watched = [x for i, x in enumerate(sources)
               if (has_derivative(i) if chosen is None else i in chosen)]
    return Program(lambda _: gradient(watched, sources))


def seconds_of(name, n, effort):
    """Return the seconds of SciPy's call and of the gradient."""
    return best_seconds([forward_program(name, n), gradient_program(name, n)], effort)


def sizes(name):
    """Return two numbers of elements, of which the first takes SciPy at most SMALL_SECONDS."""
    few = 100
    seconds = best_seconds([forward_program(name, few)], Effort(3, 0))[0] / few
    small = SMALL if seconds * SMALL < SMALL_SECONDS else few
    seconds = best_seconds([forward_program(name, small)], Effort(3, 0))[0] / small
    return small, max(small, min(LARGEST, int(MOST_SECONDS / seconds)))


# ---- other libraries -------------------------------------------------------------------------


def autograd_program(name, n, chosen):
    """Return the gradient by autograd."""
    import autograd
    import autograd.numpy as anp
    theirs = getattr(importlib.import_module("autograd.scipy.special"), name)
    leading, moving, trailing = given(name, n)
    gradient = autograd.grad(
        lambda *xs: anp.sum(theirs(*leading, *xs, *trailing)), tuple(chosen))
    return Program(lambda _: gradient(*moving))


def jax_program(name, n, chosen):
    """Return the value and the gradient by JAX, compiled."""
    import jax
    jax.config.update("jax_enable_x64", True)
    theirs = getattr(importlib.import_module("jax.scipy.special"), name)
    leading, moving, trailing = given(name, n)
    gradient = jax.jit(jax.value_and_grad(
        lambda *xs: theirs(*leading, *xs, *trailing).sum(), tuple(chosen)))
    arrays = [jax.numpy.asarray(x) for x in moving]
    return Program(lambda _: jax.block_until_ready(gradient(*arrays)))


PEERS = {"autograd": autograd_program, "jax": jax_program}


def peer_program(peer, name, n):
    """Return the gradient by another library in as many arguments as it can, and their places."""
    places = range(len(given(name, 1)[1]))
    for chosen in (list(places), *([place] for place in reversed(places))):
        try:
            program = PEERS[peer](name, n, chosen)
            program.run(None)
        except (ImportError, AttributeError):
            break
        except Exception:  # no rule, or none for these arguments
            continue
        return program, chosen
    return None, None


def peer_rows(names, effort):
    """Print the functions whose gradient takes longer than that of another library."""
    for peer in PEERS:
        compared, slower = 0, 0
        for name in names:
            for n in sizes(name):
                program, chosen = peer_program(peer, name, n)
                if program is None:
                    break
                compared += 1
                theirs, seconds, scipys = best_seconds([
                    program, gradient_program(name, n, chosen), forward_program(name, n)], effort)
                if seconds > theirs:
                    slower += 1
                    print(f"{name:18} {n:9,} elements, argument {chosen}: {1e6 * seconds:9.0f} us, "
                          f"{seconds / theirs:5.2f}x {peer}; SciPy's call {scipys / theirs:.2f}x",
                          flush=True)
        print(f"gradients that take longer than those of {peer}: {slower} of {compared}")


def print_above(what, names, is_asked, rows):
    """Print prices above the limit, or all that the user asked for, and how many are above.

    The rows of a name are numbers of elements, with the seconds of SciPy's call and the gradient.
    """
    above = 0
    for name, prices in zip(names, rows, strict=True):
        is_above = any(gradient > LIMIT * forward for _, forward, gradient in prices)
        above += is_above
        if is_asked or is_above:
            print(f"{name:26}" + ",".join(
                f"{gradient / forward:7.1f}x of {1e6 * forward:8.0f} us at {n:9,} elements"
                for n, forward, gradient in prices), flush=True)
    print(f"{what} with a gradient above {LIMIT}x SciPy's call: {above} of {len(names)}")


def main():
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one round of small arrays")
    parser.add_argument("--peers", action="store_true", help="compare with autograd and JAX")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    effort = Effort(1, 0.0) if options.smoke else Effort(4, 0.005)
    names = options.names or functions()
    with np.errstate(all="ignore"):
        if options.peers:
            peer_rows(names, effort)
            return
        print_above("special functions", names, bool(options.names), (
            [(n, *seconds_of(name, n, effort)) for n in sizes(name)[:1 if options.smoke else 2]]
            for name in names))


if __name__ == "__main__":
    main()
