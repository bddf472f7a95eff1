import numpy as np

over_squares: np.ufunc
power_less_one: np.ufunc
unit: np.ufunc
