"""docs/architecture.md, "Adding an op": the ops of its examples work in all places and modes."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest

import cytape.numpy as cnp
from cytape import Spec, nn
from cytape.ops.declare import elementwise, general, multilinear
from cytape.ops.engine.batch_axis import along, stacked
from cytape.ops.shapes.shape_rules import reduced_shape
from tests import ways
from tests.cases import each
from tests.ops import test_op_table as table
from tests.ops.op_specs import OpSpec, case

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
SECTION = re.search(r"^## Adding an op\n(.*?)^## ", PAGE.read_text() if PAGE.exists() else
                    "## Adding an op\n## ", re.S | re.M)[1]
EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.S)
assert len(EXAMPLES) == (3 if PAGE.exists() else 0)  # an installed package has no pages
NAMES = {"np": cnp, "math": math, "Spec": Spec, "softmax": nn.softmax, "elementwise": elementwise,
         "general": general, "multilinear": multilinear, "along": along, "stacked": stacked,
         "reduced_shape": reduced_shape}
for example in EXAMPLES:
    exec(example, NAMES)

PLACES = np.array([[2, 0, -2], [1, 3, 0]])
# For each example: a reference made of other ops, samples, and the number of definitions.
ADDED = {
    "softsign": (lambda x: x / (1 + abs(x)), [case((3, 4)), case(()), case((0, 2))], 1),
    "log_mean_exp": (lambda x, axis=-1: cnp.log(cnp.mean(cnp.exp(x), axis)),
                     [case((3, 4)), case((2, 3), axis=0), case((4,))], 2),
    "pick": (lambda x, i: cnp.take_along_axis(x, i, -1),
             [case((2, 4), PLACES), case((3,), np.array([1, 1]))], 3)} if EXAMPLES else {}
CHECKS = [
    "value", "vjp_is_the_numerical_derivative", "a_batch_of_tangents_is_what_they_are_one_by_one",
    "jvp_is_the_numerical_derivative_and_the_vjp_its_adjoint", "jvp_is_the_transposed_vjp",
    "all_ways_to_the_second_derivative_agree", "gradient_keeps_shape_and_dtype_and_precision",
    "second_order"]


@pytest.mark.parametrize("name, example", [*zip(ADDED, EXAMPLES, strict=True)])
def test_an_op_is_added_by_few_definitions(name, example):
    assert len(ast.parse(example).body) == ADDED[name][2]


@each("name", ADDED)
def test_an_added_op_works_wherever_a_program_runs(name):
    plain, cases, _ = ADDED[name]
    arguments = cases[0].inputs[1:]

    def weighted(function):
        def total(x):
            y = function(x, *arguments)
            return cnp.sum(cnp.sin(y) * y)
        return total

    x = np.linspace(-1.0, 1.5, 8 if name == "pick" else 12).reshape(cases[0].inputs[0])
    ways.check(weighted(NAMES[name]), weighted(plain), x)


@each("name", ADDED)
def test_an_added_op_passes_what_the_table_asks_of_each_op(name):
    plain, cases, _ = ADDED[name]
    spec = OpSpec(f"Added {name}", NAMES[name], plain, cases)
    for sample in cases:
        for check in CHECKS:
            dtype = "float32" if "precision" in check else "float64"
            options = {"modes": ["forward", "reverse"]} if check == "second_order" else {}
            getattr(table, f"test_{check}").__wrapped__(spec, sample, dtype, **options)
