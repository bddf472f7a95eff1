"""Derivatives of workloads by each library, as its own users would write them.

For every library and measure there is a function that takes a workload, makes constants of its
arrays once, and returns a function without arguments, which computes the value and the gradients,
say, each time anew. Each function imports its library itself, so that only installed libraries are
needed.

    A. Workloads are written for a NumPy namespace. MyGrad, autograd and JAX have one; PyTorch and
       TensorFlow get one of the few names that workloads use.
    B. Sequences among the data become lists of steps, since TensorFlow's graphs cannot iterate over
       a tensor.
        C. Numbers among the data, such as the number of steps, stay Python numbers: compilers
           unroll the loops.
    D. The Hessian is multiplied with a direction by forward mode over reverse mode.
        E. A program that is one loop uses each library's own loop (`while_loop`, `scan`), or
           Python's if there is none.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np

import cytape
from bench.forward_mode_rows import hvp, jvp, tangent_tensors
from bench.program_rows import recorded, tensors


@dataclass(frozen=True)
class Measure:
    """A measure; a library has a function of that name, or None."""

    name: str
    phrase: str
    answers: tuple[str, str]  # names of the results


GRADIENT = Measure("gradient", "a whole gradient", ("value", "gradient"))
JVP = Measure("jvp", "a Jacobian-vector product", ("value", "tangent"))
HVP = Measure("hvp", "a Hessian-vector product", ("gradient", "product"))
LOOP = Measure("loop", "a whole gradient of a loop", ("value", "gradient"))


@dataclass(frozen=True)
class Library:
    name: str
    package: str  # to import, and to ask for the version
    gradient: Callable  # (workload) -> a function () -> value, gradients
    jvp: Callable | None = None  # (workload) -> a function () -> value, tangent
    hvp: Callable | None = None  # (workload) -> a function () -> gradients, products
    loop: Callable | None = None  # as `gradient`, of a workload that is a loop
    compiled: bool = False  # traces the program once, and runs the compiled trace

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


def with_loop(workload, repeated):
    return replace(workload, function=partial(workload.function, repeated=repeated))


# ---- cytape

def cytape_gradient(workload, compiled=False):
    inputs, data = tensors(workload), workload.constants(cytape.constant)

    def gradient(inputs):
        tape, value = recorded(workload, inputs, data)
        return value, tape.gradient(value, inputs)

    if compiled:
        gradient = cytape.function(gradient)
    return lambda: gradient(inputs)


def cytape_forward_mode(workload, product, compiled):
    data = workload.constants(cytape.constant)

    def run(inputs, tangents):
        return product(workload, inputs, tangents, data)

    arguments = tensors(workload), tangent_tensors(workload)
    if compiled:
        run = cytape.function(run)
    return lambda: run(*arguments)


def cytape_jvp(workload, compiled=False):
    return cytape_forward_mode(workload, jvp, compiled)


def cytape_hvp(workload, compiled=False):
    return cytape_forward_mode(workload, hvp, compiled)


def cytape_loop(workload):
    def repeated(step, x, n):
        return cytape.while_loop(
            lambda i, _: i < n, lambda i, y: (i + 1, step(y)), (cytape.constant(0), x))[1]

    return cytape_gradient(with_loop(workload, repeated), compiled=True)


# ---- autograd

def autograd_program(workload):
    """Return a function for autograd, the numbers of its arguments to differentiate, and all."""
    import autograd.numpy

    def function(*arguments):
        return workload.function(autograd.numpy, *arguments)

    inputs = tuple(range(len(workload.inputs)))
    return function, inputs, (*workload.inputs, *workload.constants(np.asarray))


def autograd_gradient(workload):
    import autograd

    function, inputs, arguments = autograd_program(workload)
    gradient = autograd.value_and_grad(function, inputs)
    return lambda: gradient(*arguments)


def autograd_jvp(workload):
    import autograd

    function, inputs, arguments = autograd_program(workload)
    product = autograd.make_jvp(function, inputs)
    tangents = tuple(workload.tangents())
    return lambda: product(*arguments)(tangents)


def autograd_hvp(workload):
    import autograd

    function, inputs, arguments = autograd_program(workload)
    product = autograd.make_jvp(autograd.grad(function, inputs), inputs)
    tangents = tuple(workload.tangents())
    return lambda: product(*arguments)(tangents)


# ---- MyGrad, which has reverse mode only, and no derivatives of derivatives

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


# ---- PyTorch

def torch_program(workload):
    """Return a function of the inputs for PyTorch."""
    import torch

    namespace = SimpleNamespace(
        sin=torch.sin, cos=torch.cos, tanh=torch.tanh, exp=torch.exp, log=torch.log,
        sqrt=torch.sqrt, sum=torch.sum, mean=torch.mean, max=torch.amax)
    data = workload.constants(torch.tensor)
    return lambda *inputs: workload.function(namespace, *inputs, *data)


def torch_gradient(workload):
    import torch

    function = torch_program(workload)
    inputs = [torch.tensor(array, requires_grad=True) for array in workload.inputs]

    def gradient():
        value = function(*inputs)
        return value, torch.autograd.grad(value, inputs)

    return gradient


def torch_forward_mode(workload, function):
    import torch

    inputs, tangents = (
        tuple(torch.tensor(array) for array in arrays)
        for arrays in (workload.inputs, workload.tangents()))
    return lambda: torch.func.jvp(function, inputs, tangents)


def torch_jvp(workload):
    return torch_forward_mode(workload, torch_program(workload))


def torch_hvp(workload):
    import torch

    inputs = tuple(range(len(workload.inputs)))
    return torch_forward_mode(workload, torch.func.grad(torch_program(workload), inputs))


# ---- TensorFlow

def tensorflow_program(workload):
    """Return a function of the inputs for TensorFlow, and one for the value and gradients."""
    import tensorflow as tf

    def matmul(x, y):  # its own @ is for matrices only
        return tf.linalg.matvec(x, y) if y.shape.rank == 1 else tf.matmul(x, y)

    tf.Tensor.__matmul__ = matmul
    tf.get_logger().setLevel("ERROR")  # it warns of many traces; there is one per workload
    namespace = SimpleNamespace(
        sin=tf.sin, cos=tf.cos, tanh=tf.tanh, exp=tf.exp, log=tf.math.log, sqrt=tf.sqrt,
        sum=tf.reduce_sum, mean=tf.reduce_mean, max=tf.reduce_max)
    data = workload.constants(tf.constant)

    def function(*inputs):
        return workload.function(namespace, *inputs, *data)

    def gradient(*inputs):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs)
            value = function(*inputs)
        return value, tape.gradient(value, inputs)

    return function, gradient


def tensorflow_gradient(workload, compiled=False):
    import tensorflow as tf

    _, gradient = tensorflow_program(workload)
    inputs = [tf.constant(array) for array in workload.inputs]
    if compiled:
        gradient = tf.function(gradient, autograph=False)
    return lambda: gradient(*inputs)


def tensorflow_forward_mode(workload, function, compiled):
    import tensorflow as tf

    def product(inputs, tangents):
        with tf.autodiff.ForwardAccumulator(inputs, tangents) as accumulator:
            answer = function(*inputs)
        return answer, accumulator.jvp(answer)

    inputs, tangents = (
        [tf.constant(array) for array in arrays]
        for arrays in (workload.inputs, workload.tangents()))
    if compiled:
        product = tf.function(product, autograph=False)
    return lambda: product(inputs, tangents)


def tensorflow_jvp(workload, compiled=False):
    function, _ = tensorflow_program(workload)
    return tensorflow_forward_mode(workload, function, compiled)


def tensorflow_hvp(workload, compiled=False):
    _, gradient = tensorflow_program(workload)
    return tensorflow_forward_mode(workload, lambda *inputs: gradient(*inputs)[1], compiled)


def tensorflow_loop(workload):
    import tensorflow as tf

    def repeated(step, x, n):
        return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, step(y)), (0, x),
                             maximum_iterations=n)[1]

    return tensorflow_gradient(with_loop(workload, repeated), compiled=True)


# ---- JAX

def jax_program(workload, differentiate, tangents, compiled):
    """Return a program that calls `differentiate` with a function, the inputs and tangents."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # on one core, a detour

    def run(inputs, tangents, *data):
        return differentiate(
            lambda *inputs: workload.function(jax.numpy, *inputs, *data), inputs, tangents)

    inputs, tangents = (
        tuple(jax.numpy.asarray(array) for array in arrays)
        for arrays in (workload.inputs, tangents))
    data = workload.constants(jax.numpy.asarray)
    if compiled:
        numbers = [i for i, x in enumerate(data, 2) if not isinstance(x, jax.Array | list)]
        run = jax.jit(run, static_argnums=numbers)
    return lambda: jax.block_until_ready(run(inputs, tangents, *data))


def jax_gradient(workload, compiled=False):
    import jax

    numbers = tuple(range(len(workload.inputs)))

    def gradient(function, inputs, _):
        return jax.value_and_grad(function, numbers)(*inputs)

    return jax_program(workload, gradient, (), compiled)


def jax_jvp(workload, compiled=False):
    import jax

    return jax_program(workload, jax.jvp, workload.tangents(), compiled)


def jax_hvp(workload, compiled=False):
    import jax

    numbers = tuple(range(len(workload.inputs)))

    def product(function, inputs, tangents):
        return jax.jvp(jax.grad(function, numbers), inputs, tangents)

    return jax_program(workload, product, workload.tangents(), compiled)


def jax_loop(workload, compiled=False):
    import jax

    def repeated(step, x, n):
        return jax.lax.scan(lambda y, _: (step(y), None), x, None, length=n)[0]

    return jax_gradient(with_loop(workload, repeated), compiled)


# ---- all of them

def compiling(program):
    return partial(program, compiled=True)


LIBRARIES = [
    Library("cytape", "cytape", cytape_gradient, cytape_jvp, cytape_hvp, cytape_gradient),
    Library("autograd", "autograd", autograd_gradient, autograd_jvp, autograd_hvp),
    Library("MyGrad", "mygrad", mygrad_gradient),
    Library("PyTorch", "torch", torch_gradient, torch_jvp, torch_hvp, torch_gradient),
    Library("TensorFlow", "tensorflow", tensorflow_gradient, tensorflow_jvp, tensorflow_hvp),
    Library("JAX", "jax", jax_gradient, jax_jvp, jax_hvp, jax_loop),
    Library("cytape.function", "cytape",
            *map(compiling, (cytape_gradient, cytape_jvp, cytape_hvp)), cytape_loop,
            compiled=True),
    Library("tf.function", "tensorflow",
            *map(compiling, (tensorflow_gradient, tensorflow_jvp, tensorflow_hvp)),
            tensorflow_loop, compiled=True),
    Library("jax.jit", "jax", *map(compiling, (jax_gradient, jax_jvp, jax_hvp, jax_loop)),
            compiled=True),
]
