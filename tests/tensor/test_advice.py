"""Advice in errors of conversions of tensors to arrays, by the name of the called function."""

import math

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, SymbolicTensorError
from tests.cases import each

V2 = np.array([1.5, 2.0])
P = np.polynomial
HELPED = {
    "c_": (lambda v: np.c_[V2, v], r"numpy\.c_, .*Call cytape\.numpy\.c_"),
    "r_": (lambda v: np.r_[V2, v], r"numpy\.r_, .*Call cytape\.numpy\.r_"),
    "mgrid": (lambda v: np.mgrid[0:v[0]], r"numpy\.mgrid, "),
    "vectorize": (lambda v: np.vectorize(math.sin)(v), r"Call cytape\.vmap"),
    "choice": (lambda v: np.random.default_rng(0).choice(v), r"x\[rng\.permutation"),
    "permutation": (lambda v: np.random.default_rng(0).permutation(v), r"x\[rng\.permutation"),
    "testing": (lambda v: np.testing.assert_array_less(v, V2), r"Compare tensor\.numpy\(\)"),
    "as_strided": (
        lambda v: np.lib.stride_tricks.as_strided(v, (2, 2), (0, 8)), "sliding_window_view"),
    "Polynomial": (
        lambda v: P.Polynomial([1, 2.0])(v),
        r"numpy\.polynomial\.Polynomial, .*polyval\(x, p.coef"),
    "ndenumerate": (
        lambda v: [y for _, y in np.ndenumerate(v)], r"numpy\.ndindex\(x\.shape\)"),
    "fit": (lambda v: P.Chebyshev.fit(V2, v, 1), r"numpy\.polynomial\.Chebyshev, .*chebvander"),
    "polyval": (
        lambda v: P.polynomial.polyval(2.0, v),
        r"numpy\.polynomial\.polynomial\.polyval, .*numpy\.polyval\(coefficients\[::-1\]")}


@each(("call", "words"), HELPED.values(), ids=HELPED)
def test_the_error_names_what_the_program_calls_and_what_to_call(call, words):
    with pytest.raises(DetachedError, match=f"(?s){words}"):
        cytape.grad(call)(V2)
    with pytest.raises(SymbolicTensorError, match=f"(?s){words}"):
        cytape.function(call)(V2)


@each("zeros", [cytape.numpy.zeros, np.zeros])
@each("index", [0, slice(None)])
def test_a_buffer_of_integers_is_named(zeros, index):
    def f(v):
        buffer = zeros(2, int)
        buffer[index] = v[index]
        return buffer.sum()

    with pytest.raises(DetachedError, match="n array of integers takes no tensor"):
        cytape.grad(f)(V2)


def test_advice_for_int_outside_of_an_assignment_names_no_array():
    with pytest.raises(DetachedError, match="not of the math module") as caught:
        cytape.grad(lambda x: x * int(x))(3.0)
    assert "array of integers" not in str(caught.value)


@each("read", [lambda x: V2[x], lambda x: V2[int(x)]])
def test_an_index_that_is_recorded_is_told_how_to_be_an_integer(read):
    with pytest.raises(DetachedError, match=r"For an index, .*int\(tensor\.numpy\(\)\)"):
        cytape.grad(lambda x: x * read(x))(1.0)


def test_keys_of_bytes_have_advice():
    with pytest.raises(AttributeError, match="a cache with such keys returns constants"):
        cytape.constant(V2).tobytes()


def test_the_advice_for_polynomials_is_differentiable():
    p, x, c = P.Polynomial([1.0, 2.0, 3.0]), 2.0, np.array([1.0, 2.0, 3.0])
    assert cytape.grad(lambda x: P.polynomial.polyval(x, p.coef))(x) == 14.0
    assert cytape.grad(lambda x: P.chebyshev.chebval(x, p.coef))(x) == 26.0
    assert cytape.grad(lambda c: np.polyval(c[::-1], x))(c).tolist() == [1.0, 2.0, 4.0]
    assert cytape.grad(lambda c: P.chebyshev.chebvander(x, 2)[0] @ c)(c).tolist() == [1.0, 2.0, 7.0]


def test_an_array_at_a_mask_is_told_of_constant():
    def near(array):
        return cytape.function(lambda c: np.sum(array[np.abs(V2 - c) < 0.4]) * c)

    with pytest.raises(SymbolicTensorError, match=r"cytape\.constant\(array\)\[mask\]"):
        near(V2)(np.array(1.3))
    assert near(cytape.constant(V2))(np.array(1.3)) == 1.3 * 1.5


def test_a_branch_is_not_told_of_extents_but_functions_that_take_them_are():
    with pytest.raises(SymbolicTensorError, match=r"cytape\.cond") as caught:
        cytape.function(lambda x: x if x > 0 else -x)(V2[0])
    assert "eye(n)" not in str(caught.value)
    with pytest.raises(SymbolicTensorError, match="For an extent, as in eye"):
        cytape.function(np.tri)(np.array(3))


@each(("convert", "told"), [
    (lambda x: 1 in x[None], r"the operator in, in .*\nif, while, assert, in"),
    (lambda x: [1, 2][x], r"what wants an integer, as an index does, in .*\nFor an array at such"),
    (np.asarray, r"NumPy, which asks for an array, in .*\nWrite cytape\.numpy\.array\("),
    (lambda x: float(x), r"float\(\) in .*\nCompute with functions"),
    (lambda x: V2[x], r"NumPy, which .* in .*\nFor an array at such an index write"),
    (lambda x: V2[x[None] > 0], r"NumPy, which .* in .*\nFor an array where a mask holds write"),
    (int, r"int\(\) in .*\nFor an array at such"), (bool, r"bool\(\) in .*\nif, while, assert, in"),
    (cytape.constant, r"cytape.constant in .*\ncytape.convert_to_tensor and cytape.identity")])
def test_the_first_advice_on_a_symbolic_integer_is_for_what_asked(convert, told):
    with pytest.raises(SymbolicTensorError, match=told):
        cytape.function(convert)(np.array(1))


def store(x):
    np.zeros(2)[0] = x


@each(("convert", "cause", "advice"), [
    (store, r"float\(\), to store it in an array, in", r"\nTo store it, make.*`import cytape\."),
    (math.exp, r"float\(\) in", r"\nCompute with functions of cytape\.numpy, not of the math")])
def test_a_number_is_told_of_arrays_where_it_is_stored_in_one(convert, cause, advice):
    with pytest.raises(DetachedError, match=f"{cause}.*{advice}"):
        cytape.grad(lambda x: convert(x))(2.0)
    with pytest.raises(SymbolicTensorError, match=f"{cause}.*{advice}") as caught:
        cytape.function(lambda x: convert(x))(np.array(2.0))
    assert ("To store" in str(caught.value)) == (convert is store)


@each(("module", "name", "call"), [
    ("linalg", "eigh", lambda f, x: f(np.diag(x))),
    ("linalg", "lu_factor", lambda f, x: f(np.diag(x))),
    ("linalg", "solve_triangular", lambda f, x: f(np.eye(2), x)),
    ("linalg", "expm", lambda f, x: f(np.diag(x))),
    ("interpolate", "CubicSpline", lambda f, x: f(x, V2)),
    ("interpolate", "CubicSpline", lambda f, x: f(V2, V2)(x)),
    ("linalg", "orth", lambda f, x: f(np.diag(x))),
    ("linalg", "null_space", lambda f, x: f(np.diag(x))),
    ("integrate", "solve_bvp", lambda f, x: f(None, None, x, np.ones((1, 2)))),
    ("spatial", "KDTree", lambda f, x: f(x[:, None])), ("stats", "skew", lambda f, x: f(x))])
def test_functions_and_classes_of_scipy_are_named(module, name, call):
    f = getattr(pytest.importorskip(f"scipy.{module}"), name)
    name = rf"scipy\.{module}\.{name}"
    advice = rf"{name} in a function that is decor"
    if not name.endswith(("KDTree", "orth", "null_space")):
        advice = rf"cytape\.{name}, which has a derivative"
    message = rf"(?s)by {name}, which takes plain arrays.*\nCall {advice}"
    with pytest.raises(DetachedError, match=message):
        cytape.grad(lambda x: np.sum(call(f, x)))(V2)
    with pytest.raises(SymbolicTensorError, match=message):
        cytape.function(lambda x: call(f, x))(V2)
