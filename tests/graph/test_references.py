"""References of users' functions: wrappers and traces return each reference that they take."""

import gc
import sys
from contextlib import suppress
from types import FunctionType

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.ops.python.bound_names import codes
from tests.bodies import BODIES
from tests.cases import grouped

X = np.array([1.0, 2.0, 3.0])
SPEC = cytape.Spec.of((3,), float)


def copied(f):
    """Copy a function with its code object and the globals that it reads, for tests to count."""
    names = {name: globals()[name] for name in f.__code__.co_names if name in globals()}
    return FunctionType(f.__code__.replace(), {"__builtins__": __builtins__, **names}, f.__name__,
                        f.__defaults__, f.__closure__)


def new_functions():
    """Make z**3 and its derivative, with a closure, a global and a default of their own."""
    ones = np.ones(3)

    def cube(z, factor=(1.0,)):
        return cnp.multiply(z * z, z) * ones * factor[0]

    def slope(z, factor=(3.0,)):
        return cnp.multiply(z, z) * ones * factor[0]

    return copied(cube), copied(slope)


def parts(f):
    """List what a function is made of."""
    return [f, f.__code__, f.__globals__, f.__defaults__, f.__closure__, *f.__closure__]


def by_custom_jvp(f, df):
    call = cytape.custom_jvp(f)
    call.defjvp(lambda p, t: (None, df(p[0]) * t[0]))
    return call


def by_record_operation(f, df):
    def call(z):
        y = f(cytape.stop_gradient(z))
        cytape.record_operation("Cube", [y], [z], lambda g: [g * df(z)])
        return y

    return call


WRAPPERS = {
    **{name: lambda f, df, body=body: body(f) for name, body in BODIES.items()},
    "function with checkpoints": lambda f, df: cytape.function(f, checkpoints=["Multiply"]),
    "custom_gradient": lambda f, df: cytape.custom_gradient(
        lambda z: (f(z), lambda g: g * df(z))),
    "custom_jvp": by_custom_jvp,
    "numpy_function": lambda f, df: lambda z: cytape.numpy_function(
        lambda z: np.asarray(f(z)), z, specs=SPEC,
        grad_func=lambda z, g: g * df(z)),
    "record_operation": by_record_operation,
}


def total(f):
    return lambda z: cnp.sum(f(z))


function, grad, jacfwd = cytape.function, cytape.grad, cytape.jacfwd


def captured(f):
    """Call a function of captured tensors, alone and beside an argument, in a trace."""
    return lambda z: function(lambda a: cnp.sum(f(z) * a) + cnp.sum(f(z * a)))(np.ones(3))


def inner(f):
    return lambda z: function(lambda a: f(a) + 1.0)(z)

WAYS = {
    "grad": lambda f: grad(total(f)),
    "jacfwd": jacfwd,
    "hessian": lambda f: cytape.hessian(total(f)),
    "function of grad": lambda f: function(grad(total(f))),
    "grad of function": lambda f: grad(function(total(f))),
    "function of jacfwd of function": lambda f: function(jacfwd(lambda z: function(f)(z))),
    "function of jacfwd of inner": lambda f: function(jacfwd(inner(f))),
    "function of hessian of inner": lambda f: function(cytape.hessian(total(inner(f)))),
    "function of hessian": lambda f: function(cytape.hessian(total(f))),
    "forward over reverse in a function": lambda f: function(jacfwd(grad(function(total(f))))),
    "grad of captured": lambda f: grad(captured(f)),
    "function of hessian of captured": lambda f: function(cytape.hessian(captured(f))),
}


@grouped("way, wrapper", [
    ("all", f"{way}, {wrapper}", (way, wrapper), (i + k) % 3 > 0)
    for i, way in enumerate(WAYS) for k, wrapper in enumerate(WRAPPERS)])
def test_each_reference_is_returned(way, wrapper):
    cube, slope = new_functions()
    callers = [WRAPPERS[wrapper], WAYS[way], by_custom_jvp, by_record_operation, captured, inner]
    counted = [*parts(cube), *parts(slope), *(
        code for caller in callers for code in codes(caller.__code__))]

    def call():
        with suppress(SymbolicTensorError):  # ops cannot be recorded by hand in a trace
            WAYS[way](WRAPPERS[wrapper](cube, slope))(X)

    def counts():
        gc.collect()
        return [sys.getrefcount(part) for part in counted]

    call()
    before = counts()
    for _ in range(4):
        call()
    for part, now, then in zip(counted, counts(), before, strict=True):
        assert abs(now - then) <= 1, part  # a bounded table of names may gain or lose a code object
