"""NumPy's names in `cytape.autograd.numpy`: all are there, and are those of `cytape.numpy`."""

import subprocess
import sys

import numpy as np
import pytest

import cytape
import cytape.autograd.numpy as anp
import cytape.autograd.numpy.random as npr
import cytape.numpy as cnp
from cytape.autograd import grad, jacobian
from cytape.autograd.numpy import (
    linalg,
    numpy_boxes,
    numpy_jvps,
    numpy_vjps,
    numpy_wrapper,
)
from cytape.autograd.test_util import check_grads
from tests.autograd import autograds_names

OWN = {  # with other conventions than cytape.numpy, or not in it
    "Box", "array_from_args", "clip", "concatenate_args", "fft", "int16", "int32", "int64", "int8",
    "int_", "integer", "linalg", "make_diagonal", "metadata", "ndarray", "notrace_functions",
    "notrace_primitive", "numpy_boxes", "numpy_jvps", "numpy_version", "numpy_vjps",
    "numpy_vspaces", "numpy_wrapper", "parse_einsum_input", "random", "vectorize", "where",
    "wrap_intdtype", "wrap_namespace"}


@pytest.mark.parametrize("ours, module, names, own", [
    (anp, cnp, autograds_names.NUMPY, OWN),
    (anp.linalg, cnp.linalg, autograds_names.LINALG, {"T", "eigh"}),
    (anp.fft, cnp.fft, autograds_names.FFT, set()),
    (npr, cnp.random, autograds_names.RANDOM, set()),
], ids=["numpy", "linalg", "fft", "random"])
def test_every_name_of_autograd_is_that_of_cytape(ours, module, names, own):
    others = {name for name in names if getattr(ours, name) is not getattr(module, name, None)}
    assert others == own & set(names)
    assert {"seed", "fft", "solve", "sin"} & set(names) <= set(dir(ours))


def test_the_names_of_random_are_in_its_dictionary():
    assert vars(npr)["normal"] is npr.normal and "rand" in vars(npr)


def test_a_name_that_numpy_lacks_is_an_attribute_error():
    for module in (anp, anp.linalg, anp.fft, npr, numpy_wrapper):
        with pytest.raises(AttributeError):
            module.no_such_name  # noqa: B018


def test_all_names_can_be_imported_at_once():
    script = ("from cytape.autograd.numpy import *; tanh, linalg, clip, numpy_boxes\n"
              "from cytape.autograd.numpy.random import *; randn, seed\n"
              "from cytape.autograd.numpy.linalg import *; eigh, solve, T\n"
              "from cytape.autograd import *; grad, jacobian, make_vjp, tuple, checkpoint, extend")
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_import_takes_few_modules_along():
    script = ("import sys, cytape; before = set(sys.modules); import cytape.autograd.numpy\n"
              "late = {'scipy', 'inspect', 'numpy.random', 'numpy.fft', 'cytape.ops.submodules',\n"
              "        'cytape.graph'}\n"
              "assert not late & (set(sys.modules) - before)\n"
              "cytape.autograd.numpy.linalg; cytape.autograd.misc; cytape.autograd.test_util")
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("draw", [
    lambda r: r.randn(2, 3), lambda r: r.rand(2), lambda r: r.normal(1.0, 2.0, 3),
    lambda r: r.randint(0, 10, 5), lambda r: r.permutation(6), lambda r: r.choice(5, 3),
    lambda r: r.random((2, 2)), lambda r: r.RandomState(3).randn(2), lambda r: r.gamma(2.0, size=3),
    lambda r: r.multivariate_normal(np.zeros(2), np.eye(2)), lambda r: r.uniform(size=2)])
def test_random_numbers_are_those_of_numpys_stream(draw):
    npr.seed(1)
    found = draw(npr)
    np.random.seed(1)
    np.testing.assert_array_equal(found, draw(np.random))


def test_clip_has_no_derivative_at_its_bounds():
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    for limited in (lambda x: anp.clip(x, 0, 1), lambda x: anp.clip(x, a_min=0, a_max=1),
                    lambda x: anp.clip(x, min=0, max=1)):
        np.testing.assert_array_equal(limited(x), np.clip(x, 0, 1))
        found = grad(lambda x, limited=limited: anp.sum(limited(x)))(x)
        np.testing.assert_array_equal(found, [0, 0, 1, 0, 0])
    below = grad(lambda x: anp.sum(anp.clip(x, None, 1)))(x)
    np.testing.assert_array_equal(below, [1, 1, 1, 0, 0])
    assert grad(lambda low: anp.sum(anp.clip(x, low, 1.0)))(0.25) == 2.0
    traced = cytape.function(cytape.grad(lambda x: anp.sum(anp.clip(x, 0, 1) ** 2)))
    np.testing.assert_array_equal(traced(x), [0, 0, 1, 0, 0])


@pytest.mark.parametrize("condition, x, y, kind", [
    (True, 1, 2, int), (False, 1, 2.0, float), (True, [1, 2], [3, 4], list),
    (True, np.float32([1]), np.float32([2]), np.ndarray), (np.True_, 1.0, 2.0, np.ndarray),
    ([True], [[1.0]], [[np.zeros(1)]], np.ndarray)])
def test_where_returns_lists_for_lists(condition, x, y, kind):
    for chosen in (anp.where(condition, x, y), anp.where(condition, x=x, y=y)):
        assert type(chosen) is kind
        np.testing.assert_array_equal(chosen, np.where(condition, x, y))


def test_where_takes_a_condition_alone_and_refuses_one_choice():
    np.testing.assert_array_equal(anp.where([0, 1, 1])[0], [1, 2])
    assert grad(lambda x: anp.sum(anp.where(x > 0, x**2, 0.0)))(np.float64(3.0)) == 6.0
    with pytest.raises(ValueError, match="either both or neither"):
        anp.where(True, 1)


def test_integer_types_take_boxes():
    def picked(x):
        assert anp.int64(x[1]) == 2 and type(anp.int64(x[1])) is np.int64
        assert anp.int32(x).dtype == np.int32 and anp.int8(3.7) == 3
        return x[anp.int64(x[1])]

    np.testing.assert_array_equal(grad(picked)(np.array([0.0, 2.0, 3.0])), [0, 0, 1])
    assert anp.issubdtype(np.int8, anp.integer) and not anp.issubdtype(float, anp.integer)
    assert isinstance(np.int64(1), anp.int64) and not isinstance(1.0, anp.int64)
    assert np.zeros(2, anp.int16).dtype == np.int16 and np.arange(2).dtype == anp.int64


@pytest.mark.parametrize("lower", ["L", "U"])
@pytest.mark.parametrize("dtype", [float, complex])
def test_the_derivative_of_eigh_is_that_of_the_triangle_it_reads(lower, dtype):
    a = np.arange(9.0).reshape(3, 3).astype(dtype) + np.diag([0.0, 20.0, 50.0])
    if dtype is complex:
        a += 1j * np.arange(9.0)[::-1].reshape(3, 3) / 5
    check_grads(lambda a: linalg.eigh(a, lower)[0])(a)
    read = np.tril(np.ones((3, 3))) if lower == "L" else np.triu(np.ones((3, 3)))
    found = grad(lambda a: anp.sum(linalg.eigh(a, lower)[0] ** 3))(a)
    assert not np.any(found * (1 - read)) and np.all(found[read > 0] != 0)
    np.testing.assert_allclose(linalg.eigh(a, lower)[0], np.linalg.eigh(a, lower)[0])


def test_wrapped_modules_have_primitives_and_constants():
    names = {}
    numpy_wrapper.wrap_namespace({**vars(np), "conj_again": np.conj, "text": "x"}, names)
    assert names["pi"] == np.pi and names["float64"] is np.float64 and "text" not in names
    assert names["conj"] is names["conjugate"] is names["conj_again"]
    assert names["sin"].fun is np.sin and names["shape"](cytape.constant([1.0])) == (1,)


def test_small_functions_of_the_wrapper():
    x = np.array([1.0, 2.0])
    with pytest.raises(NotImplementedError, match="make_diagonal only supports"):
        anp.make_diagonal(x)
    check_grads(lambda d: anp.make_diagonal(d, axis1=-1, axis2=-2))(np.arange(6.0).reshape(3, 2))
    check_grads(lambda x: anp.concatenate_args(0, x, 2 * x))(x)
    check_grads(lambda x: anp.array_from_args((), {}, x, x * x))(x)
    assert anp.metadata(cytape.constant([1j])) == ((1,), 1, np.dtype(complex), True)
    inputs, output, operands = anp.parse_einsum_input("ij,jk", np.eye(2), np.eye(2))
    assert (inputs, output, len(operands)) == ("ij,jk", "ik", 2)
    assert numpy_boxes.ArrayBox is cytape.autograd.tracer.ArrayBox


@pytest.mark.parametrize("shape, index", [((3, 2), 0), ((1, 2), 0), ((2,), 0), ((), 0), ((3,), -1)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_gradients_are_summed_over_broadcast_axes(shape, index, dtype):
    target, g = np.zeros(shape, dtype), np.arange(6.0).reshape(3, 2) * (1 + 1j)
    found = numpy_vjps.unbroadcast_f(target, lambda g: 2 * g)(g) if index == 0 else (
        numpy_vjps.unbroadcast(2 * g, anp.metadata(target), index))
    expected = 2 * g
    while expected.ndim > len(shape):
        expected = expected.sum(index)
    if shape == (1, 2):
        expected = expected.sum(0, keepdims=True)
    np.testing.assert_array_equal(found, expected if dtype is complex else expected.real)
    assert found.dtype == dtype


def test_helpers_of_rules():
    x = np.array([0.0, 2.0])
    np.testing.assert_array_equal(numpy_vjps.replace_zero(x, 5.0), [5, 2])
    np.testing.assert_array_equal(numpy_vjps.balanced_eq(x, 2.0, np.array([1.0, 2.0])), [0, 0.5])
    assert numpy_vjps.match_complex(1j, x).dtype == complex
    np.testing.assert_array_equal(numpy_vjps.match_complex(1.0, x * 1j), [0, 0])
    for axis in (0, (0, 2), None, -1):
        g = np.sum(np.ones((2, 3, 4)), axis)
        repeated, count = numpy_vjps.repeat_to_match_shape(g, (2, 3, 4), float, axis, False)
        assert repeated.shape == (2, 3, 4) and count * g.size == 24
    assert numpy_vjps.repeat_to_match_shape(3.0, (), float, None, False) == (3.0, 1)
    assert numpy_jvps.broadcast(x, np.zeros((3, 2), complex)).dtype == complex


def test_arrays_are_filled_in_place():
    def f(x):
        a = anp.zeros(3)
        a[0] = x
        a[1:] = x**2
        a[2] *= 2
        return a

    np.testing.assert_array_equal(jacobian(f)(3.0), [1, 6, 12])


def test_vectorized_functions_have_derivatives():
    powers = anp.vectorize(lambda x, n: x**n if x > 0 else 0.0)
    np.testing.assert_array_equal(
        jacobian(powers)(np.array([-1.0, 2.0]), 3.0), [[0.0, 0.0], [0.0, 12.0]])
    assert powers([1, 2], 2).tolist() == [1, 4]


def test_programs_may_call_the_function_behind_astype():
    found = grad(lambda x: anp.sum(numpy_wrapper._astype(x, "f", "K", copy=False)))(np.ones(2))
    assert found.dtype == float and found.tolist() == [1, 1]
