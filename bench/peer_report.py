"""Results of a comparison with other libraries: on the screen, as JSON, as a page, as a picture."""

import json
import os
from dataclasses import asdict, dataclass, field

import numpy as np

from bench.peer_libraries import HVP, JVP, LOOP, Measure
from bench.report import format_number, format_seconds

STYLES = {  # of the dots in the picture
    "cytape": ("D", "tab:blue"), "autograd": ("s", "tab:olive"), "MyGrad": ("^", "tab:green"),
    "PyTorch": ("v", "tab:red"), "TensorFlow": ("P", "tab:orange"), "JAX": ("X", "tab:purple"),
    "cytape.function": ("D", "tab:blue"), "tf.function": ("P", "tab:orange"),
    "jax.jit": ("X", "tab:purple"),
}
ABOUT = {  # under the heading of the measure
    JVP: "A program's value, and its derivative in one random direction of all inputs together, by "
         "forward mode:\n`cytape.ForwardAccumulator`, `autograd.make_jvp`, `torch.func.jvp`, "
         "`tf.autodiff.ForwardAccumulator`, `jax.jvp`.\nMyGrad has none.",
    HVP: "A program's gradients, and the product of its Hessian with one random direction of all "
         "inputs together:\nforward mode, by the same functions, over reverse mode.",
    LOOP: "A program that is one loop: `cytape.while_loop`, `tf.while_loop`, `jax.lax.scan`; for\n"
          "`cytape` without `function` and for PyTorch Python's.",
}
FAILS = "fails"
LEGEND_COLUMNS = 5  # as many of these names as fit beside each other in the picture


@dataclass
class Result:
    """The seconds that one workload takes: NumPy's forward pass, and a derivative by library."""

    measure: Measure
    group: str
    name: str
    forward_s: float
    seconds: dict[str, float]
    first_call_s: dict[str, float]
    failures: dict[str, str] = field(default_factory=dict)  # the exception raised

    @property
    def ratios(self):
        return {name: seconds / self.forward_s for name, seconds in self.seconds.items()}

    def cells(self, columns):
        """Return the ratio of each library, or that it fails."""
        return [self.ratios.get(name, FAILS) for name in columns]


def columns_of(results):
    """Return the libraries that took part in any of the results."""
    return [name for name in STYLES
            if any(name in result.seconds or name in result.failures for result in results)]


def grouped(results, attribute):
    groups = {}
    for result in results:
        groups.setdefault(getattr(result, attribute), []).append(result)
    return groups


def format_result(name, cells):
    """Return a line of the table on the screen."""
    return f"{name:55}" + "".join(f"{format_cell(cell):>12}" for cell in cells)


def format_cell(cell):
    return cell if isinstance(cell, str) else format_number(cell)


def write_json(path, environment, results, memory):
    entries = [
        asdict(result) | {"measure": result.measure.name, "ratios": result.ratios}
        for result in results
    ]
    report = {"environment": environment, "results": entries, "peak memory": memory}
    path.write_text(json.dumps(report, indent=1) + "\n")


def write_markdown(path, environment, results, memory, plot=None):
    """Write the page, with a link to the picture if there is one."""
    paragraphs = ["# Beside other libraries"]
    if environment["smoke"]:
        paragraphs.append("**Of tiny arrays, each run once or twice: these numbers mean nothing.**")
    paragraphs.append(
        "`make bench-peers` installs the libraries in an environment of their own and writes this "
        "page.\nIt shows how long a whole gradient takes (forward pass, recording, backward pass), "
        "as a multiple\nof the time that NumPy takes for the forward pass alone: less is better, "
        "and below 1 a gradient\ncosts less than NumPy's forward pass. So it does for the products "
        "of forward mode, further down.\nThe best library that runs the program op by op is in "
        "bold; `cytape.function`, `tf.function` and "
        "`jax.jit`\ntrace it once, for arrays of one shape, and run what they made of it.")
    if plot:
        link = os.path.relpath(plot, path.parent).replace(os.sep, "/")
        paragraphs.append(f"![the table as a picture]({link})")
    for group, members in grouped(results, "group").items():
        paragraphs.append(f"## {capitalized(group)}")
        if members[0].measure in ABOUT:
            paragraphs.append(ABOUT[members[0].measure])
        paragraphs += [ratio_table(environment, members), *failures(members)]
    paragraphs += [
        "## Peak memory",
        "How much a process grows by the gradient of an MLP of 200 layers 256x256, batch 256, as a "
        "multiple of\nthe bytes of weights, their gradients and activations together. Below 1: "
        "activations are freed while\nthe backward pass runs. One alone: "
        "`.venv-peers/bin/python -m bench.peak_memory PyTorch 200 256 256`.",
        table(list(memory), [[format_number(ratio) for ratio in memory.values()]]),
    ]
    paragraphs.append("## First calls, in milliseconds")
    paragraphs += map(first_call_table, grouped(results, "measure").values())
    paragraphs += ["## How it was measured", notes(environment)]
    path.write_text("\n\n".join(paragraphs) + "\n")


def capitalized(text):
    return text[0].upper() + text[1:]


def ratio_table(environment, results):
    columns = columns_of(results)
    rows = []
    for result in results:
        eager = {k: v for k, v in result.ratios.items() if k not in environment["compiled"]}
        best = min(eager, key=eager.get)
        cells = zip(columns, map(format_cell, result.cells(columns)), strict=True)
        rows.append([result.name, format_seconds(result.forward_s)] + [
            f"**{cell}**" if name == best else cell for name, cell in cells])
    return table(["program", "NumPy's forward pass", *columns], rows)


def failures(results):
    """Return a list of the exceptions, in Markdown, if there are any."""
    items = [f"- {library} fails on {result.name}: {error}"
             for result in results for library, error in result.failures.items()]
    return ["\n".join(items)] if items else []


def first_call_table(results):
    columns = columns_of(results)
    rows = [
        [result.name, *(format_number(1e3 * result.first_call_s[name])
                        if name in result.first_call_s else FAILS for name in columns)]
        for result in results
    ]
    return table([results[0].measure.phrase, *columns], rows)


def table(heads, rows):
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def notes(environment):
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    where = "on one core, " if environment["one core"] else ""
    items = [
        f"{environment['date']}, {where}processor {environment['processor']}, "
        f"{environment['system']}.",
        f"{versions}.",
        "One process, and one thread per library. NumPy's forward pass and the derivatives take "
        f"turns: {environment['rounds']} rounds, in each at least one run and "
        f"{environment['seconds per round']:g} seconds. The shortest run counts; the garbage "
        "collector is off.",
        "Before that, every value is compared with NumPy's, and every derivative with cytape's.",
        "Arrays are float64, in JAX too, except where the name of the program says float32. "
        "Inputs, directions and constants are made tensors of each library once, outside the "
        "time.",
        "The first call is not in the ratios. It is where `cytape.function`, `tf.function` and "
        "`jax.jit` trace and compile; JAX without `jit` compiles each op for each shape that no "
        "earlier program has had.",
        "JAX dispatches synchronously and MyGrad's memory guarding is off: both are faster so, "
        "on one core.",
    ]
    if environment["not installed"]:
        items.append(f"Not installed: {', '.join(environment['not installed'])}.")
    return "\n".join(f"- {item}" for item in items)


def draw(path, environment, results):
    """Save the picture as SVG."""
    save_svg(picture(environment, results), path)


def save_svg(figure, path):
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure.savefig(path, format="svg", metadata={"Date": None})


def picture(environment, results):
    """Return a figure: a line per program, with a dot per library; hollow dots are compiled."""
    from matplotlib.figure import Figure

    parts = grouped(results, "measure")
    heights = [len(members) + 2 for members in parts.values()]
    figure = Figure(figsize=(10, 0.36 * sum(heights) + 0.7), layout="constrained")
    panels = figure.subplots(
        len(parts), height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    for axes, (measure, members) in zip(panels, parts.items(), strict=True):
        draw_panel(axes, environment, members)
        axes.set_xlabel(
            f"{measure.phrase}, as a multiple of NumPy's forward pass (less is better)")
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter("{x:g}")
    dots = {
        name: dot for axes in panels for dot, name in zip(
            *axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        dots.values(), dots, loc="outside upper center", ncols=LEGEND_COLUMNS, frameon=False)
    return figure


def draw_panel(axes, environment, results):
    names, rows = columns_of(results), np.arange(len(results))
    heights = np.linspace(-0.3, 0.3, len(names))  # so that equal times do not hide each other
    for name, height in zip(names, heights, strict=True):
        marker, color = STYLES[name]
        axes.plot(
            [result.ratios.get(name, float("nan")) for result in results], rows + height, marker,
            label=name, color=color,
            markerfacecolor="white" if name in environment["compiled"] else color,
            markersize=7 if name == "cytape" else 5,
            zorder=3 + name.startswith("cytape"))  # on top of dots that it meets
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_yticks(rows, [result.name for result in results])
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.tick_params(labelbottom=True)  # though the panels share their scale
    axes.grid(axis="both", color="gainsboro")
    axes.set_axisbelow(True)
