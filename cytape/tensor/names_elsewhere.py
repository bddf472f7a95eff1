"""Advice for names and keywords of other libraries that programs ask of this package."""

import functools
import importlib.util
import re
import sys
from collections.abc import Callable
from opcode import opname
from typing import Any, TypeVar

__all__ = [
    "KEYWORDS", "MEMBERS", "NAMES", "advise", "advising", "no_attribute", "no_member",
    "unexpected"]

_F = TypeVar("_F", bound=Callable[..., Any])
_GRADIENTS_ONLY_IN_TAPES = (
    "operations are recorded only in a block `with cytape.GradientTape()` or a function that grad "
    "differentiates: outside of these nothing needs to be turned off; within, there is "
    "`with tape.stop_recording()`, and cytape.stop_gradient(x)")
_CPU = "arrays are in main memory and operations run on the CPU: leave the line out"
_DRAWS = ("draws need no keys: cytape.numpy.random.seed(0), then "
          "cytape.numpy.random.normal(size=(3, 2)); or numpy.random.default_rng(0)")
_LAYERS = ("there are no classes of layers: keep weights in a dict or dataclass, each a "
           "cytape.Variable, and write functions, x @ weights + bias (see docs/training.md)")
_STRUCTURES = ("grad, optimizers and function take lists, dicts and dataclasses of arrays as they "
               "are; write {name: f(x) for name, x in parameters.items()}")
_SEVERAL = ("write cytape.grad(f, argnums=(0, 1)) for several arguments, or pass one dict of "
            "parameters")
_DATA = ("shuffle with rng.permutation(len(x)), and slice arrays: x[order[i : i + 32]] "
         "(docs/training.md)")
# By the module that is asked, then by the name: what to write.
NAMES: dict[str, dict[str, str]] = {
    "cytape": {
        **{theirs: f"see cytape.{ours}" for theirs, ours in {
            "Array": "Tensor", "array": "constant", "as_tensor": "convert_to_tensor",
            "asarray": "convert_to_tensor", "astensor": "convert_to_tensor",
            "backward": "grad, or GradientTape.gradient", "bmm": "numpy.matmul",
            "cast": "numpy.astype", "cat": "numpy.concatenate",
            "check_grads": "testing.check_grads", "clamp": "numpy.clip", "compile": "function",
            "custom_vjp": "custom_gradient", "defjvp": "custom_jvp", "defvjp": "custom_gradient",
            "derivative": "grad, elementwise_grad",
            "digamma": "scipy.special.digamma", "erf": "scipy.special.erf",
            "execute_op": "custom_gradient", "experimental": "numpy",
            "extend": "autograd.extend, or custom_gradient", "flatten": "autograd.misc.flatten",
            "flatten_util": "autograd.misc.flatten",
            "fori_loop": "while_loop, or write a loop of Python", "from_numpy": "convert_to_tensor",
            "func": "grad, vjp, jvp, jacrev, jacfwd, vmap",
            "grad_and_value": "value_and_grad, which returns the value first",
            "gradient": "GradientTape.gradient", "holomorphic_grad": "autograd.holomorphic_grad",
            "hvp": "hessian_vector_product", "jit": "function", "lgamma": "scipy.special.gammaln",
            "linearize": "jvp", "losses": "nn", "make_hvp": "hessian_vector_product",
            "make_jvp": "jvp", "math": "numpy", "misc": "autograd.misc", "mm": "numpy.matmul",
            "nnet": "nn", "norm": "numpy.linalg.norm", "operation_base": "custom_gradient",
            "optim": "optimizers", "Parameter": "Variable", "pmap": "vmap",
            "primitive": "custom_gradient", "reduce_max": "numpy.max", "reduce_mean": "numpy.mean",
            "reduce_min": "numpy.min", "reduce_prod": "numpy.prod", "reduce_sum": "numpy.sum",
            "remat": "checkpoint", "signal": "scipy.signal, numpy.fft", "TensorSpec": "Spec",
            "test_util": "testing", "train": "optimizers", "vectorized_map": "vmap"}.items()},
        **dict.fromkeys(("enable_grad", "inference_mode", "no_autodiff", "no_grad",
                         "set_grad_enabled"), _GRADIENTS_ONLY_IN_TAPES),
        **dict.fromkeys(("block_until_ready", "config", "cuda", "device_get", "device_put",
                         "devices", "local_devices"), _CPU),
        **dict.fromkeys(("manual_seed", "rand", "randint", "randn", "random", "set_seed"), _DRAWS),
        **dict.fromkeys(("multigrad", "multigrad_dict"), _SEVERAL),
        **dict.fromkeys(("tree", "tree_map", "tree_util"), _STRUCTURES),
        **dict.fromkeys(("DataLoader", "data"), _DATA),
        **dict.fromkeys(("disable_eager_execution", "disable_v2_behavior",
                         "global_variables_initializer"),
                        "leave the line out: `with graph.as_default():` builds a graph, and "
                        "variables have their values from the start"),
        **dict.fromkeys(("mem_guard_off", "turn_memory_guarding_off"), "leave the line out"),
        "boolean_mask": "write x[mask]",
        "compat": "names of graphs are here and in cytape.graph: cytape.placeholder, Session",
        "debug": "print(f'{x}') shows values in eager code; in a cytape.function call "
                 "cytape.numpy_function(print, [x], specs=())",
        "eval_shape": "cytape.function(f).get_concrete_function(x).graph shows the shapes",
        "executing_eagerly": "everything runs eagerly outside of a cytape.function and a Graph",
        "is_tensor": "write isinstance(x, cytape.Tensor)",
        "keras": "see cytape.optimizers and cytape.nn; " + _LAYERS,
        "lax": "see cytape.stop_gradient, cond, while_loop, scan, and cytape.nn for convolutions",
        "make_jaxpr": "print(cytape.function(f).get_concrete_function(x).graph)",
        "multi_matmul": "see cytape.numpy.linalg.multi_dot",
        "one_hot": "write numpy.eye(n)[labels]",
        "save": "see numpy.savez, and cytape.optimizers for the state of an optimizer",
        "print": "write print(f'{x}')",
        "set_default_dtype": "dtypes are those of NumPy: float64 for Python's numbers, and that of "
                             "an array for its results",
        "tensor_scatter_nd_update": "write x.at[index].set(values)",
        "utils": "see cytape.checkpoint; for batches of data " + _DATA,
    },
    "cytape.nn": {
        **{theirs: f"see cytape.nn.{ours}, which takes the labels first" for theirs, ours in {
            "BCEWithLogitsLoss": "sigmoid_cross_entropy_with_logits",
            "CrossEntropyLoss": "sparse_softmax_cross_entropy_with_logits",
            "L1Loss": "absolute_error", "MSELoss": "squared_error",
            "bce_with_logits": "sigmoid_cross_entropy_with_logits",
            "binary_cross_entropy_with_logits": "sigmoid_cross_entropy_with_logits",
            "cross_entropy": "sparse_softmax_cross_entropy_with_logits",
            "cross_entropy_loss": "sparse_softmax_cross_entropy_with_logits",
            "l1_loss": "absolute_error", "mse_loss": "squared_error",
            "softmax_cross_entropy": "softmax_cross_entropy_with_logits",
            "softmax_crossentropy": "sparse_softmax_cross_entropy_with_logits"}.items()},
        **dict.fromkeys(("Dense", "GRU", "LSTM", "Linear", "Module", "ModuleList", "RNN",
                         "Sequential", "Transformer", "linear"), _LAYERS),
        **{theirs: f"see cytape.nn.{ours}; {_LAYERS}" for theirs, ours in {
            "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "Conv1d": "conv1d",
            "Conv2d": "conv2d", "Dropout": "dropout", "Embedding": "embedding_lookup",
            "GELU": "gelu", "LayerNorm": "layer_norm", "MaxPool2d": "max_pool2d",
            "ReLU": "relu"}.items()},
        **{theirs: f"see cytape.nn.{ours}" for theirs, ours in {
            "kaiming_normal_": "he_normal", "kaiming_uniform_": "he_normal",
            "smooth_l1_loss": "huber_loss", "xavier_uniform": "glorot_uniform",
            "xavier_uniform_": "glorot_uniform"}.items()},
        **dict.fromkeys(("BCELoss", "binary_cross_entropy", "nll_loss", "NLLLoss"),
                        "losses take logits: see cytape.nn.sigmoid_cross_entropy_with_logits and "
                        "sparse_softmax_cross_entropy_with_logits, which take the labels first"),
        **dict.fromkeys(("Flatten", "flatten"), "write x.reshape(len(x), -1)"),
        "Parameter": "see cytape.Variable",
        "functional": "its functions are here: cytape.nn.relu",
        "init": "see cytape.nn.glorot_uniform and the other initial weights",
        "one_hot": "write numpy.eye(n)[labels]",
        "tanh": "write numpy.tanh(x)",
        "utils": "optimizers take clip_norm and global_clip_norm; see "
                 "cytape.optimizers.clip_by_global_norm",
    },
    "cytape.optimizers": {
        **{name.lower(): f"see cytape.optimizers.{name}" for name in (
            "Adagrad", "Adam", "AdamW", "Lion", "RMSProp", "SGD")},
        "LBFGS": "see cytape.optimizers.lbfgs", "RMSprop": "see cytape.optimizers.RMSProp",
        **dict.fromkeys(("LRScheduler", "ReduceLROnPlateau", "StepLR", "lr_scheduler"),
                        "see cytape.optimizers.step_schedule and the other schedules, which are "
                        "learning rates; or set opt.learning_rate"),
    },
    "cytape.autograd": {
        "Function": "see cytape.custom_gradient",
        "backward": "see cytape.GradientTape",
        "functional": "see cytape.jacobian, hessian, vjp and jvp",
        "multigrad": _SEVERAL,
    },
    "cytape.numpy.random": dict.fromkeys(("PRNGKey", "key", "split", "fold_in"), _DRAWS),
}
# Attributes of optimizers of other libraries.
MEMBERS = {
    "param_groups": "set opt.learning_rate, or pass a schedule as the learning rate",
    **dict.fromkeys(("step", "zero_grad"), "gradients are not kept, pass them, as in "
                    "opt.update(parameters, gradients)"),
}
# Keywords of other libraries: what the parameter is called, or what to write.
KEYWORDS = {
    "args": "write check_grads(f, [x]), where autograd has check_grads(f)(x)",
    "argnum": "the positions of the arguments to differentiate are called argnums",
    "autograph": "write cytape.cond and cytape.while_loop where Python's would read a tensor",
    "betas": "the parameters are called beta_1 and beta_2",
    "device": "leave it out: arrays are in main memory and operations run on the CPU",
    "dim": "the parameter is called axis",
    "eps": "the parameter is called epsilon",
    "holomorphic": "see cytape.autograd.holomorphic_grad",
    "in_dims": "the parameter is called in_axes",
    "inplace": "leave it out",
    "jit_compile": "leave it out",
    "keepdim": "the parameter is called keepdims",
    "kernel_size": "the parameter is called ksize",
    "key": _DRAWS,
    "lr": "the learning rate is called learning_rate",
    "momentum": "the momentum of Adam is called beta_1",
    "normalized_shape": "leave it out: the last axis is normalised, others by axis",
    "p": "the fraction to drop is called rate",
    "out_dims": "the parameter is called out_axes",
    "params": "pass parameters and gradients to update: opt.update(parameters, gradients)",
    "reduction": "losses are not averaged: take numpy.mean or numpy.sum of the result",
    "requires_grad": "tapes watch each Variable, but those with trainable=False",
    "static_argnames": "leave it out: there is a trace for each value of a Python number or string",
    "static_argnums": "leave it out: there is a trace for each value of a Python number or string",
    "stride": "the parameter is called strides",
    "unbiased": "the parameter is called ddof: 1 for PyTorch's default",
    "use_reentrant": "leave it out",
}


_OF_A_KEYWORD = re.compile(
    r"(\w+)\(\) (?:got an unexpected keyword|missing 1 required positional) argument:? '(\w+)'")
_MODULES = ("cytape", "cytape.nn", "cytape.testing", "numpy", "numpy.random")


def no_attribute(module: str, name: str, found: str = "") -> Exception:
    """Return the error for a name that a module lacks, with advice.

    It is an ImportError for ``from module import name``, where Python replaces an AttributeError,
    and the advice with it. found: the replacement for a name without an entry in `NAMES`.
    """
    advice = NAMES.get(module, {}).get(name, found)
    advice = f": {advice}" if advice else ""
    frame = sys._getframe(2)  # of the program that asks the module's `__getattr__`
    if opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM":
        return ImportError(f"cannot import name {name!r} from {module!r}{advice}", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}{advice}")


def unexpected(function: str, keyword: str) -> TypeError:
    """Return the error for a keyword that a function does not have, with advice."""
    advice = f": {KEYWORDS[keyword]}" if keyword in KEYWORDS else ""
    return TypeError(f"{function} got an unexpected keyword argument {keyword!r}{advice}")


def no_member(owner: object, name: str) -> AttributeError:
    """Return the error for an attribute that an object does not have, with advice."""
    advice = MEMBERS.get(name, KEYWORDS.get(name, ""))
    return AttributeError(
        f"{type(owner).__name__} has no attribute {name!r}{': ' * bool(advice)}{advice}")


def advise(error: Exception) -> None:
    """Add advice to an error about a keyword of another library, once.

    Tapes, transforms and traces call it for the errors that pass them.
    """
    found = _OF_A_KEYWORD.match(str(error)) if type(error) is TypeError else None
    if found and found[2] in KEYWORDS and not hasattr(error, "__notes__") and any([
            found[1] in getattr(sys.modules.get(module), "__dict__", ()) for module in _MODULES]):
        error.add_note(KEYWORDS[found[2]])


def advising(function: _F) -> _F:
    """Decorate a function so that errors for keywords of other libraries name the one here."""
    @functools.wraps(function)
    def advised(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            advise(error)
            raise

    return advised  # type: ignore[return-value]


class _Finder:
    """Errors of ``import cytape.lax`` with advice; Python asks it after all other finders.

    Modules of SciPy without a version here are attributes, but cannot be imported by these names.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        module, _, last = name.rpartition(".")
        advice = NAMES.get(module, {}).get(last)
        scipys = name.removeprefix("cytape.") if module.startswith("cytape.scipy") else ""
        if scipys and importlib.util.find_spec(scipys):
            advice = f"import {scipys}, which has no version here"
        if advice:
            raise ModuleNotFoundError(f"No module named {name!r}: {advice}", name=name)


sys.meta_path.append(_Finder)
