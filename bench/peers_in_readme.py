"""Tables of other libraries in pages, written from the results of ``make bench-peers``.

    python -m bench.peers_in_readme docs/peers.json README.md docs/from_autograd.md
"""

import json
import sys
from pathlib import Path

from bench.report import format_number

COMPILED = "cytape.function"
MEASURES = {"gradient": "gradient", "Jacobian-vector product": "jvp",
            "Hessian-vector product": "hvp"}


def with_measured(page, report):
    """Return the text of a page with the numbers of a report in its tables.

    The head of a table determines its content: a library that compiles, both gradients and the
    ratio of the first call to later ones; MyGrad, gradients; a measure, the time of autograd as a
    multiple of cytape's; otherwise the products of forward mode.
    """
    found = {(entry["measure"], entry["name"]): entry for entry in report["results"]}
    lines, columns = [], None
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| program |"):
            columns = cells[1:]
        elif not line.startswith("|"):
            columns = None
        elif columns and not line.startswith("|---"):
            line = f"| {' | '.join([cells[0], *numbers(found, cells[0], columns)])} |"
        lines.append(line)
    return "\n".join(lines)


def numbers(found, program, columns):
    """Return the cells of a program."""
    if COMPILED in columns:
        entry = found["gradient", program]
        return [f"{format_number(entry['ratios'][name])} "
                f"({format_number(entry['first_call_s'][name] / entry['seconds'][name])})"
                for name in columns]
    if columns[0] in MEASURES:
        entries = [found.get((MEASURES[name], program)) for name in columns]
        return ["-" if entry is None else
                format_number(entry["ratios"]["autograd"] / entry["ratios"]["cytape"])
                for entry in entries]
    measures = ("gradient",) if "MyGrad" in columns else ("jvp", "hvp")
    return [", ".join(format_number(found[measure, program]["ratios"][name])
                      for measure in measures) for name in columns]


if __name__ == "__main__":
    source, *targets = map(Path, sys.argv[1:])
    for target in targets:
        target.write_text(with_measured(target.read_text(), json.loads(source.read_text())))
