"""``python -m tests.mutants [PATTERN...]``: plant faults in a copy of the tree, one at a time.

The tests of the room must notice each. A mutant is named after the table that it stands in, as in
``core/heap-forgets-the-last``; patterns such as ``core/*`` choose some. See `table.py`.

What can come of one:

- *killed*: a test failed that passes without the fault, or the tests crashed, or never ended;
- *survived*: all tests of the room passed, so one is missing;
- *stale*: its old text is not in its file exactly once; the table must follow the source;
- *broken*: the fault does not compile or keeps the package from being imported, so that it tells
  nothing about the tests.

The exit status is 1 unless all are killed.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.table import ROOT, StaleError, read_tables

TIME_LIMIT = 600  # seconds for the tests of a mutant, some of which loop for ever
PASSED, FAILED, INTERRUPTED, NOTHING_COLLECTED = 0, 1, 2, 5  # pytest's exit statuses
IMPORT_ALL = (
    "import importlib, pkgutil, cytape;"
    "[importlib.import_module(m.name) for m in pkgutil.walk_packages(cytape.__path__, 'cytape.')]"
)


class BrokenError(Exception):
    """The fault leaves nothing that could be tested."""


class Tree:
    """A private copy of the source tree, with its compiled modules."""

    def __init__(self, source, place):
        self.root = place
        shutil.rmtree(place, ignore_errors=True)
        # With the times of all files: what was compiled is not compiled again.
        shutil.copytree(source, place, ignore=lambda folder, names: [
            name for name in names
            if name in {".git", ".venv", ".venv-peers", "__pycache__", ".pytest_cache"}
            or Path(folder) == source / "build" and name != "c" and not name.startswith("lib")])

    def run(self, *arguments, timeout=None):
        environment = os.environ | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, *arguments], cwd=self.root, env=environment,
                              capture_output=True, text=True, timeout=timeout)

    def must_run(self, *arguments):
        run = self.run(*arguments)
        if run.returncode:
            raise BrokenError((run.stderr or run.stdout).strip())

    def build(self):
        """Compile what is out of date."""
        if (self.root / "setup.py").exists():
            self.must_run("setup.py", "-q", "build_ext", "--inplace")

    @contextmanager
    def planted(self, mutant):
        """Have the fault in the tree, compiled, for the length of a block."""
        path = self.root / mutant.file
        # The C file, the compiled modules, and the copy beside the source.
        # Any module may hold what a .pxd file says.
        made = "**/*" if path.suffix == ".pxd" else mutant.file.with_suffix("")
        patterns = f"build/c/{made}.c", f"build/lib*/{made}.*", f"{made}.*.so"
        touched = [path, *[p for pattern in patterns for p in self.root.glob(pattern)]]
        before = [(p, p.read_bytes(), p.stat()) for p in touched]
        path.write_text(mutant.apply(path.read_text()))
        try:
            if path.suffix in {".pyx", ".pxd"}:
                self.build()
            self.must_run("-c", IMPORT_ALL)
            yield
        finally:
            for p, content, stat in before:
                p.write_bytes(content)
                os.utime(p, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def pytest(self, tests, *options):
        return self.run("-m", "pytest", "-q", "-x", "--tb=no", "--no-header", *options, *tests,
                        timeout=TIME_LIMIT).returncode

    def failed_tests(self):
        cache = self.root / ".pytest_cache" / "v" / "cache" / "lastfailed"
        return list(json.loads(cache.read_text())) if cache.exists() else []


def try_out(tree, mutant):
    """Return what came of a mutant, and what there is to say about it."""
    shutil.rmtree(tree.root / ".pytest_cache", ignore_errors=True)
    try:
        with tree.planted(mutant):
            for tests in mutant.tests(tree.root):  # the likeliest first
                status = tree.pytest(tests)
                if status == FAILED or status == INTERRUPTED:
                    break
                if status not in (PASSED, NOTHING_COLLECTED):
                    return "killed", f"by a crash (exit status {status}) of {' '.join(tests)}"
            else:
                return "survived", f"all of {' '.join(tests)}"
    except subprocess.TimeoutExpired:
        return "killed", f"by a test that did not end in {TIME_LIMIT} s"
    except StaleError as error:
        return "stale", str(error)
    except BrokenError as error:
        return "broken", str(error)
    names = tree.failed_tests()
    if not names:
        return "broken", "pytest failed, but none of the tests"
    try:
        passes = tree.pytest(names[0].split("::")[:1], "--last-failed") == PASSED
    except subprocess.TimeoutExpired:
        passes = False
    if not passes:
        return "broken", f"{names[0]} fails without the fault, too"
    return "killed", f"by {names[0]}"


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="PATTERN")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to copy")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in read_tables(options.root / "tests" / "mutants")
               if any(fnmatch.fnmatch(mutant.name, pattern) for pattern in options.patterns)]
    if not mutants:
        parser.error(f"no mutant is named {' or '.join(options.patterns)}")
    tree = Tree(options.root, options.root / "build" / "mutants")
    tree.build()
    outcomes = {}
    for number, mutant in enumerate(mutants, 1):
        print(f"[{number}/{len(mutants)}] {mutant.name} ", end="", flush=True)
        begin = time.perf_counter()
        outcomes[mutant.name], about = try_out(tree, mutant)
        seconds = time.perf_counter() - begin
        print(f"{outcomes[mutant.name]} ({seconds:.0f} s) {about}", flush=True)
    left = [f"{name} {outcome}" for name, outcome in outcomes.items() if outcome != "killed"]
    print(f"{len(mutants) - len(left)} of {len(mutants)} mutants killed", *left, sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
