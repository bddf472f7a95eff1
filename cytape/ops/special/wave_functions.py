"""Parabolic cylinder, Mathieu and spheroidal wave functions (DLMF 12, 28 and 30).

Each ufunc returns a function and its derivative; the second derivative is that of the differential
equation. There are no derivatives in orders and parameters, except of characteristic values. Those
are right also where SciPy's value is not, as Mathieu's for large q.
"""

import math

import numpy as np

import cytape.ops.special_kernels.characteristic_values as characteristic_values
import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.several_outputs import several
from cytape.ops.special.shape_parameters import no_partial, no_partials, op_name

__all__ = [
    "mathieu_a", "mathieu_b", "mathieu_cem", "mathieu_modcem1", "mathieu_modcem2",
    "mathieu_modsem1", "mathieu_modsem2", "mathieu_sem", "obl_ang1", "obl_ang1_cv", "obl_cv",
    "obl_rad1", "obl_rad1_cv", "obl_rad2", "obl_rad2_cv", "pbdv", "pbvv", "pbwa", "pro_ang1",
    "pro_ang1_cv", "pro_cv", "pro_rad1", "pro_rad1_cv", "pro_rad2", "pro_rad2_cv"]


def _with_slope(name, parameters, equation):
    """Declare a function with its derivative; `equation` returns the derivatives of the two."""
    def refused(parameter):
        refusal = no_partial(name, parameter)()
        return lambda *_: (refusal, refusal)

    return several(
        op_name(name), getattr(special, name), *map(refused, parameters), equation)


slopes: dict = {}  # of characteristic values, by names of ops


def _characteristic_value(name, arguments, kernel, sign):
    """Declare a value and its derivatives in the last argument, which take the value, too."""
    *orders, last = arguments
    refused = no_partials(name, *orders)
    op = f"{op_name(name)}In{last.upper()}"
    slopes[op + last] = second = elementwise(
        op + last, lambda *given: kernel(*given, sign, 2), None, *refused,
        no_partial(name, last, "third derivative"))
    slopes[op] = first = elementwise(
        op, lambda *given: kernel(*given, sign, 1), None, *refused,
        lambda _, *given: second(*given))
    return elementwise(op_name(name), getattr(special, name), *refused, first)


# ---- parabolic cylinder functions ------------------------------------------------------------

pbdv = _with_slope("pbdv", "v", lambda y, v, x: (y[1], (0.25 * x * x - v - 0.5) * y[0]))
pbvv = _with_slope("pbvv", "v", lambda y, v, x: (y[1], (0.25 * x * x - v - 0.5) * y[0]))
pbwa = _with_slope("pbwa", "a", lambda y, a, x: (y[1], (a - 0.25 * x * x) * y[0]))

# ---- functions of Mathieu --------------------------------------------------------------------

_DEGREE = math.pi / 180


def _angular(value):
    """Return the equation of an angle in degrees, of which the second output is no derivative."""
    return lambda y, m, q, x: (
        _DEGREE * y[1], -_DEGREE * (value(m, q) - 2 * q * np.cos(2 * _DEGREE * x)) * y[0])


def _radial(value):
    return lambda y, m, q, x: (y[1], (value(m, q) - 2 * q * np.cosh(2 * x)) * y[0])


mathieu_a = _characteristic_value("mathieu_a", "mq", characteristic_values.mathieu_in_q, 1)
mathieu_b = _characteristic_value("mathieu_b", "mq", characteristic_values.mathieu_in_q, -1)
mathieu_cem = _with_slope("mathieu_cem", "mq", _angular(mathieu_a))
mathieu_sem = _with_slope("mathieu_sem", "mq", _angular(mathieu_b))
mathieu_modcem1 = _with_slope("mathieu_modcem1", "mq", _radial(mathieu_a))
mathieu_modcem2 = _with_slope("mathieu_modcem2", "mq", _radial(mathieu_a))
mathieu_modsem1 = _with_slope("mathieu_modsem1", "mq", _radial(mathieu_b))
mathieu_modsem2 = _with_slope("mathieu_modsem2", "mq", _radial(mathieu_b))

# ---- spheroidal wave functions ---------------------------------------------------------------


def _equation(sign, turn):
    """Return the equation of spheroidal functions; oblate radial ones have x**2 + 1, turn -1."""

    def rows(y, m, n, c, *others):
        *value, x = others
        value = value[0] if value else (pro_cv if sign > 0 else obl_cv)(m, n, c)
        width = 1 - turn * x * x
        force = turn * (sign * turn * c * c * x * x - value + m * m / width)
        return y[1], (2 * turn * x * y[1] + force * y[0]) / width

    return rows


pro_cv = _characteristic_value("pro_cv", "mnc", characteristic_values.spheroidal_in_c, 1)
obl_cv = _characteristic_value("obl_cv", "mnc", characteristic_values.spheroidal_in_c, -1)
pro_ang1 = _with_slope("pro_ang1", "mnc", _equation(1, 1))
pro_ang1_cv = _with_slope(
    "pro_ang1_cv", ("m", "n", "c", "cv"), _equation(1, 1))
pro_rad1 = _with_slope("pro_rad1", "mnc", _equation(1, 1))
pro_rad1_cv = _with_slope(
    "pro_rad1_cv", ("m", "n", "c", "cv"), _equation(1, 1))
pro_rad2 = _with_slope("pro_rad2", "mnc", _equation(1, 1))
pro_rad2_cv = _with_slope(
    "pro_rad2_cv", ("m", "n", "c", "cv"), _equation(1, 1))
obl_ang1 = _with_slope("obl_ang1", "mnc", _equation(-1, 1))
obl_ang1_cv = _with_slope(
    "obl_ang1_cv", ("m", "n", "c", "cv"), _equation(-1, 1))
obl_rad1 = _with_slope("obl_rad1", "mnc", _equation(-1, -1))
obl_rad1_cv = _with_slope(
    "obl_rad1_cv", ("m", "n", "c", "cv"), _equation(-1, -1))
obl_rad2 = _with_slope("obl_rad2", "mnc", _equation(-1, -1))
obl_rad2_cv = _with_slope(
    "obl_rad2_cv", ("m", "n", "c", "cv"), _equation(-1, -1))
