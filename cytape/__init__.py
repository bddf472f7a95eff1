"""cytape: automatic differentiation for people who write NumPy."""

from cytape import errors, nn, numpy, ops, testing
from cytape.autodiff.custom_gradient import (
    custom_gradient,
    custom_jvp,
    recompute_grad,
    stop_gradient,
)
from cytape.autodiff.eager_functional import (
    gradients_function,
    implicit_grad,
    implicit_val_and_grad,
    make_vjp,
    val_and_grad_function,
)
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.forward_functional import (
    hessian,
    hessian_vector_product,
    jacfwd,
    jvp,
    make_ggnvp,
)
from cytape.autodiff.functional import grad, value_and_grad, vjp
from cytape.autodiff.gradient_tape import GradientTape, UnconnectedGradients
from cytape.autodiff.jet import jet
from cytape.core.workers import get_num_threads, set_num_threads
from cytape.ops.declare import register_gradient, register_jvp
from cytape.ops.indexing import gather
from cytape.tensor import (
    IndexedSlices,
    Spec,
    Tensor,
    Variable,
    constant,
    convert_to_tensor,
    from_dlpack,
)
from cytape.tensor.state import stop_recording

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "IndexedSlices",
    "Spec",
    "Tensor",
    "UnconnectedGradients",
    "Variable",
    "constant",
    "convert_to_tensor",
    "custom_gradient",
    "custom_jvp",
    "errors",
    "from_dlpack",
    "gather",
    "get_num_threads",
    "grad",
    "gradients_function",
    "hessian",
    "hessian_vector_product",
    "implicit_grad",
    "implicit_val_and_grad",
    "jacfwd",
    "jet",
    "jvp",
    "make_ggnvp",
    "make_vjp",
    "nn",
    "numpy",
    "ops",
    "recompute_grad",
    "register_gradient",
    "register_jvp",
    "set_num_threads",
    "stop_gradient",
    "stop_recording",
    "testing",
    "val_and_grad_function",
    "value_and_grad",
    "vjp",
]
