"""Groups of elementwise ops, fused and one by one."""

import numpy as np

from cytape.graph.passes.fused_op import FusedOp
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.values.spec import Spec

# Around the numbers of elements of a run worth vectors, of a block in both dtypes, and of several.
SIZES = [1, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1024, 1025, 5000]


def spec_of(array):
    return Spec.of(array.shape, array.dtype)


def made(spec, operands, calls, results):
    calls = [(OPS[name], attrs, inputs, fast) for name, attrs, inputs, fast in calls]
    return FusedOp(spec, [spec_of(x) for x in operands], calls, results)


def call(name, *inputs, fast=False, **attrs):
    return name, attrs, inputs, fast


def check(spec, operands, calls, results, rtol=0.0):
    op = made(spec, operands, calls, results)
    with np.errstate(all="ignore"):
        found, expected = op.forward(*operands), op.report(*operands)
    assert len(found) == len(expected) == len(results)
    for x, y, result_spec in zip(found, expected, op.result_specs, strict=True):
        assert spec_of(x) is result_spec
        assert result_spec is spec_of(np.asarray(y))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=0)
    return op
