"""Tensors as values: made, read, shown, copied, exchanged; test_operators.py computes with them."""

import copy
import math
import operator
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.tensor.tensor import live_tensors, tensor_of
from tests.cases import each
from tests.tables import table
from tests.threads import in_thread, in_threads
from tests.ways import gradient, watching

V3 = np.array([0.5, -1.0, 2.0])
V23 = np.arange(6.0).reshape(2, 3)
BIG = np.arange(10_000.0)


# -- making ----------------------------------------------------------------------------------------


def test_tensors_are_not_made_by_calling_the_class():
    with pytest.raises(TypeError, match="constant"):
        cytape.Tensor()


@pytest.mark.parametrize("use", table(["t + 1.0"], ["t.shape"]))
@pytest.mark.parametrize("cls", table(["cytape.Tensor", "Subclass"], ["cytape.Variable"]))
def test_tensors_that_skipped_their_making_are_errors(cls, use):
    """In a process of its own, which may crash."""
    script = f"""
import cytape
try:
    class Subclass(cytape.Tensor):
        def __init__(self):
            pass
    t = {cls}.__new__({cls})
    {use}
except (TypeError, AttributeError):
    print("refused")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "refused\n")


# -- attributes ------------------------------------------------------------------------------------


@each("array", [np.float64(2), V3, V23, V23.astype("int16"), np.ones((2, 0, 3), bool), BIG])
def test_attributes_are_those_of_the_array(array):
    tensor = cytape.constant(array)
    for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
        assert getattr(tensor, name) == getattr(array, name)
    np.testing.assert_array_equal(tensor.T.numpy(), array.T)


def test_attributes_that_need_more_axes_or_complex_numbers():
    stack = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(cytape.constant(stack).mT.numpy(), stack.mT)
    z = np.array([1 + 2j, 3 - 4j])
    np.testing.assert_array_equal(cytape.constant(z).real.numpy(), z.real)
    np.testing.assert_array_equal(cytape.constant(z).imag.numpy(), z.imag)
    with pytest.raises(ValueError):
        cytape.constant(V3).mT  # noqa: B018


@each("name", ["shape", "dtype", "ndim", "size", "T", "real", "id", "spec"])
def test_attributes_cannot_be_set(name):
    tensor = cytape.constant(V3)
    with pytest.raises(AttributeError):
        setattr(tensor, name, getattr(tensor, name))


def test_there_is_room_for_no_other_attribute():
    with pytest.raises(AttributeError):
        cytape.constant(V3).note = "mine"
    with pytest.raises(AttributeError, match="no_such_method"):
        cytape.constant(V3).no_such_method  # noqa: B018


# -- changes in place ------------------------------------------------------------------------------


CHANGES = {
    "delitem": lambda t: operator.delitem(t, 0),
    "numpy": lambda t: operator.setitem(t.numpy(), 0, 1.0), "fill": lambda t: t.numpy().fill(1.0),
    "asarray": lambda t: operator.setitem(np.asarray(t), 0, 1.0),
    "dlpack": lambda t: operator.setitem(np.from_dlpack(t, copy=False), 0, 1.0)}


@each("change", CHANGES.values(), ids=CHANGES)
@each("array", [V3, BIG], ids=["small", "big"])
def test_nothing_else_changes_a_tensor(change, array):
    tensor = cytape.constant(array)
    with pytest.raises((TypeError, ValueError)):
        change(tensor)
    np.testing.assert_array_equal(tensor.numpy(), array)


ASSIGNMENTS = {
    "setitem": lambda t: operator.setitem(t, ..., 1.0), "iadd": lambda t: operator.iadd(t, 1.0),
    "out": lambda t: np.add(t, 1.0, out=t), "copyto": lambda t: np.copyto(t, 1.0),
    "put": lambda t: np.put(t, [0], 1.0), "at": lambda t: np.add.at(t, [0], 1.0)}


@each("assign", ASSIGNMENTS.values(), ids=ASSIGNMENTS)
@each("array", [V3, BIG], ids=["small", "big"])
def test_assignments_give_a_tensor_another_value_and_id(assign, array):
    tensor = cytape.constant(array)
    before, data = tensor.id, tensor.numpy()
    expected = array.copy()
    assign(expected)
    assign(tensor)
    assert tensor.id > before
    np.testing.assert_array_equal(tensor.numpy(), expected)
    np.testing.assert_array_equal(data, array)


def test_taken_on_by_a_tensor_a_value_has_one_handle():
    tensor, count = cytape.constant(V3), live_tensors()
    for _ in range(3):
        tensor += 1.0
        tensor[0] = 5.0
    assert live_tensors() == count


@each("array", [V3, BIG])
def test_no_result_is_an_array_that_may_change(array):
    tensor = cytape.constant(array)
    room = np.zeros_like(array)
    with watching(tensor):
        with pytest.raises(TypeError):
            cytape.numpy.sin(tensor, room)
    assert not room.any()
    assert cytape.numpy.sin(tensor, room) is room
    np.testing.assert_array_equal(room, np.sin(array))


# -- explicit conversions --------------------------------------------------------------------------


def test_numpy_is_a_read_only_ndarray():
    for array in (V3, BIG, np.float32(1.5)):
        tensor = cytape.constant(array)
        assert type(tensor.numpy()) is np.ndarray
        assert not tensor.numpy().flags.writeable
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_arrays_may_be_asked_for_in_numpys_ways():
    tensor = cytape.constant(BIG)
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert np.shares_memory(np.array(tensor, copy=False), tensor.numpy())
    assert not np.shares_memory(np.array(tensor), tensor.numpy())
    assert np.array(tensor).flags.writeable
    assert np.asarray(tensor, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        np.array(tensor, dtype="float32", copy=False)
    np.testing.assert_array_equal(np.array([tensor, tensor]), np.array([BIG, BIG]))


@each(array=[
    np.float64(2.5), np.array(3), np.array(True), np.array(1 + 2j), np.array([2.5]), V3,
    np.array([]), np.array("text")], convert=[
    float, int, complex, bool, operator.index, len, list, iter, math.floor, np.ndarray.item,
    np.ndarray.tolist])
def test_conversions_are_those_of_the_array(convert, array):
    array = np.asarray(array)
    tensor = cytape.constant(array)
    if convert in (np.ndarray.item, np.ndarray.tolist):
        convert = operator.methodcaller(convert.__name__)
    try:
        expected = convert(array)
    except Exception as error:
        with pytest.raises(type(error)):
            convert(tensor)
        return
    result = convert(tensor)
    if convert is list:
        assert all(isinstance(element, cytape.Tensor) for element in result)
    elif convert is iter:
        result, expected = list(result), list(expected)
    else:
        assert type(result) is type(expected)
    assert result == expected


def test_item_takes_an_index():
    tensor = cytape.constant(V23)
    assert tensor.item(4) == tensor.item(1, 1) == tensor.item((1, 1)) == 4.0
    assert type(tensor.item(0)) is float
    with pytest.raises(IndexError):
        tensor.item(6)


def test_iterating_gives_tensors_that_are_connected():
    x = cytape.constant(V23)
    with watching(x) as tape:
        first, second = x
        y = np.sum(first * second)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), V23[::-1])


def test_contains_compares():
    x = cytape.constant(V3)
    assert 2.0 in x and 7.0 not in x


def test_an_integer_tensor_is_an_index():
    one = cytape.constant(1)
    assert [10, 20, 30][one] == 20
    assert list(range(one)) == [0]
    assert V3[one] == -1.0
    assert V3[cytape.constant([0, 2])].tolist() == [0.5, 2.0]
    with pytest.raises(TypeError):
        [10, 20, 30][cytape.constant(1.0)]


# -- text ------------------------------------------------------------------------------------------


@each("data, text", [
    (1.5, "Tensor(1.5)"), ([1.0, 2.0], "Tensor([1., 2.])"),
    ([[1.0], [2.0]], "Tensor([[1.],\n        [2.]])"), ([True, False], "Tensor([ True, False])"),
    ([1, 2], "Tensor([1, 2], dtype=int64)"),
    (np.float32([1, 2]), "Tensor([1., 2.], dtype=float32)"),
    ([1j], "Tensor([0.+1.j], dtype=complex128)"), (np.zeros((0, 2)), "Tensor([])")])
def test_repr_shows_the_values(data, text):
    assert repr(cytape.constant(data)) == text
    indented = text.replace("Tensor", "Variable").replace("\n", "\n  ")
    assert repr(cytape.Variable(data)) == indented


def test_repr_of_big_data_is_short():
    assert len(repr(cytape.constant(np.zeros(100_000)))) < 100


@each("array", [np.float64(1.5), np.array(3), V3, V23, BIG])
def test_str_is_that_of_the_array(array):
    assert str(cytape.constant(array)) == str(array)


def test_a_0d_tensor_formats_as_a_number():
    assert f"{cytape.constant(math.pi):.3f}" == "3.142"
    assert f"{cytape.constant(42):05d}" == "00042"
    with pytest.raises(ValueError):
        f"{cytape.constant(math.pi):d}"


def test_a_symbolic_tensor_formats_as_itself_only():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        assert f"{x}" == str(x)
        with pytest.raises(SymbolicTensorError, match="without a format.*numpy_function"):
            f"{x:.2f}"


def test_a_traced_function_prints_values_as_its_error_advises(capsys):
    @cytape.function
    def f(x):
        cytape.numpy_function(lambda x: print(f"{x:.2f}") or (), x, specs=())
        return x

    f(np.array(1.5))
    f(np.array(2.5))
    assert capsys.readouterr().out == "1.50\n2.50\n"


def test_a_tensor_reversed():
    assert [float(x) for x in reversed(cytape.constant([1.0, 2.0, 3.0]))] == [3.0, 2.0, 1.0]


def test_a_longer_tensor_formats_as_its_array():
    """In a process of its own, which may crash."""
    script = "import cytape; t = cytape.constant([1.0, 2.0]); print(f'{t}', format(t)); f'{t:.3f}'"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "[1. 2.] [1. 2.]\n"
    assert "TypeError: unsupported format string" in run.stderr


# -- copies ----------------------------------------------------------------------------------------

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "method": lambda t: t.copy(),
    **{f"pickle{protocol}": lambda t, protocol=protocol: pickle.loads(pickle.dumps(t, protocol))
       for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
}


@each("make", COPIES.values(), ids=COPIES)
@each("array", [
    np.float32(1.5), V3, V23.T, BIG, np.array([1, 2], "int8"), np.array(["a", "bc"]),
    np.zeros((0, 2), complex)])
def test_a_copy_has_the_same_values_and_another_id(make, array):
    tensor = tensor_of(np.array(array))
    other = make(tensor)
    assert type(other) is cytape.Tensor
    assert other.spec is tensor.spec
    np.testing.assert_array_equal(other.numpy(), array)
    assert other.id != tensor.id
    del tensor
    np.testing.assert_array_equal(other.numpy(), array)


def test_structures_with_tensors_are_copied_in_depth():
    x = cytape.constant(V3)
    again = copy.deepcopy({"x": [x, x], "y": (x * 2.0,)})
    assert again["x"][0] is again["x"][1] is not x
    np.testing.assert_array_equal(again["y"][0].numpy(), 2 * V3)


@each("make", [copy.copy, copy.deepcopy, COPIES["method"], np.copy])
def test_a_copy_of_a_recorded_tensor_is_connected(make):
    x = cytape.constant(V3)
    np.testing.assert_array_equal(gradient(lambda x: make(x * x), x).numpy(), 2 * V3)


# -- life ------------------------------------------------------------------------------------------


def test_tensors_are_counted_and_freed_at_once():
    before = live_tensors()
    tensors = [cytape.constant(V3) for _ in range(1000)]
    assert live_tensors() == before + 1000
    gone = weakref.ref(tensors[0])
    tensors.clear()
    assert live_tensors() == before
    assert gone() is None


def test_ids_are_never_used_twice_by_threads_either():
    def work(x):
        return [(x + 1.0).id for _ in range(1000)]

    ids = in_threads(work, *[cytape.constant(1.0) for _ in range(4)])
    assert len({id for mine in ids for id in mine}) == 4000


def test_a_tensor_made_in_one_thread_is_used_in_another():
    x = in_thread(lambda: cytape.constant(V3) * 2.0)
    np.testing.assert_array_equal((x + V3).numpy(), 3 * V3)
