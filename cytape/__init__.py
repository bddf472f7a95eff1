"""Automatic differentiation for people who write NumPy.

Derivatives of functions of arrays:

- `grad`, `value_and_grad`, `vjp`, `jacobian`, `jacrev`, `elementwise_grad`: reverse mode
- `jvp`, `jacfwd`, `jet`: forward mode; `hessian`, `hessian_vector_product`: both
- `vmap`: a function of one example, applied to a batch

Recording under your control:

- `Tensor`, `Variable`, `constant`: arrays whose operations are recorded
- `GradientTape`, `ForwardAccumulator`: gradients and tangents; `stop_gradient` cuts a path
- `checkpoint`, `recompute_grad`, `checkpointed_scan`: less memory for more time
- `function`: record once, run without Python; `cond`, `while_loop`, `scan`: control flow there

`profile` measures time and memory of each operation.

Derivatives of your own: `custom_gradient`, `custom_jvp`, `elementwise`, `numpy_function`.

Modules: `numpy` and `scipy` (their functions, on tensors), `nn`, `optimizers`, `testing`, `errors`,
`autograd` (its interface), `graph` (graphs, sessions, TensorFlow's names), and `core` (the tape,
for array libraries). What `cytape.autodiff`, `cytape.graph`, `cytape.ops` and `cytape.tensor`
export is found here, too: `cytape.placeholder` is `cytape.graph.placeholder`.
"""

import importlib
import importlib.util
from typing import Any

from cytape import core, errors, nn, numpy
from cytape.autodiff import (
    ForwardAccumulator,
    GradientTape,
    checkpoint,
    custom_gradient,
    custom_jvp,
    elementwise_grad,
    grad,
    hessian,
    hessian_vector_product,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    numpy_function,
    recompute_grad,
    stop_gradient,
    value_and_grad,
    vjp,
)
from cytape.tensor import Tensor, Variable, constant
from cytape.tensor.names_elsewhere import no_attribute as _no_attribute

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "Tensor",
    "Variable",
    "autograd",
    "checkpoint",
    "checkpointed_scan",
    "cond",
    "constant",
    "core",
    "custom_gradient",
    "custom_jvp",
    "elementwise",
    "elementwise_grad",
    "errors",
    "function",
    "grad",
    "graph",
    "hessian",
    "hessian_vector_product",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "nn",
    "numpy",
    "numpy_function",
    "optimizers",
    "profile",
    "recompute_grad",
    "scan",
    "stop_gradient",
    "testing",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    """Import graphs, other libraries' names and rare functions at first use.

    The version is read from the package's metadata.
    """
    if name in ("autograd", "graph", "optimizers", "scipy", "testing"):
        return importlib.import_module(f"cytape.{name}")
    if name.startswith("_") and name != "__version__":  # which tools ask for: no reason to import
        raise AttributeError(f"module 'cytape' has no attribute {name!r}")
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("cytape")
    else:
        for room in ("autodiff", "ops", "tensor", "graph", "profiling"):
            module = importlib.import_module(f"cytape.{room}")
            if name in module.__all__:
                value = getattr(module, name)
                break
        else:
            rooms = (nn, numpy, importlib.import_module("cytape.optimizers"))
            found = [f"see {room.__name__}.{name}" for room in rooms if hasattr(room, name)]
            raise _no_attribute("cytape", name, "".join(found[:1]))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    scipy = ["scipy"] if importlib.util.find_spec("scipy") else []  # it needs SciPy
    return sorted([*__all__, *scipy, "__version__"])
