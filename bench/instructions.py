"""``python -m bench.instructions``: the instructions of an op, stage by stage.

Times vary with the machine and its load; instructions hardly do, so a test can compare them.
callgrind counts them, in two runs of `bench.counted` side by side. The committed counts are in
bench/instructions.json, and for readers in docs/performance.md.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import cytape.core.tape
from bench.counted import (
    CALL,
    CALLS,
    CHAINS,
    EMPTY_LOOP,
    FORWARD,
    GRADIENT,
    HVP,
    JVP,
    LENGTH,
    MARK,
    OPS,
    OTHERS,
    RECORD,
    WHOLE,
)

ROOT = Path(__file__).parents[1]
COMMITTED = ROOT / "bench" / "instructions.json"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- counted: begin -->", "<!-- counted: end -->"
UPDATE = "python -m bench.instructions --write"

STAGES = "forward", "recording", "backward"
PRODUCTS = JVP, HVP      # whole programs: forward mode, and forward over reverse
# The cost of malloc beyond its lists of small blocks depends on the state of the heap.
UNSTEADY = {"_int_malloc", "_int_free", "unlink_chunk", "malloc_consolidate", "sysmalloc"}

SLACK = 20               # instructions that a stage may take more in any case, ...
ALLOWED = 0.1            # ... and this fraction of the committed count, ...
ALLOWED_ELSEWHERE = 0.25  # ... or this, if it was counted with other compilers and libraries
BROKEN_DOWN = next(chain for chain in OPS if chain.name == "multiply, 8")
WORTH_A_ROW = 0.04       # of a stage's instructions
NOT_INSTALLED = "valgrind is not on the PATH; install it with: apt-get install valgrind"


# ---- counting

def count(folder):
    """Return the instructions per function of every part, and NumPy's instruction sets."""
    halves = [CHAINS[::2], CHAINS[1::2]]
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(
            run_callgrind, [folder / str(i) for i in range(len(halves))],
            [[chain.name for chain in half] for half in halves]))
    profiles = {part: profile for parts, _ in runs for part, profile in parts.items()}
    return profiles, runs[0][1]


def run_callgrind(folder, names):
    """Return the same for some of the chains."""
    folder.mkdir()
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    run = subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", f"--dump-before={MARK}", "--dump-line=no",
         "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={folder}/part",
         sys.executable, "-m", "bench.counted", *names],
        cwd=ROOT, env=os.environ | single | {"PYTHONHASHSEED": "0"}, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"the counting failed:\n{run.stdout}{run.stderr}")
    answer = json.loads(run.stdout)
    parts = {}
    for i, (chain, stage, length) in enumerate(answer["parts"], 1):
        if stage is not None:
            parts[chain, stage, length] = own_instructions((folder / f"part.{i}").read_text())
    return parts, answer["instruction sets"]


def own_instructions(text):
    """Return the instructions per (object file, function) that a file of callgrind's tells of.

    Those that a function spent in others stand there as well, in the line after each ``calls=``.
    """
    counts = Counter()
    objects = function = total = None
    lines = iter(text.splitlines())
    for line in lines:
        if line[:1].isdigit():
            counts[objects, function] += int(line.split()[1])
        elif line.startswith("calls="):
            next(lines)
        elif line.startswith("ob="):
            objects = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("summary:"):
            total = int(line.split()[1])
    if total != counts.total():
        raise ValueError(f"callgrind counted {total} instructions, but {counts.total()} were read")
    return counts


def stages_of(profiles, chain):
    """Return the instructions of one step, per stage and function."""
    forward, record, gradient = (
        per_unit(profiles, chain.name, stage, LENGTH) for stage in (FORWARD, RECORD, GRADIENT))
    record.subtract(forward)  # unlike `-`, this keeps negative counts
    return dict(zip(STAGES, (forward, record, gradient), strict=True))


def per_unit(profiles, name, stage, n):
    counts = Counter(profiles[name, stage, n])
    counts.subtract(profiles[name, stage, 0])
    return Counter({
        (objects, function): count / n for (objects, function), count in counts.items()
        if count and function.partition(".")[0] not in UNSTEADY})


def tabulate(profiles):
    """Return the rounded number of instructions of each stage, of each chain."""
    counts = {
        chain.name: {stage: round(functions.total())
                     for stage, functions in stages_of(profiles, chain).items()}
        | {product: round(per_unit(profiles, chain.name, product, LENGTH).total())
           for product in PRODUCTS}
        for chain in CHAINS
    }
    counts[EMPTY_LOOP.name] = {"forward": counts[EMPTY_LOOP.name]["forward"]}
    for name in WHOLE:
        counts[name] = {"all": round(per_unit(profiles, name, CALL, CALLS).total())}
    return counts


def describe_environment(instruction_sets):
    return {
        "machine": platform.machine(),
        "instruction sets": " ".join(instruction_sets),
        "compiler": compiler(Path(cytape.core.tape.__file__).read_bytes()),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "C library": " ".join(platform.libc_ver()),
        "valgrind": valgrind_version(),
    }


def valgrind_version():
    run = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True)
    return run.stdout.strip().removeprefix("valgrind-")


def compiler(module):
    """Return the compiler that made an extension module, as it signed it."""
    found = re.search(rb"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", module)
    return found.group().decode() if found else "unknown"


# ---- the guard

def differing(environment, committed):
    return [key for key in environment | committed if environment.get(key) != committed.get(key)]


def compare(counts, environment, committed):
    """Return errors of counts and further notes, as sentences."""
    errors, notes = [], []
    others = differing(environment, committed["environment"])
    if "machine" in others:
        return errors, [f"counted on {environment['machine']}, committed are counts of "
                        f"{committed['environment']['machine']}: they say nothing about each other"]
    allowed = ALLOWED_ELSEWHERE if others else ALLOWED
    for key in others:
        notes.append(f"{key} is {environment.get(key)!r}, the committed counts are of "
                     f"{committed['environment'].get(key)!r}: {allowed:.0%} more are allowed")
    before = {(chain, stage): n for chain, stages in committed["counts"].items()
              for stage, n in stages.items()}
    now = {(chain, stage): n for chain, stages in counts.items() for stage, n in stages.items()}
    for chain, stage in sorted(before.keys() ^ now.keys()):
        where = "counted" if (chain, stage) in now else "committed"
        errors.append(f"{chain}, {stage}: is only {where}; {UPDATE}")
    for (chain, stage), n in now.items():
        old = before.get((chain, stage), n)
        change = f"{chain}, {stage}: {n} instructions, committed are {old}"
        if n > old + allowed * abs(old) + SLACK:
            errors.append(f"{change}: more than {allowed:.0%} + {SLACK} above")
        elif n < old - ALLOWED * abs(old) - SLACK:
            notes.append(f"{change}: better; {UPDATE}")
    return errors, notes


# ---- for readers

def report(counts, environment, profiles):
    """Return the counted part of the page, in Markdown."""
    loop = counts[EMPTY_LOOP.name]["forward"]
    return "\n\n".join([
        f"Counted by callgrind of valgrind {environment['valgrind']}, with Python "
        f"{environment['Python']} and NumPy {environment['NumPy']}, extension modules by "
        f"{environment['compiler'].replace(':', '')}, on {environment['machine']} with NumPy's "
        f"loops for {environment['instruction sets'] or 'any processor'}. Data is float64. JVP and "
        "HVP are the whole of a Jacobian-vector product (no tape) and of a Hessian-vector product "
        "(forward over reverse).",
        table("op, elements", OPS, counts),
        f"The `for` loop around a step is in the forward pass: {loop} instructions. A tape that is "
        "made, entered, left and asked for one gradient takes "
        f"{counts['an empty tape']['all']:,} with nothing on it; with an accumulator around it, "
        f"{counts['an empty HVP']['all']:,}. The first call of a traced gradient of "
        f"`sum((x[1:] - x[:-1] ** 2) ** 2)` takes {counts['a first call']['all']:,}. Calls of "
        f"`grad` and `jvp` for `sum(x * x)` take {counts['a call of grad']['all']:,} and "
        f"{counts['a call of jvp']['all']:,}.",
        "Other steps, of 8 elements:",
        table("step", [BROKEN_DOWN, *OTHERS], counts),
        f"Where the instructions of one `{BROKEN_DOWN.step}` of 8 elements are:",
        breakdown(profiles),
    ])


def table(title, chains, counts):
    rows = [f"| {title} | | forward | recording | backward | all | JVP | HVP |",
            "|---|---|--:|--:|--:|--:|--:|--:|"]
    for chain in chains:
        cells = [counts[chain.name][stage] for stage in STAGES]
        cells += [sum(cells)] + [counts[chain.name][product] for product in PRODUCTS]
        rows.append(f"| {chain.name} | `{chain.step}` | "
                    + " | ".join(f"{n:,}" for n in cells) + " |")
    return "\n".join(rows)


def breakdown(profiles):
    """Return a table of the functions in which the example spends its instructions."""
    stages = [by_readable_name(functions)
              for functions in stages_of(profiles, BROKEN_DOWN).values()]
    totals = [stage.total() for stage in stages]
    names = sorted(
        {name for stage, total in zip(stages, totals, strict=True)
         for name, n in stage.items() if n >= WORTH_A_ROW * total},
        key=lambda name: -sum(stage[name] for stage in stages))
    cells = {name: [stage[name] for stage in stages] for name in names}
    cells["others"] = [total - sum(column) for total, column in zip(
        totals, zip(*cells.values(), strict=True), strict=True)]
    cells["all"] = totals
    rows = ["| function | forward | recording | backward |", "|---|--:|--:|--:|"]
    for name, row in cells.items():
        rows.append(f"| {name} | " + " | ".join(f"{round(n):,}" for n in row) + " |")
    return "\n".join(rows)


def by_readable_name(counts):
    result = Counter()
    for (objects, function), n in counts.items():
        result[readable(objects, function)] += n
    return result


def readable(objects, function):
    """Return a display name: that of a function of cytape, or the library of any other."""
    function = re.sub(r"\.(isra|part|constprop|cold)\b.*|'\d+$", "", function)
    if "/cytape/" in objects:
        return f"`{demangled(function)}`"
    for part, library in [("openblas", "BLAS"), ("numpy", "NumPy"), ("python", "Python")]:
        if part in Path(objects).name or f"/{part}/" in objects:
            return library
    return "the C library"


def demangled(function):
    """Undo Cython's name mangling: ``__pyx_f_6cytape_4core_8op_store_new_slot``."""
    rest = re.sub(r"^__pyx_(?:[a-z]+_)+(?=\d)", "", function)
    parts = []
    while match := re.match(r"(\d+)(.*)", rest):
        length, rest = int(match[1]), match[2]
        if rest[length:length + 1] != "_" or rest.startswith("_"):
            break  # that number counted the functions of a class
        parts.append(rest[:length])
        rest = rest[length + 1:]
    return ".".join([part for part in parts if part != "cytape"] + [rest])


def rewritten(page, text):
    """Return a page with the text between the marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{BEGIN} and {END} are to stand in the page, in this order")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.instructions")
    parser.add_argument("--check", action="store_true",
                        help="fail if a stage takes more instructions than are committed")
    parser.add_argument("--write", action="store_true",
                        help="commit these: write bench/instructions.json and docs/performance.md")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit(NOT_INSTALLED)
    with tempfile.TemporaryDirectory() as folder:
        profiles, instruction_sets = count(Path(folder))
    counts, environment = tabulate(profiles), describe_environment(instruction_sets)
    text = report(counts, environment, profiles)
    print(text)
    if arguments.check:
        errors, notes = compare(counts, environment, json.loads(COMMITTED.read_text()))
        print("\n", *notes, *errors, sep="\n")
        if errors:
            sys.exit("more instructions than are committed; if that is worth it, "
                     f"commit them: {UPDATE}")
        print("no stage takes more instructions than are committed")
    if arguments.write:
        COMMITTED.write_text(json.dumps({"environment": environment, "counts": counts}, indent=1)
                             + "\n")
        PAGE.write_text(rewritten(PAGE.read_text(), text))


if __name__ == "__main__":
    main()
