"""Derivatives of characteristic values against those of the matrices at 30 digits."""

import numpy as np
import pytest

from cytape.ops.special_kernels import characteristic_values as kernels
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("name, orders, parameter, first, second", [
    ("mathieu_a", (0,), 0.7, -0.6356594580332344, -0.7500189232236469),
    ("mathieu_a", (1,), -3.0, 1.4387966548251494, -0.07803443389820984),
    ("mathieu_a", (2,), 1e-3, 0.0008333331125579459, 0.8333326710073221),
    ("mathieu_a", (3,), 1e4, -1.9299985439069196, -3.5002201669133883e-06),  # SciPy: -17,815
    ("mathieu_a", (60,), 25.0, 0.006946583806833389, 0.0002778801384957194),
    ("mathieu_b", (1,), 0.7, -1.1532048883205352, -0.18970398688097173),
    ("mathieu_b", (2,), 30.0, -1.4511629326841577, -0.009189919557190456),
    ("mathieu_b", (5,), -1e6, 1.9889999946529286, -5.5000080301138565e-09),
    ("pro_cv", (0, 0), 1e-3, 0.0006666666074074103, 0.666666488888903),
    ("pro_cv", (1, 2), 1.3, 1.0804734029789025, 0.7796926186161551),
    ("pro_cv", (3, 20), 60.0, 35.15677632126168, -0.004397303170166841),
    ("obl_cv", (0, 1), 20.0, -37.999304839814585, -2.0000734602061767),
    ("obl_cv", (10, 11), 5.0, -1.2848289936462314, -0.293732793352045),
])
def test_derivatives(name, orders, parameter, first, second):
    kernel = kernels.mathieu_in_q if "mathieu" in name else kernels.spheroidal_in_c
    sign = -1 if name in ("mathieu_b", "obl_cv") else 1
    given = getattr(special, name)(*orders, parameter), *orders, parameter, sign
    np.testing.assert_allclose(kernel(*given, 1), first, 2e-13)
    np.testing.assert_allclose(kernel(*given, 2), second, 1e-10)


def test_outside_of_the_domain_it_is_nan():
    for given in [(np.nan, 0.5, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, np.inf), (1.0, 1.0, np.nan)]:
        assert np.isnan(kernels.mathieu_in_q(*given, 1, 1))
    for given in [(np.nan, 0.0, 1.0, 1.0), (2.0, 2.0, 1.0, 1.0), (2.0, 0.0, 1.0, -1.0)]:
        assert np.isnan(kernels.spheroidal_in_c(*given, 1, 1))


def test_without_a_parameter_the_matrix_is_diagonal():
    orders = np.arange(4.0)
    slopes = kernels.mathieu_in_q(orders * orders, orders, 0.0, 1, 1)
    np.testing.assert_array_equal(slopes, [0, 1, 0, 0])
    np.testing.assert_allclose(
        kernels.mathieu_in_q(orders * orders, orders, 0.0, 1, 2), [-1, -1 / 4, 5 / 6, 1 / 8])
