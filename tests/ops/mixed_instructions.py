"""Calls of random programs of mixed dtypes, with equivalents on hyper-dual arrays."""

from dataclasses import dataclass

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.ops import hyper_dual as hd
from tests.ops.hyper_dual import VALUE, S

FLOATS = ["float16", "float32", "float64"]
GAP = 0.08  # from kinks


class OutOfDomain(Exception):
    """An instruction cannot be used on these operands."""


def require(condition):
    if not np.all(condition):
        raise OutOfDomain


@dataclass(frozen=True)
class Instruction:
    """A call of a program, and its twin for hyper-dual arrays."""

    name: str
    call: object       # of arrays or tensors
    reference: object  # of hyper-dual arrays, the dtype of the result, a rounding
    n_operands: int = 1


def terms(second):
    return second if isinstance(second, list) else [second]


def unary(name, domain, partial, second, call=None):
    """Make an instruction of a function f, from functions of x and y = f(x)."""
    call = call or getattr(cnp, name)

    def reference(x, dtype, rounding):
        v = x[VALUE]
        require(domain(v))
        y = np.asarray(call(v))
        bend = {(0, 0): terms(second(v, y))}
        return hd.elementwise([x], y, [partial(v, y)], bend, dtype, rounding)

    return Instruction(name, call, reference)


def binary(name, domain, partials, seconds, call=None):
    """Make one of a function f, from functions of x, y and z = f(x, y)."""
    call = call or getattr(cnp, name)

    def reference(x, y, dtype, rounding):
        a, b = (operand[VALUE] for operand in hd.aligned(x, y))
        require(domain(a, b))
        z = call(a, b)
        of_second = {places: terms(second(a, b, z)) for places, second in seconds.items()}
        return hd.elementwise([x, y], z, [p(a, b, z) for p in partials], of_second, dtype, rounding)

    return Instruction(name, call, reference, 2)


def choice(name, larger):
    """Make an instruction of maximum or the like; where operands tie each has half."""
    call = getattr(cnp, name)

    def reference(x, y, dtype, rounding):
        a, b = (operand[VALUE] for operand in hd.aligned(x, y))
        difference = a - b if larger else b - a
        tie = np.all(difference == 0, axis=0)
        require(tie | (np.abs(difference) > GAP * np.maximum(1, np.abs(a))))
        require(np.sign(difference) == np.sign(difference[0]))
        share = np.where(difference == 0, 0.5, difference > 0)
        return hd.elementwise([x, y], call(a, b), [share, 1 - share], {}, dtype, rounding)

    return Instruction(name, call, reference, 2)


def structural(name, call, function=None):
    """Make one that moves elements: a function of an array whose first axes do not count."""
    return Instruction(name, call, lambda x, dtype, rounding: function(x))


def cast(dtype):
    return Instruction(
        f"astype {dtype}", lambda x: cnp.astype(x, dtype),
        lambda x, dtype, rounding: rounding(x, dtype))


def largest(x, dtype, rounding):
    elements = x.reshape(*x.shape[:2], -1)
    values = elements[VALUE]
    top = values.max(axis=-1, keepdims=True)
    ties = values == top
    require((ties == ties[0]) & (ties | (top - values > GAP * np.maximum(1, np.abs(top)))))
    return rounding(np.sum(elements * (ties[0] / ties[0].sum()), axis=-1), dtype)


def std(x, dtype, rounding):
    variance = hd.variance(x, dtype, rounding)
    require(variance[VALUE] > 0.1)
    return hd.power(variance, 0.5, dtype, rounding)


def norm(x, dtype, rounding):
    square = hd.total(hd.multiply(x, x, dtype, rounding), dtype, rounding)
    require(square[VALUE] > 0.1)
    return hd.power(square, 0.5, dtype, rounding)


def log_sum_exp(x, dtype, rounding):
    require(np.abs(x[VALUE]) < 4)
    return hd.log(hd.total(hd.exp(x, dtype, rounding), dtype, rounding), dtype, rounding)


def softmax(x, dtype, rounding):
    require((np.abs(x[VALUE]) < 4) & (x.ndim > 2))
    powers = hd.exp(x, dtype, rounding)
    inverse = hd.power(
        hd.total(powers, dtype, rounding, axis=-1, keepdims=True), -1.0, dtype, rounding)
    return hd.multiply(powers, inverse, dtype, rounding)


def power_reference(x, y, dtype, rounding):
    a, b = (operand[VALUE] for operand in hd.aligned(x, y))
    fixed = not np.any(y[S:])
    whole = fixed and np.all(b == np.round(b)) and np.all(b >= 0)
    require((np.abs(b) <= 3) | (fixed & (np.abs(b) <= 128) & (np.abs(np.abs(a) - 1) < 0.01)))
    require(np.abs(a) > 0.2 if whole else a > 0.2)
    by_x = b * a ** (b - 1.0)
    logs = np.log(np.abs(a)) * (not fixed)
    seconds = {
        (0, 0): [b * b * a ** (b - 2.0), -b * a ** (b - 2.0)],
        (0, 1): [by_x * logs, a ** (b - 1.0)], (1, 1): [a**b * logs**2]}
    return hd.elementwise([x, y], a**b, [by_x, a**b * logs], seconds, dtype, rounding)


def modulus(call):
    def reference(x, y, dtype, rounding):
        a, b = (operand[VALUE] for operand in hd.aligned(x, y))
        require(np.abs(b) > 0.3)
        quotient = a / b
        require(np.abs(quotient - np.round(quotient)) > GAP)
        rest = call(a, b)
        return hd.elementwise([x, y], rest, [1 + 0 * a, np.round((rest - a) / b)], {}, dtype,
                              rounding)

    return reference


def where_reference(x, y, dtype, rounding):
    x, y = np.broadcast_arrays(*hd.aligned(x, y))
    chosen = pattern(x.shape[2:])
    return rounding(np.where(chosen, x, y), dtype)


def pattern(shape):
    """Return an array of booleans."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 != 1


def where(x, y):
    return cnp.where(pattern(np.broadcast_shapes(np.shape(x), np.shape(y))), x, y)


def clip_reference(x, dtype, rounding):
    v = x[VALUE]
    require((np.abs(v - 2) > GAP) & (np.abs(v + 1) > GAP))
    inside = (v < 2) & (v > -1)
    return hd.elementwise([x], np.clip(v, -1, 2), [inside * 1.0], {}, dtype, rounding)


def off_origin(a, b):
    return a * a + b * b > 0.1


def arctan2_seconds():
    return {
        (0, 0): lambda a, b, z: -2 * a * b / (a * a + b * b) ** 2,
        (0, 1): lambda a, b, z: [1 / (a * a + b * b), -2 * b * b / (a * a + b * b) ** 2],
        (1, 1): lambda a, b, z: 2 * a * b / (a * a + b * b) ** 2}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def any_number(*_):
    return True


def leading(function):
    """Have a function of an array leave two more axes before it alone."""
    return lambda x: function(x.reshape(*x.shape[:2], -1))


INSTRUCTIONS = [
    unary("sin", lambda x: np.abs(x) < 6, lambda x, y: np.cos(x), lambda x, y: -np.sin(x)),
    unary("cos", lambda x: np.abs(x) < 6, lambda x, y: -np.sin(x), lambda x, y: -np.cos(x)),
    unary("exp", lambda x: np.abs(x) < 3, lambda x, y: y, lambda x, y: y),
    unary("exp2", lambda x: np.abs(x) < 3,
          lambda x, y: y * np.log(2), lambda x, y: y * np.log(2) ** 2),
    unary("expm1", lambda x: np.abs(x) < 3, lambda x, y: np.exp(x), lambda x, y: np.exp(x)),
    unary("log", lambda x: x > 0.3, lambda x, y: 1 / x, lambda x, y: -1 / x**2),
    unary("log1p", lambda x: x > -0.6, lambda x, y: 1 / (1 + x), lambda x, y: -1 / (1 + x) ** 2),
    unary("log2", lambda x: x > 0.3,
          lambda x, y: 1 / x / np.log(2), lambda x, y: -1 / x**2 / np.log(2)),
    unary("sqrt", lambda x: x > 0.3, lambda x, y: 0.5 / y, lambda x, y: -0.25 / y**3),
    unary("cbrt", lambda x: np.abs(x) > 0.3,
          lambda x, y: 1 / (3 * y * y), lambda x, y: -2 / (9 * y**5)),
    unary("tanh", lambda x: np.abs(x) < 1.5,
          lambda x, y: 1 - y * y, lambda x, y: -2 * y * (1 - y * y)),
    unary("arctan", any_number,
          lambda x, y: 1 / (1 + x * x), lambda x, y: -2 * x / (1 + x * x) ** 2),
    unary("arcsinh", any_number,
          lambda x, y: (1 + x * x) ** -0.5, lambda x, y: -x * (1 + x * x) ** -1.5),
    unary("square", any_number, lambda x, y: 2 * x, lambda x, y: 2 + 0 * x),
    unary("negative", any_number, lambda x, y: -1 + 0 * x, lambda x, y: 0 * x),
    unary("reciprocal", lambda x: np.abs(x) > 0.3,
          lambda x, y: -y * y, lambda x, y: 2 * y**3),
    unary("absolute", lambda x: np.abs(x) > GAP, lambda x, y: np.sign(x), lambda x, y: 0 * x),
    unary("sigmoid", lambda x: np.abs(x) < 3, lambda x, y: y * (1 - y),
          lambda x, y: [y * (1 - y), -2 * y * y * (1 - y)], lambda x: cytape.nn.sigmoid(x)),
    unary("softplus", lambda x: np.abs(x) < 3, lambda x, y: sigmoid(x),
          lambda x, y: sigmoid(x) * (1 - sigmoid(x)), lambda x: cytape.nn.softplus(x)),
    unary("relu", lambda x: np.abs(x) > GAP, lambda x, y: (x > 0) * 1.0, lambda x, y: 0 * x,
          lambda x: cytape.nn.relu(x)),
    binary("add", any_number, [lambda a, b, z: 1.0, lambda a, b, z: 1.0], {}),
    binary("subtract", any_number, [lambda a, b, z: 1.0, lambda a, b, z: -1.0], {}),
    binary("multiply", any_number, [lambda a, b, z: b, lambda a, b, z: a],
           {(0, 1): lambda a, b, z: 1.0}),
    binary("divide", lambda a, b: np.abs(b) > 0.3,
           [lambda a, b, z: 1 / b, lambda a, b, z: -z / b],
           {(0, 1): lambda a, b, z: -1 / b**2, (1, 1): lambda a, b, z: 2 * a / b**3}),
    binary("arctan2", lambda a, b: off_origin(a, b) & ((b > GAP) | (np.abs(a) > GAP)),
           [lambda a, b, z: b / (a * a + b * b), lambda a, b, z: -a / (a * a + b * b)],
           arctan2_seconds()),
    binary("hypot", off_origin, [lambda a, b, z: a / z, lambda a, b, z: b / z],
           {(0, 0): lambda a, b, z: [1 / z, -a * a / z**3], (0, 1): lambda a, b, z: -a * b / z**3,
            (1, 1): lambda a, b, z: [1 / z, -b * b / z**3]}),
    binary("logaddexp", lambda a, b: np.abs(a - b) < 4,
           [lambda a, b, z: sigmoid(a - b), lambda a, b, z: sigmoid(b - a)],
           {(0, 0): lambda a, b, z: [sigmoid(a - b), -(sigmoid(a - b) ** 2)],
            (0, 1): lambda a, b, z: -sigmoid(a - b) * sigmoid(b - a),
            (1, 1): lambda a, b, z: [sigmoid(b - a), -(sigmoid(b - a) ** 2)]}),
    binary("copysign", lambda a, b: (np.abs(a) > GAP) & (np.abs(b) > GAP),
           [lambda a, b, z: np.sign(a) * np.sign(b), lambda a, b, z: 0.0], {}),
    Instruction("power", cnp.power, power_reference, 2),
    Instruction("remainder", cnp.remainder, modulus(np.remainder), 2),
    Instruction("fmod", cnp.fmod, modulus(np.fmod), 2),
    choice("maximum", True), choice("minimum", False), choice("fmax", True), choice("fmin", False),
    Instruction("where", where, where_reference, 2),
    Instruction("clip", lambda x: cnp.clip(x, -1, 2), clip_reference),
    Instruction("sum", cnp.sum, hd.total),
    Instruction("sum of rows", lambda x: cnp.sum(x, axis=-1) if x.ndim else x * 1,
                lambda x, d, r: hd.total(x, d, r, axis=-1) if x.ndim > 2 else r(x, d)),
    Instruction("mean", cnp.mean, hd.mean), Instruction("max", cnp.max, largest),
    Instruction("prod", lambda x: cnp.prod(cnp.ravel(x)[:3]),
                lambda x, d, r: hd.product(x.reshape(*x.shape[:2], -1)[..., :3], d, r)),
    Instruction("var", cnp.var, hd.variance), Instruction("std", cnp.std, std),
    Instruction("norm", lambda x: np.linalg.norm(x) if x.ndim else cnp.absolute(x) * 1, norm),
    Instruction("logsumexp", lambda x: cytape.nn.logsumexp(x), log_sum_exp),
    Instruction("softmax", lambda x: cytape.nn.softmax(x), softmax),
    Instruction("cumsum", lambda x: cnp.cumsum(x),
                lambda x, d, r: r(np.cumsum(x.reshape(*x.shape[:2], -1), axis=-1), d)),
    Instruction("matmul", lambda x: x @ np.array([1, -2, 3], np.int8) if x.shape[-1:] == (3,) else
                cnp.sum(x),
                lambda x, d, r: hd.matmul(x, hd.constant([1, -2, 3], x.shape[1]), d, r)
                if x.shape[2:][-1:] == (3,) else hd.total(x, d, r)),
    structural("first", lambda x: x[:1] if x.ndim else x * 1,
               lambda x: x[:, :, :1] if x.ndim > 2 else x),
    structural("backwards", lambda x: x[::-1] if x.ndim else x * 1,
               lambda x: x[:, :, ::-1] if x.ndim > 2 else x),
    structural("gather", lambda x: cnp.take(cnp.ravel(x), np.array([0, -1, 0], np.int8)),
               leading(lambda x: x[..., [0, -1, 0]])),
    structural("reshape", lambda x: cnp.reshape(x, (-1, 1)),
               lambda x: x.reshape(*x.shape[:2], -1, 1)),
    structural("transpose", lambda x: cnp.transpose(x),
               lambda x: x.transpose(0, 1, *range(x.ndim - 1, 1, -1))),
    structural("concatenate", lambda x: cnp.concatenate([cnp.ravel(x), cnp.ravel(x)[:2]]),
               leading(lambda x: np.concatenate([x, x[..., :2]], axis=-1))),
    *map(cast, FLOATS),
]
