"""Methods of ufuncs: axes, starts and masks, in functions, and what NumPy refuses."""

import copy
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each, sampled

X = np.array([[0.5, 1.2, 0.8, 1.9], [1.1, 0.7, 1.4, 0.6], [0.9, 1.3, 1.7, 1.0]])
UFUNCS = [name for name in sorted(np.__all__) if isinstance(getattr(np, name), np.ufunc)]
MEMBERS = ["__name__", "nin", "nout", "nargs", "ntypes", "types", "identity", "signature"]
METHODS = ["reduce", "accumulate", "reduceat", "outer", "at"]

PROGRAMS = {
    "all axes": lambda x: cnp.logaddexp.reduce(x, axis=None),
    "two axes": lambda x: cnp.hypot.reduce(x, axis=(0, 1), initial=0.3),
    "no axis": lambda x: cnp.hypot.reduce(-x, axis=()),
    "a start": lambda x: cnp.divide.reduce(x, axis=1, initial=x[0, 0]),
    "a mask": lambda x: cnp.logaddexp.reduce(x, axis=1, where=X != 0.8),
    "of NumPy": lambda x: np.subtract.reduce(x, axis=1) * np.logaddexp.accumulate(x)[0, 1],
    "ties": lambda x: cnp.maximum.accumulate(cnp.stack([x[0], x[0] * 2, x[1]]))[1:],
    "dtype": lambda x: cnp.subtract.reduce(x, dtype=np.float64),
    "maximum": lambda x: cnp.maximum.reduce(x, axis=1, initial=1.25, where=X < 1.5),
    "outer": lambda x: cnp.arctan2.outer(x[0], x[1:]),
    "slices": lambda x: cnp.add.reduceat(x * x, [0, 2, 1], axis=1),
    "a list": lambda x: cnp.subtract.reduce([x[0], x[1], 2.0 * x[2]])}


@sampled(3, place=["eager", "function", "loop"], name=PROGRAMS)
def test_they_are_right_in_both_modes_to_second_order(name, place):
    f = PROGRAMS[name]
    if place == "function":
        f = cytape.function(f)
    elif place == "loop":
        f = cytape.function(lambda x: cytape.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, y + cnp.sum(PROGRAMS[name](x) * y)),
            (0, x[0, 0]))[1])
    np.testing.assert_allclose(f(cytape.constant(X)), f(X), rtol=1e-12)
    check_grads(f, [X], order=2)


@each("name", ["logaddexp.accumulate", "subtract.reduce", "hypot.reduce"])
def test_extents_that_only_a_run_tells(name):
    ufunc, method = name.split(".")
    f = getattr(getattr(cnp, ufunc), method)
    traced = cytape.function(f, input_signature=[cytape.Spec.of((None, None), float)])
    np.testing.assert_allclose(traced(X), f(X))
    np.testing.assert_allclose(cytape.grad(lambda x: np.sum(traced(x) ** 2))(X),
                               cytape.grad(lambda x: np.sum(f(x) ** 2))(X))


@each("ufunc", [cnp.power, cnp.arctan2])
def test_where_numpys_loops_read_ahead_of_what_they_write(ufunc):
    # On processors with AVX512 numpy.power.reduce and numpy.arctan2.reduce are wrong.
    def f(x):
        return ufunc.reduce(cnp.asarray(x), axis=1, initial=1.5)

    def fold(x):
        y = 1.5
        for k in range(4):
            y = ufunc(y, x[:, k])
        return y

    np.testing.assert_allclose(f(cytape.constant(X)), fold(X))
    for derivative in (cytape.jacrev, cytape.jacfwd, cytape.hessian):
        found, expected = (derivative(lambda x, g=g: cnp.sum(g(x) ** 2))(X) for g in (f, fold))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@each("ufunc", [
    cnp.subtract, cnp.logaddexp, cnp.fmod, cnp.floor_divide, cnp.logical_xor, cnp.maximum])
@each("method, arguments", [
    ("reduce", {"axis": 1}), ("accumulate", {}), ("reduceat", {"indices": [0, 2], "axis": 1})])
def test_plain_arrays_are_numpys_business(ufunc, method, arguments):
    found = getattr(ufunc, method)(X, **arguments)
    expected = getattr(ufunc.forward, method)(X, **arguments)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)
    out = np.empty_like(expected)
    assert getattr(ufunc, method)(X, **arguments, out=out) is out
    tensor = getattr(ufunc, method)(cytape.constant(X), **arguments)
    assert (tensor.shape, tensor.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(tensor, expected)


@each(call=[lambda x: np.ldexp.outer(x, [1, 2]), lambda x: np.divmod.outer(x, x[0] + 0.37)[1],
               lambda x: cnp.divmod.outer(3.05, x)[1]], place=[lambda f: f, cytape.function])
def test_pairs_of_functions_of_two_kinds_of_operands_or_results(call, place):
    np.testing.assert_array_equal(np.asarray(place(call)(cytape.constant(X))), call(X))
    check_grads(place(call), [X], order=2)


def test_elements_without_tangent_stay_zero():
    x = np.array([1e-200, 1e-160, 1.0, 1e200, 1e200, 1e200])
    gradient = cytape.grad(lambda x: cnp.divide.accumulate(x)[1])(x)
    assert np.isfinite(gradient[0]) and not gradient[2:].any()
    zero = cytape.grad(lambda x: 0.0 * cnp.subtract.reduce(x))(x)
    np.testing.assert_array_equal(zero, 0)


def test_at_of_an_array_names_what_is_a_tensor():
    array = X.copy()
    cnp.add.at(array, [0, 0], 1.0)
    np.testing.assert_array_equal(array[0], X[0] + 2)
    for call in (lambda x: np.add.at(array, [0], x[0]),
                 lambda x: cnp.multiply.at(array, [0], [x[0, 0]]),
                 lambda x: np.spacing.at(x, [0])):
        with pytest.raises(TypeError, match=r"\.at changes.*constant.* x\.at\[indices\]"):
            call(cytape.constant(X))


@each("name", ["arctan2", "copysign", "floor_divide", "fmod", "heaviside", "remainder"])
@each("axis", [0, 1, ()])
def test_a_mask_beside_a_ufunc_without_a_neutral_number(name, axis):
    options = {"axis": axis, "where": X[:1] != 0.8, "keepdims": axis == 1}
    ufunc, ours = getattr(np, name), getattr(cnp, name)

    def f(x, initial):
        return ours.reduce(cytape.convert_to_tensor(x), initial=initial, **options)

    start = np.array(5.3)
    # NumPy's own arctan2.reduce along adjacent elements takes them in a wrong order.
    expected = ufunc.reduce(X.copy("F" if axis == 1 else "C"), initial=start, **options)
    for found in f(cytape.constant(X), start), cytape.function(f)(X, cytape.constant(start)):
        np.testing.assert_allclose(found, expected)
    if name not in ("floor_divide", "heaviside"):
        check_grads(f, [X, start], order=2)


def test_a_mask_needs_to_know_how_many_elements_it_chooses_from():
    f = cytape.function(lambda x: cnp.fmod.reduce(x, initial=5.0, where=x > 1),
                        input_signature=[cytape.Spec.of((None, 4), float)])
    with pytest.raises(SymbolicTensorError, match="how many elements there are"):
        f(X)
    with pytest.raises(ValueError, match="where mask"):  # NumPy's error
        cnp.fmod.reduce(cytape.constant(X), where=X > 1)


def test_arrays_of_numpys_are_no_out_for_tensors():
    for call in (lambda x: cnp.hypot.reduce(x, out=np.zeros(4)),
                 lambda x: cnp.hypot.accumulate(x, out=np.zeros((3, 4))),
                 lambda x: cnp.hypot.reduceat(x, [0], out=np.zeros((1, 4)))):
        assert type(call(cytape.constant(X))) is np.ndarray  # no recorder follows the tensor
        with cytape.GradientTape() as tape:
            x = cytape.constant(X)
            tape.watch(x)
            with pytest.raises(TypeError, match="out must be a tensor"):
                call(x)
    with cytape.GradientTape() as tape, pytest.raises(DetachedError, match="out="):
        x = cytape.constant(X)
        tape.watch(x)
        np.hypot.reduce(x, out=np.zeros(4))


def test_slices_that_only_a_run_tells():
    @cytape.function
    def f(x, indices):
        return cnp.hypot.reduceat(x, indices, axis=1)

    for indices in (np.array([0, 2, 1]), np.array([3, 1, 1])):
        np.testing.assert_allclose(f(X, indices), np.hypot.reduceat(X, indices, axis=1))
    check_grads(lambda x: f(x, indices), [X], order=2)


@each("axis", [0, 1])
def test_slices_along_an_axis_of_known_extent(axis):
    extents = [n if i == axis else None for i, n in enumerate(X.shape)]
    f = cytape.function(
        lambda x: cnp.logaddexp.reduceat(x, [0, 1], axis=axis),
        input_signature=[cytape.Spec.of(extents, float)])
    np.testing.assert_allclose(f(X), np.logaddexp.reduceat(X, [0, 1], axis=axis))
    check_grads(f, [X], order=2)
    with pytest.raises(IndexError, match="out-of-bounds"):
        cytape.function(lambda x: cnp.logaddexp.reduceat(x, [0, 9], axis=axis),
                        input_signature=[cytape.Spec.of(extents, float)])(X)


# -- methods of ufuncs -----------------------------------------------------------------------------


@each("name", UFUNCS)
def test_ufuncs_have_what_numpys_have(name):
    ours, theirs = getattr(cnp, name), getattr(np, name)
    for member in MEMBERS:
        assert getattr(ours, member) == getattr(theirs, member)
    for method in METHODS:
        assert callable(getattr(ours, method))
    assert {"nin", "reduce"} <= set(dir(ours))


@each("name", UFUNCS)
def test_ufuncs_pickle_and_copy_as_themselves(name):
    ours = getattr(cnp, name)
    assert pickle.loads(pickle.dumps(ours)) is copy.copy(ours) is copy.deepcopy(ours) is ours


def test_missing_methods_of_an_op_are_an_error():
    with pytest.raises(AttributeError, match="op 'Add' has no attribute 'nope'"):
        cnp.add.nope  # noqa: B018
    with pytest.raises(AttributeError, match="reduce"):
        cnp.fix.reduce  # noqa: B018
    find_again, _ = cnp.add.__reduce__()
    with pytest.raises(LookupError, match="no op is declared under the name 'Nobody'"):
        find_again("Nobody")
