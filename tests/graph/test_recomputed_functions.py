"""recompute_grad in graphs: of functions that read variables, within and around control flow."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from tests import ways
from tests.bodies import nested, traced
from tests.cases import each
from tests.tables import table


def by_name(x, v):
    return cytape.recompute_grad(lambda y: cnp.sin(y) * v * v)(x)


def as_an_argument(x, v):
    return cytape.recompute_grad(lambda y, v: cnp.sin(y) * v * v)(x, v)


def by_keyword(x, v):
    return cytape.recompute_grad(lambda y, *, v: cnp.sin(y) * v * v)(x, v=v)


PLACES = [
    lambda f: f, cytape.function, nested, *traced("cond", "while_loop", "recompute_grad").values(),
    lambda f: cytape.recompute_grad(cytape.function(f))]
PLACE_NAMES = [
    "eager", "function", "functions", "branch", "loop", "recomputed", "recomputed-function"]
SIN, COS = np.sin(3.0), np.cos(3.0)


@each("f", [by_name, as_an_argument, by_keyword])
@each("place", PLACES, ids=PLACE_NAMES)
def test_variables_get_their_gradient(place, f):
    v = cytape.Variable(2.0)
    called = place(lambda x: f(x, v))
    for mode in ways.ALL_MODES.values():
        for within in (lambda f: f, cytape.function):
            found, wanted = (
                within(lambda: mode(f, [cytape.constant(3.0), v], [1.0, 10.0]))()  # noqa: B023
                for f in (lambda x, _: called(x), lambda x, v: cnp.sin(x) * v * v))
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@each("f", [by_name, as_an_argument, by_keyword])
def test_variables_get_their_gradient_in_a_graph(f):
    v = cytape.Variable(2.0)
    found = ways.run_in_graph(lambda p: cytape.gradients(f(p, v), [p, v]), 3.0)
    np.testing.assert_allclose(found, [4.0 * COS, 4.0 * SIN])


@each("within", [lambda f: f, cytape.function])
def test_eager_results_with_and_without_assignments(within):
    v, x = cytape.Variable(2.0), cytape.constant(3.0)
    for assigned in False, True:
        tape, y = ways.taped(lambda x: by_name(x, v), x)
        gradients = within(lambda tape=tape, y=y: tape.gradient(y, [x, v]))
        if assigned:
            v.assign(5.0)
        if assigned and within is cytape.function:
            with pytest.raises(TapeStateError, match="assigned to since"):
                gradients()
        else:
            np.testing.assert_allclose(gradients(), [4.0 * COS, 4.0 * SIN])


def repeated(f, x):
    return cytape.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, f(y)), (cytape.constant(0), x))[1]


def scanned(f, x):
    return cytape.scan(lambda y, e: f(y) + 0.1 * e, x, cytape.constant([1.0, 2.0]))[-1]


OUTER = {
    "loop": repeated,
    "cond": lambda f, x: cytape.cond(cnp.sum(x) > -9, lambda: f(x), lambda: x),
    "map_fn": lambda f, x: cytape.map_fn(f, cnp.stack([x, 2 * x])),
    "scan": scanned,
}
INNER = {
    "no control flow": lambda z: cnp.where(z > 0.1, z * z, z),
    "cond": lambda z: cytape.cond(cnp.sum(z) > 0, lambda: cnp.tanh(z), lambda: z * z * z),
    "loop": lambda z: repeated(lambda y: cnp.sin(y) * z, z),
    "scan": lambda z: scanned(lambda y: cnp.sin(y) * z, z),
    "cond in a loop": lambda z: repeated(
        lambda y: cytape.cond(cnp.sum(y) > 0, lambda: cnp.tanh(y) * z, lambda: y * y), z),
}


@pytest.mark.parametrize("extent", table([None], [2]))
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_control_flow_around_what_is_recomputed_and_within(outer, inner, extent):
    def total(block):
        return lambda x: cnp.sum(OUTER[outer](block, x) ** 2)

    def slope(f):
        return lambda x: cnp.sum(cytape.grad(f)(x) ** 2)

    signature = [cytape.Spec.of((extent,), float)]
    plain, recomputed = total(INNER[inner]), total(cytape.recompute_grad(INNER[inner]))
    traced = cytape.function(recomputed, input_signature=signature)
    for order in cytape.grad, lambda f: cytape.grad(slope(f)):
        inside = cytape.function(order(recomputed), input_signature=signature)
        for x in (np.array([0.4, 0.7]), np.array([-0.4, -0.7])):
            for found in inside(x), order(traced)(x):
                np.testing.assert_allclose(found, order(plain)(x), rtol=1e-10)
