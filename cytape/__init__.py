"""cytape: automatic differentiation for people who write NumPy."""

import importlib
from typing import TYPE_CHECKING, Any

from cytape import errors, nn, numpy, ops
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
from cytape.ops.adjoints.identity_groups import add_n, identity_n
from cytape.ops.creation import checkpoint_name, identity
from cytape.ops.engine.user_rules import disable_gradient, register_gradient, register_jvp
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
from cytape.tensor.recording.state import (
    possible_gradient_types,
    push_forwardprop_state,
    stop_recording,
)
from cytape.tensor.structures import register_structure

if TYPE_CHECKING:
    from cytape import graph, optimizers, testing
    from cytape.autodiff.checkpointed_scan import checkpointed_scan
    from cytape.autodiff.custom.elementwise_function import elementwise
    from cytape.autodiff.eager_functional import (
        gradients_function,
        implicit_grad,
        implicit_val_and_grad,
        make_vjp,
        val_and_grad_function,
    )
    from cytape.autodiff.jet import jet
    from cytape.graph import (
        AggregationMethod,
        ConcreteFunction,
        Graph,
        Operation,
        Session,
        TensorArray,
        case,
        colocate_with,
        cond,
        control_dependencies,
        device,
        foldl,
        foldr,
        function,
        get_default_graph,
        get_variable,
        gradients,
        group,
        hessians,
        map_fn,
        name_scope,
        no_op,
        placeholder,
        saved_values,
        scan,
        switch_case,
        vmap,
        while_loop,
    )

    __version__: str

__all__ = [
    "AggregationMethod",
    "ConcreteFunction",
    "ForwardAccumulator",
    "GradientTape",
    "Graph",
    "IndexedSlices",
    "Operation",
    "Session",
    "Spec",
    "Tensor",
    "TensorArray",
    "UnconnectedGradients",
    "Variable",
    "add_n",
    "batch_jacobian",
    "case",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_sequential",
    "checkpointed_scan",
    "colocate_with",
    "cond",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "custom_gradient",
    "custom_jvp",
    "device",
    "disable_gradient",
    "elementwise",
    "elementwise_grad",
    "errors",
    "foldl",
    "foldr",
    "from_dlpack",
    "function",
    "gather",
    "get_default_graph",
    "get_variable",
    "grad",
    "gradients",
    "gradients_function",
    "graph",
    "group",
    "hessian",
    "hessian_diagonal",
    "hessian_vector_product",
    "hessians",
    "identity",
    "identity_n",
    "implicit_grad",
    "implicit_val_and_grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "make_ggnvp",
    "make_vjp",
    "map_fn",
    "name_scope",
    "nn",
    "no_op",
    "numpy",
    "numpy_function",
    "ops",
    "optimizers",
    "placeholder",
    "possible_gradient_types",
    "push_forwardprop_state",
    "recompute_grad",
    "record_operation",
    "register_gradient",
    "register_jvp",
    "register_structure",
    "saved_values",
    "scan",
    "stop_gradient",
    "stop_recording",
    "switch_case",
    "testing",
    "val_and_grad_function",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

_LATE = {  # modules of functions that few programs call
    "checkpointed_scan": "cytape.autodiff.checkpointed_scan",
    "elementwise": "cytape.autodiff.custom.elementwise_function",
    "jet": "cytape.autodiff.jet",
} | dict.fromkeys(
    ("gradients_function", "implicit_grad", "implicit_val_and_grad", "make_vjp",
     "val_and_grad_function"), "cytape.autodiff.eager_functional")


def __getattr__(name: str) -> Any:
    """Import graphs, checks of gradients, other libraries' names and rare functions at first use.

    The version is read from the package's metadata.
    """
    if name in ("autograd", "graph", "optimizers", "scipy", "testing"):
        return importlib.import_module(f"cytape.{name}")
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("cytape")
    elif name in __all__:
        value = getattr(importlib.import_module(_LATE.get(name, "cytape.graph")), name)
    else:
        raise AttributeError(f"module 'cytape' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = {"Any", "TYPE_CHECKING", "_LATE", "importlib"}
    return sorted({*globals(), *__all__, "__version__"} - own)
