"""Real and imaginary parts, as linear functions over the reals.

The gradient g of the real part of z is g + 0j, that of the imaginary part 1j * g.
"""

from typing import Any

import numpy as np

from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import linear, structural
from cytape.ops.shapes import shape_rules
from cytape.tensor import Tensor

real_op = linear(
    "Real", np.real, lambda op, g: g, shape_rule=shape_rules.real_part,
    batch=batch_axis.aligned, makes_views=True, lowering="REAL_PART")
imag_op = linear(
    "Imag", np.imag, lambda op, g: 1j * g, shape_rule=shape_rules.real_part,
    batch=batch_axis.aligned, makes_views=True, lowering="IMAGINARY_PART")
imag_of_real_op = structural(
    "ImagOfReal", np.imag, lambda results, operands: (),
    transpose=lambda op, g: imag_of_real_op(g),
    shape_rule=shape_rules.same, batch=batch_axis.aligned)


def real(val) -> Any:
    """Return the real part, as `numpy.real`; real numbers are returned unchanged.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.real(1 + 2j)
    1.0
    """
    return val if type(val) is Tensor and val.dtype.kind != "c" else real_op(val)


def imag(val) -> Any:
    """Return the imaginary part, as `numpy.imag`; zeros for real numbers.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.imag(1 + 2j)
    2.0
    """
    if type(val) is Tensor and val.dtype.kind == "f":
        return imag_of_real_op(val)
    return imag_op(val)
