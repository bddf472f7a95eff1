"""Functions that change in place what they are called with: it is theirs, wherever they run."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each, grouped
from tests.ways import check, gradient

X = np.array([0.7, 1.3, -0.4, 2.1, 0.2, -1.1])


def matrix(x):
    return cnp.reshape(x, (3, 2))


def changing(row):
    row *= row
    row[0] = row[1] * 3.0
    return row


def changed(row):
    row = row * row
    return cnp.stack([row[1] * 3.0, row[1]])


def adding(total, row):
    total += changing(row)
    return total


def added(total, row):
    return total + changed(row)


def filling(total, row):
    total[0] = total[0] * row[1]
    row[0] = total[1]
    return total + row


def filled(total, row):
    return cnp.stack([total[0] * row[1] + total[1], total[1] + row[1]])


def twice(f, first):
    return cytape.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, f(y) + 1.0), (0, first))[1]


def with_rule(f):
    """Add a rule that is not the derivative, so that all see whether it is taken."""
    @cytape.custom_gradient
    def ruled(x):
        kept = x * 5.0
        return f(x), lambda g: kept * g
    return ruled


# Callers of the function `f` with parts of a matrix, or of `step` with each row.
CALLS = {
    "map_fn": lambda f, step: lambda x: cytape.map_fn(f, matrix(x)),
    "map_fn of two": lambda f, step: lambda x: cytape.map_fn(
        lambda rows: f(rows[0]) * f(rows[1]), (matrix(x), matrix(x))),
    "scan": lambda f, step: lambda x: cytape.scan(step, matrix(x)),
    "scan with a start": lambda f, step: lambda x: cytape.scan(step, matrix(x), x[:2]),
    "foldl": lambda f, step: lambda x: cytape.foldl(step, matrix(x)),
    "foldr": lambda f, step: lambda x: cytape.foldr(step, matrix(x), x[:2]),
    "while_loop": lambda f, step: lambda x: twice(f, x[2:4]),
    "checkpoint": lambda f, step: lambda x: cytape.checkpoint(f)(x[2:4]),
    "checkpoint with a policy": lambda f, step: lambda x: cytape.checkpoint(
        f, policy="dots")(x[2:4]),
    "recompute_grad of a copy": lambda f, step: lambda x: cytape.recompute_grad(f)(x[2:4] * 2.0),
    "checkpoint_sequential": lambda f, step: lambda x: cytape.checkpoint_sequential(
        [f, f, f], 2, matrix(x)[1]),
    "function": lambda f, step: lambda x: cytape.function(f)(matrix(x)[1]),
    "custom_gradient": lambda f, step: lambda x: with_rule(f)(matrix(x)[1]),
    "custom_gradient of a copy": lambda f, step: lambda x: with_rule(f)(x[2:4] * 2.0),
    "vmap": lambda f, step: lambda x: cytape.vmap(f)(matrix(x)),
}


@grouped("call, steps", [
    (name, f"{name}, {how}", (call, steps), (i + k) % 2 > 0)
    for i, (name, call) in enumerate(CALLS.items())
    for k, (how, steps) in enumerate({
        "added to": (adding, added), "filled": (filling, filled)}.items())])
def test_derivatives_are_those_of_a_function_that_changes_nothing(call, steps):
    def used_after(f, step):
        inner = call(f, step)
        return lambda x: cnp.sum(inner(x) * 0.3) + cnp.sum(x * x * x)

    check(used_after(changing, steps[0]), used_after(changed, steps[1]), X)


@each("call", CALLS.values(), ids=CALLS)
def test_arguments_of_the_caller_stay_unchanged(call):
    for make in (lambda x: x, cytape.function):
        x = cytape.constant(X)
        make(call(changing, adding))(x)
        np.testing.assert_array_equal(x, X)


@each("run", [
    lambda body, start: cytape.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, body(x, i)), (0, start))[1],
    lambda body, start: cytape.foldl(body, np.arange(3.0), start),
    lambda body, start: cytape.scan(body, np.arange(3.0), start)[-1].copy(),
    lambda body, start: cytape.cond(np.array(True), lambda: body(start.copy(), 0), lambda: start),
], ids=["while_loop", "foldl", "scan", "cond"])
def test_captured_results_of_a_body_stay_unchanged(run):
    other = cytape.constant([1.0, 2.0])

    def body(x, i):
        x *= 2.0
        return other

    last = run(body, cytape.constant([5.0, 5.0]))
    last += 1.0
    np.testing.assert_array_equal(other, [1.0, 2.0])


@each("wrapper", [cytape.recompute_grad, cytape.checkpoint(policy="dots")])
def test_constants_and_tensors_of_a_trace_can_be_changed_by_what_they_are_passed_to(wrapper):
    outside = cytape.constant([1.0, 2.0])

    @wrapper
    def product(x, y):
        x *= y
        y += 1.0
        return np.sum(x * y)

    def f(x):
        inside, zeros = cytape.constant([1.0, 2.0]), cnp.zeros(2)
        return (product(x, inside) + product(zeros, outside) + product(x, zeros + x)
                + np.sum(inside * outside))

    x = np.array([3.0, 4.0])
    assert float(cytape.function(f)(x)) == f(cytape.constant(x)) == (
        np.sum(x * [2.0, 6.0] + x * x * (x + 1)) + 5)
    np.testing.assert_allclose(cytape.grad(cytape.function(f))(x), [2.0, 6.0] + 3 * x * x + 2 * x)
    np.testing.assert_array_equal(outside, [1.0, 2.0])


@each("wrapper", [cytape.recompute_grad, cytape.checkpoint(policy="dots")])
def test_a_constant_that_a_tape_in_a_trace_watches_can_be_changed_by_a_recomputed_function(wrapper):
    c = cytape.constant([1.0, 2.0])

    @wrapper
    def squared(x):
        x *= 2.0
        return np.sum(x * x)

    @cytape.function
    def f():
        return gradient(lambda c: squared(c) + squared(c * c), c)

    np.testing.assert_allclose(f(), 8 * c.numpy() + 16 * c.numpy() ** 3)


# ---- arguments that are not differentiated

def changing_both(x, y):
    part = part_of(y)
    part *= 2.0
    part[0] = 7.0
    return np.sum(x * x * part)


def elementwise(x, y):
    changing_both(x, y)
    return x * x * part_of(y)


def part_of(y):
    return y["part"] if isinstance(y, dict) else y[0] if isinstance(y, (list, tuple)) else y


X3, FACTORS = X[:3], np.array([7.0, 4.0, 6.0])
SLOPE, CURVATURE = 2.0 * X3 * FACTORS, np.diag(2.0 * FACTORS)


def with_vector(transform):
    """Call a product with the arguments, and with ones as the vector."""
    return lambda f: lambda *args, **named: transform(f)(*args, np.ones(3), **named)


# Transforms that differentiate with respect to the first of two arguments: function, result.
TRANSFORMS = {
    "grad": (cytape.grad, changing_both, SLOPE),
    "value_and_grad": (
        lambda f: lambda *args, **named: cytape.value_and_grad(f)(*args, **named)[1],
        changing_both, SLOPE),
    "hessian": (cytape.hessian, changing_both, CURVATURE),
    "hessian_diagonal": (cytape.hessian_diagonal, changing_both, 2.0 * FACTORS),
    "jacrev": (cytape.jacrev, elementwise, np.diag(SLOPE)),
    "jacfwd": (cytape.jacfwd, elementwise, np.diag(SLOPE)),
    "elementwise_grad": (cytape.elementwise_grad, elementwise, SLOPE),
    "hessian_vector_product": (
        with_vector(cytape.hessian_vector_product), changing_both, 2.0 * FACTORS),
    "make_ggnvp": (
        lambda f: lambda *args, **named: cytape.make_ggnvp(f)(*args, **named)(np.ones(3)),
        elementwise, SLOPE**2),
    "jacrev of grad": (lambda f: cytape.jacrev(cytape.grad(f)), changing_both, CURVATURE),
    "gradients_function": (
        lambda f: lambda x, y: cytape.gradients_function(f, [0])(x, y)[0], changing_both, SLOPE),
    "make_vjp": (
        lambda f: lambda x, y: cytape.make_vjp(f, [0])(x, y)[1]()[0], changing_both, SLOPE),
    "implicit_grad": (
        lambda f: lambda x, y: cytape.implicit_grad(f)(cytape.Variable(x), y)[0][0],
        changing_both, SLOPE),
    "recompute_grad": (cytape.recompute_grad, elementwise, X3**2 * FACTORS),
    "grad of recompute_grad": (
        lambda f: cytape.grad(cytape.recompute_grad(f)), changing_both, SLOPE),
    "grad of checkpoint": (
        lambda f: cytape.grad(cytape.checkpoint(f, policy="everything")), changing_both, SLOPE),
    "grad of a function": (lambda f: cytape.grad(cytape.function(f)), changing_both, SLOPE),
    "recompute_grad in a function": (
        lambda f: cytape.function(lambda x, y: cytape.recompute_grad(f)(x, y)), elementwise,
        X3**2 * FACTORS),
}
WITHOUT_KEYWORDS = "gradients_function", "make_vjp", "implicit_grad"
MAKERS = {
    "itself": lambda part: part, "list": lambda part: [part, 3.0], "tuple": lambda part: (part,),
    "dict": lambda part: {"part": part}}


@each(make=MAKERS, kind=[np.array, cytape.constant], by_name=[False, True])
@pytest.mark.filterwarnings("ignore:.*changes an argument")
@each("transform", TRANSFORMS)
def test_arguments_that_are_not_differentiated_stay_as_they_are(transform, by_name, kind, make):
    if by_name and transform in WITHOUT_KEYWORDS:
        return
    given = kind([1.0, 2.0, 3.0])
    y = MAKERS[make](given)
    differentiate, f, wanted = TRANSFORMS[transform]
    call = differentiate(f)
    for _ in range(2):
        found = call(X3, y=y) if by_name else call(X3, y)
        np.testing.assert_array_equal(given, [1.0, 2.0, 3.0])
        np.testing.assert_allclose(found, wanted)


def test_read_only_arrays_are_not_copied():
    seen, y = [], np.array([1.0, 2.0, 3.0])
    y.setflags(write=False)

    def f(x, y):
        seen.append(y)
        return np.sum(x * y)

    cytape.grad(f)(X3, y)
    assert seen[0] is y


def test_arguments_without_arrays_are_the_callers_own():
    log = {}

    def f(x, log):
        log["calls"] = log.get("calls", 0) + 1
        return np.sum(x * x)

    cytape.grad(f)(X, log)
    assert log == {"calls": 1}
