import numpy as np

def added(
    shape: tuple[int, ...], index: np.ndarray | tuple[object, ...], terms: np.ndarray
) -> np.ndarray | None: ...
