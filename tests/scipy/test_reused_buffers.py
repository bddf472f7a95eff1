"""Users' functions that fill one buffer in each call and return it."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.scipy.integrate import odeint, solve_bvp, solve_ivp

P, TIMES = np.array([1.3, 0.4]), np.linspace(0, 1, 4)


class Buffered:
    def __init__(self, copies):
        self.copies, self.buffer = copies, cnp.zeros(2)

    def rates(self, t, y, p):
        self.buffer[0] = p[0] * y[0] - y[0] * y[1]
        self.buffer[1] = p[1] * y[0] * y[1] - y[1]
        return self.buffer.copy() if self.copies else self.buffer


@pytest.mark.parametrize("solve", [
    *[lambda f, p, method=method: solve_ivp(
        f, (0, 1), [1.0, 0.5], method, TIMES, args=(p,), rtol=1e-6).y
      for method in ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")],
    lambda f, p: odeint(f, [1.0, 0.5], TIMES, (p,), tfirst=True)])
def test_gradients_of_solutions(solve):
    # The value of SciPy's DOP853 itself depends on whether the function copies.
    buffered, copied = [
        cytape.grad(lambda p, copies=copies: cnp.sum(solve(Buffered(copies).rates, p)))(P)
        for copies in (False, True)]
    np.testing.assert_allclose(buffered, copied, rtol=1e-4)


def test_gradients_of_boundary_value_problems():
    def value(p, copies):
        buffer = cnp.zeros((2, 1000))

        def slopes(x, y, p):
            n = y.shape[1]
            buffer[0, :n] = y[1]
            buffer[1, :n] = -p[0] * y[0] + p[1]
            return buffer[:, :n].copy() if copies else buffer[:, :n]

        return solve_bvp(
            slopes, lambda a, b, p: [a[0], b[0] - 1], TIMES, np.zeros((2, 4)), args=(p,)).y[0, 2]

    buffered, copied = [cytape.grad(value)(P, copies) for copies in (False, True)]
    np.testing.assert_allclose(buffered, copied, rtol=1e-4)
