"""Mutated files of graphs: a file is a graph or raises `GraphFileError`; a graph runs or raises.

    python -m tests.graph.model.mutated_files --count 100000 --seed 0

The files hold a call of every op of the op table, its gradient, branches, loops and checkpointed
calls. A mutation changes the number of inputs, an input, an attribute, an op, an extent, an array,
or a byte. Files are loaded in processes of their own: one that dies or takes too long is reported
with the seed of its file, which `--seed SEED --count 1` loads again.
"""

import argparse
import faulthandler
import functools
import json
import math
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphFileError
from cytape.graph.model import container
from cytape.ops.engine.op_kinds import OPS
from tests.ops.test_op_table import CASES, Call

IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
SECONDS = 20      # for one file
PER_PROCESS = 500
MOST_BYTES = 6 << 30
MOST_ELEMENTS = 1000  # of a tensor of a graph that is run
NUMBERS = [0, 1, -1, 2, 3, 7, 33, 64, 65, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40,
           (1 << 63) - 1, -(1 << 63), 1 << 63, 10**30]  # fmt: skip
DTYPES = ["<f8", "<f4", "<f2", "<c16", "<c8", "|b1", "|i1", "<i8", "<u8", "<i4", ">f8", "<U3",
          "|S2", "<M8[s]", "<m8[ns]", "<g", "|O"]  # fmt: skip


# ---- files to mutate


def branch(x):
    return cytape.cond(cnp.sum(x) > 0, lambda: cnp.sin(x), lambda: x * 2.0)


def cases(x):
    return cytape.switch_case(cnp.argmax(x), [lambda: x, lambda: x * x, lambda: cnp.exp(x)])


def loop(x):
    return cytape.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, cnp.tanh(y) * x), (cytape.constant(0), x))[1]


def scanned(x):
    return cytape.scan(lambda y, row: y * row + y, x, cnp.sum(x))


def recomputed(x):
    return cytape.recompute_grad(lambda x: cnp.sin(x) * x)(x)


def drawn(x):
    return cnp.random.normal(x) + cytape.nn.dropout(x, 0.5)


def stored(x):
    v = cytape.Variable(np.ones(3), name="v")
    with cytape.control_dependencies([v.assign_add(x)]):
        return v * x


FUNCTIONS = [branch, cases, loop, scanned, recomputed, drawn, stored]
SOURCES = [*FUNCTIONS * 20, *CASES]


@functools.cache
def program_of(number):
    """Return the program of a function or a case of the op table, as JSON, and its arrays."""
    with cytape.Graph().as_default() as graph, tempfile.NamedTemporaryFile() as file:
        try:
            if number < len(FUNCTIONS) * 20:
                x = graph.placeholder("float64", (3,))
                cytape.gradients(cnp.sum(SOURCES[number](x)), x)
            else:
                add_call(graph, *SOURCES[number][:2])
            graph.save(file.name)
        except Exception:  # it needs values, has no derivative, or cannot be saved
            return program_of((number + 1) % len(SOURCES))
        program, arrays = container.read(file.name)
        return json.dumps(program), arrays


def add_call(graph, spec, case):
    """Add a call of an op with its gradient to a graph."""
    call = Call(spec, case, spec.dtypes[0])
    xs = [graph.placeholder(x.dtype, x.shape) if isinstance(x, np.ndarray) else x
          for x in call.inputs]
    ys = spec.fn(*xs, **case.kwargs)
    ys = ys if isinstance(ys, (tuple, list)) else [ys]
    cytape.gradients(
        [y for y in ys if isinstance(y, cytape.Tensor)], [xs[i] for i in call.positions])


def some_program(rng):
    """Return a program and its arrays, which may be changed."""
    text, arrays = program_of(rng.randrange(len(SOURCES)))
    return json.loads(text), list(arrays)


# ---- mutations


def value(rng, depth=0):
    """Return the code of some value that an attribute may have, or of none."""
    if rng.random() < 0.3:
        return rng.choice(NUMBERS)
    if depth < 3 and rng.random() < 0.2:
        return {"tuple": [value(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 3, 40]))]}
    return rng.choice([
        None, True, False, "", "reflect", "ij,jk->ik", 0.5, -1.5, 1e308, {"float": "nan"},
        {"float": "inf"}, {"ellipsis": True}, {"complex": [1.0, 2.0]}, {"dict": []}, [], {},
        {"dtype": rng.choice(DTYPES)}, {"scalar type": "numpy.float64"}, {"stream": [1, 2]},
        {"slice": [rng.choice([None, *NUMBERS]) for _ in range(3)]},
        {"tuple": [rng.choice(NUMBERS[:6]) for _ in range(rng.randrange(5))]},
        {"array": rng.randrange(4)}, {"tensor": rng.randrange(4)}, {"scalar": rng.randrange(4)},
        {"variable": rng.randrange(2)}, {"function": rng.randrange(4)},
        {"window": [{"tuple": [rng.choice(NUMBERS), rng.choice(NUMBERS)]} for _ in range(4)]},
    ])  # fmt: skip


def leaves(code, path=()):
    """List where in a code there are values."""
    items = code.items() if isinstance(code, dict) else (
        enumerate(code) if isinstance(code, list) else ())
    return [path, *(leaf for key, x in items for leaf in leaves(x, (*path, key)))]


def replace(rng, container, changed):
    """Replace one value, at any depth."""
    places = leaves(container)[1:]
    if not places:
        return
    *path, last = rng.choice(places)
    for key in path:
        container = container[key]
    container[last] = changed(container[last])


def mutate(rng, program, arrays):
    """Change one thing in a program or its arrays."""
    code = rng.choice([program, program, *program["functions"]])
    nodes = code["nodes"]
    at = rng.randrange(len(nodes)) if nodes else None
    kind = rng.randrange(12)
    if at is None or kind == 0:
        return replace(rng, program, lambda _: value(rng))
    node = nodes[at]
    n_symbols = sum(len(x["outputs"]) for x in nodes[:at])
    symbols = [rng.randrange(n_symbols) for _ in range(70)] if n_symbols else [0] * 70
    if kind in (1, 2):
        node["inputs"] = symbols[: rng.choice([0, 0, 1, 1, 2, 3, 4, 5, 9, 33, 65])]
    elif kind == 3 and node["inputs"]:
        node["inputs"][rng.randrange(len(node["inputs"]))] = rng.choice([*NUMBERS, *symbols])
    elif kind in (4, 5, 6):
        replace(rng, node["attrs"], lambda _: value(rng))
    elif kind == 7:
        words = [*node["attrs"], "axis", "dtype", "shape", "sizes"]
        word = rng.choice(words)
        if rng.random() < 0.5:
            node["attrs"].pop(word, None)
        else:
            node["attrs"][word] = value(rng)
    elif kind == 8:
        node["op"] = rng.choice(list(OPS))
    elif kind == 9:
        other = rng.choice(some_program(rng)[0]["nodes"])
        node["op"], node["attrs"] = other["op"], other["attrs"]
    elif kind == 10:
        changed = rng.choice(nodes)
        if changed["op"] == "Placeholder":
            changed["attrs"] = {
                "shape": {"tuple": [rng.choice([None, 0, 1, 2, 3, rng.choice(NUMBERS)])
                                    for _ in range(rng.randrange(5))]},
                "dtype": {"dtype": rng.choice(DTYPES)}}  # fmt: skip
    elif arrays:
        number = rng.randrange(len(arrays))
        arrays[number] = rng.choice([
            np.zeros(()), np.zeros(3), np.zeros((0, 2)), np.arange(4), np.array(1 << 40),
            np.array([-1, 5, 1 << 62]), np.ones((2, 3), bool), np.array(["a", "bc"]),
            np.full((2, 2), np.nan), arrays[number].astype("f4", casting="unsafe")
            if arrays[number].dtype.kind in "biufc" else np.zeros(1)])
    return None


def mutated(rng):
    """Return a mutated program and its arrays."""
    program, arrays = some_program(rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        with suppress(AttributeError, IndexError, KeyError, TypeError):  # nodes are gone already
            mutate(rng, program, arrays)
    return program, arrays


# ---- outcomes


def check(seed, path):
    """Load the file of a seed, and run what is loaded; return what went wrong, or None."""
    rng = random.Random(seed)
    program, arrays = mutated(rng)
    for _ in range(8):
        try:
            container.write(path, program, arrays)
        except (TypeError, ValueError):
            return None  # JSON or .npy cannot say it
        if rng.random() < 0.05:
            content = bytearray(path.read_bytes())
            for _ in range(rng.choice([1, 3, 20])):
                content[rng.randrange(len(content))] = rng.randrange(256)
            path.write_bytes(content)
        try:
            graph = cytape.Graph.load(path)
        except GraphFileError as error:
            text = "".join(traceback.format_exception(error))
            if "SystemError" in text:
                return text
            if not correct(program, str(error)):
                return None
        except Exception as error:
            return "".join(traceback.format_exception(error))
        else:
            return run(rng, graph)
    return None


def correct(program, message):
    """Write into a program the outputs that an error message names; return whether it did."""
    found = re.search(r"op (\d+), [^\n]* its outputs are (\[[^.]*\]), which the file", message)
    function = re.match(r"function (\d+), ", message)
    if found is None:
        return False
    code = program if function is None else program["functions"][int(function[1])]
    code["nodes"][int(found[1])]["outputs"] = eval(found[2])
    return True


def run(rng, graph):
    """Run all ops of a graph, if it is small; return what went wrong, or None."""
    symbols = range(graph.n_symbols)
    tensors = [graph.tensor_at(symbol) for symbol in symbols]
    feeds = {}
    for tensor in tensors:
        spec = graph.spec_of(graph.symbol_of(tensor))
        shape = [2, 2] if spec.shape is None else [
            rng.randrange(4) if n is None else n for n in spec.shape]
        if max(shape, default=0) > MOST_ELEMENTS or math.prod(shape) > MOST_ELEMENTS:
            return None
        if tensor.op.type == "Placeholder":
            values = np.resize([1, 0, 2, -1, 5], shape)
            feeds[tensor] = values.astype(spec.dtype) if spec.dtype.kind in "biufc" else (
                np.zeros(shape, spec.dtype))
    try:
        session = cytape.Session(graph)
        for _ in range(2):
            session.run(tensors, feeds)
    except SystemError as error:
        return "".join(traceback.format_exception(error))
    except Exception:
        return None  # the values are none that the ops take
    return None


def check_here(seeds, current):
    """Check files and end the process, with status 1 at the first that goes wrong."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        for seed in seeds:
            current[:8] = struct.pack("q", seed)
            signal.alarm(SECONDS)
            if wrong := check(seed, Path(folder) / "graph"):
                print(wrong, flush=True)
                break
    os._exit(wrong is not None)


def check_all(seeds):
    """Check files in processes that may die; return the seeds of those that go wrong."""
    current = mmap.mmap(-1, 8)
    seeds, gone_wrong = list(seeds), []
    while seeds:
        some = seeds[:PER_PROCESS]
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            check_here(some, current)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            gone_wrong.append(struct.unpack("q", current[:8])[0])
            print(f"--seed {gone_wrong[-1]} --count 1: ended with status {status}", flush=True)
            some = some[: some.index(gone_wrong[-1]) + 1]
        seeds = seeds[len(some):]
    return gone_wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.count > len(SOURCES):
        for number in range(len(SOURCES)):
            program_of(number)
    sys.exit(bool(check_all(range(arguments.seed, arguments.seed + arguments.count))))


if __name__ == "__main__":
    main()
