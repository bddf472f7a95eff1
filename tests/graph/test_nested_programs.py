"""Some random programs of nested bodies (`make random-programs` has many), and that it can fail."""

from itertools import product

import pytest

import cytape.numpy as cnp
from cytape.graph.model.graph_variables import Variables
from cytape.graph.tracing.function_graph import FunctionGraph
from tests.cases import each, grouped
from tests.graph import nested_machines
from tests.graph.nested_programs import (
    BODIES,
    WITHOUT_ASSIGNMENTS,
    Block,
    Program,
    check,
    differences,
    program_of,
)
from tests.tables import table

SEED = 3  # any other does as well


@pytest.mark.parametrize("first", table([30], [n for n in range(0, 400, 10) if n != 30]))
def test_programs_of_nested_bodies_do_what_python_does(first):
    found = list(check(range(first, first + 10), SEED))
    assert not found, "\n".join(found)


def of_one_body(name):
    """Return a program that calls a body which assigns to a variable, or reads it, and uses it."""
    n_operands, n_parameters = BODIES[name]
    statement = ("assign", ["assign_add", 0, True], [2], [])
    if name in WITHOUT_ASSIGNMENTS:
        statement = ("read", [0], [0], [])
    body = Block(0, [statement, ("op", ["multiply"], [3, 2], [])])
    blocks = [Block(n, body.statements) for n in n_parameters]
    block = Block(0, [(name, [2, -5.0], list(range(n_operands)), blocks), ("read", [0], [4], [])])
    drawn = program_of(SEED, 0)
    return Program(block, drawn.arrays, drawn.s, drawn.t)


@each("name", BODIES)
def test_every_body_is_called(name):
    assert list(differences(of_one_body(name))) == []


LOOPS = ["while_loop", "counted_loop", "scan", "foldl", "map_fn", "rows"]


@grouped("outer, inner, counts", [
    (outer, f"{inner}, {counts}", (outer, inner, counts), number % 8 > 0)
    for number, (outer, inner, counts) in enumerate(product(
        LOOPS, LOOPS, product((0, 1, 3), (0, 1, 3))))])
def test_loops_in_loops_of_any_count(outer, inner, counts):
    def loop(name, count, inside):
        n_operands, [n] = BODIES[name]
        return [(name, [count, 0.0], [-1, 0, 1][:n_operands], [Block(n, inside)])]

    inside = [("op", ["tanh"], [-1], []), ("op", ["times the sum"], [-1, 0], [])]
    around = [*loop(inner, counts[1], inside), ("op", ["add"], [-1, 1], [])]
    drawn = program_of(SEED, 0)
    program = Program(Block(0, loop(outer, counts[0], around)), drawn.arrays, drawn.s, drawn.t)
    assert list(differences(
        program, ["in_function", "of_unknown_extents"], ["reverse_over_reverse"])) == []


def test_an_assignment_that_is_not_noticed_is_found(monkeypatch):
    monkeypatch.setattr(FunctionGraph, "note_effects", Variables.note_effects)
    assert any("is stored" in x or "should be" in x for x in differences(of_one_body("cond")))


def test_a_wrong_derivative_is_found_on_every_way(monkeypatch):
    monkeypatch.setitem(nested_machines.OPS, "multiply", nested_machines.Both(
        lambda a, b: a * b + 0.01 * cnp.sin(a), lambda a, b: a * b, 2))
    ways = {x.partition(",")[0] for x in differences(of_one_body("cond"))}
    assert len(ways) == 25


def test_a_number_and_a_seed_always_make_the_same_program():
    assert str(program_of(SEED, 7)) == str(program_of(SEED, 7))
    assert {name for number in range(100) for name in program_of(SEED, number).block.names()} >= {
        *BODIES, "op", "read", "assign", "write"}
