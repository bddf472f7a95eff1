"""Numbers and picture of the comparison with other libraries, in pages, from docs/peers.json.

``python -m bench.peer_pages docs/peers.json`` measures nothing. It draws the picture of the README
and fills the table of docs/from_autograd.md.
"""

import json
import sys
from pathlib import Path

from bench.peer_libraries import GRADIENT
from bench.peer_report import Result, draw_panel, save_svg
from bench.report import format_number

HEADS = {"gradient": "gradient", "Jacobian-vector product": "jvp",
         "Hessian-vector product": "hvp"}
COMPILED = {"cytape": "cytape.function", "TensorFlow": "tf.function", "JAX": "jax.jit"}
SHOWN = "the programs of make bench"


def with_measured(page, report):
    """Return a page's text with autograd's times as multiples of cytape's in its table.

    The table is the one with the measures as columns.
    """
    ratios = {(entry["measure"], entry["name"]): entry["ratios"] for entry in report["results"]}
    lines, columns = [], ()
    for line in page.split("\n"):
        head, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head == "program":
            columns = [HEADS[cell] for cell in cells] if HEADS.keys() >= set(cells) else ()
        elif not line.startswith("|"):
            columns = ()
        elif columns and not line.startswith("|---"):
            found = [ratios.get((column, head)) for column in columns]
            line = f"| {' | '.join([head, *map(times_faster, found)])} |"
        lines.append(line)
    return "\n".join(lines)


def times_faster(ratios):
    return "-" if ratios is None else format_number(ratios["autograd"] / ratios["cytape"])


def picture(report):
    """Return a figure for the README: a line per program of make bench, with a dot per library."""
    from matplotlib.figure import Figure

    results = [Result(GRADIENT, entry["group"], entry["name"], entry["forward_s"],
                      entry["seconds"], entry["first_call_s"])
               for entry in report["results"] if entry["group"] == SHOWN]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    draw_panel(axes, report["environment"], results)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("time of a gradient, in forward passes of NumPy (less is better)")
    axes.annotate("NumPy's forward pass", (1, -0.65), ha="center", annotation_clip=False)
    legend_by_mode(figure, axes)
    return figure


def legend_by_mode(figure, axes):
    """Add a legend in which a library's compiled functions stand below the library."""
    from matplotlib.lines import Line2D

    dots, names = axes.get_legend_handles_labels()
    dots = dict(zip(names, dots, strict=True))
    cells = [("op by op:", "traced once:"), *((name, COMPILED.get(name, "")) for name in dots
                                             if name not in COMPILED.values())]
    names = [name for column in cells for name in column]  # a legend is filled by columns
    empty = Line2D([], [], linestyle="")
    figure.legend([dots.get(name, empty) for name in names], names, ncols=len(cells),
                  loc="outside upper center", frameon=False, handletextpad=0.2, columnspacing=0.8)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    measured = json.loads(source.read_text())
    save_svg(picture(measured), source.parent / "gradient_costs.svg")
    page = source.parent / "from_autograd.md"
    page.write_text(with_measured(page.read_text(), measured))
