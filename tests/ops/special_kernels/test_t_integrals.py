"""Derivatives of Student's t in df against mpmath's at 100 digits, by central differences."""

import numpy as np

from cytape.ops.special_kernels import t_integrals as kernels
from tests.cases import each


@each("df, t, first, second", [  # derivatives of the distribution function
    (0.3, -2.0, -0.3796895420685591, 1.0678315133413496),
    (2.5, -0.2, -0.0027602118138700376, 0.0019822933908246907),
    (2.5, -30.0, -0.0003795362263023998, 0.0010262742536284522),
    (29.9, -1.6, -0.0001749291738337378, 1.1636915844777007e-05),
    (30.0, -1.6, -0.00017377126069844214, 1.1521601975754541e-05),
    (30.0, -0.3, -3.431679429144031e-05, 2.2763801019379624e-06),
    (100.0, -6.0, -3.5995689743672203e-10, 1.4083398683244591e-11),
    (100000.0, -1.0, -1.2098475733124806e-11, 2.4196890973266023e-16),
    (100000.0, -5.0, -4.838403736958317e-15, 9.683376094475791e-20),
])
def test_derivatives_in_df(df, t, first, second):
    np.testing.assert_allclose(
        [kernels.stdtr_df(df, t), kernels.stdtr_dfdf(df, t)], [first, second], 1e-12)
    assert kernels.stdtr_df(df, -t) == -kernels.stdtr_df(df, t)


@each(df=[0.7, 3.0, 29.0, 31.0, 1e6], t=[0.0, 0.4, -3.0])
def test_the_derivative_of_the_density_is_that_of_the_derivative(df, t):
    h = 1e-4
    expected = (kernels.stdtr_df(df, t + h) - kernels.stdtr_df(df, t - h)) / (2 * h)
    np.testing.assert_allclose(kernels.t_density_in_df(df, t), expected, 1e-5)
