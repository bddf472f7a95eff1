"""A plugin of coverage's, and a program that adds the lines of Cython modules to its data.

A build with ``CYTAPE_DEBUG=1`` leaves beside each module its C file and, once it was imported, what
``lines_run.h`` noted. Functions that a header defines are in each C file that calls them.
"""

import functools
import re
from collections import defaultdict
from pathlib import Path

import coverage

FILES = re.compile(r"__pyx_f\[\] = \{\n(.*?)\};", re.S)
TRACED = re.compile(r"__Pyx_TraceLine\(.*__PYX_ERR\((\d+), (\d+),")
MOST_LINES = 4096  # as in the header


def lines(package):
    """Return by file which lines there are, and which of them ran."""
    found, ran = defaultdict(set), defaultdict(set)
    for module in Path(package).rglob("*.pyx"):
        text = module.with_suffix(".c").read_text()
        noted = module.with_suffix(".lines").read_bytes()
        names = re.findall(r'"(.*)"', FILES.search(text)[1])
        for file, line in TRACED.findall(text):
            name, line = names[int(file)], int(line)
            if name.startswith(f"{package}/"):  # not a header of Cython's own
                found[str(Path(name).resolve())].add(line)
                if noted[int(file) * MOST_LINES + line]:
                    ran[str(Path(name).resolve())].add(line)
    return found, ran


class Reporter(coverage.FileReporter):
    def __init__(self, filename, lines):
        super().__init__(filename)
        self.lines = lambda: lines


class Plugin(coverage.CoveragePlugin):
    @functools.cached_property
    def found(self):
        return lines("cytape")[0]

    def file_reporter(self, filename):
        return Reporter(filename, self.found[filename])


def coverage_init(registry, options):
    registry.add_file_tracer(Plugin())


if __name__ == "__main__":
    data = coverage.CoverageData()
    data.read()
    found, ran = lines("cytape")
    data.add_lines({name: ran[name] for name in found})
    data.add_file_tracers(dict.fromkeys(found, "tests.lines_run.Plugin"))
