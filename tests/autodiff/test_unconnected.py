"""Attacks on transforms whose result does not depend on what they differentiate with respect to."""

import inspect
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.autodiff import forward_accumulator
from cytape.errors import DetachedError, UnconnectedGradientWarning
from cytape.tensor.recording.state import MOST_DETACHED
from tests import ways
from tests.cases import each

X = np.array([1.0, 2.0])
ONES = np.ones(2)
VARIABLE = cytape.Variable(3.0, trainable=False)

# Each differentiates a function of one vector, whose result is a scalar.
TRANSFORMS = {
    "grad": lambda f: cytape.grad(f)(X),
    "grad of a tensor": lambda f: cytape.grad(f)(cytape.constant(X)).numpy(),
    "value_and_grad": lambda f: cytape.value_and_grad(f)(X)[1],
    "vjp": lambda f: cytape.vjp(f, X)[1](1.0)[0],
    "jvp": lambda f: cytape.jvp(f, (X,), (ONES,))[1],
    "jvp of a batch": lambda f: cytape.jvp(f, (X,), (np.eye(2),), use_batch=True)[1],
    "jacfwd": lambda f: cytape.jacfwd(f)(X),
    "hessian": lambda f: cytape.hessian(f)(X),
    "hessian_vector_product": lambda f: cytape.hessian_vector_product(f)(X, ONES),
    "make_ggnvp": lambda f: cytape.make_ggnvp(f)(X)(ONES),
    "jet": lambda f: cytape.jet(f, X, [ONES])[1][0],
    "function of grad": lambda f: cytape.function(cytape.grad(f))(X),
    "grad of function": lambda f: cytape.grad(cytape.function(f))(X),
}
OUTSIDE_GRAPHS = {name: t for name, t in TRANSFORMS.items() if "function" not in name}
INDEPENDENT = {
    "a number": lambda x: 3.0,
    "a constant": lambda x: cytape.constant(3.0),
    "a variable": lambda x: VARIABLE.value(),
    "of the shape": lambda x: cnp.sum(cnp.ones_like(x)),
    "steps": lambda x: cnp.sum(cnp.floor(x)),
    "stopped": lambda x: cnp.sum(cytape.stop_gradient(x) ** 2),
}
LEFT = {
    "item": lambda x: x[0].item() * 2.0,
    "numpy": lambda x: np.sum(x.numpy() ** 2),
    "tolist": lambda x: sum(x.tolist()),
    "of a result": lambda x: cytape.constant(2.0) * np.sum(x * x).item(),
    "assigned": lambda x: cytape.Variable(np.zeros(2), trainable=False).assign(x)[0] * 2.0,
}
REFUSED = {
    "as a variable": lambda x: cytape.Variable(x, trainable=False)[0] * 2.0,
    "constant": lambda x: cytape.constant(x)[0] * 2.0,
    "float": lambda x: float(x[0]) ** 2,
    "asarray": lambda x: np.asarray(x)[0] * 2.0,
}


def test_unrecorded_targets_give_zeros_and_a_warning():
    def f(x):
        with cytape.stop_recording():
            return cnp.sum(x)

    for derive in (cytape.grad(f), cytape.jacfwd(f)):
        with pytest.warns(UnconnectedGradientWarning):
            assert not derive(X).any()


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@each("f", INDEPENDENT.values(), ids=INDEPENDENT)
def test_no_dependence_gives_zeros_and_a_warning(transform, f):
    with pytest.warns(UnconnectedGradientWarning, match="does not depend on"):
        derivative = transform(f)
    assert not np.any(derivative)


@each("transform", OUTSIDE_GRAPHS.values(), ids=OUTSIDE_GRAPHS)
@each("f", LEFT.values(), ids=LEFT)
def test_a_derivative_that_was_lost_on_the_way_is_an_error(transform, f):
    with pytest.raises(DetachedError, match=r"left its tensor by (numpy|an assignment)"):
        transform(f)


@each("transform", OUTSIDE_GRAPHS.values(), ids=OUTSIDE_GRAPHS)
@each("f", REFUSED.values(), ids=REFUSED)
def test_a_lost_derivative_is_an_error_at_once(transform, f):
    with pytest.raises(DetachedError, match="that is being recorded|plain array or number"):
        transform(f)


@each("transform", OUTSIDE_GRAPHS.values(), ids=OUTSIDE_GRAPHS)
def test_a_value_may_leave_where_the_result_depends_on_the_tensors_too(transform):
    seen = []

    def f(x):
        seen.append(x[0].item())
        return np.sum(x**3) if x[0].item() > 0 else np.sum(x)

    assert np.all(np.isfinite(transform(f)))
    assert set(seen) == {1.0}


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_stopped_tensors_may_become_arrays(transform):
    def f(x):
        scale = 1.0 if x.graph is not None else cytape.stop_gradient(x)[0].item()
        return scale + np.sum(x.shape)

    with pytest.warns(UnconnectedGradientWarning):
        assert not np.any(transform(f))


def test_a_derivative_that_is_constant_draws_no_warning():
    for name in ("hessian", "hessian_vector_product"):
        assert not np.any(TRANSFORMS[name](lambda x: np.sum(3.0 * x)))
    assert not cytape.make_ggnvp(np.square, g=lambda y: np.sum(3.0 * y))(X)(ONES).any()
    assert cytape.grad(cytape.grad(lambda x: 3.0 * x))(1.0) == 0.0
    assert cytape.jvp(cytape.grad(lambda x: 3.0 * x), (1.0,), (1.0,))[1] == 0.0


def test_a_number_in_place_of_a_factor_is_an_error_in_second_order():
    for derive in (cytape.hessian, cytape.jacfwd):
        with pytest.raises(DetachedError):
            derive(lambda x: x.item())(2.0)
    with pytest.raises(DetachedError):
        cytape.hessian(lambda x: x * x.item())(2.0)


# -- several arguments, and arguments of several parts ---------------------------------------------


def test_each_argument_counts_for_itself():
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by") as caught:
        gradients = cytape.grad(lambda x, y, z: x * z, argnums=(0, 1, 2))(2.0, 3.0, 4.0)
    assert gradients == (4.0, 0.0, 2.0)
    assert len(caught) == 1
    with pytest.warns(UnconnectedGradientWarning, match="argument 0 and 2 by"):
        cytape.vjp(lambda x, y, z: y, 2.0, 3.0, 4.0)[1](1.0)
    with pytest.warns(UnconnectedGradientWarning, match="argument -1 by"):
        cytape.grad(lambda x, y: x, argnums=-1)(2.0, 3.0)
    with pytest.raises(DetachedError, match="argument 1"):
        cytape.grad(lambda x, y: x * y.item(), argnums=(0, 1))(2.0, 3.0)


def test_only_what_depends_on_an_argument_counts_as_its_value_that_left():
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by"):
        assert cytape.grad(lambda p, q: (p.item(), p * 2)[1], (0, 1))(1.0, 2.0) == (2.0, 0.0)
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by"):
        assert cytape.grad(lambda p, q: p * (p * p).item(), (0, 1))(2.0, 2.0) == (4.0, 0.0)
    with pytest.raises(DetachedError, match="argument 1, because"):
        cytape.grad(lambda p, q, r: p * (p * q).item(), (0, 1, 2))(1.0, 2.0, 3.0)
    with pytest.raises(DetachedError, match="argument 0 and 1, because"):
        cytape.grad(lambda p, q: (p * q).item() * 2.0, (0, 1))(1.0, 2.0)
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by"):
        assert cytape.vjp(lambda p, q: (p.item(), p * 2)[1], 1.0, 2.0)[1](1.0) == (2.0, 0.0)
    nested = cytape.grad(cytape.grad(lambda p, q: (p.item(), p**3)[1]), (0, 1))
    assert nested(1.0, 2.0) == (6.0, 0.0)


def test_a_part_beside_one_that_left_draws_no_warning_of_its_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients = cytape.grad(lambda p: (p["w"].item(), p["w"] * 2)[1])({"w": 1.0, "b": 2.0})
    assert gradients == {"w": 2.0, "b": 0.0}


@cytape.custom_gradient
def without_gradient(p):
    def backward(g):
        raise KeyError("no gradient")

    return p * 1.0, backward


def taking(n, result):
    def f(p, q):
        for i in range(n):
            (p * float(i)).item()
        return result(p, q)

    return f


UNTOLD = [
    taking(MOST_DETACHED, lambda p, q: p * 2),
    taking(10 * MOST_DETACHED, lambda p, q: p * 2),
    taking(MOST_DETACHED, lambda p, q: p * 2 * q.item()),
    lambda p, q: (without_gradient(p).item(), p * 2)[1],
    lambda p, q: (without_gradient(p).item(), p.item(), p * 2)[2],
]


@each("f", UNTOLD)
def test_where_it_cannot_be_told_what_left_a_warning_says_so(f):
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by .* unless it was lost"):
        assert cytape.grad(f, (0, 1))(1.0, 1.0) == (2.0, 0.0)
    with pytest.warns(UnconnectedGradientWarning, match="perhaps because a value left"):
        gradients = cytape.grad(lambda pq: f(*pq))((1.0, 1.0))
    assert gradients == (2.0, 0.0)


@each("n", [0, 1, MOST_DETACHED - 1])
def test_how_often_values_left_makes_no_difference(n):
    with pytest.warns(UnconnectedGradientWarning, match="argument 1 by .* zero$"):
        cytape.grad(taking(n, lambda p, q: p * 2), (0, 1))(1.0, 2.0)
    with pytest.raises(DetachedError, match="argument 1, because"):
        cytape.grad(taking(n, lambda p, q: p * q.item()), (0, 1))(1.0, 2.0)


@each("f", [
    *[taking(n, lambda p, q: 2.0 * q) for n in (1, MOST_DETACHED, 10 * MOST_DETACHED)],
    lambda p, q: (without_gradient(p).item(), 2.0 * q)[1],
    lambda p, q: (without_gradient(p).item(), p.item(), 2.0 * q)[2]])
def test_a_value_that_left_depends_on_the_only_argument(f):
    with pytest.raises(DetachedError, match="argument 0, because"):
        cytape.grad(f)(1.0, 2.0)


def test_one_that_left_for_sure_is_an_error_whatever_else_did():
    for f in (
        lambda p, q: (q.item(), taking(MOST_DETACHED, lambda p, q: p * 2)(p, q))[1],
        lambda p, q: (without_gradient(p).item(), q.item(), p * 2)[2],
    ):
        with pytest.raises(DetachedError, match="argument 1, because"):
            cytape.grad(f, (0, 1))(1.0, 2.0)


def test_a_product_with_a_jacobian_is_looked_up_once(monkeypatch):
    asked = []
    fetch = forward_accumulator.fetch
    monkeypatch.setattr(forward_accumulator, "fetch", lambda *of: asked.append(of) or fetch(*of))
    cytape.jvp(lambda x: (x * x, x + 1.0), (3.0,), (1.0,))
    assert len(asked) == 2


def test_a_part_that_is_not_used_has_zeros():
    params = {"w": 2.0, "unused": np.ones(3)}
    gradients = cytape.grad(lambda p: p["w"] ** 2)(params)
    assert gradients["w"] == 4.0 and not gradients["unused"].any()
    assert cytape.grad(lambda p, x: x**2, argnums=1)({}, 3.0) == 6.0
    assert cytape.grad(lambda p: 3.0)({}) == {}


def test_a_part_that_may_have_been_lost_draws_a_warning():
    params = {"w": 2.0, "b": 3.0}
    with pytest.warns(UnconnectedGradientWarning, match="perhaps because a value left"):
        gradients = cytape.grad(lambda p: p["w"] * p["b"].item())(params)
    assert gradients == {"w": 3.0, "b": 0.0}
    with pytest.warns(UnconnectedGradientWarning, match="perhaps because a value left"):
        _, tangents = cytape.jvp(lambda x: (x * x, x.item()), (3.0,), (1.0,))
    assert tangents == (6.0, 0.0)


def test_outputs_that_do_not_move_have_zeros():
    _, tangents = cytape.jvp(lambda x: (x * x, 5.0, np.argmax(x)), (X,), (ONES,))
    assert tangents[0].tolist() == [2.0, 4.0] and tangents[1:] == (0.0, 0)


def test_a_primal_that_stands_still_is_none_of_it():
    assert cytape.jvp(lambda x: 5.0, (3.0,), (None,))[1] == 0.0


def test_only_values_that_the_transform_follows_count():
    other = cytape.constant(5.0)
    with ways.watching(other):
        with pytest.warns(UnconnectedGradientWarning):
            assert cytape.grad(lambda x: other.item())(3.0) == 0.0
    with pytest.warns(UnconnectedGradientWarning):  # each call is judged by itself
        assert cytape.grad(lambda x: 5.0)(3.0) == 0.0


def test_a_tape_goes_on_returning_none():
    x = cytape.constant(X)
    assert ways.gradient(lambda x: cytape.constant(x[0].item()), x) is None
    with pytest.warns(UnconnectedGradientWarning, match="is None"):
        assert cytape.gradients_function(lambda x: cytape.constant(1.0))(X) == [None]


def test_a_tape_that_watched_neither_source_nor_target_warns():
    w = cytape.Variable(X)
    with cytape.GradientTape() as tape:
        loss = np.sum(w**2)
    w = w - 0.1 * tape.gradient(loss, w)  # a tensor from here on
    with cytape.GradientTape() as tape:
        loss = np.sum(w**2)
    with pytest.warns(UnconnectedGradientWarning, match=r"write w\.assign_sub\(g\)"):
        assert tape.gradient(loss, w) is None


@each("target, sources, zero", [
    ("unseen", "seen", "none"), ("seen", "unseen", "none"), ("seen", "pair", "none"),
    ("unseen", "unseen", "zero"), ("unseen", "integer", "none"), ("unseen", "no", "none"),
    ("no", "unseen", "none")])
def test_a_tape_that_watched_one_of_them_is_silent(target, sources, zero):
    given = {"seen": cytape.constant(2.0), "unseen": cytape.constant(3.0), "no": [],
             "integer": cytape.constant(3)}
    given["pair"] = given["seen"], given["unseen"]
    with cytape.GradientTape() as tape:
        tape.watch(given["seen"])
    tape.gradient(given[target], given[sources], unconnected_gradients=zero)


# -- once for each place ---------------------------------------------------------------------------


def test_the_warning_names_the_line_that_asks():
    with pytest.warns(UnconnectedGradientWarning) as caught:
        line = inspect.currentframe().f_lineno + 1
        cytape.grad(lambda x: 3.0)(1.0)
        cytape.jacfwd(lambda x: 3.0)(1.0)
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert [warning.lineno for warning in caught] == [line, line + 1]


def test_it_is_shown_once_for_each_place():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            cytape.grad(lambda x: 3.0)(1.0)
            cytape.grad(lambda x: 3.0)(1.0)
    assert len(caught) == 2


def test_it_is_shown_without_any_setting(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import cytape\nfor _ in range(3):\n    cytape.grad(lambda x: 3.0)(1.0)\n")
    root = os.path.dirname(os.path.dirname(cytape.__file__))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert done.stderr.count("UnconnectedGradientWarning") == 1
    assert f"{script}:3:" in done.stderr


# -- integers --------------------------------------------------------------------------------------


@each(dtype=["int8", "uint64", "int64", "bool"], trainable=[True, False])
def test_integer_variables_among_the_sources_draw_a_warning(dtype, trainable):
    n, x = cytape.Variable(np.ones(2, dtype), trainable, name="n"), cytape.constant(X)
    tape, y = ways.taped(lambda x: np.sum(x * n, keepdims=True), x, persistent=True)
    with pytest.warns(UnconnectedGradientWarning, match=f"'n' is None: .* {dtype}") as caught:
        assert tape.gradient(y, {"n": n, "x": x})["n"] is None
        assert tape.gradient(y, n) is None  # it has been said
    assert len(caught) == 1 and caught[0].filename == __file__


@each("method", ["jacobian", "batch_jacobian"])
def test_jacobians_say_it_too(method):
    n, x = cytape.Variable([[1, 2]]), cytape.constant([[1.0, 2.0]])
    tape, y = ways.taped(lambda x: x * n, x)
    with pytest.warns(UnconnectedGradientWarning, match="int64"):
        assert getattr(tape, method)(y, n) is None


@each("make", [cytape.constant, cytape.Variable])
def test_watched_tensors_are_not_warned_of_again(make):
    n = make(2)
    with cytape.GradientTape() as tape:
        with pytest.warns(UnconnectedGradientWarning, match="watching a tensor of dtype int64"):
            tape.watch(n)
        y = n * 2.0
    assert tape.gradient(y, n) is None


def test_integer_variables_that_are_read_draw_a_warning():
    n, w = cytape.Variable(2), cytape.Variable(3.0)
    with pytest.warns(UnconnectedGradientWarning, match="int64"):
        pairs = cytape.implicit_grad(lambda: w * n)()
    assert {variable.dtype.name: gradient for gradient, variable in pairs}["int64"] is None


def test_gradients_of_graphs_say_it_too():
    graph, n = cytape.Graph(), cytape.Variable(2, name="n")
    x = graph.placeholder("float64", ())
    with graph.as_default():
        y = x * n
    with pytest.warns(UnconnectedGradientWarning, match="'n' is None: it has dtype int64"):
        assert cytape.gradients(y, [n])[0] is None


def test_recomputed_integer_variables_give_no_warning():
    n, x = cytape.Variable(2), cytape.constant(3.0)
    assert ways.gradient(lambda x: cytape.recompute_grad(lambda x: x**n)(x), x).item() == 6.0


@each("transform", [
    lambda f, n: cytape.grad(f)(n), lambda f, n: cytape.value_and_grad(f)(n),
    lambda f, n: cytape.vjp(f, n), lambda f, n: cytape.jacfwd(f)(n),
    lambda f, n: cytape.hessian(f)(n), lambda f, n: cytape.jvp(f, (n,), (1.0,)),
    lambda f, n: cytape.hessian_vector_product(f)(n, n), lambda f, n: cytape.make_ggnvp(f)(n)(n),
    lambda f, n: cytape.jet(f, n, [1.0]), lambda f, n: cytape.function(cytape.grad(f))(n),
])  # fmt: skip
@each("n", [
    2, np.int8(2), np.array([1, 2]), cytape.constant(2), cytape.Variable(2), True,
], ids=repr)  # fmt: skip
def test_integer_arguments_of_transforms_are_an_error(transform, n):
    with pytest.raises(TypeError, match="has no gradient"):
        transform(lambda x: np.sum(x * 2.0), n)
