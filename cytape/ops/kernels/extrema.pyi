import numpy as np

first_of_maximum: np.ufunc
second_of_maximum: np.ufunc
first_of_minimum: np.ufunc
second_of_minimum: np.ufunc
first_of_fmax: np.ufunc
second_of_fmax: np.ufunc
first_of_fmin: np.ufunc
second_of_fmin: np.ufunc
where_unchanged: np.ufunc
clip: np.ufunc
