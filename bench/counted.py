"""The programs whose instructions are counted; ``bench.instructions`` runs this under callgrind.

A program is a chain of equal steps, ``y = <step>``, with the fixed cost of a tape. Every stage of
it runs between two marks: calls of a C function with no other caller, at which callgrind writes its
counts and resets them. A stage also runs with an empty chain: the difference is the cost of the
steps, without the marks and the tape.
"""

import gc
import json
import os
import sys
from dataclasses import dataclass, field

import numpy as np

import cytape
import cytape.numpy as cnp

MARK = "ctermid"   # the C function behind os.ctermid
LENGTH = 100       # steps in a chain
CALLS = 10         # of a whole program
WARM_UP = 3        # runs that are not counted: memory is kept, derivatives are traced
FORWARD, RECORD, GRADIENT, CALL = "forward", "record", "gradient", "call"
JVP, HVP = "jvp", "hvp"
SIZES = {"0-d": (), "8": (8,), "1000": (1000,)}
MATRICES = {"1x1": (1, 1), "8x8": (8, 8), "32x32": (32, 32)}


@dataclass(frozen=True)
class Chain:
    """``y = <step>``, over and over; `x` is watched, and y at first, `c` is a plain ndarray."""

    name: str
    step: str
    shape: tuple
    dtype: str = "float64"
    others: dict = field(default_factory=dict)  # more names: functions of x's array

    def compiled(self):
        x = example(self.shape, self.dtype)
        names = {"np": np, "cnp": cnp, "x": cytape.constant(x), "c": x}
        names |= {name: make(x) for name, make in self.others.items()}
        source = f"def run(y, n):\n for _ in range(n): y = {self.step}\n return y"
        exec(source, names)
        return names["x"], names["run"]


def example(shape, dtype):
    """Return numbers close to 1, whose long products and sums are numbers, too."""
    if len(shape) == 2 and shape[0] == shape[1]:
        return np.eye(shape[0], dtype=dtype)
    return (1 + np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 / 4096).astype(dtype)


OPS = [
    Chain(f"{name}, {size}", step, shape)
    for name, step, sizes in [
        ("add", "y + x", SIZES),
        ("multiply", "y * x", SIZES),
        ("sin", "cnp.sin(y)", SIZES),
        ("matmul", "y @ x", MATRICES),
    ]
    for size, shape in sizes.items()
]

# Steps off the shortest path, on 8 elements, to be compared with `multiply, 8`.
OTHERS = [
    Chain("a Python number", "y * 2.0", (8,)),
    Chain("a constant", "y * k", (8,), others={"k": cytape.constant}),
    Chain("a plain ndarray", "y * c", (8,)),
    Chain("broadcasting", "y * row", (2, 4), others={"row": lambda x: cytape.constant(x[0])}),
    Chain("float32", "y * x", (8,), "float32"),
    Chain("float16", "y * x", (8,), "float16"),
    Chain("complex", "y * x", (8,), "complex128"),
    Chain("NumPy's function", "np.sin(y)", (8,)),
    Chain("an index", "y[::-1]", (8,)),
    Chain("a sum over an axis", "y.sum(axis=1, keepdims=True)", (8, 1)),
    Chain("reshape", "cnp.reshape(y, (8,))", (8,)),
    Chain("transpose", "y.T", (2, 4)),
    Chain("swapaxes", "cnp.swapaxes(y, 0, 1)", (2, 4)),
    Chain("concatenate", "cnp.concatenate([y])", (8,)),
    Chain("concatenate of two", "cnp.concatenate([y, x])[:8]", (8,)),
    Chain("stack of two", "cnp.stack([y, x])[0]", (8,)),
    Chain("where", "cnp.where(mask, y, x)", (8,), others={"mask": lambda x: x > 1}),
]
EMPTY_LOOP = Chain("an empty loop", "y", ())
CHAINS = [*OPS, *OTHERS, EMPTY_LOOP]


def run_stages(x, run, length, mark):
    """Run the stages of one chain; `mark` is called with the stage that has just ended."""
    mark(None)
    run(x, length)
    mark(FORWARD)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = run(x, length)
    mark(RECORD)
    tape.gradient(y, x)
    del tape, y
    mark(GRADIENT)
    with cytape.ForwardAccumulator(x, x) as accumulator:
        y = run(x, length)
    accumulator.jvp(y)
    del accumulator, y
    mark(JVP)
    with cytape.ForwardAccumulator(x, x) as accumulator:
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = run(x, length)
        gradient = tape.gradient(y, x)
    accumulator.jvp(gradient)
    del accumulator, tape, y, gradient
    mark(HVP)


def empty_tape(x):
    with cytape.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x, x)


def empty_product(x):
    """Take a Hessian-vector product of a program of no ops, in lists."""
    with cytape.ForwardAccumulator([x], [x]) as accumulator:
        gradient = empty_tape(x)
    return accumulator.jvp([gradient])


def first_call(x):
    """Trace the gradient of a small program, plan and run it."""
    return cytape.function(cytape.grad(lambda y: cnp.sum((y[1:] - y[:-1] ** 2) ** 2)))(x)


def squares(x):
    return cnp.sum(x * x)


def gradient_call(x):
    return cytape.grad(squares)(x)


def product_call(x):
    return cytape.jvp(squares, (x,), (x,))


WHOLE = {
    "an empty tape": empty_tape, "an empty HVP": empty_product, "a first call": first_call,
    "a call of grad": gradient_call, "a call of jvp": product_call}


def run_whole(call, count, mark):
    """Call a whole program a number of times."""
    x = cytape.constant(example((8,), "float64"))
    mark(None)
    for _ in range(count):
        call(x)
    mark(CALL)


def main(names):
    """Run all stages of some chains; print the names of the parts that callgrind dumps."""
    parts = []

    def no_mark(stage):
        pass

    for chain in CHAINS:
        if chain.name not in names:
            continue
        x, run = chain.compiled()
        for _ in range(WARM_UP):
            run_stages(x, run, LENGTH, no_mark)
        for length in 0, LENGTH:
            def mark(stage, name=chain.name, length=length):
                parts.append((name, stage, length))
                os.ctermid()
            run_stages(x, run, length, mark)
    for name, call in WHOLE.items():
        run_whole(call, WARM_UP, no_mark)
        for count in 0, CALLS:
            def mark(stage, name=name, count=count):
                parts.append((name, stage, count))
                os.ctermid()
            run_whole(call, count, mark)
    features = np._core._multiarray_umath
    json.dump({
        "parts": parts,
        "instruction sets": [
            name for name in features.__cpu_dispatch__ if features.__cpu_features__[name]],
    }, sys.stdout)


if __name__ == "__main__":
    gc.disable()  # reference counts free all there is to free
    main(sys.argv[1:])
