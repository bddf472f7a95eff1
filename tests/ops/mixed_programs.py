"""Random programs of mixed dtypes, differentiated on every way, against derivatives in float64.

    python -m tests.ops.mixed_programs --count 200000 --seed 0

A program mixes inputs of half, single and double precision with arrays, tensors and scalars of all
integer and floating point dtypes, and Python's numbers. Its result must have NumPy's dtype; its
value and its derivatives, by {reverse, forward, both second orders} x {eager, function, graph},
must be those of `hyper_dual`, as exactly as its dtypes allow.

Programs stay away from kinks (but not from ties that are exact), poles and large numbers, also
among the derivatives in results on the way: what they are to show is that operands of any kind are
taken for the numbers that they are.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field

import numpy as np

import cytape
from tests.ops import hyper_dual as hd
from tests.ops.hyper_dual import ST, VALUE, S, T
from tests.ops.mixed_instructions import FLOATS, INSTRUCTIONS, OutOfDomain, require
from tests.ways import MODES, derivatives

INTEGERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SHAPES = [(), (), (3,), (3,), (2, 3), (1, 3), (2, 1), (70,)]
# By turns the derivative is taken within the traced function, and around it.
PLACES = [["eager", "in_function", "in_graph"], ["eager", "around_function", "in_graph"]]
RUNS = 9                # of the reference: one exact, the others rounded
DOUBTED_RUNS = 65       # where a result seems wrong
TIMES_APART = 8.0       # the rounded ones, a result may be from the exact one
LARGEST = 150.0         # of values and derivatives on the way, too: 2 * LARGEST**2 is a float16


# -- operands that do not move ---------------------------------------------------------------------


def draw_constant(rng):
    """Draw an operand of any kind; return it, and its value as an array."""
    kind = rng.choice(["array", "tensor", "scalar", "python"])
    if kind == "python":
        x = [2, -1, 3, 0, 0.5, -1.25, True, 2.0][rng.integers(8)]
        return x, np.asarray(x)
    dtype = np.dtype(str(rng.choice(INTEGERS + FLOATS)))
    shape = () if kind == "scalar" else SHAPES[rng.integers(len(SHAPES))]
    array = numbers(rng, dtype, shape)
    if kind == "scalar":
        return array[()], array
    return (cytape.constant(array) if kind == "tensor" else array), array


def numbers(rng, dtype, shape):
    """Draw numbers that are exact in every floating point dtype."""
    if dtype.kind == "f":
        values = rng.integers(-24, 25, shape) / 8
    elif dtype.kind == "b":
        values = rng.integers(0, 2, shape)
    elif rng.random() < 0.2:  # the extremes of 8 bits
        values = rng.choice([max(-128, np.iinfo(dtype).min), min(127, np.iinfo(dtype).max)], shape)
    else:
        values = rng.integers(max(-4, np.iinfo(dtype).min), 5, shape)
    return np.array(values, dtype)


# -- programs --------------------------------------------------------------------------------------


@dataclass
class Program:
    """Inputs, their directions, and steps: an instruction and its operands.

    An operand is the number of an input or of the result of a step, or (None, operand, value).
    """

    inputs: list
    s: list
    t: list
    steps: list = field(default_factory=list)

    def __call__(self, *inputs):
        results = list(inputs)
        for instruction, operands in self.steps:
            results.append(instruction.call(*[
                operand[1] if isinstance(operand, tuple) else results[operand]
                for operand in operands
            ]))
        return results[-1]

    def reference(self, rounding, probed=False):
        """Return the result as a hyper-dual array, and the largest number on the way.

        Where it is probed, t moves all results, those on the way by themselves, to and fro at
        random: its derivatives are random sums of adjoints, the mixed ones of their tangents.
        """
        results, arrays = [], list(self.inputs)

        def probe():
            if probed:
                results[-1][T] += rounding.rng.choice([-1, 1], results[-1].shape[1:])

        for x, s, t in zip(self.inputs, self.s, self.t, strict=True):
            results.append(hd.moving(x, s, t, rounding))
            probe()
        for instruction, operands in self.steps:
            self.append(instruction, operands, results, arrays, rounding)
            probe()
        return results[-1], max(np.abs(x).max() for x in results)

    @staticmethod
    def append(instruction, operands, results, arrays, rounding):
        """Do a step, on hyper-dual arrays and on those that NumPy gives the program."""
        pairs = [
            (hd.constant(operand[2], rounding.runs), plain(operand[1]))
            if isinstance(operand, tuple) else (results[operand], arrays[operand])
            for operand in operands
        ]
        try:
            array = np.asarray(instruction.call(*[array for _, array in pairs]))
        except ValueError:  # shapes that cannot be broadcast
            raise OutOfDomain from None
        require(array.dtype.kind == "f" and array.dtype.itemsize <= 8 and array.size <= 200)
        require(np.isfinite(array))
        dtypes = [arrays[operand].dtype for operand in operands if not isinstance(operand, tuple)]
        least = max([*dtypes, array.dtype], key=lambda dtype: np.finfo(dtype).eps)
        hyper = instruction.reference(*[hyper for hyper, _ in pairs], least, rounding)
        require(np.abs(hyper) < LARGEST)
        results.append(hyper)
        arrays.append(array)

    def __str__(self):
        lines = [f"x{i} = {x!r}" for i, x in enumerate(self.inputs)]
        for i, (instruction, operands) in enumerate(self.steps, len(self.inputs)):
            shown = [repr(o[1]) if isinstance(o, tuple) else f"x{o}" for o in operands]
            lines.append(f"x{i} = {instruction.name}({', '.join(shown)})")
        return "\n".join(lines + [f"s = {self.s!r}", f"t = {self.t!r}"])


def plain(x):
    return x.numpy() if isinstance(x, cytape.Tensor) else x


def draw_program(rng, n_steps=5):
    """Draw a program, step by step, of those that its numbers allow."""
    dtypes = [np.dtype(str(rng.choice(FLOATS))) for _ in range(rng.integers(1, 4))]
    inputs = [numbers(rng, dtype, SHAPES[rng.integers(len(SHAPES))]) for dtype in dtypes]
    s, t = ([numbers(rng, x.dtype, x.shape) for x in inputs] for _ in range(2))
    program = Program(inputs, s, t)
    rounding = hd.Rounding(rng, RUNS)
    results = [hd.moving(x, a, b, rounding) for x, a, b in zip(inputs, s, t, strict=True)]
    arrays = list(inputs)
    for _ in range(20 * n_steps):
        instruction = INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))]
        operands = [latest(rng, len(arrays)) for _ in range(instruction.n_operands)]
        if len(operands) == 2 and rng.random() < 0.6:
            operands[rng.integers(2)] = (None, *draw_constant(rng))
        try:
            with np.errstate(all="ignore"):
                Program.append(instruction, operands, results, arrays, rounding)
        except OutOfDomain:
            continue
        program.steps.append((instruction, operands))
        if len(program.steps) == n_steps:
            break
    return program


def latest(rng, n):
    """Draw one of n results, the last ones more often."""
    return int(n - 1 - min(rng.geometric(0.5) - 1, n - 1))


# -- the comparison --------------------------------------------------------------------------------


@dataclass
class Difference:
    """One result that is not what it should be."""

    program: Program
    route: str
    found: object
    expected: object
    tolerance: object

    def __str__(self):
        return (f"{self.route}: {self.found}, should be {self.expected} to {self.tolerance}\n"
                f"{self.program}\n")


class Expected:
    """Derivatives of a program, with their error bounds."""

    def __init__(self, program, rng, runs):
        with np.errstate(all="ignore"):
            self.hyper, largest = program.reference(hd.Rounding(rng, runs))
            probed, _ = program.reference(hd.Rounding(rng, RUNS), probed=True)
        # Gradients are summed in the program's dtypes, too, also where they cancel.
        for hyper in self.hyper, probed:
            require(np.abs(hyper).reshape(*hyper.shape[:2], -1).sum(axis=-1) < 10 * LARGEST)
        dtypes = [x.dtype for x in program.inputs] + [program(*program.inputs).dtype]
        self.least = max(np.finfo(dtype).eps for dtype in dtypes) * float(largest)

    def of(self, component, summed):
        """Return a component of the result (or the sum of its elements), and a tolerance."""
        runs = self.hyper[component]
        if summed:
            runs = runs.reshape(len(runs), -1).sum(axis=1)
        return runs[0], TIMES_APART * np.abs(runs - runs[0]).max(axis=0) + self.least


def weighted(gradients, tangents):
    """Sum the products of gradients and tangents in float64."""
    with np.errstate(all="ignore"):
        return sum(
            np.sum(g.astype(float) * t.astype(float))
            for g, t in zip(gradients, tangents, strict=True)
        )


def differences(program, rng, places):
    """Compare a program's value and derivatives with what they should be.

    Returns
    -------
    list of Difference
    """
    expected = Expected(program, rng, RUNS)
    doubted = None
    found = []
    with np.errstate(all="ignore"):
        value = program(*map(cytape.constant, program.inputs)).numpy()
        by_numpy = np.asarray(program(*program.inputs))
    if value.dtype != by_numpy.dtype:
        found.append(Difference(program, "dtype", value, by_numpy, 0))
    if not is_close(value, *expected.of(VALUE, False)):
        found.append(Difference(program, "value", value, *expected.of(VALUE, False)))
    for place in places:
        for mode in MODES:
            try:
                results = derivatives(mode, place, program, program.inputs, program.s)
            except Exception as error:
                found.append(Difference(program, f"{mode} {place}", repr(error), "numbers", 0))
                continue
            if mode == "forward":
                (actual,), component = results, S
            else:
                ts = program.s if mode == "reverse" else program.t
                component = S if mode == "reverse" else ST
                wrong = [(r.dtype, r.shape) != (x.dtype, x.shape)
                         for r, x in zip(results, program.inputs, strict=True)]
                if any(wrong):
                    found.append(Difference(program, f"{mode} {place}", results, "like inputs", 0))
                actual = weighted(results, ts)
            if is_close(actual, *expected.of(component, mode != "forward")):
                continue
            doubted = doubted or Expected(program, rng, DOUBTED_RUNS)
            wanted, tolerance = doubted.of(component, mode != "forward")
            if not is_close(actual, wanted, tolerance):
                found.append(Difference(program, f"{mode} {place}", actual, wanted, tolerance))
    return found


def is_close(actual, wanted, tolerance):
    return np.shape(actual) == np.shape(wanted) and bool(
        np.all(np.abs(actual - wanted) <= tolerance)
    )


def differences_of(seed, number):
    """Compare the program of a number; draw another where rounding leads to the edge of a kink."""
    for attempt in range(100):
        rng = np.random.default_rng([seed, number, attempt])
        try:
            program = draw_program(rng, n_steps=int(rng.integers(1, 7)))
            return differences(program, rng, PLACES[number % len(PLACES)])
        except OutOfDomain:
            continue
    raise AssertionError("no program can be decided")


def check(count, seed, report=lambda number: None, most=10):
    """Compare so many programs; return those that differ.

    Returns
    -------
    list of Difference
        All those of one program count as one; no more are looked for than `most`.
    """
    found = []
    for number in range(count):
        for difference in differences_of(seed, number)[:1]:
            difference.route = f"program {number}, {difference.route}"
            found.append(difference)
        report(number + 1)
        if len(found) == most:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="the program of this number")
    options = parser.parse_args()
    if options.only is not None:
        print(*differences_of(options.seed, options.only), sep="\n")
        return
    start = time.perf_counter()

    def report(number):
        if number % 10_000 == 0:
            print(f"{number} programs, {time.perf_counter() - start:.0f} s", flush=True)

    found = check(options.count, options.seed, report)
    print(*found, sep="\n")
    print(f"seed {options.seed}: {options.count} programs x {len(PLACES[0])} places x {len(MODES)} "
          f"modes; {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
