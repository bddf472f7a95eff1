"""Random programs of nested bodies that assign to variables, differentiated on every way.

    python -m tests.graph.nested_programs --count 10000 --seed 0

A program computes with vectors: arguments, captured tensors, variables. Its statements are ops,
assignments, writes to copies, and calls of bodies: branches, loops and scans of 0 and more
iterations, `vmap`, functions, checkpointed functions, in each other. Bodies use whatever is in
scope around them. Value, derivatives and what is stored in the end must be those that Python and
hyper-dual numbers give, by {eager, in a function, around a function, in one of unknown extents, in
a graph} x MODES, in the first call and in the second, which runs an optimised plan.

Gradients are with respect to arguments, captured tensors and variables. An assignment stores a
value without its derivative; each read of a variable depends on the variable.
"""

import argparse
import itertools
import sys
import time
import warnings
from dataclasses import dataclass, field

import numpy as np

import cytape
from tests import ways
from tests.graph.nested_machines import COPIES, OPS, WRITES, ByCytape, Dual, InPython, OutOfDomain

N_ARGUMENTS = N_CAPTURED = N_VARIABLES = 2
LARGEST = 1e4
DEPTH = 3


# ---- programs


@dataclass
class Block:
    """Statements, which append to the values in scope; the last of these is the result."""

    n_parameters: int
    statements: list = field(default_factory=list)

    def lines(self, indent=""):
        """List the statements as text, those of inner blocks indented."""
        for name, options, operands, blocks in self.statements:
            shown = ", ".join([*map(str, options), *[f"x{i}" for i in operands]])
            yield f"{indent}{name}({shown})"
            for block in blocks:
                yield f"{indent}  of {block.n_parameters}:"
                yield from block.lines(indent + "    ")

    def names(self):
        """Return the names of all statements, those of inner blocks among them."""
        return {name for name, _, _, blocks in self.statements}.union(
            *[block.names() for _, _, _, blocks in self.statements for block in blocks])


# By name: how many operands, and the numbers of parameters of the blocks that it calls.
BODIES = {
    "cond": (1, [0, 0]),
    "switch_case": (1, [0, 0, 0]),
    "while_loop": (2, [2]),
    "counted_loop": (2, [1]),
    "checkpointed_loop": (1, [1]),
    "checkpointed_scan": (2, [2]),
    "rows": (2, [2]),
    "loop_of_pairs": (2, [2]),
    "scan": (3, [2]),
    "foldl": (3, [2]),
    "map_fn": (2, [1]),
    "map_fn_of_some": (2, [1]),
    "vmap": (2, [1]),
    "function": (2, [2]),
    "function_with_checkpoints": (2, [2]),
    "closure_with_checkpoints": (0, [0]),
    "recompute_grad": (2, [2]),
    "recomputed_closure": (0, [0]),
    "checkpoint": (2, [2]),
}
WITHOUT_ASSIGNMENTS = {"vmap", "checkpointed_scan"}
KINDS = ["op"] * 4 + ["read", "assign", "assign", "write"] + ["body"] * 4


def draw_block(rng, n_parameters, n_scope, depth, pure=False):
    """Draw a block whose scope has so many values before its parameters."""
    block = Block(n_parameters)
    n_values = n_scope + n_parameters
    for _ in range(rng.integers(1, 5)):
        kind = rng.choice(KINDS)
        if pure and kind == "assign" or not depth and kind == "body":
            kind = "op"

        def operands(n, n_values=n_values):
            return [int(n_values - 1 - min(rng.geometric(0.3) - 1, n_values - 1)) for _ in range(n)]

        if kind == "op":
            name = str(rng.choice(list(OPS)))
            block.statements.append(("op", [name], operands(OPS[name].n_operands), []))
        elif kind == "read":
            block.statements.append(("read", [int(rng.integers(N_VARIABLES))], operands(1), []))
        elif kind == "assign":
            method = str(rng.choice(["assign", "assign_add", "assign_sub"]))
            options = [method, int(rng.integers(N_VARIABLES)), bool(rng.integers(2))]
            block.statements.append(("assign", options, operands(1), []))
        elif kind == "write":
            options = [str(rng.choice(list(COPIES))), str(rng.choice(list(WRITES)))]
            block.statements.append(("write", options, operands(2), []))
        else:
            name = str(rng.choice(list(BODIES)))
            n_operands, n_parameters_of_blocks = BODIES[name]
            blocks = [
                draw_block(rng, n, n_values, depth - 1, pure or name in WITHOUT_ASSIGNMENTS)
                for n in n_parameters_of_blocks]
            count, threshold = int(rng.integers(4)), float(rng.normal())
            block.statements.append((name, [count, threshold], operands(n_operands), blocks))
        n_values += 1
    return block


def run(block, scope, machine):
    """Run a block on the values in scope, its parameters included, with a machine's statements."""
    for name, options, operands, blocks in block.statements:
        values = [scope[i] for i in operands]
        functions = [
            lambda *parameters, block=block, scope=scope: run(
                block, (*scope, *parameters), machine)
            for block in blocks]
        scope = (*scope, getattr(machine, name)(*options, *values, *functions))
    return scope[-1]


@dataclass
class Program:
    """A block, arrays for what it computes with, and directions: by argument, capture, variable."""

    block: Block
    arrays: list
    s: list
    t: list

    def __str__(self):
        return "\n".join([
            *self.block.lines(), *[f"{name} = {getattr(self, name)!r}" for name in
                                   ("arrays", "s", "t")]])

    def reference(self):
        """Return the result as a hyper-dual array, and the last values of the variables."""
        duals = [Dual.moving(*x) for x in zip(self.arrays, self.s, self.t, strict=True)]
        given, variables = duals[:-N_VARIABLES], duals[-N_VARIABLES:]
        machine = InPython(variables)
        result = run(self.block, given, machine)
        return result, [variable.a[0] for variable in machine.variables]


def draw_program(rng):
    n = N_ARGUMENTS + N_CAPTURED + N_VARIABLES
    arrays, s, t = rng.normal(size=(3, n, 3))
    block = draw_block(rng, 0, N_ARGUMENTS + N_CAPTURED, DEPTH)
    return Program(block, list(arrays), list(s), list(t))


# ---- ways to a derivative


MODES = ways.MODES | {"reverse_over_forward": ways.reverse_over_forward}


class Call:
    """A program with tensors and variables of its own, and a way to differentiate it."""

    def __init__(self, program):
        self.arrays = program.arrays
        tensors = list(map(cytape.constant, program.arrays[:-N_VARIABLES]))
        self.arguments, self.captured = tensors[:N_ARGUMENTS], tensors[N_ARGUMENTS:]
        self.variables = list(map(cytape.Variable, program.arrays[-N_VARIABLES:]))
        self.s = list(map(cytape.constant, program.s))
        machine = ByCytape(self.variables)
        self.f = lambda *arguments: run(program.block, [*arguments, *self.captured], machine)

    def mode(self, mode, f, arguments):
        sources = [*arguments, *self.captured, *self.variables]
        return mode(lambda *_: f(*arguments), sources, self.s)

    def way(self, mode, place):
        """Return a function without arguments that runs the program again."""
        if place == "in_function":
            inside = cytape.function(lambda *arguments: self.mode(mode, self.f, arguments))
            return lambda: inside(*self.arguments)
        if place == "of_unknown_extents":
            inside = cytape.function(
                lambda *arguments: self.mode(mode, self.f, arguments),
                input_signature=[cytape.Spec.of((None,), float)] * N_ARGUMENTS)
            return lambda: inside(*self.arguments)
        if place == "in_graph":
            return self.in_graph(mode)
        f = cytape.function(self.f) if place == "around_function" else self.f
        return lambda: self.mode(mode, f, self.arguments)

    def in_graph(self, mode):
        with cytape.Graph().as_default() as graph:
            given = [cytape.placeholder("float64", (3,)) for _ in self.arguments]
            inside = cytape.function(lambda *arguments: self.mode(mode, self.f, arguments))
            results = list(map(cytape.identity, inside(*given)))
        session = cytape.Session(graph)
        feeds = list(zip(given, self.arrays[:N_ARGUMENTS], strict=True))
        return lambda: session.run(results, feeds)

    def outcomes(self, mode, place):
        """Run twice; return results, and what is stored in the end."""
        run_once = self.way(mode, place)
        for _ in range(2):
            for variable, array in zip(self.variables, self.arrays[-N_VARIABLES:], strict=True):
                variable.assign(array)
            results = [np.asarray(x) for x in run_once()]
            yield results, [variable.numpy().copy() for variable in self.variables]


PLACES = ["eager", "in_function", "around_function", "of_unknown_extents", "in_graph"]


def differences(program, places=PLACES, modes=MODES):
    """Yield what is not as it should be, as text."""
    result, stored = program.reference()
    exact = np.abs(result.a).max() * 1e-9 + 1e-9
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for place in places:
            for name in modes:
                try:
                    outcomes = list(Call(program).outcomes(MODES[name], place))
                except Exception as error:
                    yield f"{name} {place}: {type(error).__name__}: {error}"
                    continue
                for number, (found, kept) in enumerate(outcomes):
                    if name == "forward":
                        [found], wanted = found, result.a[1]
                    else:
                        directions, component = (
                            (program.s, 1) if name == "reverse" else (program.t, 3))
                        found = sum(np.sum(a * b) for a, b in zip(found, directions, strict=True))
                        wanted = np.sum(result.a[component])
                    if not np.all(np.abs(found - wanted) <= 10 * exact):
                        yield f"{name} {place}, call {number + 1}: {found}, should be {wanted}"
                    for x, y in zip(kept, stored, strict=True):
                        if not np.all(np.abs(x - y) <= 1e-9 * (1 + np.abs(y))):
                            yield f"{name} {place}, call {number + 1}: {x} is stored, should be {y}"


def program_of(seed, number):
    """Draw the program of a number; another where numbers get large or a branch is a near thing."""
    for attempt in range(1000):
        program = draw_program(np.random.default_rng([seed, number, attempt]))
        try:
            with np.errstate(all="ignore"):
                result, stored = program.reference()
        except OutOfDomain:
            continue
        if np.abs(result.a).max() < LARGEST and np.abs(stored).max() < LARGEST:
            return program
    raise AssertionError("no program can be decided")


def check(numbers, seed, **options):
    """Compare programs; yield the first difference of each that has one."""
    for number in numbers:
        program = program_of(seed, number)
        for difference in itertools.islice(differences(program, **options), 1):
            yield f"program {number}, {difference}\n{program}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="the program of this number")
    options = parser.parse_args()
    if options.only is not None:
        program = program_of(options.seed, options.only)
        print(program, *differences(program), sep="\n")
        return
    n_different = 0
    for difference in check(range(options.first, options.first + options.count), options.seed):
        print(difference, flush=True)
        n_different += 1
    print(f"seed {options.seed}: {options.count} programs x {len(PLACES)} places x {len(MODES)} "
          f"modes; {n_different} differ")
    sys.exit(bool(n_different))


if __name__ == "__main__":
    main()
