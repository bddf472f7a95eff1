"""Classes of structures that a wrapper is the first to see, as arguments and as results."""

import dataclasses
from collections import namedtuple
from typing import Any

import numpy as np

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each, sampled

X = np.array([1.0, 2.5, -1.3])


def made(**options):
    return dataclasses.make_dataclass("Pair", [("a", Any), ("b", Any)], **options)


def with_static():
    return dataclasses.make_dataclass("Pair", [
        ("a", Any), ("b", Any),
        ("kind", str, dataclasses.field(default="x", metadata={"static": True}))])


def nested():
    @dataclasses.dataclass
    class Part:
        a: Any

    @dataclasses.dataclass
    class Whole:
        part: Part
        more: dict
        a = property(lambda self: self.part.a)
        b = property(lambda self: self.more["b"])

    return lambda a, b: Whole(Part(a), {"b": b})


def registered():
    cls = made()
    cytape.register_structure(cls)
    return cls


class Attributes(dict):
    a = property(lambda self: self["a"])
    b = property(lambda self: self["b"])


# Functions that return a class of their own.
CLASSES = {
    "dataclass": made,
    "frozen": lambda: made(frozen=True),
    "slots": lambda: made(slots=True),
    "static field": with_static,
    "nested": nested,
    "named tuple": lambda: namedtuple("Pair", "a b"),
    "dict": lambda: lambda a, b: Attributes(a=a, b=b),
}


def total(pair):
    return cnp.sum(pair.a) + 2.0 * cnp.sum(pair.b)


def gradients(pair, g):
    slope = 1.0 - cnp.tanh(pair.a) ** 2
    return g.a * slope * pair.b + 0.1 * g.b, g.a * cnp.tanh(pair.a) + g.b


def with_gradient(pair_of, step):
    @cytape.custom_gradient
    def ruled(pair):
        result = step(pair)
        return [result.a, result.b], lambda *g: pair_of(*gradients(pair, pair_of(*g)))

    return lambda pair: pair_of(*ruled(pair))


def with_tangent(pair_of, step):
    @cytape.custom_jvp
    def ruled(pair):
        return step(pair)

    @ruled.defjvp
    def rule(primals, tangents):
        return ruled(*primals), cytape.jvp(step, primals, tangents)[1]

    return ruled


def by_numpy(pair_of, step):
    def called(pair):
        return cytape.numpy_function(
            lambda pair: [pair.a * 2.0, pair.b], pair, specs=[pair.a.spec, pair.b.spec],
            grad_func=lambda pair, g, h: pair_of(g * 2.0, h))

    return lambda pair: step(pair_of(*called(pair)))


def by_tape(pair_of, step):
    def called(pair):
        tape, y = ways.taped(lambda pair: total(step(pair)), pair)
        return tape.gradient(y, pair)

    return called


# From the class and a step to a function of a pair that returns one.
TAKING = {
    "recompute_grad": lambda _, step: cytape.recompute_grad(step),
    "checkpoint": lambda _, step: cytape.checkpoint(step, policy="everything"),
    "checkpoint_sequential": lambda _, step: (
        lambda pair: cytape.checkpoint_sequential([step, step], 2, pair)),
    "checkpointed_scan": lambda _, step: (
        lambda pair: cytape.checkpointed_scan(step, pair, 2, 1)),
    "while_loop": lambda _, step: lambda pair: cytape.while_loop(
        lambda i, _: i < 2, lambda i, pair: (i + 1, step(pair)), (0, pair))[1],
    "foldl": lambda _, step: lambda pair: cytape.foldl(
        lambda pair, _: step(pair), np.ones(2), pair),
    "scan": lambda _, step: lambda pair: cytape.scan(
        lambda pair, _: step(pair), np.ones(2), pair),
    "scan of pairs": lambda pair_of, step: lambda pair: cytape.scan(
        lambda last, pair: step(pair_of(pair.a + last.a, pair.b)), pair),
    "map_fn": lambda _, step: lambda pair: cytape.map_fn(step, pair),
    "vmap": lambda _, step: cytape.vmap(step),
    "function": lambda _, step: cytape.function(step),
    "cond": lambda _, step: lambda pair: cytape.cond(
        cnp.sum(pair.a) > 0, lambda: step(pair), lambda: pair),
    "custom_gradient": with_gradient,
    "custom_jvp": with_tangent,
    "numpy_function": by_numpy,
    "grad": lambda _, step: cytape.grad(lambda pair: total(step(pair))),
    "value_and_grad": lambda _, step: (
        lambda pair: cytape.value_and_grad(lambda pair: total(step(pair)))(pair)[1]),
    "jvp": lambda _, step: lambda pair: cytape.jvp(step, (pair,), (pair,))[1],
    "vjp": lambda _, step: lambda pair: cytape.vjp(step, pair)[1](pair)[0],
    "jet": lambda pair_of, step: lambda pair: cytape.jet(step, (pair,), ([pair],))[1][0],
    "GradientTape": by_tape,
}
# The same for a function of the vector.
RETURNING = {
    "recompute_grad": cytape.recompute_grad,
    "checkpoint": cytape.checkpoint(policy="everything"),
    "map_fn": lambda f: lambda x: cytape.map_fn(f, x),
    "vmap": cytape.vmap,
    "function": cytape.function,
    "cond": lambda f: lambda x: cytape.cond(cnp.sum(x) > 0, lambda: f(x), lambda: f(x * 2.0)),
    "switch_case": lambda f: lambda x: cytape.switch_case(
        cnp.sum(x > 0) - 2, [lambda: f(x), lambda: f(x * 2.0)]),
    "case": lambda f: lambda x: cytape.case([(cnp.sum(x) > 0, lambda: f(x))], lambda: f(x * 2.0)),
    "while_loop": lambda f: lambda x: f(cytape.while_loop(
        lambda i, _: i < 2, lambda i, x: (i + 1, f(x).a), (0, x))[1]),
}


MODES = {
    "value": lambda f: f(cytape.constant(X)),
    "gradient": lambda f: cytape.grad(f)(X),
    "function": lambda f: cytape.function(f)(X),
    "gradient in a function": lambda f: cytape.function(cytape.grad(f))(X),
    "gradient of a function": lambda f: cytape.grad(cytape.function(f))(X),
    "tangent": lambda f: cytape.jvp(f, (X,), (X,))[1],
    "graph": lambda f: ways.run_in_graph(f, X),
}


def program(pair_of, wrapped):
    return lambda x: total(wrapped(pair_of(cnp.sin(x), x * 0.5)))


@sampled(4, mode=MODES, wrapper=TAKING)
def test_a_wrapper_is_the_first_to_see_the_class_of_an_argument(wrapper, mode):
    def found(pair_of):
        def step(pair):
            return pair_of(cnp.tanh(pair.a) * pair.b, pair.b + 0.1 * pair.a)

        return MODES[mode](program(pair_of, TAKING[wrapper](pair_of, step)))

    wanted = found(registered())
    for name, new_class in CLASSES.items():
        np.testing.assert_allclose(found(new_class()), wanted, rtol=1e-12, err_msg=name)


@sampled(4, mode=MODES, wrapper=RETURNING)
def test_a_wrapper_is_the_first_to_see_the_class_of_a_result(wrapper, mode):
    def found(pair_of):
        f = RETURNING[wrapper](lambda x: pair_of(cnp.tanh(x) * x, x * 0.3))
        return MODES[mode](lambda x: total(f(x)))

    wanted = found(registered())
    for name, new_class in CLASSES.items():
        np.testing.assert_allclose(found(new_class()), wanted, rtol=1e-12, err_msg=name)


@each("name", CLASSES)
def test_loops_take_numbers_and_arrays_in_a_new_class(name):
    pair_of = CLASSES[name]()
    last = cytape.while_loop(
        lambda i, _: i < 3, lambda i, pair: (i + 1, pair_of(pair.a + 1.0, pair.b * 2.0)),
        (0, pair_of(0.0, np.ones(2))))[1]
    assert (float(last.a), last.b.numpy().tolist()) == (3.0, [8.0, 8.0])
    pair_of = CLASSES[name]()
    mapped = cytape.vmap(lambda pair: pair.a * pair.b)(pair_of(X, X))
    np.testing.assert_allclose(mapped, X * X)


def followed(pair_of):
    pair, directions = [pair_of(cytape.constant(X), cytape.constant(X)) for _ in range(2)]
    return ways.tangent(lambda pair: pair_of(pair.a * 2.0, pair.b), pair, directions)


def in_graph(result):
    return lambda pair_of: ways.run_in_graph(lambda x: result(pair_of, x), X / 2.0)


def differentiated(pair_of, x):
    pair = pair_of(x * 2.0, x * 4.0)
    if isinstance(pair, tuple | dict):  # to gradients a list of xs, or none
        return pair_of(pair.b, pair.a)
    return cytape.gradients(pair.a * pair.b, pair)  # which are pair.b and pair.a


def gradient_of_both(pair_of, x):
    pair = pair_of(x * x, 0.0 * x)
    return cytape.gradients(list(pair.values()) if isinstance(pair, dict) else pair, x)


# All return a pair of 2 X and X, or a list of one.
OTHERS = {
    "ForwardAccumulator": followed,
    "fetch": in_graph(lambda pair_of, x: pair_of(x * 4.0, x * 2.0)),
    "fetch of gradients": in_graph(differentiated),
    "ys of gradients": lambda pair_of: pair_of(2.0 * X, in_graph(gradient_of_both)(pair_of)[0]),
    "in_axes": lambda pair_of: cytape.vmap(
        lambda pair: pair_of(2.0 * pair.a, pair.b), in_axes=(pair_of(0, 0),))(pair_of(X, X)),
    "specs": lambda pair_of: cytape.numpy_function(
        lambda x: pair_of(2.0 * x, x), cytape.constant(X),
        specs=pair_of(cytape.Spec.of((3,), float), cytape.Spec.of((3,), float))),
    "fn_output_signature": lambda pair_of: cytape.map_fn(
        lambda x: pair_of(2.0 * x, x), X, fn_output_signature=pair_of("float64", "float64")),
}


@each(name=CLASSES, other=OTHERS)
def test_others_that_are_the_first_to_see_the_class(other, name):
    found = OTHERS[other](CLASSES[name]())
    [found] = found if isinstance(found, list) else [found]
    np.testing.assert_allclose(found.a, 2.0 * X)
    np.testing.assert_allclose(found.b, X)


def test_check_grads_is_the_first_to_see_the_class():
    pair_of = made()
    cytape.testing.check_grads(lambda pair: cnp.sum(cnp.sin(pair.a) * pair.b), (pair_of(X, X),))


@dataclasses.dataclass
class Layer:
    """A dataclass of variables: its methods get the object itself."""

    w: cytape.Variable
    n_calls: int = 0

    @cytape.recompute_grad
    def recomputed(self, x):
        self.n_calls += 1
        return self.w * x

    @cytape.function
    def traced(self, x):
        self.n_calls += 1
        return self.w * x


@each("method", ["recomputed", "traced"])
def test_an_object_of_variables_is_not_copied(method):
    layer = Layer(cytape.Variable(2.0))
    tape, y = ways.taped(lambda: getattr(layer, method)(3.0))
    assert float(tape.gradient(y, layer.w)) == 3.0
    assert layer.n_calls > 0


class WithProperty:
    """Objects whose ``__dict__`` is no dict."""

    @property
    def __dict__(self):
        raise RuntimeError("not to be asked")


@each("wrapper", [
    cytape.function, cytape.recompute_grad, cytape.vmap, cytape.checkpoint(policy="everything"),
    lambda f: lambda x: cytape.checkpointed_scan(f, x, 3, 1)])
def test_captured_objects_are_not_asked_for_their_attributes(wrapper):
    x = WithProperty()
    np.testing.assert_allclose(
        cytape.grad(lambda a: cnp.sum(wrapper(lambda a: (x, a * 1.0)[1])(a)))(X), np.ones(3))
