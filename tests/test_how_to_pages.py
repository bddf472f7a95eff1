"""Blocks of the how-to pages that need libraries which the tests do not install."""

import re
from pathlib import Path

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

PAGES = Path(__file__).parents[1] / "docs" / "how_to"
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2))


def names_of(page, begin, end="\n## ", **names):
    """Run the blocks of a section of a page, and return the names that they define."""
    text = (PAGES / page).read_text()
    text = text[text.index(begin):]
    for block in re.findall(r"```python\n(.*?)```", text[:text.find(end, len(begin))], re.S):
        exec(block, names)
    return names


def check_wrapper(wrap, matrix_function, pair_function):
    """Walk a wrapper of functions of another library through the ways to call it."""
    f, pair = wrap(matrix_function), wrap(pair_function)
    check_grads(f, [X, Y])
    check_grads(lambda x: pair(x)[0] * pair(x)[1], [X])
    loss = lambda x: np.sum(f(x, Y) ** 2)  # noqa: E731
    for derivative in (cytape.grad(loss), cytape.hessian(loss)):
        np.testing.assert_allclose(cytape.function(derivative)(X), derivative(X))
    assert cytape.vmap(lambda v: f(v[None], Y))(X).shape == (2, 1, 2)
    assert type(f(X, Y)) is cytape.Tensor
    narrow = cytape.grad(lambda x: np.sum(f(x, Y.astype("float32"))))(X.astype("float32"))
    assert narrow.dtype == np.float32
    v = cytape.Variable(X)
    with cytape.GradientTape() as tape:
        y = loss(v)
    np.testing.assert_allclose(tape.gradient(y, v), cytape.grad(loss)(X))


CYTAPE = [lambda x: np.log(np.sum(np.exp(x), axis=-1)), lambda x: (np.sin(x) * x, x ** 2)]


def test_functions_of_torch():
    torch = pytest.importorskip("torch")
    names = names_of("torch_and_jax.md", "## A function of PyTorch")
    assert names["dx"].shape == names["dw"].shape == (3, 3)
    check_wrapper(names["wrap_torch"], lambda x, y: torch.tanh(x @ y), lambda x: (x.sin(), x * x))


@each("function", CYTAPE)
def test_functions_for_torch(function):
    torch = pytest.importorskip("torch")
    names = names_of("torch_and_jax.md", "## A function of PyTorch", "\n## A function of JAX in")
    x = torch.tensor(X, requires_grad=True)
    call = names["to_torch"](function)
    assert torch.autograd.gradcheck(call, (x,)) and torch.autograd.gradgradcheck(call, (x,))


def test_functions_of_jax():
    jax = pytest.importorskip("jax")
    names = names_of("torch_and_jax.md", "## A function of JAX in")
    assert names["force"].shape == (5,)
    check_wrapper(names["wrap_jax"], lambda x, y: jax.numpy.tanh(x @ y),
                  lambda x: (jax.numpy.sin(x), x * x))


@each("function", CYTAPE)
def test_functions_for_jax(function):
    jax = pytest.importorskip("jax")
    names = names_of("torch_and_jax.md", "## A function of JAX in", "\n\n\n\n")
    call = names["to_jax"](function)
    pytest.importorskip("jax.test_util").check_grads(call, (X,), 2, modes=["rev"])
    total = lambda x: sum(jax.numpy.sum(y) for y in jax.tree.leaves(call(x)))  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.grad(total))(X), jax.grad(total)(X))
    np.testing.assert_allclose(jax.vmap(jax.grad(total))(X), jax.grad(total)(X), 1e-12)


def test_tables_and_labels():
    names = names_of("other_libraries.md", "## pandas", cytape=cytape, np=np,
                     pd=pytest.importorskip("pandas"))
    assert abs(names["gradient"] - 2 * (14 - 27.9)) < 1e-12
    names = names_of("other_libraries.md", "## xarray", cytape=cytape, np=np,
                     xr=pytest.importorskip("xarray"))
    assert names["gradient"].tolist() == [0.0, 2.0, 4.0]
