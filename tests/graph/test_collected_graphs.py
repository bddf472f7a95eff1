"""Graphs and traces with gradients of their own leave nothing that the garbage collector misses."""

import gc
import weakref

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each

X = np.array([0.5, 1.0])
W = cytape.constant(X)


@cytape.register_gradient("DeclaredTimesOutput")
def times_output(op, dy):
    return dy * op.outputs[0]


@cytape.custom_gradient
def built(x):
    e = cnp.exp(x)
    return e, lambda dy: dy * e * x


@cytape.custom_gradient
def called(x):
    return np.exp(cytape.stop_gradient(x).numpy()), lambda dy: dy * cnp.exp(x)


@cytape.custom_jvp
def with_jvp(x):
    return cnp.exp(x)


@with_jvp.defjvp
def _jvp(primals, tangents):
    y = with_jvp(*primals)
    return y, y * tangents[0]


def overridden(x):
    with x.graph.gradient_override_map({"Tanh": "DeclaredTimesOutput"}):
        return cnp.tanh(x)


FUNCTIONS = {
    "built": built,
    "called": called,
    "jvp": with_jvp,
    "recomputed": cytape.recompute_grad(lambda x: cnp.exp(x) * W),
    "grad_func": cytape.function(cnp.exp, grad_func=lambda x, dy: dy * x),
    "python_grad_func": cytape.function(
        cnp.exp, python_grad_func=lambda call, dy: dy * call.outputs[0] * call.inputs[0]),
    "captured": cytape.function(lambda x: cnp.exp(x) * W),
    "numpy": lambda x: cytape.numpy_function(
        np.exp, x, specs=x.spec, grad_func=lambda x, dy: dy * cnp.exp(x)),
    "overridden": overridden,
    "branch": lambda x: cytape.cond(x[0] > 0.0, lambda: built(x), lambda: x),
}


def by_gradients(f):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(np.float64, (2,))
        slope = cytape.gradients(f(x), x)[0]
        second = cytape.gradients(slope, x)[0]
    cytape.Session(graph).run([slope, second], {x: X})
    return [graph]


def by_tapes(f):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(np.float64, (2,))
        with cytape.GradientTape(persistent=True) as tape:
            tape.watch(x)
            slope = tape.gradient(f(x), x)
        second = tape.gradient(slope, x)
    cytape.Session(graph).run([slope, second], {x: X})
    return [graph, tape]


def by_functions(f):
    traced = cytape.function(lambda x: cnp.sum(f(x)))
    slope = cytape.function(cytape.grad(traced))
    for derivative in (slope, cytape.grad(traced), cytape.hessian(traced)):
        derivative(X)
    cytape.jvp(traced, (X,), (X,))
    traces = [each.get_concrete_function(X) for each in (traced, slope)]
    return [traced, slope, *traces, *[trace.graph for trace in traces]]


@each(way=[by_gradients, by_tapes, by_functions], name=FUNCTIONS)
def test_unused_graphs_are_collected(name, way):
    alive = list(map(weakref.ref, way(FUNCTIONS[name])))
    gc.collect()
    assert [each() for each in alive] == [None] * len(alive)
