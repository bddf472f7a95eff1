"""Objects that consist of tensors."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cytape
from cytape import IndexedSlices
from cytape.tensor import nest
from cytape.tensor.structures import (
    flatten_structure,
    is_structure,
    leaves_of_result,
    pack_parts,
    pack_structure,
    parts_of,
    register_dataclasses,
    register_structure,
)
from tests.cases import each
from tests.graph.programs import evaluate


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


register_structure(Pair, lambda pair: [pair.first, pair.second], lambda like, parts: Pair(*parts))


def slices(*values):
    return IndexedSlices(cytape.constant(values), cytape.constant(range(len(values))), (9,))


def test_flatten_and_pack():
    pair = Pair(1, Pair(2, 3))
    assert flatten_structure(pair) == [1, 2, 3]
    packed = pack_structure(pair, iter("abc"))
    assert (packed.first, packed.second.first, packed.second.second) == ("a", "b", "c")


def test_objects_that_are_no_structure_are_leaves():
    assert flatten_structure([1, 2]) == [[1, 2]]
    assert pack_structure("x", iter([5])) == 5
    assert not is_structure((1, 2))
    assert is_structure(Pair(1, 2))


def test_parts_are_the_leaves_but_of_arrays_the_elements():
    two = cytape.TensorArray("float64", 3).write(2, 5.0).write(0, 4.0)
    one = cytape.TensorArray("float64", 1).write(0, 6.0)
    x = slices(1.0)
    parts = parts_of({"a": (x, two), "b": [7.0, one]})
    assert parts[0] is x and list(map(float, parts[1:])) == [4.0, 5.0, 7.0, 6.0]
    packed = pack_parts({"a": (x, two), "b": [7.0, one]}, ["x", 1.0, None, 2.0, None])
    assert packed["a"][0] == "x" and packed["b"] == [2.0, None]
    assert packed["a"][1].stack().numpy().tolist() == [1, 0, 0]


def test_nothing_but_none_is_none():
    assert pack_structure(Pair(1, 2), iter([None, None])) is None
    assert pack_structure(Pair(1, 2), iter([None, 5])).first is None
    assert pack_structure(Pair(Pair(1, 2), 3), iter([None, None, 5])).first is None


def test_slices_are_structures_of_their_values():
    x = slices(1.0, 2.0)
    assert flatten_structure(x) == [x.values]
    packed = pack_structure(x, iter(["values"]))
    assert (packed.values, packed.indices, packed.dense_shape) == ("values", x.indices, (9,))


def test_a_class_is_registered_once():
    with pytest.raises(ValueError, match="Pair is registered"):
        register_structure(Pair, list, list)
    with pytest.raises(TypeError, match="only classes can be registered"):
        register_structure("Pair", list, list)


def test_subclasses_are_not_meant():
    class Special(Pair):
        pass

    assert flatten_structure(Special(1, 2))[0].__class__ is Special


def test_gradients_with_respect_to_a_structure(graph):
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    pair = Pair(x, Pair(y, cytape.constant(1.0)))
    gradient, dx = cytape.gradients(x * x * y, [pair, x])
    assert evaluate([gradient.first, gradient.second.first, dx]) == [12.0, 4.0, 12.0]
    assert gradient.second.second is None
    assert cytape.gradients(cytape.constant(1.0), [pair]) == [None]


def test_gradients_of_a_structure(graph):
    x = cytape.constant(2.0)
    pair = Pair(x * x, x * 3.0)
    assert evaluate(cytape.gradients(pair, x)) == [7.0]
    seeds = Pair(cytape.constant(10.0), None)
    assert evaluate(cytape.gradients([pair, x], x, [seeds, None])) == [44.0]
    with pytest.raises(ValueError, match=r"grad_ys\[0\] consists of 1 tensors, its y of 2"):
        cytape.gradients(pair, x, [x])


def test_gradients_with_respect_to_slices(graph):
    sparse = slices(1.0, 2.0)
    [gradient] = cytape.gradients(np.sum(sparse.to_tensor() ** 2), sparse)
    assert isinstance(gradient, IndexedSlices)
    assert gradient.indices is sparse.indices
    np.testing.assert_array_equal(evaluate(gradient.values), [2.0, 4.0])


def test_gradients_of_slices(graph):
    x = cytape.constant([1.0, 2.0])
    sparse = IndexedSlices(x * x, cytape.constant([0, 5]), (9,))
    [gradient] = cytape.gradients(sparse, x)
    np.testing.assert_array_equal(evaluate(gradient), [2.0, 4.0])
    seed = IndexedSlices(cytape.constant([10.0, 100.0]), cytape.constant([0, 5]), (9,))
    [gradient] = cytape.gradients(sparse, x, grad_ys=seed)
    np.testing.assert_array_equal(evaluate(gradient), [20.0, 400.0])


@register_structure
@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = field(default="layer", metadata={"static": True})
    n_made = 0

    def __post_init__(self):
        type(self).n_made += 1


def test_a_dataclass_consists_of_its_fields():
    layer, n_made = Layer(1, {"x": Pair(2, 3)}, "first"), Layer.n_made
    assert flatten_structure(layer) == nest.flatten(layer) == [1, 2, 3]
    for packed in (pack_structure(layer, iter("abc")), nest.pack_sequence_as(layer, "abc")):
        assert type(packed) is Layer and packed.name == "first"
        assert (packed.w, packed.b["x"].second) == ("a", "c")
    assert Layer.n_made == n_made  # packing calls no constructor of the class
    assert pack_structure(layer, iter([None, None, None])) is None
    assert nest.paths(layer, "p") == ["p.w", "p.b['x'][0]", "p.b['x'][1]"]


def test_dataclasses_are_registered_when_they_are_needed():
    @dataclass
    class Late:
        w: Any

    assert not register_dataclasses([1.0, "x", Pair(1, 2)])
    assert nest.flatten(late := Late(1)) == [late]
    assert register_dataclasses([1.0, late])
    assert nest.flatten(late) == [1]
    assert register_dataclasses([late])
    with pytest.raises(ValueError, match="Late is registered as a structure already"):
        register_structure(Late)


@each(("call", "expected"), [
    (lambda f: cytape.function(f)(np.array(3.0)), 9.0),
    (lambda f: cytape.vmap(f)(np.array([3.0, 4.0])), [9.0, 16.0]),
    (lambda f: cytape.vjp(f, 3.0)[0], 9.0), (lambda f: cytape.jvp(f, (3.0,), (1.0,))[1], 6.0),
    (lambda f: cytape.jacobian(f)(3.0), 6.0),
    (lambda f: cytape.jacfwd(cytape.function(f))(3.0), 6.0),
    (lambda f: cytape.jacobian(cytape.recompute_grad(f))(3.0), 6.0),
    (lambda f: cytape.function(cytape.jacobian(cytape.checkpoint(f)))(np.array(3.0)), 6.0),
], ids=["function", "vmap", "vjp", "jvp", "jacobian", "jacfwd", "recompute_grad", "checkpoint"])
def test_dataclasses_of_tensors_that_are_returned_are_structures(call, expected):
    @dataclass
    class Inner:
        x: Any

    @dataclass(frozen=True, slots=True)
    class Outer:
        parts: list

    found = call(lambda x: Outer([Inner(x * x)]))
    assert type(found) is Outer
    x = found.parts[0].x
    assert isinstance(x, (np.ndarray, np.generic))
    np.testing.assert_allclose(x, expected)


def test_dataclasses_without_tensors_are_returned_as_they_are():
    @dataclass
    class Settings:
        n: int
        again: Any = None

    settings = Settings(3)
    settings.again = settings
    assert cytape.function(lambda x: [x, settings])(np.array(1.0))[1] is settings
    assert leaves_of_result([settings]) == [settings]


def test_classes_without_declared_parts():
    with pytest.raises(TypeError, match="int is not a dataclass.*pass flatten and unflatten"):
        register_structure(int)
    with pytest.raises(TypeError, match="pass flatten and unflatten"):
        register_structure(int, lambda x: [])


def test_slices_are_leaves_to_functions():
    x = slices(1.0)
    assert nest.flatten([x]) == [x]
    assert flatten_structure(x) == [x.values]


def test_a_dataclass_that_holds_itself_is_one_object():
    @dataclass
    class Node:
        weight: Any
        children: list
        parent: Any = None

    root, child = Node(cytape.constant(2.0), []), Node(cytape.constant(3.0), [])
    root.children.append(child)
    child.parent = root
    for node, expected in ((root, 2.0), (child, 3.0)):
        assert cytape.recompute_grad(lambda node: node.weight * 1.0)(node).numpy() == expected
