"""Interpolation, differentiable, with the names of `scipy.interpolate`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.interpolate as _scipys

from cytape.scipy.interpolate.basis_splines import BSpline as BSpline
from cytape.scipy.interpolate.basis_splines import make_interp_spline as make_interp_spline
from cytape.scipy.interpolate.cubic_splines import Akima1DInterpolator as Akima1DInterpolator
from cytape.scipy.interpolate.cubic_splines import CubicSpline as CubicSpline
from cytape.scipy.interpolate.cubic_splines import PchipInterpolator as PchipInterpolator
from cytape.scipy.interpolate.cubic_splines import pchip_interpolate as pchip_interpolate
from cytape.scipy.interpolate.cubic_triangles import (
    CloughTocher2DInterpolator as CloughTocher2DInterpolator,
)
from cytape.scipy.interpolate.fitted_splines import (
    InterpolatedUnivariateSpline as InterpolatedUnivariateSpline,
)
from cytape.scipy.interpolate.fitted_splines import RectBivariateSpline as RectBivariateSpline
from cytape.scipy.interpolate.fitted_splines import UnivariateSpline as UnivariateSpline
from cytape.scipy.interpolate.fitted_splines import make_lsq_spline as make_lsq_spline
from cytape.scipy.interpolate.fitted_splines import (
    make_smoothing_spline as make_smoothing_spline,
)
from cytape.scipy.interpolate.fitted_splines import splantider as splantider
from cytape.scipy.interpolate.fitted_splines import splder as splder
from cytape.scipy.interpolate.fitted_splines import splev as splev
from cytape.scipy.interpolate.fitted_splines import splint as splint
from cytape.scipy.interpolate.fitted_splines import splrep as splrep
from cytape.scipy.interpolate.global_interpolants import (
    BarycentricInterpolator as BarycentricInterpolator,
)
from cytape.scipy.interpolate.global_interpolants import KroghInterpolator as KroghInterpolator
from cytape.scipy.interpolate.global_interpolants import RBFInterpolator as RBFInterpolator
from cytape.scipy.interpolate.grids import RegularGridInterpolator as RegularGridInterpolator
from cytape.scipy.interpolate.grids import interpn as interpn
from cytape.scipy.interpolate.one_dimension import interp1d as interp1d
from cytape.scipy.interpolate.piecewise_polynomials import CubicHermiteSpline as CubicHermiteSpline
from cytape.scipy.interpolate.piecewise_polynomials import PPoly as PPoly
from cytape.scipy.interpolate.scattered_points import LinearNDInterpolator as LinearNDInterpolator
from cytape.scipy.interpolate.scattered_points import (
    NearestNDInterpolator as NearestNDInterpolator,
)
from cytape.scipy.interpolate.scattered_points import griddata as griddata


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
