"""Functions that leave cytape, wherever they are called and however they are differentiated."""

import functools
import gc
import itertools
import weakref

import numpy as np

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.bodies import nested, traced
from tests.cases import grouped

X = np.array([0.3, -1.2, 2.0])
V = np.array([1.0, -0.5, 0.25])
W = np.array([2.0, 0.5, -1.0])


def plain(x, w):
    return cnp.sin(x) * w * x


# ---- the same function, with a derivative of its own ---------------------------------------------


def slopes(x, w):
    return w * (cnp.sin(x) + x * cnp.cos(x)), cnp.sin(x) * x


def sine(x):
    return np.sin(np.asarray(x))


@cytape.custom_jvp
def jvp_of_cytape(x, w):
    return cnp.sin(x) * w * x


@cytape.custom_jvp
def jvp_of_numpy(x, w):
    return np.array(x.numpy() * sine(x)) * np.asarray(w)


@cytape.custom_jvp
def jvp_by_numpy(x, w):
    return np.array(x.numpy() * sine(x)) * np.asarray(w)


@jvp_of_cytape.defjvp
@jvp_of_numpy.defjvp
def rule(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    of_x, of_w = slopes(x, w)
    return None, of_x * dx + of_w * dw


@jvp_by_numpy.defjvp
def rule_by_numpy(primals, tangents):
    x, w = primals
    return None, sum(slope * t for slope, t in zip(numpy_slopes(x, w), tangents, strict=True))


@cytape.custom_jvp
def first_slope(x, w):
    return slopes(x.numpy(), w.numpy())[0]


@first_slope.defjvp
def first_slope_rule(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    return None, w * (2 * cnp.cos(x) - x * cnp.sin(x)) * dx + slopes(x, 1.0)[0] * dw


@cytape.custom_jvp
def second_slope(x):
    return slopes(x.numpy(), 1.0)[1]


@second_slope.defjvp
def second_slope_rule(primals, tangents):
    return None, slopes(primals[0], 1.0)[0] * tangents[0]


def numpy_slopes(x, w):
    return first_slope(x, w), second_slope(x)


@cytape.custom_gradient
def gradient_of_cytape(x, w):
    def grad_fn(dy):
        of_x, of_w = slopes(x, w)
        return dy * of_x, dy * of_w

    return cnp.sin(x) * w * x, grad_fn


@cytape.custom_gradient
def gradient_of_numpy(x, w):
    def grad_fn(dy):
        of_x, of_w = slopes(x, w)
        return dy * of_x, dy * of_w

    arrays = cytape.stop_gradient(x), cytape.stop_gradient(w)
    return arrays[0].numpy() * sine(arrays[0]) * np.asarray(arrays[1]), grad_fn


def by_numpy_function(x, w):
    def gradient(x, w, dy):
        of_x, of_w = slopes(x, w)
        return dy * of_x, dy * of_w

    def f(x, w):
        assert type(x) is type(w) is np.ndarray
        return np.sin(x) * w * x

    return cytape.numpy_function(f, x, w, specs=x.spec, grad_func=gradient)


@cytape.custom_jvp
def jvp_of_numpy_function(x, w):
    return cytape.numpy_function(lambda x, w: np.sin(x) * w * x, x, w, specs=x.spec)


jvp_of_numpy_function.defjvp(rule)

FUNCTIONS = {
    "jvp-cytape": jvp_of_cytape, "jvp-numpy": jvp_of_numpy, "jvp-by-numpy": jvp_by_numpy,
    "gradient-cytape": gradient_of_cytape, "gradient-numpy": gradient_of_numpy,
    "numpy_function": by_numpy_function, "jvp-numpy_function": jvp_of_numpy_function,
}


# ---- where it is called --------------------------------------------------------------------------


def of_unknown_extents(f):
    def traced(*args):
        signature = [cytape.Spec.of((None,) * np.ndim(x), float) for x in args]
        return cytape.function(f, input_signature=signature)(*args)

    return traced


PLACES = {
    "eager": lambda f: f, "unknown": of_unknown_extents, "functions": nested,
    **traced("itself", "cond", "while_loop", "recompute_grad"), "recompute": cytape.recompute_grad,
}


# ---- how it is differentiated --------------------------------------------------------------------


def total(f):
    return lambda *args: cnp.sum(f(*args) * f(*args))


def jvp(f):
    return lambda x, w: cytape.jvp(f, (x, w), (V, V * 2.0))[1]


def batched(f):
    return lambda x, w: cytape.jvp(
        f, (x, w), (np.stack([V, V * 3.0]), np.zeros((2, 3))), use_batch=True)[1]


def slope(f):
    return lambda x, w: cytape.grad(total(f))(x, w)


def other_slope(f):
    return lambda x, w: cytape.grad(total(f), argnums=1)(x, w)


def taped(f):
    def gradients(x, w):
        x, w = cytape.convert_to_tensor(x), cytape.convert_to_tensor(w)
        tape, y = ways.taped(lambda x, w: total(f)(x, w), x, w, persistent=True)
        return cnp.stack(tape.gradient(y, [x, w])) + tape.gradient(y, x)

    return gradients


def vjp(f):
    return lambda x, w: cytape.vjp(f, x, w)[1](V)[0]


MODES = {
    "value": lambda f: f,
    "reverse": slope,
    "other": other_slope,
    "taped": taped,
    "vjp": vjp,
    "forward": jvp,
    "batched": batched,
    "reverse-reverse": lambda f: slope(slope(f)),
    "forward-reverse": lambda f: jvp(slope(f)),
    "reverse-forward": lambda f: slope(jvp(f)),
    "forward-forward": lambda f: jvp(jvp(f)),
    "other-other": lambda f: other_slope(other_slope(f)),
    "mixed": lambda f: slope(other_slope(f)),
    "batched-reverse": lambda f: batched(slope(f)),
    "hessian": lambda f: lambda x, w: cytape.hessian(total(f))(x, w),
}
SECOND_ORDER = [*MODES][[*MODES].index("reverse-reverse"):]


@functools.cache
def expected_of(mode):
    return np.asarray(MODES[mode](plain)(X, W))


def has_same_shape(mode):
    return mode not in ("batched", "taped", "batched-reverse", "hessian")


def everywhere():
    """Yield all in a group per place; a third is always tried, a sixth of second derivatives."""
    product = itertools.product(enumerate(PLACES), enumerate(MODES), enumerate(FUNCTIONS))
    for (i, place), (j, mode), (k, name) in product:
        is_left = (i + j + k) % (6 if mode in SECOND_ORDER else 3) > 0
        yield place, f"{place}-{mode}-{name}", (place, mode, name), is_left


@grouped("place, mode, name", everywhere())
def test_python_is_called_and_differentiated_alike_everywhere(place, mode, name):
    transform, expected = MODES[mode], expected_of(mode)
    f, at = FUNCTIONS[name], PLACES[place]

    def called(x, w):
        return f(cytape.convert_to_tensor(x), cytape.convert_to_tensor(w))

    np.testing.assert_allclose(transform(at(called))(X, W), expected, rtol=1e-10, atol=1e-12)
    # The directions of a batch or Hessian are not made inside for extents that are not known.
    extents_are_known = place != "unknown" or mode in ("batched", "taped")
    is_traced = place in ("function", "functions", "unknown")
    if has_same_shape(mode) or extents_are_known and is_traced:
        np.testing.assert_allclose(at(transform(called))(X, W), expected, rtol=1e-10, atol=1e-12)


def module_scale(a, factor):
    return a * factor


class Model:
    def __init__(self):
        self.v, self.factor = cytape.Variable(2.0), np.array(3.0)

    @staticmethod
    def static_scale(a, factor):
        return a * factor

    @cytape.function
    def __call__(self, x):
        y = cytape.numpy_function(self.static_scale, x, self.factor, specs=x.spec)
        y = cytape.numpy_function(module_scale, y, self.factor, specs=x.spec)
        return cnp.sum(y * self.v)


def test_models_go_whose_traces_call_functions_that_do_not_refer_to_them():
    references = []
    for _ in range(4):
        model = Model()
        assert float(model(np.ones(3))) == 54.0
        references.append(weakref.ref(model))
        del model
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
