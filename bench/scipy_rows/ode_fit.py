"""``python -m bench.scipy_rows.ode_fit``: gradients of a fit of a differential equation.

Prints the measured values with their limits; ``--smoke`` runs everything once. The exit code is 1
if a limit is exceeded. Rows of autograd and diffrax are printed where these are installed.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import scipy.integrate

import cytape
import cytape.numpy as cnp
from bench.timing import Effort, Program, best_seconds
from cytape.scipy.integrate import odeint, solve_ivp

START, RATES = np.array([10.0, 5.0]), np.array([1.1, 0.4, 0.4, 0.1])
END, N_TIMES = 20.0, 50
TIMES = np.linspace(0.0, END, N_TIMES)
FIRST_CALL = """
import time
start = time.perf_counter()
import numpy as np
from bench.scipy_rows import ode_fit
imported = time.perf_counter()
ode_fit.{gradient}(1e-6)()
print(time.perf_counter() - imported)
"""


def change(t, y, a, b, c, d):
    prey, predators = y
    return [(a - b * predators) * prey, (d * prey - c) * predators]


def solve(rtol, method="RK45"):
    return lambda: scipy.integrate.solve_ivp(
        change, (0.0, END), START, method, TIMES, args=tuple(RATES), rtol=rtol, atol=rtol).y


def gradient(rtol, method="RK45"):
    def loss(start, a, b, c, d):
        found = solve_ivp(
            change, (0.0, END), start, method, TIMES, args=(a, b, c, d), rtol=rtol, atol=rtol)
        return cnp.sum((found.y - 1.0) ** 2)

    value_and_grad = cytape.value_and_grad(loss, argnums=(0, 1, 2, 3, 4))
    return lambda: value_and_grad(START, *RATES)[1]


def solve_by_odeint(rtol):
    return lambda: scipy.integrate.odeint(
        change, START, TIMES, tuple(RATES), rtol=rtol, atol=rtol, tfirst=True)


def gradient_by_odeint(rtol):
    def loss(start, a, b, c, d):
        found = odeint(change, start, TIMES, (a, b, c, d), rtol=rtol, atol=rtol, tfirst=True)
        return cnp.sum((found - 1.0) ** 2)

    value_and_grad = cytape.value_and_grad(loss, argnums=(0, 1, 2, 3, 4))
    return lambda: value_and_grad(START, *RATES)[1]


def gradient_by_autograd(rtol):
    import autograd.numpy as anp
    from autograd import grad
    from autograd.builtins import tuple as traced_tuple
    from autograd.scipy.integrate import odeint

    def loss(start, rates):
        found = odeint(
            lambda y, t, rates: anp.array([
                (rates[0] - rates[1] * y[1]) * y[0], (rates[3] * y[0] - rates[2]) * y[1]]),
            start, TIMES, traced_tuple((rates,)), rtol=rtol, atol=rtol)
        return anp.sum((found - 1.0) ** 2)

    slope = grad(loss, (0, 1))
    return lambda: slope(START, RATES)


def gradient_by_diffrax(rtol):
    import jax
    jax.config.update("jax_enable_x64", True)
    import diffrax
    import jax.numpy as jnp

    def loss(start, rates):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, rates: jnp.stack(change(t, y, *rates))),
            diffrax.Dopri5(), 0.0, END, None, start, rates,
            saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)), max_steps=4096,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol))
        return jnp.sum((found.ys - 1.0) ** 2)

    slope = jax.jit(jax.grad(loss, (0, 1)))
    return lambda: jax.block_until_ready(slope(START, RATES))


def first_call(name):
    """Return the seconds of the first gradient in a fresh process, without the imports."""
    run = subprocess.run(
        [sys.executable, "-c", FIRST_CALL.format(gradient=name)], capture_output=True, text=True,
        check=True)
    return float(run.stdout)


def milliseconds(calls, effort):
    return [1e3 * seconds for seconds in best_seconds(
        [Program(lambda _, call=call: call()) for call in calls], effort)]


def rows(effort):
    """Yield name, measured value, limit or None, and unit of each row."""
    peers = {name: make for name, make in (
        ("autograd", gradient_by_autograd), ("diffrax", gradient_by_diffrax)) if find_spec(name)}
    for rtol in (1e-6, 1e-8):
        of_peers = {name: make(rtol) for name, make in peers.items()}
        ours, plain, ours_odeint, plain_odeint, *others = milliseconds([
            gradient(rtol), solve(rtol), gradient_by_odeint(rtol), solve_by_odeint(rtol),
            *of_peers.values()], effort)
        yield f"solve_ivp, rtol {rtol:g}", plain, None, "ms"
        yield f"its gradient, rtol {rtol:g}", ours, None, "ms"
        yield f"value and gradient over solve, rtol {rtol:g}", ours / plain, 4.0, "x"
        for method, limit in (("DOP853", 4.0), ("LSODA", None), ("Radau", 4.0), ("BDF", 4.0)):
            ours, plain = milliseconds([gradient(rtol, method), solve(rtol, method)], effort)
            yield f"the same by {method} ({plain:.1f} ms)", ours / plain, limit, "x"
        yield f"odeint, rtol {rtol:g}", plain_odeint, None, "ms"
        yield f"its gradient, rtol {rtol:g}", ours_odeint, None, "ms"
        for name, other in zip(of_peers, others, strict=True):
            yield f"gradient by {name}, warm, rtol {rtol:g}", other, None, "ms"
            if name == "autograd":
                yield f"odeint's over autograd's, rtol {rtol:g}", ours_odeint / other, 1.0, "x"
    own = 1e3 * first_call("gradient")
    yield "first gradient, after imports", own, None, "ms"
    if "diffrax" in peers:
        other = 1e3 * first_call("gradient_by_diffrax")
        yield "first gradient by diffrax, after its imports", other, None, "ms"
        yield "first gradient over diffrax's", own / other, 1 / 20, "x"


def main(arguments=()):
    effort = Effort(1, 0.0) if "--smoke" in arguments else Effort(5, 0.3)
    start, exceeded = time.perf_counter(), False
    for name, value, limit, unit in rows(effort):
        bound = "" if limit is None else f"limit {limit:g}{unit}"
        exceeded |= limit is not None and value > limit
        print(f"{name:48} {value:9.3g} {unit:3} {bound}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(exceeded and "--smoke" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
