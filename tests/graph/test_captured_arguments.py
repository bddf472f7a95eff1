"""A captured tensor as an argument of a wrapped function in a trace: gradient and value."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.bodies import BODIES, branch, loop, nested
from tests.cases import each, grouped, sampled
from tests.ways import check

X = np.array([0.7, 1.3, -0.4])
W = np.array([0.3, -1.2, 0.8])


def cube(q):
    return q * q * q


def with_gradient(f):
    @cytape.custom_gradient
    def ruled(q):
        return f(q), lambda g: 3.0 * q * q * g
    return ruled


def with_tangent(f):
    @cytape.custom_jvp
    def ruled(q):
        return f(q)

    @ruled.defjvp
    def rule(primals, tangents):
        return ruled(*primals), 3.0 * primals[0] * primals[0] * tangents[0]
    return ruled


def until_large(f):
    """Loop over captured variables alone: they say how often, too, which is once."""
    return lambda q: cytape.while_loop(
        lambda y, n: n < 1, lambda y, n: (f(y), n + 1), (q, cytape.constant(0)))[0]


WRAPPERS = {
    **BODIES,
    "checkpoint of a type": cytape.checkpoint(policy=["Multiply"]),
    "checkpoint all but": cytape.checkpoint(policy=["-Multiply"]),
    "checkpointed_scan": lambda f: lambda q: cytape.checkpointed_scan(
        lambda state: (state[0] + 1, cnp.where(state[0] < 1, f(state[1]), state[1])),
        (np.array(0), q), 3, 2)[1],
    "custom_gradient": with_gradient,
    "custom_jvp": with_tangent,
    "numpy_function": lambda f: lambda q: cytape.numpy_function(
        f, q, specs=cytape.convert_to_tensor(q).spec, grad_func=lambda q, dy: 3.0 * q * q * dy),
    "elementwise": lambda f: cytape.elementwise(f, lambda q: 3.0 * q * q),
    "while_loop of captured variables": until_large,
    "map_fn": lambda f: lambda q: cytape.map_fn(f, q),
    "scan": lambda f: lambda q: cytape.scan(lambda _, e: f(e), q, np.array(0.0)),
    "vmap": cytape.vmap,
    "vmap of what is shared": lambda f: lambda q: cytape.vmap(
        lambda _, q: f(q), in_axes=(0, None))(np.zeros(2), q)[0],
    "function with checkpoints": lambda f: cytape.function(f, checkpoints=["Multiply"]),
}
del WRAPPERS["itself"], WRAPPERS["functions"], WRAPPERS["case"], WRAPPERS["switch_case"]
del WRAPPERS["foldl"]

# Bodies around the call, of which the tensor is captured.
AROUND = {
    "function": cytape.function,
    "function of two": nested,
    "branch": lambda body: cytape.function(branch(body)),
    "loop": lambda body: loop(body, checkpoints=1),
    "vmap": lambda body: lambda b: cytape.vmap(lambda e: body(e * cnp.ones(3)))(b)[:, 0],
    "recompute_grad": lambda body: cytape.function(cytape.recompute_grad(body)),
}


@grouped("around, wrapper", [
    (wrapper, f"{around}, {wrapper}", (around, wrapper), (i + k) % 2 > 0)
    for i, around in enumerate(AROUND) for k, wrapper in enumerate(WRAPPERS)])
def test_derivatives_reach_a_captured_argument(wrapper, around):
    wrapped = WRAPPERS[wrapper](cube)

    def program(f):
        return lambda a: cnp.sum(AROUND[around](lambda b: f(a) * b)(a))

    def plain(a):
        if around == "vmap":
            return cnp.sum((cube(a)[None, :] * a[:, None])[:, 0])
        return cnp.sum(cube(a) * a)

    check(program(wrapped), plain, X, ways=["eager"])


@each("wrapper", WRAPPERS)
def test_a_tape_in_the_trace_reaches_a_captured_argument(wrapper):
    w, wrapped = cytape.constant(W), WRAPPERS[wrapper](cube)

    @cytape.function
    def slope(b):
        return ways.gradient(lambda w: cnp.sum(wrapped(w) * b), w)

    for _ in range(2):
        np.testing.assert_allclose(slope(X), 3.0 * W * W * X, rtol=1e-12)


@each(around=[name for name in AROUND if name != "vmap"], wrapper=WRAPPERS)
def test_later_calls_see_a_captured_argument_that_is_changed_in_place(wrapper, around):
    w, wrapped = cytape.constant(W), WRAPPERS[wrapper](cube)
    f = cytape.function(lambda b: AROUND[around](lambda b: wrapped(w) * b)(b))
    for k in range(3):
        w[0] = float(k)
        np.testing.assert_allclose(f(X), cube(w.numpy()) * X, rtol=1e-12)
    w += 1.0
    np.testing.assert_allclose(f(X), cube(w.numpy()) * X, rtol=1e-12)


@each("wrapper", WRAPPERS)
def test_a_variable_as_a_captured_argument(wrapper):
    v, wrapped = cytape.Variable(W), WRAPPERS[wrapper](cube)
    f = cytape.function(lambda b: cnp.sum(wrapped(v) * b))
    for k in 1.0, 2.0:
        v.assign(k * W)
        tape, y = ways.taped(lambda: f(X))
        np.testing.assert_allclose(y, np.sum(cube(k * W) * X), rtol=1e-12)
        np.testing.assert_allclose(tape.gradient(y, v), 3.0 * (k * W) ** 2 * X, rtol=1e-12)


@each("wrapper", WRAPPERS)
def test_derivatives_reach_an_argument_of_a_graph_and_a_constant_of_it(wrapper):
    wrapped = WRAPPERS[wrapper](cube)

    def gradients(p):
        c = cytape.constant(W)
        y = cnp.sum(cytape.function(lambda b: (wrapped(p) + wrapped(c)) * b)(p * 1.0))
        return cytape.gradients(y, [p, c])

    found = ways.run_in_graph(gradients, X)
    np.testing.assert_allclose(found[0], 4 * X**3 + W**3, rtol=1e-12)
    np.testing.assert_allclose(found[1], 3 * W**2 * X, rtol=1e-12)


def by_tape(f, a, w):
    return ways.gradient(f, a, output_gradients=w)


REFUSE_CLOSURES = {"custom_gradient", "custom_jvp", "elementwise", "numpy_function"}


@sampled(4, derivative=[by_tape, ways.tangent],
         around=[name for name in AROUND if name != "vmap"],
         wrapper=WRAPPERS)
def test_recorders_in_a_body_reach_a_tensor_from_outside_the_body(wrapper, around, derivative):
    def slope(called):
        return cytape.function(lambda a: AROUND[around](
            lambda b: derivative(called, a, W) * (b * 0.0 + 1.0))(a * 1.0))(X)

    np.testing.assert_allclose(slope(WRAPPERS[wrapper](cube)), 3.0 * X * X * W, rtol=1e-12)
    if wrapper not in REFUSE_CLOSURES:
        found = slope(lambda a: WRAPPERS[wrapper](lambda q: q * cnp.sum(a * a))(cnp.ones(3)))
        expected = 2.0 * X * np.sum(W) if derivative is by_tape else np.full(3, 2.0 * (X @ W))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
