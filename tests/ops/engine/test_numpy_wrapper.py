"""numpy_function: which function a call reaches, and where its result is written."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.numpy_wrapper import numpy_function
from tests.cases import each

T = cytape.constant([1.0, 2.0])
A = np.array([1.0, 2.0])


def theirs(*args, **kwargs):
    return "theirs"


@numpy_function(theirs, "x", "others", "z", "more")
def several(x, y=None, *others, z=None, w=None, **more):
    return "ours"


@numpy_function(theirs)
def one(x, axis=None, out=None):
    """Describe one."""
    return "ours"


@each("call, expected", [
    (lambda: one(T), "ours"), (lambda: one(A), "theirs"), (lambda: one(x=T), "ours"),
    (lambda: one([A, [T]]), "ours"), (lambda: one([A]), "theirs"), (lambda: one(A, T), "theirs"),
    (lambda: one(A, axis=T), "theirs"), (lambda: one(A, out=None), "theirs"),
    (lambda: several(A, T), "theirs"), (lambda: several(A, A, A, T), "ours"),
    (lambda: several(A, z=T), "ours"), (lambda: several(A, w=T), "theirs"),
    (lambda: several(A, v=T), "ours"), (lambda: several(A, v=A), "theirs"),
    (lambda: several(A, z=T, y=1), "ours")])
def test_a_parameter_that_decides_calls_the_version(call, expected):
    assert call() == expected


@each("call, says", [
    (lambda: one(), "missing 1 required positional argument: 'x'"),
    (lambda: one(A, 1, None, 1), "takes from 1 to 3 positional arguments but 4 were given"),
    (lambda: one(A, y=1), "unexpected keyword argument 'y'"),
    (lambda: one(A, x=A), "multiple values for argument 'x'"),
    (lambda: one(A, 1, A, axis=1), "multiple values for argument 'axis'"),
    (lambda: several(y=A), "missing 1 required positional argument: 'x'")])
def test_arguments_that_do_not_fit_are_errors_of_the_version(call, says):
    with pytest.raises(TypeError, match=says):
        call()


@each(write=[
    lambda f, x, out: f(x, 0, None, out), lambda f, x, out: f(x, 0, out=out),
    lambda f, x, out: f(a=x, axis=0, out=out)], x=[A, T])
def test_out_is_written_by_position_and_name(write, x):
    for out in (np.zeros(2), cytape.constant(np.zeros(2))):
        assert write(cnp.cumsum, x, out) is out
        np.testing.assert_array_equal(np.asarray(out), [1.0, 3.0])
    with pytest.raises(ValueError, match=r"cumsum: out has shape \(3,\), the result \(2,\)"):
        write(cnp.cumsum, T, np.zeros(3))


@numpy_function(lambda x=0, size=None: ("theirs", x, size), "x", added=("seed", "dtype"))
def drawn(x=0, size=None, dtype=float, *, seed=None):
    return "ours"


@each("call, expected", [
    (lambda: drawn(), ("theirs", 0, None)), (lambda: drawn(1, 2), ("theirs", 1, 2)),
    (lambda: drawn(1, 2, float), ("theirs", 1, 2)), (lambda: drawn(1, 2, int), "ours"),
    (lambda: drawn(seed=None, size=2), ("theirs", 0, 2)), (lambda: drawn(1, seed=3), "ours"),
    (lambda: drawn(T, seed=None), "ours"), (lambda: drawn(1, seed=None, sizes=2), None),
])
def test_an_added_parameter_calls_the_version_unless_it_has_its_default(call, expected):
    if expected is None:
        with pytest.raises(TypeError, match="unexpected keyword argument 'sizes'"):
            call()
    else:
        assert call() == expected
        with cytape.Graph().as_default():
            assert call() == "ours"


def test_it_looks_like_the_function_it_decorates():
    assert (one.__name__, one.__doc__, one.__module__) == ("one", "Describe one.", __name__)
    assert str(inspect.signature(one)) == "(x, axis=None, out=None)"
    assert inspect.isroutine(one) and callable(one) and repr(one).startswith("<function one at")
    assert copy.deepcopy(one) is one and pickle.loads(pickle.dumps(one)) is one
    assert one.__call__(T) == "ours"


def test_it_binds_as_a_method():
    class Of(list):
        method = one

    assert Of.method is one
    assert Of().method() == "theirs" and Of([T]).method() == "ours"
    bound = Of([T]).method
    assert bound(axis=1) == "ours"
