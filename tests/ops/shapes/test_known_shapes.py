"""Shape rules in C: the same as those in Python, errors included."""

import inspect
import itertools

import numpy as np

from cytape.ops.shapes import joining_shapes, known_shapes, shape_rules
from cytape.tensor.values.spec import Spec, symbolic_spec
from tests.cases import grouped

SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 3), (0, 3), (None, 3), (2, None), None]
FUNCTIONS = {
    "reshape": [{"shape": shape} for shape in [
        (), 6, -1, (6,), (-1,), (3, -1), (-1, -1), (3, 2), (0, -1), (1, 6, 1), (-2, 3), [2, 3],
        (np.int64(2), 3), (2.0, 3), (None, 3),
    ]],
    "transpose": [{"axes": axes} for axes in [
        None, (), (0,), (1, 0), (-1, 0), (0, 0), (0, 2), [1, 0], (2, 0, 1), 0,
    ]],
    "broadcast_to": [{"shape": shape} for shape in [
        (), 3, (3,), (2, 3), (4, 2, 3), (2, 5, 3), (-1,), [2, 3], (0, 3), (1, 3), (2, None),
    ]],
    "expand_dims": [{"axis": axis} for axis in [0, 1, -1, 3, -4, 5, (0, 1), (0, -1), (0, 0)]],
}
CALLS = [
    (name, (shape,), attrs)
    for name, choices in FUNCTIONS.items() for shape in SHAPES for attrs in choices
] + [
    ("concatenate", shapes, {"axis": axis})
    for shapes in [*itertools.product(SHAPES, repeat=2), *itertools.combinations(SHAPES[2:6], 3)]
    for axis in (0, -1, 1, None)
]


def outcome(rule, specs, attrs):
    try:
        spec = rule(*specs, **attrs)
    except Exception as error:
        return type(error), str(error)
    return spec if spec.known else (spec.shape, spec.dtype)


@grouped("name, shapes, attrs", [
    (name, f"{name} of {shapes} with {attrs}", (name, shapes, attrs), False)
    for name, shapes, attrs in CALLS
])
def test_they_do_what_the_rules_in_python_do(name, shapes, attrs):
    specs = [symbolic_spec(shape, np.dtype("float32")) for shape in shapes]
    rules = joining_shapes if name == "concatenate" else shape_rules
    expected = outcome(getattr(rules, name), specs, attrs)
    assert outcome(getattr(known_shapes, name), specs, attrs) == expected


def test_concatenate_promotes():
    a, b = Spec.of((2,), "float32"), Spec.of((3,), "float64")
    assert known_shapes.concatenate(a, b, axis=0) is Spec.of((5,), "float64")
    assert known_shapes.concatenate(a, a, axis=0, dtype="float64") is Spec.of((4,), "float64")


def test_each_is_compared_with_its_counterpart():
    names = [name for name, rule in vars(known_shapes).items() if not name.startswith("_")
             and inspect.isroutine(rule)]
    assert set(names) == {*FUNCTIONS, "concatenate"}
