import numpy as np

SMALL: int
cross: np.ufunc

def cholesky_gradient(lower: np.ndarray, g: np.ndarray) -> np.ndarray: ...
def inverse(a: np.ndarray) -> np.ndarray | None: ...
