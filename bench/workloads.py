"""The programs that derivatives are timed on, as functions of a NumPy namespace.

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
    at_most: float | None = None  # target: the gradient as a multiple of NumPy's forward pass
    jvp_at_most: float | None = None  # the same for a JVP; forward mode is timed where this is set
    hvp_at_most: float | None = None  # the same for a Hessian-vector product
    batch_at_most: float | None = None  # target: the JVP of many tangents as a multiple of one
    function_at_most: float | None = None  # target: the gradient by a traced function
    second_call_at_most: float | None = None  # target: its second call as a multiple of the first

    def constants(self, constant):
        """Return the data with its arrays made constants of a library; a sequence as a list."""
        return tuple(
            item if not isinstance(item, numpy.ndarray)
            else [constant(step) for step in item] if item.ndim == 3
            else constant(item)
            for item in self.data
        )

    def tangents(self, *batch):
        """Return random directions to differentiate in, the same ones each time, for all inputs."""
        rng = numpy.random.default_rng(1)
        return [rng.normal(size=(*batch, *x.shape)).astype(x.dtype) for x in self.inputs]


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
    """Sum the squares of the output of fully connected tanh layers for a batch."""
    for weights, biases in zip(parameters[::2], parameters[1::2], strict=True):
        x = np.tanh(x @ weights + biases)
    return np.sum(x * x)


def sigmoid(np, x):
    return 1 / (1 + np.exp(-x))


def lstm(np, from_x, from_h, biases, xs, h, c):
    """Run a long short-term memory over a sequence; each row of `h` and `c` is one of a batch."""
    n = h.shape[1]
    for x in xs:
        gates = x @ from_x + h @ from_h + biases
        keep, write, show = (sigmoid(np, gates[:, i * n : (i + 1) * n]) for i in range(3))
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


def logistic_regression(np, points, weights, bias, labels):
    """The same with a bias; the points may be differentiated, too."""
    return np.mean(np.log(1 + np.exp(-labels * (points @ weights + bias))))


def rosenbrock(np, x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def gravity(np, *vectors_and_steps):
    """Move bodies that attract each other: first all places, then all velocities, as 3-vectors."""
    *vectors, steps = vectors_and_steps
    n = len(vectors) // 2
    places, velocities = vectors[:n], vectors[n:]
    for _ in range(steps):
        for i in range(n):
            for j in range(i):
                apart = places[i] - places[j]
                pull = 0.01 * apart / (np.sum(apart * apart) + 0.1) ** 1.5
                velocities[i] = velocities[i] - pull
                velocities[j] = velocities[j] + pull
        places = [x + 0.1 * v for x, v in zip(places, velocities, strict=True)]
    return sum(np.sum(x * x) for x in places)


def gru(np, from_x, from_h, biases, xs, h):
    """Run a gated recurrent unit over a sequence; each row of `h` is one of a batch."""
    n = h.shape[1]
    for x in xs:
        of_x = x @ from_x + biases
        of_h = h @ from_h
        keep = sigmoid(np, of_x[:, :n] + of_h[:, :n])
        reset = sigmoid(np, of_x[:, n : 2 * n] + of_h[:, n : 2 * n])
        h = keep * h + (1 - keep) * np.tanh(of_x[:, 2 * n :] + reset * of_h[:, 2 * n :])
    return np.sum(h * h)


def reprojection(np, camera, points, seen):
    """Sum the squared distances from where a camera sees points to where its picture has them.

    The camera is a rotation vector, a shift, a focal length and a radial distortion.
    """
    angle = np.sqrt(np.sum(camera[:3] * camera[:3]))
    cosine, sine = np.cos(angle), np.sin(angle)
    a, b, c = (camera[i] / angle for i in range(3))
    x, y, z = (points[:, i] for i in range(3))
    along = (a * x + b * y + c * z) * (1 - cosine)  # Rodrigues' formula, coordinate by coordinate
    depth = z * cosine + (a * y - b * x) * sine + c * along + camera[5]
    u = (x * cosine + (b * z - c * y) * sine + a * along + camera[3]) / depth
    v = (y * cosine + (c * x - a * z) * sine + b * along + camera[4]) / depth
    scale = camera[6] * (1 + camera[7] * (u * u + v * v))
    return np.sum((scale * u - seen[:, 0]) ** 2 + (scale * v - seen[:, 1]) ** 2)


def mixture(np, weights, centres, spreads, points):
    """Return the log likelihood of points under Gaussians; weights and spreads are logarithms."""

    def log_sum_exp(x):
        top = np.max(x, axis=1, keepdims=True)
        return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]

    apart = (points[:, None, :] - centres) * np.exp(-spreads)
    squares = np.sum(apart * apart, axis=2)
    logs = weights - np.sum(spreads, axis=1) - 0.5 * squares
    return np.sum(log_sum_exp(logs) - log_sum_exp(weights[None, :]))


def gathers(np, x, picks):
    s = 0.0
    for i in picks:
        s = s + x[i] * x[i]
    return s


def mlp_workload(rng, layers, width, batch, dtype=numpy.float64, **targets):
    arrays = [rng.normal(size=(batch, width))]
    for _ in range(layers):
        arrays += [rng.normal(0, width**-0.5, (width, width)), rng.normal(size=width) / 10]
    in_dtype = "" if dtype is numpy.float64 else f", {dtype.__name__}"
    return Workload(f"MLP, {layers} layers {width}x{width}, batch {batch}{in_dtype}", mlp,
                    [array.astype(dtype) for array in arrays], **targets)


def small_array_workloads(small=False):
    """Return programs whose arrays have at most 8 elements: there the overhead is everything."""
    rng = numpy.random.default_rng(0)
    vectors = [rng.normal(size=8), rng.normal(size=8)]
    steps = 5 if small else 100
    scalar_steps = 5 if small else 250
    return [
        Workload(f"{4 * scalar_steps} ops on a scalar", scalar_loop, [numpy.array(0.3)],
                 (scalar_steps,), at_most=3.0, jvp_at_most=2.5, hvp_at_most=8.0,
                 function_at_most=0.8),
        Workload(f"leapfrog on 8-vectors, {steps} steps", leapfrog, vectors, (steps,),
                 at_most=0.7, jvp_at_most=0.6, hvp_at_most=2.0, batch_at_most=6.0,
                 function_at_most=0.2),
        Workload(f"tanh, exp and sin of 8-vectors, {steps} steps", unary_mix, vectors[:1],
                 (steps,)),
    ]


def workloads(small=False):
    """Return all programs, with their arrays small if the point is only that they run."""
    rng = numpy.random.default_rng(0)

    def lstm_workload(steps, hidden, batch):
        shapes = (hidden, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
        parameters = [rng.normal(0, hidden**-0.5, shape) for shape in shapes]
        xs = rng.normal(size=(steps, batch, hidden))
        zeros = numpy.zeros((batch, hidden))
        return Workload(f"LSTM, {steps} steps, hidden {hidden}, batch {batch}", lstm, parameters,
                        (xs, zeros, zeros), at_most=3.0, function_at_most=2.2)

    def fan_in_workload(uses, size):
        return Workload(f"a {size}-vector used {uses} times", fan_in, [rng.normal(size=size)],
                        (uses,), at_most=3.0)

    def elementwise_workload(size):
        return Workload(f"10 elementwise ops on {size:,} elements", elementwise,
                        [rng.normal(size=size)], at_most=1.6, function_at_most=1.2)

    def logistic_workload(n_points, n_features):
        points = rng.normal(size=(n_points, n_features))
        labels = numpy.sign(points @ rng.normal(size=n_features) + rng.normal(size=n_points))
        return Workload(f"logistic loss, {n_points}x{n_features}", logistic_loss,
                        [rng.normal(size=n_features) / 10], (points, labels),
                        at_most=2.5, jvp_at_most=2.5, hvp_at_most=5.0, function_at_most=2.2)

    def regression_workload(n_points, n_features):
        points = rng.normal(size=(n_points, n_features))
        labels = numpy.sign(points @ rng.normal(size=n_features) + rng.normal(size=n_points))
        return Workload(f"logistic loss, {n_points}x{n_features}, gradient in all three arguments",
                        logistic_regression,
                        [points, rng.normal(size=n_features) / 10, numpy.array(0.1)], (labels,),
                        at_most=3.3)

    def rosenbrock_workload(n):
        return Workload(f"Rosenbrock with slices, n = {n}", rosenbrock, [rng.normal(size=n)],
                        at_most=3.0, jvp_at_most=2.5, hvp_at_most=8.0, function_at_most=2.0)

    of_small_mlp = {"at_most": 3.5, "jvp_at_most": 3.5, "hvp_at_most": 10.0, "batch_at_most": 12.0,
                    "function_at_most": 2.5, "second_call_at_most": 0.5}
    return small_array_workloads(small) + (
        [mlp_workload(rng, 3, 4, 2, **of_small_mlp), lstm_workload(3, 4, 2), fan_in_workload(5, 10),
         elementwise_workload(100), logistic_workload(20, 3), rosenbrock_workload(10),
         regression_workload(20, 3)]
        if small else
        [mlp_workload(rng, 8, 8, 4, **of_small_mlp),
         mlp_workload(rng, 6, 128, 64, at_most=3.0, jvp_at_most=2.8, hvp_at_most=7.0,
                      batch_at_most=12.0),
         mlp_workload(rng, 3, 1024, 256, at_most=2.95),
         lstm_workload(40, 64, 8), fan_in_workload(300, 1000), elementwise_workload(2_000_000),
         logistic_workload(5000, 54), rosenbrock_workload(100), regression_workload(5000, 54)]
    )


def forward_mode_workloads(small=False):
    """Return the programs that forward mode is timed on."""
    return [workload for workload in workloads(small) if workload.jvp_at_most is not None]


def steps_in_python(step, x, n):
    for _ in range(n):
        x = step(x)
    return x


def repeated_steps(np, x, n, repeated=steps_in_python):
    """Take n steps of ten ops each, in a loop of a library's own."""
    def step(y):
        for _ in range(2):
            y = y + np.tanh(y * 0.9 + 0.1) * 1e-4  # the gradient neither vanishes nor explodes
        return y

    return np.sum(repeated(step, x, n))


def loop_workloads(small=False):
    """Return the programs that are one loop, in libraries that have loops."""
    n = 10 if small else 10_000
    return [Workload(f"{n:,} steps of 10 ops on 8 numbers", repeated_steps,
                     [numpy.linspace(0.1, 1.0, 8)], (n,))]


def more_workloads(small=False):
    """Return other programs of the same kinds, to check that the results are general."""
    rng = numpy.random.default_rng(0)

    def gravity_workload(bodies, steps):
        return Workload(f"gravity between {bodies} bodies, {steps} steps", gravity,
                        [rng.normal(size=3) for _ in range(2 * bodies)], (steps,))

    def gru_workload(steps, hidden):
        shapes = (hidden, 3 * hidden), (hidden, 3 * hidden), (3 * hidden,)
        parameters = [rng.normal(0, hidden**-0.5, shape) for shape in shapes]
        return Workload(f"GRU, {steps} steps, hidden {hidden}, batch 1", gru, parameters,
                        (rng.normal(size=(steps, 1, hidden)), numpy.zeros((1, hidden))))

    def reprojection_workload(n_points):
        camera = numpy.array([0.3, -0.2, 0.1, 0.0, 0.1, 5.0, 1.5, 0.01])
        return Workload(f"reprojection of {n_points} points", reprojection,
                        [camera, rng.normal(size=(n_points, 3))], (rng.normal(size=(n_points, 2)),))

    def mixture_workload(n, d, k):
        parameters = [rng.normal(size=shape) for shape in [(k,), (k, d), (k, d)]]
        return Workload(f"Gaussian mixture, n = {n}, d = {d}, k = {k}", mixture, parameters,
                        (rng.normal(size=(n, d)),))

    def gathers_workload(n_picks, size):
        picks = tuple(rng.integers(size, size=n_picks).tolist())
        return Workload(f"{n_picks} elements of a {size}-vector, one by one", gathers,
                        [rng.normal(size=size)], (picks,))

    return (
        [gravity_workload(2, 3), gru_workload(3, 4), reprojection_workload(5),
         mixture_workload(10, 2, 3), gathers_workload(5, 10),
         mlp_workload(rng, 2, 4, 2, numpy.float32)]
        if small else
        [gravity_workload(3, 20), gru_workload(40, 16), reprojection_workload(50),
         mixture_workload(500, 2, 5), gathers_workload(300, 1000),
         mlp_workload(rng, 3, 512, 32, numpy.float32)]
    )
