"""Attacks on sources that are watched only after an op has used them beside another source.

What the op's gradient needs was saved, or it was not: the gradient is right, or an error. It is
never None, and never a part of the truth.
"""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from cytape.ops.adjoints.identity_groups import together
from tests.cases import each, grouped
from tests.ops.op_families import FAMILY_OF, SPECS
from tests.ways import gradients, watching

# Each of their results comes from one operand alone: that of the other is not recorded.
OF_EACH_OPERAND = {"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"}


def calls():
    for spec in SPECS:
        if spec.differentiable is False or spec.op in OF_EACH_OPERAND:
            continue
        for case in spec.cases:
            inputs = spec.draw(case, spec.dtypes[0])
            moving = [
                i for i, x in enumerate(inputs)
                if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
                and (spec.differentiable is True or spec.differentiable[i])
            ]
            for late in moving if len(moving) > 1 else ():
                name = f"{spec}-{case}-{late}"
                yield FAMILY_OF[id(spec)], name, (spec, case, inputs, moving, late), False


def tensors_of(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return [y for y in results if isinstance(y, cytape.Tensor)]


def dense(gradient):
    if isinstance(gradient, cytape.IndexedSlices):
        gradient = gradient.to_tensor()
    return None if gradient is None else gradient.numpy()


@grouped("spec, case, inputs, moving, late", calls())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_gradient_is_right_or_an_error(spec, case, inputs, moving, late):
    args = [cytape.constant(x) if i in moving else x for i, x in enumerate(inputs)]
    source, others = args[late], [args[i] for i in moving if i != late]

    def run(watched_late):
        with watching(others if watched_late else [*others, source]) as tape:
            ys = tensors_of(spec.fn(*args, **case.kwargs))
            tape.watch(source)
            again = source * 2.0  # ops after the watch are recorded in any case
        return dense(tape.gradient([*ys, again], source))

    expected = run(watched_late=False)
    try:
        found = run(watched_late=True)
    except TapeStateError as error:
        assert "watched only after" in str(error)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


COMPOSED = {
    "outer": np.outer, "kron": np.kron, "vdot": np.vdot, "vecdot": np.vecdot,
    "vstack": lambda x, y: np.vstack([x, y]), "hstack": lambda x, y: np.hstack([x, y]),
    "dstack": lambda x, y: np.dstack([x, y]), "column_stack": lambda x, y: np.column_stack([x, y]),
    "append": np.append, "clip": lambda x, y: np.clip(x, 0.0, y),
    "array": lambda x, y: cnp.array([[x, y], [y, x]])}


@each("f", COMPOSED.values(), ids=COMPOSED)
@each(make=[cytape.constant, lambda x: cytape.Variable(x).value()], in_a_graph=[False, True])
@each("late", [0, 1])
def test_composed_functions_are_one_op_to_a_tape(f, make, in_a_graph, late):
    def late_gradient(x, y):
        source, other = (x, y) if late == 0 else (y, x)
        with watching(other) as tape:
            z = f(x, y)
            tape.watch(source)
        return tape.gradient(z, source)

    def gradient(x, y):
        return gradients(f, x, y)[late]

    x, y = make(np.array([0.5, 2.0])), make(np.array([1.0, 3.0]))
    run = cytape.function(late_gradient) if in_a_graph else late_gradient
    np.testing.assert_allclose(run(x, y).numpy(), gradient(x, y).numpy())


def test_tensors_of_all_tapes_or_none_take_no_detour():
    x, y = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    assert together(x, y, 3) == (x, y, 3)
    with cytape.GradientTape() as tape:
        assert all(a is b for a, b in zip(together(x, y), (x, y), strict=True))
        tape.watch([x, y])
        assert all(a is b for a, b in zip(together(x, y), (x, y), strict=True))
        n = cytape.constant([1, 2])
        assert together(x, n)[1] is n
