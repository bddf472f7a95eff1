"""Test suites of packages that use autograd, run on autograd and on `cytape.autograd`.

    python -m bench.dependents [--smoke] [--suite NAME]

It makes two environments by pip, of the same packages, one of them with autograd. In the other the
name autograd means `cytape.autograd`. The order is autograd, cytape, and that again for suites of a
few minutes; of each test the smaller time counts. CPU seconds are those of the calls of tests that
pass on both sides and trace a function, without imports. A test that passes on autograd alone needs
a reason in `reasons.toml`. A row is written when its suite is done; `--suite` repeats one of them.
`--smoke` runs autograd's own suite once and writes nothing.
"""

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOME = ROOT / ".venv-dependents"
RESULTS, PAGE = ROOT / "docs" / "dependents.json", ROOT / "docs" / "from_autograd.md"
BEGIN, END = "<!-- Test suites of dependents: make bench-dependents -->\n", "<!-- end -->\n"
LIBRARIES = ("autograd", "cytape")


class Suite(NamedTuple):
    """Tests of one package, whose sources are those of a release."""

    name: str
    release: str
    arguments: list[str]  # of pytest, in the folder of the sources
    rounds: int = 2
    programs: bool = False  # whether each test is a program with a row of its own


SUITES = [
    Suite("autograd", "autograd==1.9.1", ["tests"]),
    Suite("autograd's examples", "autograd==1.9.1", [str(HERE / "run_examples.py")], programs=True),
    Suite("lifelines", "lifelines==0.30.0", ["lifelines/tests"], rounds=1),
    Suite("pymanopt", "pymanopt==2.2.0", [
        "--noconftest", "tests/backends/test_autograd.py", "tests/backends/test_backend_tools.py",
        "tests/manifolds", "tests/optimizers", "tests/test_multi_tools.py"]),
    Suite("SurPyval's parametric models", "surpyval==0.25.0", [
        "surpyval/tests/univariate/parametric"], rounds=1),
    Suite("autograd-gamma", "autograd-gamma==0.5.0", [str(HERE / "run_autograd_gamma.py")]),
    Suite("mici", "mici==0.4.0", ["tests/test_autodiff.py"]),
]
BESIDE = [  # dependencies of the packages and their tests, without the pins of old SciPy releases
    "numpy==2.4.6", "scipy==1.17.1", "pytest", "pandas", "formulaic", "matplotlib", "joblib",
    "dill", "flaky", "hypothesis", "jinja2", "tzdata", "numdifftools", "pint", "statsmodels"]


def python_of(library):
    return HOME / library / "bin" / "python"


def make_environment(library):
    """Make an environment, unless it exists. The modules built in place serve in it, too."""
    folder = HOME / library
    if (folder / "installed").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [python_of(library), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *BESIDE], check=True)
    releases = {suite.release for suite in SUITES}
    if library == "cytape":
        releases = {release for release in releases if not release.startswith("autograd==")}
    subprocess.run([*pip, "--no-deps", *sorted(releases)], check=True)
    (folder / "installed").touch()


def sources_of(release):
    """Return the folder with the sources of a release, and the hash of their archive."""
    archives = HOME / "sources"
    archives.mkdir(parents=True, exist_ok=True)
    pattern = release.replace("==", "-").replace("autograd-gamma", "autograd?gamma")
    pattern = pattern.removesuffix(".0") + "*.tar.gz"
    if not list(archives.glob(pattern)):
        subprocess.run(
            [python_of("autograd"), "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
             ":all:", "-d", archives, release], check=True)
    [archive] = archives.glob(pattern)
    folder = archives / archive.name.removesuffix(".tar.gz")
    if not folder.exists():
        with tarfile.open(archive) as opened:
            opened.extractall(archives, filter="data")
    return folder, hashlib.sha256(archive.read_bytes()).hexdigest()


def run(suite, library, folder):
    """Run a suite; return its tests by name."""
    results = HOME / f"{suite.name} on {library}.jsonl"
    results.unlink(missing_ok=True)
    paths = [HERE]
    if library == "cytape":  # a folder with the package alone
        link = HOME / "path" / "cytape"
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(ROOT / "cytape")
        paths.append(link.parent)
    environ = {
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "0",
        "DEPENDENTS_LIBRARY": library, "DEPENDENTS_RESULTS": str(results),
        "DEPENDENTS_SOURCES": str(folder), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [
        python_of(library), "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider", "-c",
        "/dev/null", "--rootdir", ".", "--tb=no", "--disable-warnings",
        "--continue-on-collection-errors", *suite.arguments]
    print(f"{suite.name} on {library}:", flush=True)
    status = subprocess.run(command, cwd=folder, env=environ).returncode
    if status not in (0, 1):  # neither all passed nor some failed
        sys.exit(f"{suite.name} on {library}: pytest ended with status {status}")
    return {test["test"]: test for test in map(json.loads, results.read_text().splitlines())}


def same_output(a, b):
    """Return whether two texts have the same numbers, up to 1e-6. Names of nodes may differ."""
    number = r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
    numbers = [[float(x) for x in re.findall(number, text)] for text in (a, b)]
    return len(numbers[0]) == len(numbers[1]) and all(
        x == y or x != x and y != y or abs(x - y) <= 1e-6 * max(1, abs(x), abs(y))
        for x, y in zip(*numbers, strict=True))


def compared(suite, once):
    """Run a suite on both libraries; return its row."""
    folder, digest = sources_of(suite.release)
    runs = {library: [] for library in LIBRARIES}
    for _ in range(1 if once else suite.rounds):
        for library in LIBRARIES:
            runs[library].append(run(suite, library, folder))
    first, ours = [runs[library][0] for library in LIBRARIES]
    passed = [name for name, test in first.items() if test["outcome"] == "passed"]
    both = [
        name for name in passed if ours.get(name, {}).get("outcome") == "passed"
        and same_output(first[name]["output"], ours[name]["output"])]
    seconds = {
        name: [min(tests[name]["seconds"] for tests in runs[library] if name in tests)
               for library in LIBRARIES] for name in both if first[name]["traced"]}
    return {
        "suite": suite.name, "release": suite.release, "sha256": digest, "tests": len(first),
        "autograd": len(passed), "both": len(both), "traced": len(seconds),
        "seconds": [sum(column) for column in zip(*seconds.values(), strict=True)],
        "programs": {name.rpartition("[")[2].rstrip("]"): each for name, each in seconds.items()
                     if suite.programs},
        "autograd_only": {
            name: ours.get(name, {}).get("error") or "other numbers, or not run"
            for name in passed if name not in both}}


SUITE_HEAD = """\
| tests of | passed on autograd | on both | autograd, CPU s | cytape, CPU s | ratio |
|---|---:|---:|---:|---:|---:|
"""
PROGRAM_HEAD = """\
| example | autograd, CPU ms | cytape, CPU ms | ratio |
|---|---:|---:|---:|
"""


def table(rows):
    """Return the rows as a table, single programs as another one, and the median ratio of all."""
    suites, programs, ratios = [], [], []
    for row in rows:
        before, after = row["seconds"]
        ratios.append(after / before)
        suites.append(
            f"| {row['suite']} {row['release'].partition('==')[2]} | {row['autograd']} | "
            f"{row['both']} | {before:.2f} | {after:.2f} | {ratios[-1]:.2f} |\n")
        for name, (before, after) in row["programs"].items():
            ratios.append(after / before)
            programs.append(
                f"| {name} | {1e3 * before:.1f} | {1e3 * after:.1f} | {ratios[-1]:.2f} |\n")
    text = SUITE_HEAD + "".join(suites) + "\n"
    if programs:
        text += PROGRAM_HEAD + "".join(programs) + "\n"
    return text + f"The median ratio of all rows is {statistics.median(ratios):.2f}.\n"


def write(row):
    """Replace the row of a suite in the file of results and in the page."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = {each["suite"]: each for each in [*rows, row]}
    rows = [rows[suite.name] for suite in SUITES if suite.name in rows]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + table(rows) + END + rest.partition(END)[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--suite", choices=[suite.name for suite in SUITES])
    options = parser.parse_args()
    for library in LIBRARIES:
        make_environment(library)
    chosen = SUITES[:1] if options.smoke else [
        suite for suite in SUITES if options.suite in (None, suite.name)]
    reasons = tomllib.loads((HERE / "reasons.toml").read_text())
    unnamed = []
    for suite in chosen:
        row = compared(suite, once=options.smoke)
        print(table([row]), flush=True)
        if not options.smoke:
            write(row)
        unnamed += [
            f"{suite.name}: {name}: {error}" for name, error in row["autograd_only"].items()
            if name not in reasons.get(suite.name, {})]
    if unnamed:
        sys.exit("\n".join(["passed on autograd only, no reason in reasons.toml:", *unnamed]))


if __name__ == "__main__":
    main()
