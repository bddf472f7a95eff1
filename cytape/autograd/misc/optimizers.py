"""Gradient descent on structures of arrays: sgd, rmsprop and adam.

Each takes a gradient function of the parameters and the number of the iteration, the first
parameters, and a callback that gets the parameters, this number and the gradient before each step.
"""

import numpy as np

import cytape.numpy as functions
from cytape.autograd.misc.flatten import flatten
from cytape.autograd.wrap_util import wraps


def unflatten_optimizer(optimize):
    """Make an optimizer of structures of arrays from one of vectors.

    Examples
    --------
    >>> @unflatten_optimizer
    ... def one_step(grad, x, callback=None):
    ...     return x - grad(x, 0)
    >>> {name: float(x) for name, x in one_step(lambda p, i: p, {"w": 2.0}).items()}
    {'w': 0.0}
    """
    @wraps(optimize)
    def optimize_structure(grad, x0, callback=None, *args, **kwargs):
        vector, unflatten = flatten(x0)

        def flat_grad(x, i):
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x, i, g):
            callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(
            flat_grad, vector, flat_callback if callback else None, *args, **kwargs))

    return optimize_structure


@unflatten_optimizer
def sgd(grad, x, callback=None, num_iters=200, step_size=0.1, mass=0.9):
    """Descend along the gradient, with momentum.

    Examples
    --------
    >>> x = sgd(lambda x, i: 2 * x, np.array([1.0, -2.0]), num_iters=500)
    >>> bool(np.all(np.abs(x) < 1e-3))
    True
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(grad, x, callback=None, num_iters=100, step_size=0.1, gamma=0.9, eps=1e-8):
    """Descend along the gradient, divided by the root of its mean square.

    Examples
    --------
    >>> x = rmsprop(lambda x, i: 2 * x, np.array([1.0, -2.0]), step_size=0.02, num_iters=200)
    >>> bool(np.all(np.abs(x) < 0.1))
    True
    """
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean_square = mean_square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (functions.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(grad, x, callback=None, num_iters=100, step_size=0.001, b1=0.9, b2=0.999, eps=1e-8):
    """Descend along the mean of the gradient, divided by the root of its mean square.

    Notes
    -----
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> x = adam(lambda x, i: 2 * x, np.array([1.0, -2.0]), step_size=0.1, num_iters=300)
    >>> bool(np.all(np.abs(x) < 1e-2))
    True
    """
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean = (1 - b1) * g + b1 * mean
        mean_square = (1 - b2) * g**2 + b2 * mean_square
        unbiased = mean / (1 - b1 ** (i + 1))
        x = x - step_size * unbiased / (functions.sqrt(mean_square / (1 - b2 ** (i + 1))) + eps)
    return x
