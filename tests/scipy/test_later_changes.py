"""Users' functions whose closures, globals and arrays change between a call and its derivative."""

from array import array
from collections import deque
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from tests.cases import each

integrate = pytest.importorskip("cytape.scipy.integrate")
optimize = pytest.importorskip("cytape.scipy.optimize")

X = np.linspace(0.0, 1.0, 4)
TIGHT = {"rtol": 1e-8, "atol": 1e-8}


def decay(rate):
    return lambda t, y, c: -c * rate() * y


# Each takes a function that returns k, and a parameter c; the result is k * c or a function of it.
CALLS = {
    "quad": lambda k, c: integrate.quad(lambda x, c: 2 * c * k() * x, 0, 1, (c,))[0],
    "quad_vec": lambda k, c: integrate.quad_vec(lambda x, c: 2 * c * k() * x, 0, 1, args=(c,))[0],
    "dblquad": lambda k, c: integrate.dblquad(lambda y, x, c: c * k(), 0, 1, 0, 1, (c,))[0],
    "solve_ivp": lambda k, c: -cnp.log(integrate.solve_ivp(
        decay(k), (0, 1), [1.0], args=(c,), **TIGHT).y[0, -1]),
    "solve_ivp by sensitivities": lambda k, c: -cnp.log(integrate.solve_ivp(
        decay(k), (0, 1), [1.0], args=(c,), gradient="forward", **TIGHT).y[0, -1]),
    "odeint": lambda k, c: -cnp.log(integrate.odeint(
        decay(k), [1.0], [0.0, 1.0], (c,), tfirst=True)[-1, 0]),
    "solve_bvp": lambda k, c: integrate.solve_bvp(
        lambda x, y, c: [y[1], 0 * y[0]], lambda a, b, c: [a[0], b[0] - k() * c], X,
        np.zeros((2, 4)), args=(c,)).y[0, -1],
    "root": lambda k, c: optimize.root(lambda x, c: x - k() * c, [1.0], (c,)).x[0],
    "root_scalar": lambda k, c: optimize.root_scalar(
        lambda x, c: x - k() * c, (c,), x0=1.0, method="newton").root,
    "brentq": lambda k, c: optimize.brentq(lambda x, c: x - k() * c, -9.0, 9.0, (c,)),
    "newton": lambda k, c: optimize.newton(lambda x, c: x - k() * c, 1.0, args=(c,)),
    "fixed_point": lambda k, c: optimize.fixed_point(lambda x, c: x / 2 + k() * c / 2, 0.3, (c,)),
    "minimize": lambda k, c: optimize.minimize(
        lambda x, c: cnp.sum((x - k() * c) ** 2), [1.0], (c,)).x[0],
    "minimize with a constraint": lambda k, c: optimize.minimize(
        lambda x: cnp.sum(x**2), [1.0], constraints={
            "type": "eq", "fun": lambda x, c: x - k() * c, "args": (c,)}).x[0],
    "minimize_scalar": lambda k, c: optimize.minimize_scalar(
        lambda x, c: (x - k() * c) ** 2, args=(c,)).x,
    "least_squares": lambda k, c: optimize.least_squares(
        lambda x, c: x - k() * c, [1.0], args=(c,)).x[0],
    "curve_fit": lambda k, c: optimize.curve_fit(lambda x, a: a / k() * x, X, c * X)[0][0],
}
EAGER_ONLY = {"quad_vec", "dblquad", "solve_bvp"}  # the last one has no known mesh in graphs


@each("name", CALLS)
def test_names_that_are_bound_anew(name):
    def total(c):
        found = 0.0
        for k in (1.0, 2.0, 3.0):  # one cell: derivatives are taken when it is 3
            found = found + k * CALLS[name](lambda: k, c)  # noqa: B023
        return found

    ways = [cytape.grad(total)]
    if name not in EAGER_ONLY:
        ways.append(cytape.function(cytape.grad(total)))
    for gradient in ways:
        for _ in range(3):  # traces are kept from the third call on
            np.testing.assert_allclose(gradient(np.array(0.7)), 14.0, 1e-6)


@each("name", CALLS)
def test_containers_that_are_written_to(name):
    items, c = [1.0], cytape.constant(0.7)
    for k in (2.0, 3.0, 2.0, 3.0):
        items[0] = k
        with cytape.GradientTape(persistent=True) as tape:
            tape.watch(c)
            found = CALLS[name](lambda: items[0], c)
        items[0] = 5.0
        with pytest.raises(TapeStateError, match="changed in place since the call"):
            tape.gradient(found, c)
        items[0] = k
        np.testing.assert_allclose(tape.gradient(found, c), k, 1e-6)


ARGUMENTS = {
    "quad": lambda w, c: integrate.quad(lambda x, c, w: 2 * c * w[0] * x, 0, 1, (c, w))[0],
    "solve_ivp": lambda w, c: -cnp.log(integrate.solve_ivp(
        lambda t, y, c, w: -c * w[0] * y, (0, 1), [1.0], args=(c, w), **TIGHT).y[0, -1]),
    "odeint": lambda w, c: -cnp.log(integrate.odeint(
        lambda y, t, c, w: -c * w[0] * y, [1.0], [0.0, 1.0], (c, w))[-1, 0]),
    "root": lambda w, c: optimize.root(lambda x, c, w: x - w[0] * c, [1.0], (c, w)).x[0],
    "brentq": lambda w, c: optimize.brentq(lambda x, c, w: x - w[0] * c, -9.0, 9.0, (c, w)),
    "minimize": lambda w, c: optimize.minimize(
        lambda x, c, w: cnp.sum((x - w[0] * c) ** 2), [1.0], (c, w)).x[0],
    "minimize_scalar": lambda w, c: optimize.minimize_scalar(
        lambda x, c, w: (x - w[0] * c) ** 2, args=(c, w)).x,
    "least_squares": lambda w, c: optimize.least_squares(
        lambda x, c, w: x - w[0] * c, [1.0], args=(c, w)).x[0],
    "curve_fit": lambda w, c: optimize.curve_fit(lambda x, a: a * x, w, 2 * c * w)[0][0],
    "lsq_linear": lambda w, c: optimize.lsq_linear(w[:, None], 2 * c * w).x[0],
}


@each("name", ARGUMENTS)
def test_arrays_among_the_arguments_that_are_written_to(name):
    c, w = cytape.constant(0.7), np.array([2.0, 1.0])
    for _ in range(4):
        w[0] = 2.0
        with cytape.GradientTape() as tape:
            tape.watch(c)
            found = ARGUMENTS[name](w, c)
        w[0] = 5.0
        np.testing.assert_allclose(tape.gradient(found, c), 2.0, 1e-6)


@each("name", CALLS)
def test_functions_may_count_their_calls(name):
    class Counted:
        n, k, seen = 0, 2.0, []

        def __call__(self):
            self.n += 1
            self.seen.append(self.n)
            return self.k

    counted, c = Counted(), cytape.constant(0.7)
    with cytape.GradientTape() as tape:
        tape.watch(c)
        found = CALLS[name](counted, c) + CALLS[name](counted, c)
    np.testing.assert_allclose(tape.gradient(found, c), 4.0, 1e-6)


class Slots:
    __slots__ = ("k",)


class Items:
    def __init__(self, k):
        self.table = {"k": k}

    def __getitem__(self, name):
        return self.table[name]


def function_attribute():
    def read():
        return read.k
    return read, lambda k: setattr(read, "k", k)


def slot():
    held = Slots()
    return lambda: held.k, lambda k: setattr(held, "k", k)


def class_attribute():
    held = type("Held", (), {})
    return lambda: held.k, lambda k: setattr(held, "k", k)


def attribute_by_name():
    held = SimpleNamespace()
    return lambda: getattr(held, "k"), lambda k: setattr(held, "k", k)  # noqa: B009


def item_by_method():
    held = Items(0.0)
    return lambda: held["k"], lambda k: held.table.update(k=k)


def element_of_a_set():
    held = set()
    return lambda: max(held), lambda k: (held.clear(), held.add(k))


def element_of_an_array():
    held = array("d", [0.0])
    return lambda: held[0], lambda k: held.__setitem__(0, k)


def nested_containers():
    held = {"a": deque([[0.0]])}
    return lambda: held["a"][0][0], lambda k: held["a"][0].__setitem__(0, k)


def method_of_a_dict():
    held = {}
    get = held.get
    return lambda: get("k"), lambda k: held.update(k=k)


def operand():
    class Number:
        def __radd__(self, other):
            return other + self.k

    held = Number()
    return lambda: 0.0 + held, lambda k: setattr(held, "k", k)


def view_of_a_dict():
    held = {}
    view = MappingProxyType(held)
    return lambda: view["k"], lambda k: held.update(k=k)


HOLDERS = [function_attribute, slot, class_attribute, attribute_by_name, item_by_method,
           method_of_a_dict, operand, view_of_a_dict, element_of_a_set, element_of_an_array,
           nested_containers]


@each("holder", HOLDERS)
def test_values_in_other_objects(holder):
    read, write = holder()
    c = cytape.constant(0.7)
    for k in (2.0, 3.0, 2.0, 3.0):
        write(k)
        with cytape.GradientTape(persistent=True) as tape:
            tape.watch(c)
            found = CALLS["quad"](read, c)
        np.testing.assert_allclose(tape.gradient(found, c), k, 1e-9)
        write(5.0)
        with pytest.raises(TapeStateError, match="changed in place since the call"):
            tape.gradient(found, c)


def test_functions_of_other_packages():
    scope = {"__name__": "another_package"}
    exec("def made(read): return lambda: read()", scope)

    def total(c):
        found = 0.0
        for k in (1.0, 2.0):
            found = found + CALLS["quad"](scope["made"](lambda: k), c)  # noqa: B023
        return found

    np.testing.assert_allclose(cytape.grad(total)(0.7), 3.0, 1e-9)
