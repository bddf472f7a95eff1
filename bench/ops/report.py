"""The prices of ops: on the screen, as a page, as a picture."""

import datetime
import os
import platform
import statistics
from dataclasses import dataclass

import numpy as np

from bench.peer_report import table
from bench.report import format_number, format_seconds

TARGET = 4.0  # times NumPy's forward pass
STYLES = {"cytape": "tab:blue", "cytape.function": "tab:orange", "autograd": "tab:olive"}


@dataclass
class Price:
    """The seconds of NumPy's function, and the additional ones of its derivative, by library."""

    name: str
    size: int
    forward_s: float
    added_s: dict[str, float]
    is_view: bool = False

    @property
    def ratios(self):
        """The additional time as multiples of NumPy's; none for a view, which has no arithmetic."""
        return {} if self.is_view else {
            name: added / self.forward_s for name, added in self.added_s.items()}

    def cells(self, columns):
        return [format_seconds(self.forward_s), *map(self._cell, columns)]

    def _cell(self, column):
        if column not in self.added_s:
            return "-"
        if self.is_view:
            return "+" + format_seconds(self.added_s[column])
        return format_number(self.ratios[column])


def format_line(name, cells):
    """Return a line of the table on the screen."""
    return f"{name:24}" + "".join(f"{cell:>16}" for cell in cells)


def by_size(prices):
    sizes = {}
    for price in prices:
        sizes.setdefault(price.size, []).append(price)
    return sizes


def write_markdown(path, prices, columns, plot=None):
    """Write the page, with a link to the picture if there is one."""
    paragraphs = [
        "# What the derivative of an op costs",
        "Numbers are the time of a gradient as a multiple of NumPy's call `f(x)`, for operands of "
        "10, 1,000 and 1,000,000\nelements (of matrices: as many, in a square). The time of the "
        "gradient is that of the value and gradient of\n`sum(f(x))`, less that of `sum(x)`. Less "
        "is better. `make bench-ops` writes this page.",
        "A function of NumPy that returns views, such as `transpose`, takes no time to compare "
        "with. Its rows have the\nadditional time of the gradient, such as `+1.2 us`. `-`: there "
        "is no such function, or no derivative of it.",
        "Of 10 elements, nearly all of that is the time that calls take; of a million, arithmetic "
        "and memory.",
    ]
    if plot:
        link = os.path.relpath(plot, path.parent).replace(os.sep, "/")
        paragraphs.append(f"![how many functions cost how much]({link})")
    paragraphs += ["## In short", summary(prices, columns)]
    sizes = list(by_size(prices))
    heads = ["function", *(
        f"{head}{f', {size:,}' if head == 'NumPy' else ''}"
        for size in sizes for head in ["NumPy", *columns])]
    rows = {}
    for price in prices:
        rows.setdefault(price.name, []).extend(price.cells(columns))
    paragraphs += ["## All of them", table(heads, [
        [f"`{name}`", *cells] for name, cells in rows.items()])]
    paragraphs += ["## How it was measured", notes()]
    path.write_text("\n\n".join(paragraphs) + "\n")


def summary(prices, columns):
    rows = []
    for size, members in by_size(prices).items():
        for column in columns:
            ratios = {x.name: x.ratios[column] for x in members if column in x.ratios}
            worst = sorted(ratios, key=ratios.get, reverse=True)[:5]
            within = sum(ratio <= TARGET for ratio in ratios.values())
            rows.append([
                column, f"{size:,}", str(len(ratios)), format_number(statistics.median(
                    ratios.values())), f"{within / len(ratios):.0%}",
                ", ".join(f"{name} {format_number(ratios[name])}" for name in worst)])
    return table(["", "elements", "functions", "median", f"at most {TARGET:g}", "most"], rows)


def notes():
    return "\n".join([
        f"- {datetime.date.today().isoformat()}, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, on one core and with one thread.",
        "- One process; forward pass and derivatives take turns, the shortest run counts, and the "
        "garbage collector\n  is off. What takes more than 0.2 seconds is run twice.",
        "- All floating-point operands are differentiated. Results that are sequences are summed "
        "one by one, of complex\n  numbers the real parts. Gradients of `cytape.function` and of "
        "autograd are compared with those of the tape.",
        "- `diag`, `diagflat`, `poly` and `vander` are given 100 elements at most, `roots` 30, and "
        "`convolve`, `correlate`\n  and `polymul` 32 as the second operand.",
    ])


def draw(path, prices, columns):
    """Save the picture as SVG: a curve of sorted prices for each size and column."""
    import matplotlib
    from matplotlib.figure import Figure

    sizes = by_size(prices)
    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure = Figure(figsize=(12, 4), layout="constrained")
        panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for axes, (size, members) in zip(panels, sizes.items(), strict=True):
            for column in columns:
                ratios = sorted(x.ratios[column] for x in members if column in x.ratios)
                axes.plot(
                    np.linspace(0, 100, len(ratios)), np.maximum(ratios, 0.1), label=column,
                    color=STYLES[column])
            axes.axhline(TARGET, color="gray", linewidth=1, label=f"{TARGET:g} times NumPy's")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_title(f"{size:,} elements")
            axes.set_xlabel("functions, cheapest first (%)")
            axes.grid(color="gainsboro")
        panels[0].set_ylabel("gradient / NumPy's forward pass (0.1: or less)")
        panels[0].legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
