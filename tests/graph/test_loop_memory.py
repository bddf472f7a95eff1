"""Peak memory of backward passes of loops, and memory that traced loops keep."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.resident import needs_rollup, resident_bytes
from tests.tables import table

ROOT = Path(__file__).parents[2]

PROGRAMS = """
import numpy as np
import cytape, cytape.numpy as cnp

def while_(n, step, x, **options):
    _, y = cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, step(i, y)), (cytape.constant(0), x), **options)
    return y

def three(i, y):  # of 16 numbers: three results of tanh are kept
    for _ in range(3):
        y = cnp.tanh(y) * 1.01
    return y

def counted(x, n):
    return while_(n, three, x)

def until(x, n):
    return cytape.while_loop(
        lambda s, y: s < 2.0 * n, lambda s, y: (s + 2.0, three(0, y)), (cytape.constant(0.0), x))[1]

def at_most(x, n):
    return while_(10**9, three, x, maximum_iterations=n)

def nested(x, n):
    return while_(n // 10, lambda i, y: while_(10, three, y), x)

def branch(x, n):
    return while_(n, lambda i, y: cytape.cond(
        i % 2 == 0, lambda: three(i, y), lambda: three(i, y * 0.5)), x)

def in_branch(x, n):
    return cytape.cond(x[0] > 0, lambda: counted(x, n), lambda: x)
"""

PEAK = PROGRAMS + """
from tests.resident import resident_bytes

def peak_bytes():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

full = []

def note(gradient):
    full.append(resident_bytes())
    return gradient

@cytape.custom_gradient
def noted(y):  # when its gradient is asked for, the loop has run and its backward loop has not
    return y * 1.0, lambda dy: cytape.numpy_function(note, dy, specs=cytape.Spec.of((16,), float))

gradient = cytape.function(cytape.grad(lambda x, n: cnp.sum(noted({name}(x, n)) ** 2)))
x = np.linspace(0.1, 1.0, 16)
for _ in range(2):  # traced, and made a plan
    gradient(x, np.array(20))
before = resident_bytes()
gradient(x, np.array({n}))
print(full[-1] - before, peak_bytes() - before)
"""


@needs_rollup
@pytest.mark.parametrize("name", table(["until", "in_branch"], [
    "counted", "at_most", "nested", "branch"]))
def test_a_backward_pass_takes_what_steps_save(name):
    n, saved, slack = 50_000, 3 * 16 * 8, 1 << 20
    run = subprocess.run(
        [sys.executable, "-c", PEAK.format(name=name, n=n)], cwd=ROOT,
        # Large blocks are mapped: else glibc may grow one in its heap, and leave a hole.
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"},
        check=True, capture_output=True, text=True)
    full, peak = map(int, run.stdout.split())
    assert saved * n - slack < full <= saved * n + slack
    assert peak < 1.5 * saved * n  # the backward loop stacks nothing


def looped(x, n, **options):
    def body(i, y):
        y = cytape.cond(i % 3 == 0, lambda: cnp.tanh(y) * x, lambda: cnp.sin(y))
        _, y = cytape.while_loop(
            lambda j, y: j < i % 4, lambda j, y: (j + 1, cnp.cos(y)), (cytape.constant(0), y))
        return i + 1, y

    return cnp.sum(cytape.while_loop(
        lambda i, y: i < n, body, (cytape.constant(0), x), **options)[1])


LOOP, X = cytape.function(looped), np.linspace(0.1, 1.0, 8)
GRADIENT = cytape.function(cytape.grad(looped))
CHECKPOINTED = cytape.function(cytape.grad(lambda x, n: looped(x, n, checkpoints=3)))


def taped(n):
    x = cytape.constant(X)
    ways.gradient(lambda x: LOOP(x, n), x)


def traced_anew(n):
    cytape.function(cytape.grad(looped))(X, n)


GRADIENTS = {
    "traced": lambda n: GRADIENT(X, n),
    "taped": taped,
    "checkpointed": lambda n: CHECKPOINTED(X, n),
    "traced anew": traced_anew,
}


@needs_rollup
@pytest.mark.parametrize(("name", "n_rounds"), [
    ("traced", 2000), ("taped", 2000), ("checkpointed", 2000), ("traced anew", 100),
    *[pytest.param(name, 10_000, marks=pytest.mark.exhaustive) for name in GRADIENTS]])
def test_gradients_of_traced_loops_leave_nothing(name, n_rounds):
    gradient = GRADIENTS[name]
    for n in range(50):
        gradient(np.array(n))
    before = resident_bytes()
    for n in range(n_rounds):
        gradient(np.array(n % 50))
    assert resident_bytes() - before < 1 << 20
