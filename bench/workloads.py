"""The programs that whole gradients are timed on, as functions of a NumPy namespace.

Each takes `np`, which is NumPy or anything that has its functions under the same names, then the
arrays that are differentiated, then constant data; it returns one number and changes no argument.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy


@dataclass(frozen=True)
class Workload:
    name: str
    function: Callable  # (np, *inputs, *data) -> a number
    inputs: list  # arrays to differentiate with respect to
    data: tuple = ()


def scalar_loop(np, x, steps):
    for _ in range(steps):
        x = np.sin(x) * x + 0.5 * x
    return x


def leapfrog(np, q, p, steps):
    """Integrate the motion of particles on stiffening springs."""
    for _ in range(steps):
        p = p - 0.01 * (q + 0.3 * q * q * q)
        q = q + 0.01 * p
    return np.sum(q * p)


def unary_mix(np, x, steps):
    for _ in range(steps):
        x = x + 0.01 * np.tanh(np.sin(x) * np.exp(-x))
    return np.sum(x)


def mlp(np, x, *parameters):
    """Sum the squares of what fully connected tanh layers make of a batch."""
    for weights, biases in zip(parameters[::2], parameters[1::2], strict=True):
        x = np.tanh(x @ weights + biases)
    return np.sum(x * x)


def lstm(np, from_x, from_h, biases, xs, h, c):
    """Run a long short-term memory over a sequence; each row of `h` and `c` is one of a batch."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    n = h.shape[1]
    for x in xs:
        gates = x @ from_x + h @ from_h + biases
        keep, write, show = (sigmoid(gates[:, i * n : (i + 1) * n]) for i in range(3))
        c = keep * c + write * np.tanh(gates[:, 3 * n :])
        h = show * np.tanh(c)
    return np.sum(h * h)


def fan_in(np, x, uses):
    s = 0.0
    for k in range(uses):
        s = s + x * k
    return np.sum(s * s)


def elementwise(np, x):
    y = np.exp(-x * x) * np.sin(x) + np.log(1 + x * x)
    return np.sum(y * y)


def logistic_loss(np, weights, points, labels):
    """Average the logistic loss over points with labels +1 and -1."""
    return np.mean(np.log(1 + np.exp(-labels * (points @ weights))))


def rosenbrock(np, x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def small_array_workloads(small=False):
    """Return programs whose arrays have at most 8 elements: there the overhead is everything."""
    rng = numpy.random.default_rng(0)
    vectors = [rng.normal(size=8), rng.normal(size=8)]
    steps = 5 if small else 100
    scalar_steps = 5 if small else 250
    return [
        Workload(f"{4 * scalar_steps} ops on a scalar", scalar_loop, [numpy.array(0.3)],
                 (scalar_steps,)),
        Workload(f"leapfrog on 8-vectors, {steps} steps", leapfrog, vectors, (steps,)),
        Workload(f"tanh, exp and sin of 8-vectors, {steps} steps", unary_mix, vectors[:1],
                 (steps,)),
    ]


def workloads(small=False):
    """Return all programs, with their arrays small if the point is only that they run."""
    rng = numpy.random.default_rng(0)

    def mlp_workload(layers, width, batch):
        arrays = [rng.normal(size=(batch, width))]
        for _ in range(layers):
            arrays += [rng.normal(0, width**-0.5, (width, width)), rng.normal(size=width) / 10]
        return Workload(f"MLP, {layers} layers {width}x{width}, batch {batch}", mlp, arrays)

    def lstm_workload(steps, hidden, batch):
        shapes = (hidden, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
        parameters = [rng.normal(0, hidden**-0.5, shape) for shape in shapes]
        xs = rng.normal(size=(steps, batch, hidden))
        zeros = numpy.zeros((batch, hidden))
        return Workload(f"LSTM, {steps} steps, hidden {hidden}, batch {batch}", lstm, parameters,
                        (xs, zeros, zeros))

    def fan_in_workload(uses, size):
        return Workload(f"a {size}-vector used {uses} times", fan_in, [rng.normal(size=size)],
                        (uses,))

    def elementwise_workload(size):
        return Workload(f"10 elementwise ops on {size:,} elements", elementwise,
                        [rng.normal(size=size)])

    def logistic_workload(n_points, n_features):
        points = rng.normal(size=(n_points, n_features))
        labels = numpy.sign(points @ rng.normal(size=n_features) + rng.normal(size=n_points))
        return Workload(f"logistic loss, {n_points}x{n_features}", logistic_loss,
                        [rng.normal(size=n_features) / 10], (points, labels))

    def rosenbrock_workload(n):
        return Workload(f"Rosenbrock with slices, n = {n}", rosenbrock, [rng.normal(size=n)])

    return small_array_workloads(small) + (
        [mlp_workload(3, 4, 2), lstm_workload(3, 4, 2), fan_in_workload(5, 10),
         elementwise_workload(100), logistic_workload(20, 3), rosenbrock_workload(10)]
        if small else
        [mlp_workload(8, 8, 4), mlp_workload(6, 128, 64), mlp_workload(3, 1024, 256),
         lstm_workload(40, 64, 8), fan_in_workload(300, 1000), elementwise_workload(2_000_000),
         logistic_workload(5000, 54), rosenbrock_workload(100)]
    )
