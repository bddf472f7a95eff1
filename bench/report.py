"""The table of a run: on the screen, as JSON, and as a picture."""

import json
from dataclasses import asdict, dataclass, field

PASSED, FAILED, NO_TARGET = "pass", "FAIL", ""
NAME_WIDTH = 66


@dataclass
class Row:
    """One ratio, its target, and the times it was computed from."""

    group: str
    name: str
    value: float
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None
    details: dict = field(default_factory=dict)  # numbers behind the ratio, seconds mostly

    @property
    def target(self):
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else ""

    @property
    def verdict(self):
        if self.at_least is None and self.at_most is None:
            return NO_TARGET
        high_enough = self.at_least is None or self.value >= self.at_least
        low_enough = self.at_most is None or self.value <= self.at_most
        return PASSED if high_enough and low_enough else FAILED


def faster(group, name, slow, fast, **options):
    """Return a row that says how many times faster the second of two times is."""
    return Row(group, name, slow / fast, details={"baseline_s": slow, "cytape_s": fast}, **options)


def multiple(group, name, baseline, seconds, **options):
    """Return a row that gives a time as a multiple of another."""
    details = {"baseline_s": baseline, "cytape_s": seconds}
    return Row(group, name, seconds / baseline, details=details, **options)


def print_table(rows):
    """Print rows as they come, under a heading per group; return them as a list."""
    print(f"{'':{NAME_WIDTH}}{'ratio':>9}{'target':>15}{'':8}{'baseline':>9}{'cytape':>11}")
    printed = []
    for row in rows:
        if not printed or printed[-1].group != row.group:
            print(f"\n{row.group}")
        print(format_row(row), flush=True)
        printed.append(row)
    return printed


def format_row(row):
    times = "".join(
        f"{format_seconds(row.details[key]):>11}"
        for key in ("baseline_s", "cytape_s") if key in row.details)
    line = (f"  {row.name:{NAME_WIDTH - 2}}{format_number(row.value):>9} {row.unit:6}"
            f"{row.target:>8}  {row.verdict:4}{times}")
    return line.rstrip()


def format_number(value):
    """Return about three digits, all before the decimal point, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_seconds(seconds):
    for unit, scale in ("s", 1), ("ms", 1e3), ("us", 1e6):
        if seconds * scale >= 1:
            return f"{format_number(seconds * scale)} {unit}"
    return f"{format_number(seconds * 1e9)} ns"


def write_json(path, environment, rows):
    entries = [
        {key: value for key, value in asdict(row).items() if value is not None}
        | {"verdict": row.verdict}
        for row in rows
    ]
    path.write_text(json.dumps({"environment": environment, "rows": entries}, indent=1) + "\n")


def draw(path, title, rows):
    """Save a bar per row, with its target as a mark; one panel per group, on one log scale."""
    from matplotlib.figure import Figure

    groups = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    heights = [len(members) + 0.5 for members in groups.values()]
    figure = Figure(figsize=(10, 0.2 * sum(heights) + 0.4 * len(groups) + 1), layout="constrained")
    figure.suptitle(title, fontsize=7, wrap=True)
    panels = figure.subplots(len(groups), height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    colors = {PASSED: "tab:green", FAILED: "tab:red", NO_TARGET: "tab:gray"}
    for axes, (group, members) in zip(panels, groups.items(), strict=True):
        axes.barh(
            [row.name for row in members], [row.value for row in members],
            color=[colors[row.verdict] for row in members])
        for y, row in enumerate(members):
            targets = [x for x in (row.at_least, row.at_most) if x is not None]
            for x in targets:
                axes.plot([x, x], [y - 0.4, y + 0.4], color="black", linewidth=2)
            axes.text(1.05 * max(row.value, *targets, 0), y, format_number(row.value),
                      fontsize=7, verticalalignment="center")
        axes.set_ylim(len(members) - 0.4, -0.6)
        axes.set_title(group, fontsize=8, loc="left")
        axes.tick_params(labelsize=7)
    panels[-1].set_xscale("log")
    panels[-1].set_xlim(0.5, 2 * max(row.value for row in rows))
    panels[-1].xaxis.set_major_formatter("{x:g}")
    figure.savefig(path, dpi=120)
