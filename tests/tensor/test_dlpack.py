"""DLPack in both directions: shared memory is never written to without the user's consent."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.tensor.tensor import tensor_of
from tests.cases import each
from tests.ways import watching

V3 = np.array([1.0, 2.0, 3.0])
V23 = np.arange(6.0).reshape(2, 3)
BIG = np.arange(10_000.0)


@each("array", [
    np.array(1.5), V3, V23.T, V23[:, ::-1], BIG[::2], np.broadcast_to(V3, (2, 3)), BIG,
    np.array([1, 2], "int8"), np.array([True]), np.array([1j]), np.zeros((0, 3))])
def test_data_pass_out_and_in(array):
    tensor = tensor_of(array)
    for out in (np.from_dlpack(tensor), cytape.from_dlpack(tensor).numpy(),
                cytape.from_dlpack(array, copy=False).numpy()):
        np.testing.assert_array_equal(out, array)
        assert out.dtype == array.dtype
    assert tensor.__dlpack_device__() == array.__dlpack_device__()
    assert type(cytape.from_dlpack(array)) is cytape.Tensor


# ---- exports


class Consumer:
    """Asks for data as another library does: from a module of its name, with its arguments."""

    def __init__(self, tensor, library, **arguments):
        names = {"__name__": f"{library}.dlpack"}
        exec("def ask(tensor, arguments): return tensor.__dlpack__(**arguments)", names)
        self.export = lambda: names["ask"](tensor, arguments)
        self.tensor = tensor

    def __dlpack__(self, **_):
        return self.export()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_numpy_shares_memory_if_asked_read_only():
    tensor = cytape.constant(BIG)
    out = np.from_dlpack(tensor, copy=False)
    assert np.shares_memory(out, tensor.numpy())
    assert not out.flags.writeable
    np.from_dlpack(tensor)[:] = 0.0  # a copy
    del tensor
    np.testing.assert_array_equal(out, BIG)


@each("data", [V3, BIG])
@each("library, arguments, shares", [
    ("mine", {}, False),
    ("mine", {"max_version": (0, 8)}, False),
    ("mine", {"max_version": (1, 0)}, False),  # may ignore the mark, as PyTorch does
    ("mine", {"max_version": (1, 0), "copy": True}, False),
    ("mine", {"max_version": (1, 0), "copy": False}, True),
    ("jax", {}, True),  # never writes
    ("jax", {"stream": None, "copy": True}, False)])
def test_consumers_that_might_write_get_a_copy(data, library, arguments, shares):
    tensor = cytape.constant(data)
    out = np.from_dlpack(Consumer(tensor, library, **arguments))
    np.testing.assert_array_equal(out, data)
    assert np.shares_memory(out, tensor.numpy()) == shares


@each("part", [lambda x: x[::2], lambda x: x[::-1]])
@each("library, arguments", [("mine", {"max_version": (1, 0)}), ("jax", {})])
def test_strided_data_are_copied(part, library, arguments):
    tensor = part(cytape.constant(BIG))
    out = np.from_dlpack(Consumer(tensor, library, **arguments))
    np.testing.assert_array_equal(out, part(BIG))
    assert not np.shares_memory(out, tensor.numpy())


def test_errors_of_exports():
    with pytest.raises(BufferError):
        np.from_dlpack(cytape.constant("text"))
    with pytest.raises(BufferError, match="reversed axis"):
        np.from_dlpack(cytape.constant(BIG)[::-1], copy=False)
    with pytest.raises(BufferError):  # there is no mark for shared memory
        cytape.constant(V3).__dlpack__(copy=False)
    with pytest.raises(BufferError):
        cytape.constant(V3).__dlpack__(dl_device=(2, 0))


def test_exports_of_recorded_and_symbolic_tensors_are_errors():
    x, v = cytape.constant(V3), cytape.Variable(V3)
    with watching(x):
        for tensor in (x, x * 2.0, v):
            with pytest.raises(DetachedError, match="tensor.numpy()"):
                np.from_dlpack(tensor)
        assert np.from_dlpack(cytape.stop_gradient(x)).tolist() == V3.tolist()
    with pytest.raises(SymbolicTensorError, match="__dlpack__"):
        cytape.function(lambda x: np.from_dlpack(x))(V3)


def test_an_export_of_a_variable_keeps_its_value():
    v = cytape.Variable(BIG)
    out = np.from_dlpack(v)
    v.assign_add(BIG)
    v[0] = 5.0
    np.testing.assert_array_equal(out, BIG)


# ---- imports


@each("copy", [None, True])
def test_imports_are_copies(copy):
    array = BIG.copy()
    tensor = cytape.from_dlpack(array, copy=copy, device="cpu")
    array[:] = 0
    np.testing.assert_array_equal(tensor.numpy(), BIG)


def test_an_import_without_copy_shares_memory_and_does_not_write_to_it():
    array = BIG.copy()
    tensor = cytape.from_dlpack(array, copy=False)
    assert np.shares_memory(tensor.numpy(), array) and not tensor.numpy().flags.writeable
    tensor[0] = 7.0
    tensor += 1.0
    with cytape.GradientTape() as tape:
        tape.watch(tensor)
        y = np.sum(tensor * tensor)
    tape.gradient(y, tensor)
    np.testing.assert_array_equal(array, BIG)
    assert tensor[0].item() == 8.0


@each("x, error", [
    ([1.0], AttributeError), (np.ma.array([1.0]), TypeError), (np.array("text"), BufferError)])
def test_objects_without_dlpack_are_errors(x, error):
    with pytest.raises(error):
        cytape.from_dlpack(x)


def test_other_devices_are_errors():
    with pytest.raises(ValueError, match="cpu"):
        cytape.from_dlpack(V3, device="gpu")


# ---- other libraries


def test_torch_takes_tensors_and_gives_them():
    torch = pytest.importorskip("torch")
    tensor = cytape.constant(BIG) * 1.0
    address = tensor.numpy().ctypes.data
    for make in (torch.from_dlpack, torch.as_tensor, torch.asarray):
        make(tensor)[0] = 99.0
        assert tensor[0].item() == 0.0
    assert torch.from_dlpack(tensor, copy=False).data_ptr() == address
    with pytest.warns(UserWarning, match="not writable"):
        assert torch.from_numpy(tensor.numpy()).data_ptr() == address
    theirs = torch.arange(10_000.0)
    assert cytape.from_dlpack(theirs, copy=False).numpy().ctypes.data == theirs.data_ptr()
    with pytest.raises(BufferError, match="detach"):
        cytape.from_dlpack(torch.ones(3, requires_grad=True))
    for product in (theirs[:3] * cytape.constant(V3), cytape.constant(V3) * theirs[:3]):
        assert type(product) is cytape.Tensor and product.tolist() == [0.0, 2.0, 6.0]


def test_jax_takes_tensors_and_gives_them():
    jax = pytest.importorskip("jax")
    data = np.arange(100_000, dtype="float32")
    tensor = cytape.numpy.cumsum(cytape.constant(np.ones_like(data))) - 1
    theirs = jax.dlpack.from_dlpack(tensor)
    assert theirs.unsafe_buffer_pointer() == tensor.numpy().ctypes.data
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(tensor[::2]), data[::2])
    jax.jit(lambda x: x + 1, donate_argnums=0)(jax.dlpack.from_dlpack(tensor))
    np.testing.assert_array_equal(tensor, data)
    ours = cytape.from_dlpack(theirs + 1, copy=False)
    ours[0] = 5.0
    np.testing.assert_array_equal(theirs, data)
