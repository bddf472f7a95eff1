"""How each library takes the gradient of a workload, as its own users would write it.

For every library there is a function that takes a workload, makes constants of its arrays once, and
returns a function without arguments: it computes the value and the gradients, each time anew. What
is imported for a library is imported there, so that only what is installed is asked for.

    A. Workloads are written for a NumPy namespace. MyGrad, autograd and JAX have one; PyTorch and
       TensorFlow get one of the few names that workloads use.
    B. Sequences among the data become lists of steps, since TensorFlow's graphs cannot iterate over
       a tensor.
    C. Numbers among the data, such as how many steps there are, stay Python numbers: compilers
       unroll the loops.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

import cytape
from bench.program_rows import recorded, tensors


@dataclass(frozen=True)
class Library:
    name: str
    gradient: Callable  # (workload) -> a function () -> value, gradients
    package: str  # to import, and to ask for the version
    compiled: bool = False  # traces the program once, and runs what it has made of it

    @property
    def installed(self):
        return importlib.util.find_spec(self.package) is not None


def to_array(x):
    """Return a value or a gradient of any library as a NumPy array."""
    x = x.detach() if hasattr(x, "detach") else x  # PyTorch
    return x.numpy() if hasattr(x, "numpy") else np.asarray(x)


def numpy_forward(workload):
    arguments = *workload.inputs, *workload.constants(np.asarray)
    return lambda: workload.function(np, *arguments)


def cytape_gradient(workload):
    inputs, data = tensors(workload), workload.constants(cytape.constant)

    def gradient():
        tape, value = recorded(workload, inputs, data)
        return value, tape.gradient(value, inputs)

    return gradient


def autograd_gradient(workload):
    import autograd
    import autograd.numpy

    gradient = autograd.value_and_grad(
        lambda *arguments: workload.function(autograd.numpy, *arguments),
        argnum=tuple(range(len(workload.inputs))))
    arguments = *workload.inputs, *workload.constants(np.asarray)
    return lambda: gradient(*arguments)


def mygrad_gradient(workload):
    import mygrad

    mygrad.turn_memory_guarding_off()  # its manual's advice where speed counts
    inputs = [mygrad.tensor(array) for array in workload.inputs]
    data = workload.constants(np.asarray)

    def gradient():
        value = workload.function(mygrad, *inputs, *data)
        value.backward()
        return value, [x.grad for x in inputs]

    return gradient


def torch_gradient(workload):
    import torch

    namespace = SimpleNamespace(
        sin=torch.sin, cos=torch.cos, tanh=torch.tanh, exp=torch.exp, log=torch.log,
        sqrt=torch.sqrt, sum=torch.sum, mean=torch.mean, max=torch.amax)
    inputs = [torch.tensor(array, requires_grad=True) for array in workload.inputs]
    data = workload.constants(torch.tensor)

    def gradient():
        value = workload.function(namespace, *inputs, *data)
        return value, torch.autograd.grad(value, inputs)

    return gradient


def import_tensorflow():
    import tensorflow as tf

    def matmul(x, y):  # its own @ is for matrices only
        return tf.linalg.matvec(x, y) if y.shape.rank == 1 else tf.matmul(x, y)

    tf.Tensor.__matmul__ = matmul
    tf.get_logger().setLevel("ERROR")  # it warns of many traces; there is one per workload
    return tf


def tensorflow_gradient(workload, compiled=False):
    tf = import_tensorflow()
    namespace = SimpleNamespace(
        sin=tf.sin, cos=tf.cos, tanh=tf.tanh, exp=tf.exp, log=tf.math.log, sqrt=tf.sqrt,
        sum=tf.reduce_sum, mean=tf.reduce_mean, max=tf.reduce_max)
    inputs = [tf.constant(array) for array in workload.inputs]
    data = workload.constants(tf.constant)

    def gradient(*inputs):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs)
            value = workload.function(namespace, *inputs, *data)
        return value, tape.gradient(value, inputs)

    if compiled:
        gradient = tf.function(gradient, autograph=False)
    return lambda: gradient(*inputs)


def tensorflow_function_gradient(workload):
    return tensorflow_gradient(workload, compiled=True)


def jax_gradient(workload, compiled=False):
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # on one core, a detour
    arguments = [jax.numpy.asarray(array) for array in workload.inputs]
    arguments += workload.constants(jax.numpy.asarray)
    gradient = jax.value_and_grad(
        lambda *arguments: workload.function(jax.numpy, *arguments),
        argnums=tuple(range(len(workload.inputs))))
    if compiled:
        numbers = [i for i, x in enumerate(arguments) if not isinstance(x, jax.Array | list)]
        gradient = jax.jit(gradient, static_argnums=numbers)
    return lambda: jax.block_until_ready(gradient(*arguments))


def jax_jit_gradient(workload):
    return jax_gradient(workload, compiled=True)


LIBRARIES = [
    Library("cytape", cytape_gradient, "cytape"),
    Library("autograd", autograd_gradient, "autograd"),
    Library("MyGrad", mygrad_gradient, "mygrad"),
    Library("PyTorch", torch_gradient, "torch"),
    Library("TensorFlow", tensorflow_gradient, "tensorflow"),
    Library("JAX", jax_gradient, "jax"),
    Library("tf.function", tensorflow_function_gradient, "tensorflow", compiled=True),
    Library("jax.jit", jax_jit_gradient, "jax", compiled=True),
]
