"""Add the lines of Cython modules that have run to coverage's data.

A build with ``CYTAPE_DEBUG=1`` leaves beside each module its C file and, once it was imported, what
``lines_run.h`` noted.
"""

import re
from collections import defaultdict
from pathlib import Path

import coverage

FILES = re.compile(r"__pyx_f\[\] = \{\n(.*?)\};", re.S)
MOST_LINES = 4096


def lines_run(package):
    """Return the numbers of the lines that ran, by the name of the file they stand in."""
    lines = defaultdict(set)
    for module in sorted(Path(package).rglob("*.pyx")):
        names = re.findall(r'"(.*)"', FILES.search(module.with_suffix(".c").read_text())[1])
        noted = module.with_suffix(".lines").read_bytes()
        for i, name in enumerate(names):
            row = noted[i * MOST_LINES : (i + 1) * MOST_LINES]
            lines[name].update(line for line, ran in enumerate(row) if ran)
    return {name: ran for name, ran in lines.items() if Path(name).exists()}


if __name__ == "__main__":
    data = coverage.CoverageData()
    data.read()
    lines = {str(Path(name).resolve()): ran for name, ran in lines_run("cytape").items()}
    data.add_lines(lines)
    data.add_file_tracers(dict.fromkeys(lines, "Cython.Coverage.Plugin"))
