from typing import Any

import numpy as np

def shared_among_ties(
    g: Any, x: np.ndarray, y: Any, axis: Any, least: int, into: np.ndarray | None = None,
    signed: bool = False,
) -> np.ndarray | None: ...
