"""What backward passes of loops take at their peak, and what traced loops leave behind."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp

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
def peak():
    with open("/proc/self/status") as status:  # getrusage knows what the parent had, too
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

gradient = cytape.function(cytape.grad(lambda x, n: cnp.sum({name}(x, n))))
x = np.linspace(0.1, 1.0, 16)
for _ in range(2):  # traced, and made a plan
    gradient(x, np.array(20))
before = peak()
gradient(x, np.array({n}))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize("name", ["counted", "until", "at_most", "nested", "branch", "in_branch"])
def test_a_backward_pass_takes_what_steps_save(name):
    n, saved = 50_000, 3 * 16 * 8
    program, limit = PEAK.format(name=name, n=n), saved * n + (1 << 20)
    for _ in range(3):  # the interpreter's own pages come on top, not always the same
        run = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True)
        grown = int(run.stdout)
        if grown <= limit:
            break
    assert saved * n / 2 < grown <= limit


def resident_bytes():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


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
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = LOOP(x, n)
    tape.gradient(y, x)


def traced_anew(n):
    cytape.function(cytape.grad(looped))(X, n)


GRADIENTS = {
    "traced": lambda n: GRADIENT(X, n),
    "taped": taped,
    "checkpointed": lambda n: CHECKPOINTED(X, n),
    "traced anew": traced_anew,
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
@pytest.mark.parametrize(("name", "n_rounds"), [
    ("traced", 10_000), ("taped", 10_000), ("checkpointed", 10_000), ("traced anew", 500),
    pytest.param("traced anew", 10_000, marks=pytest.mark.exhaustive)])
def test_gradients_of_traced_loops_leave_nothing(name, n_rounds):
    gradient = GRADIENTS[name]
    for n in range(50):
        gradient(np.array(n))
    before = resident_bytes()
    for n in range(n_rounds):
        gradient(np.array(n % 50))
    assert resident_bytes() - before < 1 << 20
