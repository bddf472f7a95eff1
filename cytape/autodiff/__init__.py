"""Differentiation for users: tapes, accumulators, transforms of functions, custom rules."""

import importlib
from typing import TYPE_CHECKING, Any

from cytape.autodiff.custom.custom_gradient import custom_gradient, stop_gradient
from cytape.autodiff.custom.custom_jvp import custom_jvp
from cytape.autodiff.custom.numpy_function import numpy_function
from cytape.autodiff.custom.record_operation import record_operation
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.forward_functional import hessian_vector_product, jvp, make_ggnvp
from cytape.autodiff.functional import grad, value_and_grad, vjp
from cytape.autodiff.gradient_tape import GradientTape, UnconnectedGradients
from cytape.autodiff.jacobian_functional import (
    batch_jacobian,
    elementwise_grad,
    hessian,
    hessian_diagonal,
    jacfwd,
    jacobian,
    jacrev,
)
from cytape.autodiff.recompute import checkpoint, checkpoint_sequential, recompute_grad
from cytape.tensor.recording.state import (
    possible_gradient_types,
    push_forwardprop_state,
    stop_recording,
)

if TYPE_CHECKING:
    from cytape.autodiff.checkpointed_scans import checkpointed_scan
    from cytape.autodiff.custom.elementwise_function import elementwise
    from cytape.autodiff.eager_functional import (
        gradients_function,
        implicit_grad,
        implicit_val_and_grad,
        make_vjp,
        val_and_grad_function,
    )
    from cytape.autodiff.jets import jet

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "UnconnectedGradients",
    "batch_jacobian",
    "checkpoint",
    "checkpoint_sequential",
    "checkpointed_scan",
    "custom_gradient",
    "custom_jvp",
    "elementwise",
    "elementwise_grad",
    "grad",
    "gradients_function",
    "hessian",
    "hessian_diagonal",
    "hessian_vector_product",
    "implicit_grad",
    "implicit_val_and_grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "make_ggnvp",
    "make_vjp",
    "numpy_function",
    "possible_gradient_types",
    "push_forwardprop_state",
    "recompute_grad",
    "record_operation",
    "stop_gradient",
    "stop_recording",
    "val_and_grad_function",
    "value_and_grad",
    "vjp",
]

_LATE = {  # modules of functions that few programs call
    "checkpointed_scan": "checkpointed_scans",
    "elementwise": "custom.elementwise_function",
    "jet": "jets",
} | dict.fromkeys(
    ("gradients_function", "implicit_grad", "implicit_val_and_grad", "make_vjp",
     "val_and_grad_function"), "eager_functional")


def __getattr__(name: str) -> Any:
    """Import rarely used functions at first use."""
    if name not in _LATE:
        raise AttributeError(f"module 'cytape.autodiff' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"cytape.autodiff.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
