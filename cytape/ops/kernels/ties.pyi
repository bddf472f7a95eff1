from typing import Any

import numpy as np

def shared_among_ties(
    g: Any, x: np.ndarray, y: Any, axis: Any, skip_nan: bool, into: np.ndarray | None = None,
    signed: bool = False,
) -> np.ndarray | None: ...
