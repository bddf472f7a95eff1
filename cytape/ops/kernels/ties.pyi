from typing import Any

import numpy as np

def shared_among_ties(
    g: Any, x: np.ndarray, y: Any, axis: Any, least: int) -> np.ndarray | None: ...
