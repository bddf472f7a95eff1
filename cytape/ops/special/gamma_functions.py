"""Gamma and beta functions, complete, and their logarithms (DLMF 5).

`gammasgn` is a step function: its gradient is None.
"""

import math
from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops import reductions
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.shaping import expand_dims
from cytape.ops.special.digamma_functions import precise_psi, psi, psi_step
from cytape.ops.special.elementary_functions import inside
from cytape.ops.special.several_outputs import with_slopes

__all__ = [
    "beta", "betaln", "gamma", "gammaln", "gammasgn", "multigammaln", "rgamma", "xlog1py", "xlogy"]


def rgamma_partial(y, x):
    """Differentiate 1 / gamma; left of 1/2 by the reflection formula, which has no poles.

    Positive arrays, which need no second derivative, do without.
    """
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f" and np.all(x > 1e-300):
        return -special.psi(x) * y
    is_left = x < 0.5
    left, right = np.where(is_left, x, 0), np.where(is_left, 1, x)
    reflected = gamma(1 - left) * (
        np.cos(math.pi * left) - np.sin(math.pi * left) / math.pi * psi(1 - left))
    return np.where(is_left, reflected, -psi(right) * y)


gamma = elementwise("ScipyGamma", special.gamma, lambda y, x: y * precise_psi(x))
rgamma = with_slopes(
    "ScipyRgamma", special.rgamma, lambda y, x: (rgamma_partial(y, x),))
gammaln = elementwise("ScipyGammaln", special.gammaln, lambda y, x: precise_psi(x))
gammasgn = elementwise("ScipyGammasgn", special.gammasgn, None)

beta = elementwise(
    "ScipyBeta", special.beta,
    lambda y, a, b: -y * psi_step(a, b), lambda y, a, b: -y * psi_step(b, a))
betaln = elementwise(
    "ScipyBetaln", special.betaln,
    lambda y, a, b: -psi_step(a, b), lambda y, a, b: -psi_step(b, a))



def _over(x, y):
    """Return x / y; for 0 / 0 return 0, whose derivative in x is infinite."""
    both = (x == 0) & (y == 0)
    return np.where(both, np.sqrt(np.where(both, x, 1)), x / np.where(both, 1, y))


xlogy = elementwise(
    "ScipyXlogy", special.xlogy, lambda z, x, y: inside(z == z, np.log(y)),
    lambda z, x, y: inside(z == z, _over(x, y)))
xlog1py = elementwise(
    "ScipyXlog1py", special.xlog1py, lambda z, x, y: inside(z == z, np.log1p(y)),
    lambda z, x, y: inside(z == z, _over(x, 1 + y)))


def multigammaln(a, d) -> Any:
    """Return the logarithm of the multivariate gamma function, as `scipy.special.multigammaln`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy import special
    >>> cytape.grad(special.multigammaln)(2.0, 1) == special.psi(2.0)
    np.True_
    """
    a = joined(a)
    if not is_tensor(a):
        return special.multigammaln(a, d)
    one_number: bool = np.isscalar(d)
    if not one_number or np.floor(d) != d:
        raise ValueError("d should be a positive integer (dimension)")
    if a.graph is None and np.any(a <= 0.5 * (d - 1)):
        raise ValueError(f"condition a ({a.numpy()}) > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    shifts = 0.5 * np.arange(int(d)).reshape(-1, *[1] * a.ndim)
    terms = gammaln(expand_dims(a, 0) - shifts)
    return reductions.sum(terms, 0) + d * (d - 1) * 0.25 * math.log(math.pi)
