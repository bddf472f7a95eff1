"""A function of a vector, eager, traced, in branches and loops, in graphs: values, derivatives."""

import numpy as np

import cytape
import cytape.numpy as cnp


def in_branch(f):
    return cytape.function(lambda x: cytape.cond(
        cnp.sum(x * x) >= 0, lambda: f(x), lambda: cnp.sum(x)))


def in_loop(f):
    return cytape.function(lambda x: cytape.while_loop(
        lambda i, _: i < 2, lambda i, _: (i + 1, f(x)), (0, cytape.constant(0.0)))[1])


WAYS = {"eager": lambda f: f, "function": cytape.function, "branch": in_branch, "loop": in_loop}


def derivatives(f, x):
    """Value, gradient, a slope, and second derivatives by three orders of the modes."""
    u = cytape.constant(np.linspace(1.0, 2.0, x.size).reshape(x.shape))

    def slope(f):
        return lambda x: cytape.jvp(f, (x,), (u,))[1]

    def turned(f):
        return lambda x: cnp.sum(cytape.grad(f)(x) * u)

    x = cytape.constant(x)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [y, tape.gradient(y, x), slope(f)(x), cytape.grad(turned(f))(x),
            cytape.grad(slope(f))(x), slope(cytape.grad(f))(x)]


def from_graph(f, x):
    """The same of a graph, by `gradients`: value, gradient, second derivative."""
    graph = cytape.Graph()
    with graph.as_default():
        given = cytape.placeholder("float64", x.shape)
        y = f(given)
        [first] = cytape.gradients(y, given)
        u = cytape.constant(np.linspace(1.0, 2.0, x.size).reshape(x.shape))
        [second] = cytape.gradients(cnp.sum(first * u), given)
    session = cytape.Session(graph)
    found = session.run([y, first, second], {given: x})
    for again, once in zip(session.run([y, first, second], {given: x}), found, strict=True):
        np.testing.assert_array_equal(again, once)  # the second run is of an optimised plan
    return found


def assert_everywhere(f, plain, x):
    """Compare a scalar function with one that does the same by other means, in all ways."""
    x = np.asarray(x, float)
    expected = derivatives(plain, x)
    for name, way in WAYS.items():
        for i, (found, wanted) in enumerate(zip(derivatives(way(f), x), expected, strict=True)):
            np.testing.assert_allclose(
                found, wanted, rtol=1e-9, atol=1e-11, err_msg=f"derivative {i}, {name}")
    for found, wanted in zip(from_graph(f, x), [*expected[:2], expected[3]], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11, err_msg="graph")
