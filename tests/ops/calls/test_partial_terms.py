"""Gradients and tangents by partials that are called with arrays or tensors."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ops.forward_mode import tangent_of


def test_a_boolean_partial_selects_the_tangent():
    tangent = tangent_of(cnp.maximum, ([-1.0, 1.0], [np.inf, 2.0]), (0.0, None))
    np.testing.assert_array_equal(tangent.numpy(), [0.0, 2.0])


@each(dtypes=[
    ("float32", "float64"), ("float64", "complex128"), ("float16", "complex64"),
    ("complex64", "complex128"), ("longdouble", "float32"),
], recorded=[False, True])
def test_a_gradient_has_the_dtype_and_shape_of_its_input(dtypes, recorded):
    x = cytape.constant(np.arange(3).astype(dtypes[0]))
    y = cytape.constant(np.ones((2, 1), dtypes[1]))
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * y
        gradients = tape.gradient(z, [x, y]) if recorded else None
    for gradient, source in zip(gradients or tape.gradient(z, [x, y]), [x, y], strict=True):
        assert gradient.spec is source.spec
