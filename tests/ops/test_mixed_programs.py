"""Some random programs of mixed dtypes (`make random-programs` has many), and that it can fail."""

import numpy as np
import pytest

import cytape.numpy as cnp
from cytape.ops import variance
from tests.cases import each
from tests.ops import mixed_programs
from tests.ops.hyper_dual import Rounding
from tests.ops.mixed_instructions import Instruction, OutOfDomain
from tests.ops.mixed_programs import RUNS, Expected, Program, check, differences

SEED = 20_000  # any other does as well


def test_programs_of_mixed_dtypes_have_the_right_derivatives():
    found = check(100, SEED)
    assert not found, "\n".join(map(str, found))


def differs(call, reference_of, x, operand):
    """Compare a wrong function of x and an operand with the right one."""
    (reference,) = (i for i in mixed_programs.INSTRUCTIONS if i.name == reference_of)
    wrong = Instruction("wrong", call, reference.reference, 2)
    program = Program([x], [np.ones_like(x)], [np.ones_like(x)])
    program.steps.append((wrong, [0, (None, operand, np.asarray(operand))]))
    places = mixed_programs.PLACES[0]
    found = differences(program, np.random.default_rng(0), places)
    return {difference.route for difference in found}


@each("dtype", ["float16", "float32", "float64"])
def test_a_wrong_derivative_is_found_on_every_way(dtype):
    x = np.array([0.5, 1.5], dtype)

    def wrong(x, y):
        return cnp.hypot(x, y) if isinstance(x, np.ndarray) else cnp.hypot(0.9375 * x, y)

    assert len(differs(wrong, "hypot", x, np.int8(2))) == 13  # the value, too
    assert differs(cnp.hypot, "hypot", x, np.int8(2)) == set()


@each("dtype", ["float16", "float32", "float64"])
def test_a_tie_that_is_not_shared_is_found(dtype):
    def first_wins(x, y):
        return cnp.where(x >= y, x, y)

    x = np.array([2.0, 1.0], dtype)
    assert len(differs(first_wins, "maximum", x, 2)) >= 6  # where it is linear nothing is left


def test_a_slightly_wrong_rule_is_found(monkeypatch):
    right = variance._std_partials
    monkeypatch.setattr(variance, "_std_partials", lambda op: right(op) * 1.03)
    monkeypatch.setattr(mixed_programs, "INSTRUCTIONS",
                        [i for i in mixed_programs.INSTRUCTIONS if i.name in ("std", "add")])
    assert check(100, SEED)


def test_large_adjoints_are_out_of_the_domain():
    """Numbers that are multiplied by 0 in the end may leave half precision on the way."""
    (multiply, product) = (i for i in mixed_programs.INSTRUCTIONS if i.name in ("multiply", "prod"))
    x, factors = np.array([1, 1, 1], "float16"), np.array([140, 140, 0])
    program = Program([x], [x], [x])
    program.steps += [(multiply, [0, (None, factors, factors)]), (product, [1])]
    exact, _ = program.reference(Rounding(np.random.default_rng(0), 1))
    assert not np.any(exact)
    with pytest.raises(OutOfDomain):
        Expected(program, np.random.default_rng(0), RUNS)


def test_a_number_and_a_seed_always_make_the_same_program():
    drawn = [str(mixed_programs.draw_program(np.random.default_rng([SEED, 3]))) for _ in range(2)]
    assert drawn[0] == drawn[1]
