"""What a comparison with other libraries found: on the screen, as JSON, as a page, as a picture."""

import json
import os
from dataclasses import asdict, dataclass

from bench.report import format_number, format_seconds

STYLES = {  # of the dots in the picture
    "cytape": ("D", "tab:blue"), "autograd": ("s", "tab:olive"), "MyGrad": ("^", "tab:green"),
    "PyTorch": ("v", "tab:red"), "TensorFlow": ("P", "tab:orange"), "JAX": ("X", "tab:purple"),
    "tf.function": ("P", "tab:orange"), "jax.jit": ("X", "tab:purple"),
}


@dataclass
class Result:
    """The seconds that one workload takes: NumPy's forward pass, and gradients by library."""

    group: str
    name: str
    forward_s: float
    gradient_s: dict[str, float]
    first_call_s: dict[str, float]

    @property
    def ratios(self):
        return {name: seconds / self.forward_s for name, seconds in self.gradient_s.items()}


def format_result(name, cells):
    """Return a line of the table on the screen."""
    return f"{name:55}" + "".join(
        f"{cell if isinstance(cell, str) else format_number(cell):>12}" for cell in cells)


def write_json(path, environment, results, memory):
    entries = [asdict(result) | {"ratios": result.ratios} for result in results]
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
        "and below 1 a gradient\ncosts less than NumPy's forward pass. The best library that runs "
        "the program op by op is in bold;\n"
        "`tf.function` and `jax.jit` trace and compile it once, for arrays of one shape.")
    if plot:
        link = os.path.relpath(plot, path.parent).replace(os.sep, "/")
        paragraphs.append(f"![the table as a picture]({link})")
    groups = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    for group, members in groups.items():
        paragraphs += [f"## {group[0].upper()}{group[1:]}", ratio_table(environment, members)]
    paragraphs += [
        "## Peak memory",
        "How much a process grows by the gradient of an MLP of 200 layers 256x256, batch 256, as a "
        "multiple of\nthe bytes of weights, their gradients and activations together. Below 1: "
        "activations are freed while\nthe backward pass runs. One alone: "
        "`.venv-peers/bin/python -m bench.peak_memory PyTorch 200 256 256`.",
        table(list(memory), [[format_number(ratio) for ratio in memory.values()]]),
    ]
    paragraphs += ["## First calls, in milliseconds", first_call_table(results),
                   "## How it was measured", notes(environment)]
    path.write_text("\n\n".join(paragraphs) + "\n")


def ratio_table(environment, results):
    rows = []
    for result in results:
        eager = {k: v for k, v in result.ratios.items() if k not in environment["compiled"]}
        best = min(eager, key=eager.get)
        rows.append([result.name, format_seconds(result.forward_s)] + [
            f"**{format_number(ratio)}**" if name == best else format_number(ratio)
            for name, ratio in result.ratios.items()])
    return table(["program", "NumPy's forward pass", *results[0].ratios], rows)


def first_call_table(results):
    rows = [[result.name, *(format_number(1e3 * x) for x in result.first_call_s.values())]
            for result in results]
    return table(["program", *results[0].first_call_s], rows)


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
        "One process, and one thread per library. NumPy's forward pass and the gradients take "
        f"turns: {environment['rounds']} rounds, in each at least one run and "
        f"{environment['seconds per round']:g} seconds. The shortest run counts; the garbage "
        "collector is off.",
        "Before that, every value is compared with NumPy's, and every gradient with cytape's.",
        "Arrays are float64, in JAX too, except where the name of the program says float32. "
        "Inputs and constants are made tensors of each library once, outside the time.",
        "The first call is not in the ratios. It is where `tf.function` and `jax.jit` trace and "
        "compile; JAX without `jit` compiles each op for each shape that no earlier program "
        "has had.",
        "JAX dispatches synchronously and MyGrad's memory guarding is off: both are faster so, "
        "on one core.",
    ]
    if environment["not installed"]:
        items.append(f"Not installed: {', '.join(environment['not installed'])}.")
    return "\n".join(f"- {item}" for item in items)


def draw(path, environment, results):
    """Save a line per program, as SVG, with a dot per library; hollow dots are compiled."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 0.36 * len(results) + 1.4), layout="constrained")
    axes = figure.subplots()
    rows = range(len(results))
    for name in results[0].ratios:
        marker, color = STYLES[name]
        axes.plot(
            [result.ratios[name] for result in results], rows, marker, label=name, color=color,
            markerfacecolor="white" if name in environment["compiled"] else color,
            markersize=9 if name == "cytape" else 7, zorder=3)
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("a whole gradient, as a multiple of NumPy's forward pass (less is better)")
    axes.set_yticks(rows, [result.name for result in results])
    axes.invert_yaxis()
    axes.grid(axis="both", color="gainsboro")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=len(results[0].ratios), frameon=False)
    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure.savefig(path, format="svg", metadata={"Date": None})
