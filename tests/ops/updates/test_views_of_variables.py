"""Views of variables, and what variables are converted to, are only to be read."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ops.updates.test_written_views import COPIES, VIEWS, X

ALIASES = {  # which NumPy makes of an array that is asked for as it is
    "asarray": cnp.asarray, "asanyarray": cnp.asanyarray,
    "array": lambda x: cnp.array(x, copy=None),
    "astype": lambda x: x.astype(float, copy=False), "require": cnp.require,
    "contiguous": cnp.ascontiguousarray, "finite": cnp.asarray_chkfinite,
    "real_if_close": np.real_if_close, "conjugate": lambda x: x.conj(),
    "convert_to_tensor": cytape.convert_to_tensor, "einsum of all": lambda x: np.einsum("ij", x),
    "einsum of a transpose": lambda x: np.einsum("ij->ji", x), "trim_zeros": np.trim_zeros,
}
COPIES_OF_VARIABLES = {
    **COPIES, "array": cnp.array, "astype": lambda x: x.astype(float), "value": lambda x: x.value(),
    "complex": lambda x: cnp.asarray(x, complex), "positive": lambda x: +x,
    "identity": cytape.identity}


@each("traced", [False, True])
@each("view", [*VIEWS.values(), *ALIASES.values()], ids=[*VIEWS, *ALIASES])
def test_views_of_variables_are_not_written_to(view, traced):
    v = cytape.Variable(X)
    if traced and view is np.trim_zeros:
        return  # which asks for values

    def f():
        shown = view(v)
        with pytest.raises(ValueError, match=r"read-only.*variable\[index\] = value"):
            shown[...] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            shown += 1.0
        if shown.ndim > 1:
            for row in shown:
                with pytest.raises(ValueError, match="read-only"):
                    row += 1.0
        return np.sum(shown)

    expected = view(v).numpy().sum()
    np.testing.assert_allclose((cytape.function(f) if traced else f)(), expected)
    np.testing.assert_array_equal(v, X)


@each("view", COPIES_OF_VARIABLES.values(), ids=COPIES_OF_VARIABLES)
def test_copies_of_variables_are_written_to(view):
    v = cytape.Variable(X)
    shown = view(v)
    if shown.ndim:
        shown[0] = 70.0
        assert np.all(shown.numpy()[0] == 70.0)
    np.testing.assert_array_equal(v, X)


def test_functions_write_to_what_they_get_of_variables():
    def f(x):
        x[0] = 3.0 * x[1]
        return np.sum(x)

    v = cytape.Variable(X)
    expected = np.array([[0.0] * 4, [4.0] * 4, [1.0] * 4, [1.0] * 4])
    np.testing.assert_array_equal(cytape.grad(f)(v), expected)
    np.testing.assert_array_equal(cytape.function(cytape.grad(f))(v), expected)
    np.testing.assert_array_equal(v, X)
