"""Slots of lower rooms, all filled here: what tensors and the engine call of the ops above them.

Tensors have tables of operators and functions, methods, and refusals of attributes that they cannot
have. The engine has `Conforming`, in `ops/calls/dispatch.pxd`.
"""

import importlib

import numpy as np

from cytape.numpy import families
from cytape.numpy.protocols import (
    UPDATES,
    array_function,
    array_ufunc,
    later,
    ufunc_method,
    version_of,
)
from cytape.ops import creation, indexing
from cytape.ops.adjoints import conform, deferred_derivatives, tangent_batches
from cytape.ops.adjoints.memory_order import order_in_memory
from cytape.ops.calls.dispatch import install_conform
from cytape.ops.elementwise import conjugate_op
from cytape.ops.engine.op_kinds import op_of_name
from cytape.ops.matrix_products import matmul_op
from cytape.ops.shaping import transpose_op
from cytape.ops.sparse_sums import densify
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.operators import install
from cytape.tensor.tensor_methods import install_methods, install_refusals


def _method(function):
    return lambda tensor, *args, **arguments: function(tensor, *args, **arguments)


def _astype(tensor, dtype, order="K", casting="unsafe", subok=True, copy=True):
    if order == "K" and casting == "unsafe":
        return creation.astype(tensor, dtype, copy=copy)
    np.empty(0, tensor.dtype).astype(dtype, order, casting, subok, copy)  # or NumPy's error
    order = order_in_memory(tensor, order)
    return creation.array(tensor, dtype, order=order, copy=copy or None)


def _conjugate(tensor, *args, **arguments):
    if tensor.dtype.kind != "c" and not args and not arguments:
        return convert_to_tensor(tensor)  # unlike the function, which copies
    return conjugate_op(tensor, *args, **arguments)


def _namespace(tensor, /, *, api_version=None):
    """Return `cytape.numpy.array_api`, the namespace of the array API standard."""
    np.empty(0).__array_namespace__(api_version=api_version)  # or NumPy's error
    return importlib.import_module("cytape.numpy.array_api")


def _to_device(tensor, device, /, *, stream=None):
    """Return the tensor itself; "cpu" is the only device."""
    np.empty(0).to_device(device, stream=stream)  # or NumPy's error
    return tensor


def _functions(names):
    return {name: getattr(families, name) for name in names.split()}


IndexedSlices._densify = densify
install_conform(
    # Tensors made to fit a dtype or spec, and the same of batches of tangents.
    cast=conform.cast, sum_to=conform.sum_to, sum_to_op=conform.sum_to_op,
    broadcast_to=conform.broadcast_to, broadcast_to_op=conform.broadcast_to_op,
    broadcast_batch_like=tangent_batches.broadcast_batch_like,
    zeros_in_batch=tangent_batches.zeros_in_batch,
    # Derivatives.
    structural_vjp=deferred_derivatives.structural_vjp, deferred=deferred_derivatives.deferred,
    # Ops.
    constant_op=creation.constant_op, getitem=indexing.getitem_in_graph,
    index_add_op=indexing.index_add_op, named=op_of_name, transpose_op=transpose_op,
    ufunc_method=ufunc_method)
install(
    {
        "matmul": matmul_op,
        "getitem": indexing.get_item_op,
        **_functions(
            "add subtract multiply divide power floor_divide remainder negative positive "
            "absolute square less less_equal equal not_equal greater greater_equal"
        ),
    },
    {
        **_functions(
            "asarray bitwise_and bitwise_or bitwise_xor invert left_shift reshape "
            "right_shift transpose"
        ),
        "array_ufunc": array_ufunc,
        "astype": _astype,
        "array_function": array_function,
        "version_of": version_of,
        "in_order": creation.result_in_order,
        "sparse_product": lambda x, y: importlib.import_module(
            "cytape.ops.sparse_matrices.sparse_tensors").product(x, y),
        "import_updates": lambda: importlib.import_module(UPDATES),
    },
)
install_methods(
    {
        **_functions(
            "all any argmax argmin argpartition argsort cumprod cumsum diagonal dot max "
            "mean min nonzero prod ravel repeat searchsorted squeeze std sum swapaxes take trace "
            "var"
        ),
        "T": property(families.transpose),
        "mT": property(families.matrix_transpose),
        "real": property(families.real),
        "imag": property(families.imag),
        "__array_namespace__": _namespace,
        "to_device": _to_device,
        "__copy__": creation.copy,
        "__deepcopy__": lambda tensor, memo: creation.copy(tensor),
        "__round__": lambda tensor, ndigits=None: families.round(tensor, ndigits or 0),
        # Ops are no functions: nothing would bind a tensor to them.
        **dict.fromkeys(("conj", "conjugate"), _conjugate),
        "round": _method(families.round),
        "flatten": lambda tensor, order="C": creation.identity_op(families.ravel(tensor, order)),
        "clip": lambda x, min=None, max=None, out=None, **options: families.clip(
            x, min, max, out, **options),
        "choose": lambda x, choices, **options: later("choose")(x, choices, **options),
        "copy": lambda tensor, order="C": (
            creation.identity_op(tensor) if order == "C" else creation.copy(tensor, order)),
        "compress": lambda x, condition, axis=None, **options: families.compress(
            condition, x, axis, **options),
    }
)
_IN_MEMORY = {
    "fill": "write x[...] = value",
    "flat": "write x.ravel(), and to assign to elements x[index] = value",
    "partition": "write x = np.partition(x, kth)",
    "put": "write x[index] = values",
    "resize": "write x = np.resize(x, shape)",
    "sort": "write x = np.sort(x)",
    "tobytes": "write x.numpy().tobytes(); but a cache with such keys returns constants",
    "view": "write x.reshape(shape) for another shape, x.copy(), x.astype(dtype) for another "
            "dtype, or x.numpy().view(dtype) for the same bits, at which the gradient stops",
}
_GRADIENTS = (
    "gradients are results: compute the loss under `with cytape.GradientTape() as tape:`, then "
    "call tape.gradient(loss, x); or cytape.grad(f)(x) of a function f")
_OF_OTHER_LIBRARIES = {  # of PyTorch, but for the last three of TensorFlow, JAX and MyGrad
    **dict.fromkeys(("backward", "grad", "grad_fn", "is_leaf", "retain_grad"), _GRADIENTS),
    **dict.fromkeys(("requires_grad", "requires_grad_"),
                    "tapes watch each cytape.Variable, and tensors by tape.watch(x); to freeze a "
                    "variable leave it out of the sources, or make it with trainable=False"),
    **dict.fromkeys(("cpu", "cuda", "to", "type"),
                    "tensors are in main memory; write x.astype(dtype) for another dtype"),
    **{name: f"write x.astype({dtype})" for name, dtype in {
        "bool": "bool", "double": "np.float64", "float": "np.float32", "half": "np.float16",
        "int": "np.int32", "long": "np.int64"}.items()},
    **{name: f"write np.{name}(x)" for name in (
        "abs cos cosh diag exp expm1 flip floor isfinite isinf isnan log log10 log1p log2 sign sin "
        "sinh sqrt square tan tanh tril triu unique").split()},
    **{name: f"write np.{name}(x, y)" for name in ("maximum", "minimum", "outer")},
    **dict.fromkeys(("add", "div", "mul", "sub"), "write x + y, x / y, x * y or x - y"),
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), "write x == y, x >= y and so on"),
    **dict.fromkeys(("scatter", "scatter_", "scatter_add", "scatter_add_", "index_add"),
                    "write x.at[index].set(values), or add"),
    **{name: f"write cytape.nn.{name}(x)" for name in "log_softmax relu sigmoid softmax".split()},
    **dict.fromkeys(("bmm", "matmul", "mm"), "write x @ y"),
    "chunk": "write np.array_split(x, n, axis)",
    "clamp": "write np.clip",
    "clone": "write x.copy()",
    "contiguous": "tensors need no such call",
    **dict.fromkeys(("copy_", "set", "update"), "write v.assign(x) of a variable"),
    "data": "write x.numpy(), or to change a variable v.assign(value)",
    "detach": "write cytape.stop_gradient(x), or x.numpy() for an array",
    "dim": "write x.ndim",
    "expand": "write np.broadcast_to(x, shape)",
    "gather": "write np.take_along_axis(x, index, axis)",
    "index_select": "write np.take(x, index, axis)",
    "inverse": "write np.linalg.inv",
    "masked_fill": "write np.where",
    "masked_select": "write x[mask]",
    "norm": "write np.linalg.norm(x)",
    "numel": "write x.size",
    "pow": "write x ** y",
    "permute": "write x.transpose(axes)",
    "split": "write np.split(x, indices, axis)",
    "t": "write x.T",
    "tile": "write np.tile(x, reps)",
    "topk": "write np.sort(x)[::-1][:k], and np.argsort for the positions",
    "unbind": "write list(x)",
    "unsqueeze": "write np.expand_dims(x, axis)",
    "zero_": "write x[...] = 0",
    **dict.fromkeys(("add_", "div_", "mul_", "sub_"), "write x += y, x -= y, x *= y or x /= y"),
    **dict.fromkeys(("eval", "read_value"), "write x.numpy(), or v.value() of a variable"),
    **dict.fromkeys(("get_shape", "set_shape"), "write x.shape"),
    "block_until_ready": "results are complete when a call returns",
    **dict.fromkeys(("clear_graph", "creator", "null_grad"), _GRADIENTS),
}
install_refusals({
    **{name: f"tensors of other libraries have; {instead}"
       for name, instead in _OF_OTHER_LIBRARIES.items()},
    **{name: f"works in the memory of an array: {instead}" for name, instead in _IN_MEMORY.items()},
    **dict.fromkeys(("ctypes", "flags", "strides"),
                    "describes the memory of an array: pass x.numpy() to functions that read it"),
    "numerator":  # Python shows it above the TypeError that this module raises
        "the statistics module asks for: call mean, median, var or std of cytape.numpy",
})
