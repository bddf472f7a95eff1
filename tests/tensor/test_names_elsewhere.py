"""Advice for names and keywords of other libraries."""

import importlib
import re

import numpy as np
import pytest

import cytape
from cytape.tensor.names_elsewhere import KEYWORDS, NAMES
from cytape.testing import check_grads
from tests.cases import each


def resolved(dotted):
    """Import the module at the head of a dotted name, and return the object."""
    found, *names = cytape, *dotted.split(".")[1:]
    for name in names:
        found = getattr(found, name)
    return found


def test_the_advice_names_what_exists():
    for advice in [text for names in NAMES.values() for text in names.values()]:
        for dotted in re.findall(r"\bcytape(?:\.\w+)+", advice):
            resolved(dotted)


@each("module", sorted(NAMES))
def test_each_name_is_missing_and_has_its_advice(module):
    asked = importlib.import_module(module)
    for name, advice in NAMES[module].items():
        with pytest.raises(AttributeError, match=re.escape(f"attribute {name!r}: {advice}")):
            getattr(asked, name)
        assert not hasattr(asked, name)


@each("line, advice", [
    ("from cytape import jit", "see cytape.function"),
    ("from cytape import exp", "see cytape.numpy.exp"),
    ("from cytape.nn import CrossEntropyLoss", "takes the labels first"),
    ("from cytape.autograd import multigrad", "argnums"),
    ("from cytape.numpy.random import PRNGKey", "need no keys")])
def test_imports_of_missing_names_have_the_advice(line, advice):
    with pytest.raises(ImportError, match=f"cannot import name.*{advice}"):
        exec(line, {})


@each("line, advice", [
    ("import cytape.lax", "see cytape.stop_gradient"),
    ("from cytape.optim import Adam", "see cytape.optimizers$"),
    ("import cytape.nn.functional as F", "its functions are here"),
    ("from cytape.scipy.spatial.transform import Rotation", "import scipy.spatial.transform"),
    ("import cytape.scipy.nonsense", "'cytape.scipy.nonsense'$"),
    ("import cytape.nonsense", "'cytape.nonsense'$")])
def test_imports_of_missing_modules_have_the_advice(line, advice):
    with pytest.raises(ModuleNotFoundError, match=f"No module named.*{advice}"):
        exec(line, {})


def test_modules_of_scipy_without_a_version_are_its_own():
    import scipy.constants

    assert cytape.scipy.constants is scipy.constants
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        cytape.scipy.nonsense  # noqa: B018


@each("name, instead", [
    ("exp", "numpy.exp"), ("relu", "nn.relu"), ("Adam", "optimizers.Adam"),
    ("linalg", "numpy.linalg")])
def test_names_of_modules_are_found_at_the_top(name, instead):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': see cytape.{instead}$"):
        getattr(cytape, name)


def test_a_name_that_no_library_has_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="^module 'cytape' has no attribute 'nonsense'$"):
        cytape.nonsense  # noqa: B018


@each("call, keyword", [
    (lambda: cytape.grad(abs, argnum=1), "argnum"),
    (lambda: cytape.vmap(abs, in_dims=0), "in_dims"),
    (lambda: cytape.function(abs, static_argnums=1), "static_argnums"),
    (lambda: check_grads(abs), "args"),
    (lambda: cytape.nn.conv2d([[1.0]], [[1.0]], stride=1, padding="SAME"), "stride"),
    (lambda: cytape.nn.max_pool2d([[1.0]], kernel_size=2), "kernel_size")])
def test_keywords_of_other_libraries_have_advice(call, keyword):
    with pytest.raises(TypeError, match=repr(keyword)) as caught:
        call()
    assert caught.value.__notes__ == [KEYWORDS[keyword]]


@each("call, keyword", [
    (lambda x: x.sum(dim=0), "dim"),
    (lambda x: cytape.nn.softmax(x, dim=0), "dim"),
    (lambda x: np.mean(x, axis=0, keepdim=True), "keepdim"),
    (lambda x: cytape.nn.dropout(x, p=0.5), "p")])
def test_errors_that_pass_a_recorder_have_the_advice_once(call, keyword):
    def taped(x):
        with cytape.GradientTape():
            return call(x)

    x = cytape.constant(np.ones(2))
    for run in (taped, cytape.grad(taped), cytape.jvp, cytape.function(call), cytape.vmap(taped)):
        with pytest.raises(TypeError, match=repr(keyword)) as caught:
            run(call, (x,), (x,)) if run is cytape.jvp else run(x)
        assert caught.value.__notes__ == [KEYWORDS[keyword]]


def test_keywords_of_the_users_functions_have_no_advice():
    with pytest.raises(TypeError, match="'dim'") as caught:
        cytape.grad(lambda x: error_of(x, dim=0))(1.0)
    assert not hasattr(caught.value, "__notes__")


def error_of(x):
    return x


def test_errors_of_other_origin_have_no_advice():
    with pytest.raises(TypeError, match="argnums must be") as caught:
        cytape.grad(abs, argnums="argnum")
    assert not hasattr(caught.value, "__notes__")


def test_the_module_tensor_is_no_function():
    with pytest.raises(TypeError, match=r"cytape\.constant\(x\)"):
        cytape.tensor([1.0, 2.0])


def test_attributes_and_keywords_of_classes_have_advice():
    optimizer = cytape.optimizers.SGD(0.1)
    with pytest.raises(AttributeError, match="SGD has no attribute 'lr': .* learning_rate"):
        optimizer.lr = 0.01
    with pytest.raises(AttributeError, match="'param_groups': set opt.learning_rate"):
        optimizer.param_groups  # noqa: B018
    with pytest.raises(TypeError, match="SGD got an unexpected keyword argument 'params': pass"):
        cytape.optimizers.SGD(params=[])
    for make in (cytape.Variable, cytape.constant):
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'requires.*watch"):
            make(1.0, requires_grad=True)


def test_a_device_that_does_not_exist_warns():
    with pytest.warns(UserWarning, match="operations run on the CPU: the device 'cuda'"):
        with cytape.device("cuda"):
            pass
    with cytape.device("/CPU:0"):
        pass
