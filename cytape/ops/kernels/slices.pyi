import numpy as np

def fold_at_extrema(
    t: np.ndarray, x: np.ndarray, y: np.ndarray, indices: np.ndarray, axis: int
) -> np.ndarray: ...
def spread(
    g: np.ndarray, indices: np.ndarray, n: int, axis: int, negative: bool = False
) -> np.ndarray: ...
def spread_to_extrema(
    g: np.ndarray, x: np.ndarray, y: np.ndarray, indices: np.ndarray, axis: int
) -> np.ndarray: ...
