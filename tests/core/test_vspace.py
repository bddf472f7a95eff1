"""The host's side: what a tape asks, and what it says about op types and dtypes."""

import numpy as np
import pytest

from tests.cases import each


@pytest.mark.parametrize("name", [
    "num_elements", "ones_like", "zeros_like", "aggregate_gradients", "tensor_id",
    "info_from_gradient"])
def test_methods_that_a_host_must_override_raise(core, name):
    with pytest.raises(NotImplementedError):
        getattr(core.VSpace(), name)([])
    with pytest.raises(NotImplementedError):
        core.VSpace().call_backward_function("Op", None, [], [])


def test_hooks_do_nothing_unless_overridden(core):
    vspace = core.VSpace()
    assert vspace.mark_as_result(1) is None
    assert vspace.delete_gradient(1) is None


@pytest.mark.parametrize("inherited", [False, True])
def test_a_class_is_told_of_what_is_dropped(core, record, inherited):
    dropped = []

    class Telling(core.VSpace):
        def ones_like(self, info):
            return "ones"

        def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
            return ["kept", "dropped"]

        def delete_gradient(self, gradient):
            dropped.append(gradient)

    class Heir(Telling):
        pass

    tape = core.Tape()
    tape.watch(1)
    tape.watch(2)
    record(tape, "Op", [1, 2], [3], "backward")
    assert tape.compute_gradient((Heir if inherited else Telling)(), [3], [1]) == ["kept"]
    assert "dropped" in dropped


def test_the_host_is_asked_in_its_own_terms(core, record):
    asked = []

    class VSpace(core.VSpace):
        def ones_like(self, info):
            asked.append(("ones_like", info))
            return "ones"

        def zeros_like(self, info):
            asked.append(("zeros_like", info))
            return "zeros"

        def aggregate_gradients(self, gradients):
            asked.append(("aggregate_gradients", gradients))
            return "sum"

        def call_backward_function(self, op_type, backward, unneeded_gradients, output_gradients):
            asked.append((op_type, backward, unneeded_gradients, output_gradients))
            return ["a", "b", "c"]

    class Info:
        def __init__(self, id):
            self.id = id

    tape = core.Tape()
    tape.watch(1)
    infos = Info(2), Info(3)
    record(tape, "Op", [1, 9, 1], infos, "backward")
    assert tape.compute_gradient(VSpace(), [3], [1]) == ["sum"]
    assert asked == [
        ("ones_like", infos[1]), ("zeros_like", infos[0]),
        ("Op", "backward", [1], ["zeros", "ones"]), ("aggregate_gradients", ["a", "c"])]


def test_a_backward_call_may_return_any_sequence(core, numbers, record):
    tape = core.Tape(persistent=True)
    tape.watch(0)
    record(tape, "Op", [0, 0], [1], lambda dy: (dy, dy))
    assert tape.compute_gradient(numbers, [1], [0]) == [2]
    numbers.call_backward_function = lambda *_: None
    with pytest.raises(TypeError):
        tape.compute_gradient(numbers, [1], [0])


def test_none_is_no_gradient_wherever_it_is_met(tape, numbers, record):
    tape.watch(0)
    record(tape, "A", [0], [1], lambda dy: [None if dy is None else dy + 1])
    record(tape, "B", [1, 1, 0], [2], lambda dy: [None, 4, None])
    assert tape.compute_gradient(numbers, [2], [0, 1]) == [5, 4]


def test_a_vspace_is_not_optional(tape):
    tape.watch(0)
    with pytest.raises((TypeError, AttributeError)):
        tape.compute_gradient(None, [0], [0], {0: 0})


@each("dtype, trainable", [
    (np.dtype("float16"), True), (np.dtype("float32"), True), (np.dtype("float64"), True),
    (np.dtype("complex64"), True), (np.dtype("complex128"), True), (np.dtype("longdouble"), True),
    (np.float32, True), (np.complex64, True), ("bfloat16", True), ("resource", True),
    ("variant", True), (np.dtype("int64"), False), (np.dtype("bool"), False),
    (np.dtype("S4"), False), (np.dtype("O"), False), (np.int32, False), (bool, False),
    (float, False), (3, False), (None, False), ("", False)])
def test_trainable_dtypes(core, dtype, trainable):
    assert core.is_trainable(dtype) is trainable


def test_an_op_type_has_a_name(core):
    assert core.OpType("Add").name == "Add"
    assert core.OpType("Add", [1]).name == "Add"


@pytest.mark.parametrize("optional", [(), (0,), (63, 1), range(64)])
def test_the_repr_of_an_op_type_makes_it_again(cython_core, optional):
    op_type = cython_core.OpType("Op", optional)
    assert repr(op_type) == f"OpType('Op', optional_gradients={tuple(sorted(optional))})"
    assert repr(eval(repr(op_type), {"OpType": cython_core.OpType})) == repr(op_type)


@pytest.mark.parametrize("position", [-1, 64])
def test_optional_gradients_have_a_limit(cython_core, position):
    with pytest.raises(ValueError, match=str(position)):
        cython_core.OpType("Op", optional_gradients=(position,))


@pytest.mark.parametrize("name", [None, 3, b"Op"])
def test_the_name_of_an_op_type_is_a_string(cython_core, name):
    with pytest.raises(TypeError):
        cython_core.OpType(name)
