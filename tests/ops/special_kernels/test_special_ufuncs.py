"""Names of `scipy.special` with and without SciPy's mode for the array API standard."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cytape

special = pytest.importorskip("scipy.special")
from cytape.ops.special_kernels import special_ufuncs  # noqa: E402

ROOT = Path(cytape.__file__).parents[1]


def test_names_are_those_of_scipy():
    for name in special.__all__:
        assert getattr(special_ufuncs, name) is getattr(special, name)
    with pytest.raises(AttributeError, match="no_such"):
        special_ufuncs.no_such  # noqa: B018


def test_wrapped_ufuncs_are_found(monkeypatch):
    monkeypatch.setattr(special, "expit", lambda x: x)
    assert isinstance(special_ufuncs.expit, np.ufunc)


SCIPY = """
import numpy as np
import scipy.integrate, scipy.special
import cytape
from cytape.scipy.special import gammaln
x = np.array([0.3, 0.5, 0.9, 0.1])
for f in (gammaln, scipy.special.gammaln, lambda x: scipy.special.xlogy(x, x),
          lambda x: np.reshape(scipy.special.logsumexp(x), (1,)),
          lambda x: np.reshape(scipy.integrate.trapezoid(x * x), (1,))):
    gradient = cytape.grad(lambda x: f(x)[0])(x)
    steps = [x + 1e-6 * e for e in np.eye(4)], [x - 1e-6 * e for e in np.eye(4)]
    expected = [(f(a)[0] - f(b)[0]) / 2e-6 for a, b in zip(*steps)]
    np.testing.assert_allclose(gradient, expected, 1e-7, 1e-8)
"""


def test_functions_of_scipy_are_differentiated_in_its_array_api_mode():
    pytest.importorskip("scipy", "1.15")
    subprocess.run([sys.executable, "-c", SCIPY], check=True,
                   env=os.environ | {"SCIPY_ARRAY_API": "1"}, cwd=ROOT)
