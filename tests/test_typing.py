"""Types of the public names, as mypy and pyright see them when `make lint` runs these."""

import ast
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import cytape
import cytape.numpy as cnp
from cytape import GradientTape, IndexedSlices, Spec, Tensor, Variable
from cytape.core import OpType, Tape, VSpace
from cytape.graph.tracing.functions import Function
from cytape.ops.calls.op_call import OpCall
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.op_kinds import general
from tests.cases import each

PACKAGE = Path(cytape.__file__).parent
with cytape.Graph().as_default():
    ASSIGNED = cytape.Variable(1.0).assign(2.0)  # a tensor with all attributes that some have
# Of classes whose objects have attributes that their class does not name.
INSTANCES = {Tensor: ASSIGNED, Function: cytape.function(abs)}


def test_tensors() -> None:
    x = cytape.constant([1.0, 2.0], dtype="float32")
    assert_type(x, Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.spec, Spec)
    assert_type(x.spec.trainable, bool)
    assert_type(x.numpy(), NDArray[Any])
    assert_type(x + 1, Tensor)
    assert_type(2.0 * x, Tensor)
    assert_type(x @ [1.0, 2.0], Tensor)
    assert_type(x == x, Tensor)
    assert_type(-abs(x), Tensor)
    assert_type(divmod(x, 2), tuple[Tensor, Tensor])
    assert_type(x[0], Tensor)
    assert_type(x[None, ::2], Tensor)
    assert_type([element for element in x], list[Tensor])
    assert_type(float(x[0]), float)
    assert_type(len(x), int)
    assert_type(x.sum(axis=0, keepdims=True), Tensor)
    assert_type(x.reshape(2, -1).transpose(1, 0), Tensor)
    assert_type(x.T.astype("float64"), Tensor)
    assert_type(cytape.convert_to_tensor([x, x]), Tensor)
    assert_type(cytape.from_dlpack(np.ones(2)), Tensor)
    assert float(x.sum()) == 3.0


def test_names_of_modules_that_are_found_at_the_top_too() -> None:
    assert_type(cytape.UnconnectedGradients("zero"), cytape.autodiff.UnconnectedGradients)
    assert_type(cytape.convert_to_tensor(1.0), Tensor)
    graph = cytape.Graph()
    assert_type(graph, cytape.graph.Graph)
    with graph.as_default():
        assert_type(cytape.placeholder("float64", (2,)), Tensor)
    assert isinstance(graph, cytape.Graph)


def test_functions_of_functions() -> None:
    assert_type(cytape.function(abs), Function)
    assert_type(cytape.function(max_traces=1)(abs), Function)
    assert_type(cytape.grad(abs), Callable[..., Any])
    assert_type(cytape.autograd.grad(abs), Any)
    assert_type(cytape.autograd.numpy.sum(1.0), Any)
    assert_type(cnp.float64(cnp.pi), np.float64)
    assert float(cytape.autograd.grad(abs)(-2.0)) == float(cytape.grad(abs)(-2.0)) == -1.0


def test_the_version() -> None:
    assert_type(cytape.__version__, str)


def test_variables() -> None:
    v = Variable(lambda: np.ones(2), trainable=False, name="bias")
    assert_type(v.value(), Tensor)
    assert_type(v.assign([1, 2]).assign_add(v).assign_sub(1.0), Variable)
    assert_type(v.name, str)
    assert_type(v * v, Tensor)
    assert v.numpy().tolist() == [1.0, 3.0]


def test_slices() -> None:
    slices = IndexedSlices(cytape.constant([1.0]), cytape.constant([1]), (3,))
    assert_type(slices.to_tensor(), Tensor)
    assert_type(slices.shape, tuple[int, ...] | None)
    assert slices.to_tensor().numpy().tolist() == [0.0, 1.0, 0.0]


def test_draws() -> None:
    with pytest.raises(TypeError):
        cnp.random.normal(mean=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cnp.random.integers(size=3)  # type: ignore[call-arg]
    assert cnp.random.normal(loc=1.0, scale=2.0, size=3, seed=1).shape == (3,)


def test_ops() -> None:
    x = cytape.constant([1.0, 2.0])
    assert_type(cnp.sin(x), Tensor)
    assert_type(cnp.multiply(2.0, x), Tensor)
    assert_type(cytape.nn.relu(x), Tensor)
    op = general("DeclaredTypedSquare", np.square)
    assert_type(op, GeneralOp)

    @cytape.register_gradient("DeclaredTypedSquare")
    def gradient(op: OpCall, g: Any) -> Any:
        assert_type(op.attrs, dict[str, Any])
        return 2 * op.inputs[0] * g

    with GradientTape(persistent=True) as tape:
        assert_type(tape, GradientTape)
        tape.watch(x)
        y = op(x)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


class Numbers(VSpace):
    """Plain numbers as gradients."""

    def ones_like(self, info: Any) -> float:
        return 1.0

    def call_backward_function(
        self,
        op_type: str,
        backward: Any,
        unneeded_gradients: list[int],
        output_gradients: list[Any],
    ) -> list[float]:
        return [backward * output_gradients[0]]


def test_the_core() -> None:
    tape = Tape(persistent=True)
    tape.watch(0)
    op_type = OpType("Triple", optional_gradients=[1])
    assert_type(tape.record(op_type, [1], [0], ["float64"], lambda: 3.0), bool)
    assert_type(tape.usages(), dict[int, int])
    gradients = tape.compute_gradient(Numbers(), targets=[1], sources=[0])
    assert_type(gradients, list[Any])
    assert gradients == [3.0]


def test_every_public_object_of_a_compiled_module_has_a_stub() -> None:
    for package in (cytape, cytape.autodiff, cytape.core, cytape.graph, cytape.ops, cytape.tensor):
        for thing in (getattr(package, name) for name in package.__all__):
            bases = thing.__mro__ if isinstance(thing, type) else (thing,)
            modules = {base.__module__ for base in bases if hasattr(base, "__module__")}
            for module in modules - {"cytape.core.op_store"}:  # a base without public names
                source = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".pyx")
                assert not source.exists() or source.with_suffix(".pyi").exists(), module


@each(
    "stub", sorted(PACKAGE.rglob("*.pyi")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_a_stub_describes_what_is_there(stub: Path) -> None:
    name = ".".join(stub.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(module, node.name))
        elif isinstance(node, ast.ClassDef):
            cls = getattr(module, node.name)
            described = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            described |= {
                ast.unparse(member.target) for member in node.body
                if isinstance(member, ast.AnnAssign)
            }
            described |= {  # of enumerations
                target.id for member in node.body if isinstance(member, ast.Assign)
                for target in member.targets if isinstance(target, ast.Name)
            }
            there = set(dir(INSTANCES.get(cls, cls)))
            assert described <= there
            # Methods hidden there only raise an error that names their replacement.
            public = {n for n in vars(cls) if not n.startswith("_")
                      and (cls not in INSTANCES or n in there)}
            assert public - set(dir(cls.__base__)) <= described


NAMESPACES = [
    "cytape", *(f"cytape.{name}" for name in (
        "autodiff", "core", "graph", "nn", "numpy", "numpy.fft", "numpy.linalg", "numpy.random",
        "ops", "optimizers", "tensor", "testing")),
    *(f"cytape.scipy.{name}" for name in (
        "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
        "sparse.linalg", "spatial.distance", "special", "stats"))]


@each("name", NAMESPACES)
def test_every_public_function_says_what_it_returns(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", None) or dir(module):
        thing = inspect.unwrap(getattr(module, public))
        if isinstance(thing, FunctionType) and thing.__module__.startswith("cytape."):
            made = "<locals>" in thing.__code__.co_qualname  # by a function that is not annotated
            assert made or public.startswith("_") or "return" in thing.__annotations__, public
