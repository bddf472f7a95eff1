"""cytape.numpy: the functions of the op families under NumPy's names, and NumPy's own besides."""

import importlib

import numpy as np
import pytest

import cytape.numpy as cnp
from tests.cases import each

FAMILIES = [
    "comparisons", "creation", "cumulative", "einsum", "elementwise", "indexing", "joining",
    "matrix_products", "ordering", "rearranging", "reductions", "shaping"]


@each("family", FAMILIES)
def test_the_functions_of_a_family_are_there(family):
    module = importlib.import_module(f"cytape.ops.{family}")
    assert module.__all__
    for name in module.__all__:
        assert getattr(cnp, name) is getattr(module, name), name
        assert name in dir(cnp)


def test_the_rest_is_numpys_own():
    for name in ("pi", "newaxis", "float32", "finfo", "errstate", "set_printoptions"):
        assert getattr(cnp, name) is getattr(np, name)
        assert name in dir(cnp)
    with pytest.raises(AttributeError):
        cnp.no_such_function  # noqa: B018
