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


def derivatives(f, x, order=2):
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
    first = [y, tape.gradient(y, x), slope(f)(x)]
    return first if order == 1 else [
        *first, cytape.grad(turned(f))(x), cytape.grad(slope(f))(x), slope(cytape.grad(f))(x)]


def from_graph(f, x, order=2):
    """The same of a graph, by `gradients`: value, gradient, second derivative."""
    graph = cytape.Graph()
    with graph.as_default():
        given = cytape.placeholder("float64", x.shape)
        y = f(given)
        [first] = cytape.gradients(y, given)
        u = cytape.constant(np.linspace(1.0, 2.0, x.size).reshape(x.shape))
        [second] = cytape.gradients(cnp.sum(first * u), given)
    session = cytape.Session(graph)
    fetches = [y, first, second][: order + 1]
    found = session.run(fetches, {given: x})
    for again, once in zip(session.run(fetches, {given: x}), found, strict=True):
        np.testing.assert_array_equal(again, once)  # the second run is of an optimised plan
    return found


def assert_everywhere(f, plain, x, order=2):
    """Compare a scalar function with one that does the same by other means, in all ways."""
    x = np.asarray(x, float)
    expected = derivatives(plain, x)
    for name, way in WAYS.items():
        all_found = derivatives(way(f), x, 2 if name == "eager" else order)
        for i, (found, wanted) in enumerate(zip(all_found, expected, strict=False)):
            np.testing.assert_allclose(
                found, wanted, rtol=1e-9, atol=1e-11, err_msg=f"derivative {i}, {name}")
    of_graph = [*expected[:2], expected[3]][: order + 1]
    for found, wanted in zip(from_graph(f, x, order), of_graph, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11, err_msg="graph")
