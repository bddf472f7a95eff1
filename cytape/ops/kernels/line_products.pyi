import numpy as np

def products_derivative(
    x: np.ndarray, axis: int | tuple[int, ...] | None, starts: np.ndarray | None = None,
    g: np.ndarray | None = None, t: np.ndarray | None = None, product: np.ndarray | None = None,
    cumulative: bool = False,
) -> np.ndarray | None: ...
