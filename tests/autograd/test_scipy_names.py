"""Names of `autograd.scipy`: the functions of `cytape.scipy`."""

import importlib
import runpy

import numpy as np
import pytest

import cytape
from tests.cases import each

special = pytest.importorskip("scipy.special")

DISTRIBUTIONS = "beta chi2 dirichlet gamma multivariate_normal norm poisson t".split()


def module(name):
    return importlib.import_module(f"cytape.autograd.scipy.{name}")


@each("name", DISTRIBUTIONS)
def test_distributions_are_modules(name):
    found = module(f"stats.{name}")
    assert found is getattr(module("stats"), name)
    assert found.rvs is not None
    assert found.logpmf if name == "poisson" else found.logpdf


@each("name", ["integrate", "linalg", "misc", "signal", "special", "stats"])
def test_modules_are_attributes(name):
    scipy = importlib.import_module("cytape.autograd.scipy")
    vars(scipy).pop(name, None)
    assert getattr(scipy, name) is module(name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        scipy.nothing  # noqa: B018


def test_special_functions():
    assert module("special").gammaln is importlib.import_module("cytape.scipy.special").gammaln
    assert module("special").roots_legendre is special.roots_legendre
    assert module("misc").logsumexp is module("special").logsumexp
    np.testing.assert_allclose(
        cytape.grad(module("stats.norm").logcdf)(0.0), np.sqrt(2 / np.pi))


def test_the_file_runs_by_its_path():
    names = runpy.run_path(module("special").__file__)
    assert names["gammaln"] is module("special").gammaln
