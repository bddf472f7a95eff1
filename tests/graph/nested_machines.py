"""Statements of random programs, by cytape and by Python on hyper-dual numbers."""

from dataclasses import dataclass

import numpy as np

import cytape
import cytape.numpy as cnp

MATRIX = np.array([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.1, 0.7, 0.3]])
NEAR = 1e-6  # how near to a threshold a branch is not decided


class OutOfDomain(Exception):
    """Rounding may decide what a program does."""


# ---- hyper-dual numbers


class Dual:
    """A value, its derivatives along s and t, and the mixed second one: a[0] to a[3]."""

    def __init__(self, a):
        self.a = np.asarray(a, float)

    @classmethod
    def moving(cls, x, s, t):
        return cls([x, s, t, np.zeros_like(x)])

    def __add__(self, other):
        return Dual(self.a + other.a)

    def __mul__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.a * other)
        (x, xs, xt, xst), (y, ys, yt, yst) = self.a, other.a
        return Dual([x * y, xs * y + x * ys, xt * y + x * yt,
                     xst * y + xs * yt + xt * ys + x * yst])

    def linear(self, f):
        return Dual([f(component) for component in self.a])

    def chain(self, value, slope, bend):
        _, s, t, st = self.a
        return Dual([value, slope * s, slope * t, slope * st + bend * s * t])


def sin(x):
    value = x.a[0]
    return x.chain(np.sin(value), np.cos(value), -np.sin(value))


def tanh(x):
    y = np.tanh(x.a[0])
    return x.chain(y, 1 - y * y, -2 * y * (1 - y * y))


def reciprocal(x):
    y = 1 / x.a[0]
    return x.chain(y, -y * y, 2 * y**3)


def bell(x):
    value = x.a[0]
    y = np.exp(-value * value)
    return x.chain(y, -2 * value * y, (4 * value * value - 2) * y)


def total(x):
    return x.linear(lambda c: np.full(3, np.sum(c)))


def in_order(x):
    """Return the order of a vector's elements, unless two are too near."""
    if np.any(np.diff(np.sort(x)) < NEAR):
        raise OutOfDomain
    return np.argsort(x)


def sorted_by(x, y):
    order = in_order(y.a[0])
    return x.linear(lambda c: c[order])


def times_the_largest(x):
    last = in_order(x.a[0])[-1]
    return x * x.linear(lambda c: np.full(3, c[last]))


def plus_positive(x, y):
    where = above(y.a[0], 0.0)
    return x + x.linear(lambda c: np.full(3, np.sum(c[where])))


def above(x, threshold):
    """Tell where a value is above a threshold, unless it is too near."""
    if np.any(np.abs(x - threshold) < NEAR):
        raise OutOfDomain
    return x > threshold


# ---- ops


@dataclass(frozen=True)
class Both:
    """A function of tensors, and the same of hyper-dual numbers."""

    call: object
    reference: object
    n_operands: int = 1


def plus_two_squared(x):
    return x * x + Dual.moving(np.full(3, 2.0), np.zeros(3), np.zeros(3))


OPS = {
    "sin": Both(cnp.sin, sin),
    "tanh": Both(cnp.tanh, tanh),
    "bell": Both(lambda a: cnp.exp(-a * a), bell),
    "reversed": Both(lambda a: a[::-1], lambda a: a.linear(lambda c: c[::-1])),
    "halved": Both(lambda a: 0.5 * a, lambda a: a * 0.5),
    "plus its sum": Both(lambda a: a + 0.3 * cnp.sum(a), lambda a: a + total(a) * 0.3),
    "cumsum": Both(lambda a: 0.5 * cnp.cumsum(a), lambda a: a.linear(np.cumsum) * 0.5),
    "product with a matrix": Both(
        lambda a: MATRIX @ a, lambda a: a.linear(lambda c: MATRIX @ c)),
    "add": Both(lambda a, b: a + b, lambda a, b: a + b, 2),
    "multiply": Both(lambda a, b: a * b, lambda a, b: a * b, 2),
    "times the sum": Both(
        lambda a, b: 0.3 * a * cnp.sum(b), lambda a, b: a * total(b) * 0.3, 2),
    "divide": Both(lambda a, b: a / (2.0 + b * b),
                   lambda a, b: a * reciprocal(plus_two_squared(b)), 2),
    "sorted by": Both(lambda a, b: a[cnp.argsort(b)], sorted_by, 2),
    "sort": Both(cnp.sort, lambda a: sorted_by(a, a)),
    "times the largest": Both(lambda a: a * a[cnp.argmax(a)], times_the_largest),
    "plus the positive": Both(lambda a, b: a + cnp.sum(a[b > 0.0]), plus_positive, 2),
    "concatenate": Both(
        lambda a, b: cnp.concatenate((a[:1], b[1:])),
        lambda a, b: Dual(np.concatenate((a.a[:, :1], b.a[:, 1:]), axis=1)), 2),
}

# How a vector is copied, so that a write to the copy leaves it alone.
COPIES = {
    "copy": lambda a: a.copy(),
    "cnp.copy": cnp.copy,
    "array": cnp.array,
    "astype": lambda a: a.astype("float64", copy=True),
    "fancy": lambda a: a[[0, 1, 2]],
    "sum": lambda a: a + 0.0,
    "flatten": lambda a: a.reshape((3, 1)).flatten(),
}


def write_element(c, b):
    c[1] = 0.5 * b[0]
    return c


def write_slice(c, b):
    c[1:] = b[:2]
    return c


def write_reversed(c, b):
    c[::-1] = b
    return c


def add_to_slice(c, b):
    c[:2] += b[1:]
    return c


def multiply_all(c, b):
    c *= b
    return c


def write_view(c, b):
    view = c[1:]
    view[0] = b[2]
    return c


def referenced_write(function):
    """Do a write on hyper-dual numbers, component by component: it must be linear."""
    def reference(c, b):
        return Dual([function(x.copy(), y) for x, y in zip(c.a, b.a, strict=True)])

    return reference


WRITES = {
    **{f.__name__: Both(f, referenced_write(f), 2) for f in (
        write_element, write_slice, write_reversed, add_to_slice, write_view)},
    "multiply_all": Both(multiply_all, lambda c, b: c * b, 2),
}


# ---- machines


@dataclass
class Pair:
    """A structure that loops and calls take and return."""

    x: object
    y: object


class ByCytape:
    """Statements by cytape, eager or traced."""

    def __init__(self, variables):
        self.variables = variables

    def op(self, name, *operands):
        return OPS[name].call(*operands)

    def read(self, which, x):
        return self.variables[which] * x

    def assign(self, method, which, use, x):
        variable = self.variables[which]
        handle = getattr(variable, method)(cnp.tanh(x))
        return (handle if use else variable) * x

    def write(self, copy, write, x, y):
        return WRITES[write].call(COPIES[copy](x), y)

    def cond(self, count, threshold, x, first, second):
        return cytape.cond(cnp.sum(x) > threshold, first, second)

    def switch_case(self, count, threshold, x, *functions):
        return cytape.switch_case(cnp.sum(x > threshold), functions)

    def while_loop(self, count, threshold, x, y, body):
        def step(i, x, y):
            return i + 1, 0.5 * y, body(x, y)

        _, x, y = cytape.while_loop(lambda i, x, y: i < count, step, (0, x, y))
        return x + y

    def counted_loop(self, count, threshold, x, y, body):
        n = cnp.sum(y > threshold)
        return cytape.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, body(x)), (0, x))[1]

    def checkpointed_loop(self, count, threshold, x, body):
        return cytape.while_loop(
            lambda i, x: i < count, lambda i, x: (i + 1, body(x)), (0, x), checkpoints=2)[1]

    def checkpointed_scan(self, count, threshold, x, y, body):
        return cytape.checkpointed_scan(
            lambda pair: Pair(body(pair.x, pair.y), pair.x), Pair(x, y), count, 2).x

    def rows(self, count, threshold, x, y, body):
        _, v, rows = cytape.while_loop(
            lambda i, v, _: i < count,
            lambda i, v, rows: (i + 1, cnp.tanh(v), rows.write(i, body(v, y))),
            (0, x, cytape.TensorArray("float64", size=3, element_shape=(3,))))
        return v + cnp.sum(rows.stack(), axis=0)

    def loop_of_pairs(self, count, threshold, x, y, body):
        _, pair = cytape.while_loop(
            lambda i, pair: i < count, lambda i, pair: (i + 1, Pair(body(pair.x, pair.y), pair.x)),
            (0, Pair(x, y)))
        return pair.x

    def scan(self, count, threshold, x, y, start, body):
        rows = cnp.stack([x, y, x * y])[:count]
        return cnp.sum(cytape.scan(lambda a, row: body(a, row), rows, start), axis=0)

    def foldl(self, count, threshold, x, y, start, body):
        rows = cnp.stack([x, y, x * y])[:count]
        return cytape.foldl(lambda a, row: body(a, row), rows, start)

    def map_fn_of_some(self, count, threshold, x, y, body):
        rows = cnp.stack([x, y, x * y])[y > threshold]
        return cnp.sum(cytape.map_fn(body, rows), axis=0)

    def map_fn(self, count, threshold, x, y, body):
        return cnp.sum(cytape.map_fn(body, cnp.stack([x, y, x * y])[:count]), axis=0)

    def vmap(self, count, threshold, x, y, body):
        return cnp.sum(cytape.vmap(body)(cnp.stack([x, y, x * y])[:max(count, 1)]), axis=0)

    def function(self, count, threshold, x, y, body):
        return cytape.function(body)(x, y)

    def function_with_checkpoints(self, count, threshold, x, y, body):
        return cytape.function(body, checkpoints="auto")(x, y)

    def closure_with_checkpoints(self, count, threshold, body):
        return cytape.function(body, checkpoints="auto")()

    def recompute_grad(self, count, threshold, x, y, body):
        return cytape.recompute_grad(body)(x, y)

    def recomputed_closure(self, count, threshold, body):
        return cytape.recompute_grad(body)()

    def checkpoint(self, count, threshold, x, y, body):
        return cytape.checkpoint(body, policy="dots")(x, y)


class InPython:
    """The same by Python on hyper-dual numbers."""

    def __init__(self, variables):
        self.variables = list(variables)

    def op(self, name, *operands):
        return OPS[name].reference(*operands)

    def read(self, which, x):
        return self.variables[which] * x

    def assign(self, method, which, use, x):
        value = np.tanh(x.a[0])
        held = self.variables[which].a.copy()
        held[0] = {"assign": value, "assign_add": held[0] + value,
                   "assign_sub": held[0] - value}[method]
        self.variables[which] = Dual(held)
        return self.variables[which] * x

    def write(self, copy, write, x, y):
        return WRITES[write].reference(x, y)

    def cond(self, count, threshold, x, first, second):
        return first() if above(np.sum(x.a[0]), threshold) else second()

    def switch_case(self, count, threshold, x, *functions):
        return functions[min(np.sum(above(x.a[0], threshold)), len(functions) - 1)]()

    def while_loop(self, count, threshold, x, y, body):
        for _ in range(count):
            x, y = y * 0.5, body(x, y)
        return x + y

    def counted_loop(self, count, threshold, x, y, body):
        for _ in range(np.sum(above(y.a[0], threshold))):
            x = body(x)
        return x

    def checkpointed_loop(self, count, threshold, x, body):
        for _ in range(count):
            x = body(x)
        return x

    def checkpointed_scan(self, count, threshold, x, y, body):
        for _ in range(count):
            x, y = body(x, y), x
        return x

    def rows(self, count, threshold, x, y, body):
        result = x * 0.0
        for _ in range(count):
            x, result = tanh(x), result + body(x, y)
        return x + result

    loop_of_pairs = checkpointed_scan

    def scan(self, count, threshold, x, y, start, body):
        rows, a = [x, y, x * y][:count], start
        result = x * 0.0
        for row in rows:
            a = body(a, row)
            result = result + a
        return result

    def foldl(self, count, threshold, x, y, start, body):
        for row in [x, y, x * y][:count]:
            start = body(start, row)
        return start

    def map_fn_of_some(self, count, threshold, x, y, body):
        chosen = above(y.a[0], threshold)
        rows = [row for row, is_chosen in zip([x, y, x * y], chosen, strict=True) if is_chosen]
        return sum([body(row) for row in rows], x * 0.0)

    def map_fn(self, count, threshold, x, y, body):
        return sum([body(row) for row in [x, y, x * y][:count]], x * 0.0)

    def vmap(self, count, threshold, x, y, body):
        return self.map_fn(max(count, 1), threshold, x, y, body)

    def function(self, count, threshold, x, y, body):
        return body(x, y)

    def function_with_checkpoints(self, count, threshold, x, y, body):
        return body(x, y)

    def closure_with_checkpoints(self, count, threshold, body):
        return body()

    def recompute_grad(self, count, threshold, x, y, body):
        return body(x, y)

    def recomputed_closure(self, count, threshold, body):
        return body()

    def checkpoint(self, count, threshold, x, y, body):
        return body(x, y)
