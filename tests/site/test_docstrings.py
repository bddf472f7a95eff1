"""The docstrings of public names follow numpydoc: summary, parameters, sections, example."""

import inspect
import re

import pytest

from tests.cases import each
from tests.test_reference import ENTRIES, reference

validation = pytest.importorskip("numpydoc.validate")

CHECKS = {"GL07", "GL08", "SS01", "SS03", "PR01", "PR02", "EX01"}

# Names of other libraries, whose documentation has the arguments and examples.
NAMESAKES = "cytape.autograd.", "cytape.numpy.", "cytape.scipy."

# Names that examples of others show: the editor's handlers are arguments of its `Transformer`.
SHOWN_ELSEWHERE = {
    f"cytape.graph.{name}" for name in (
        "CacheInfo", "checkpoint.gradients_collection", "checkpoint.gradients_memory",
        "checkpoint.gradients_speed", "tracing.functions.Function", "editor.TransformerInfo",
        "editor.assign_renamed_collections_handler", "editor.copy_op_handler",
        "editor.detach_control_inputs", "editor.detach_control_outputs",
        "editor.keep_t_if_possible_handler", "editor.replace_t_with_placeholder_handler",
        "editor.reroute_ios", "editor.swap_inputs", "editor.swap_ios", "editor.swap_outputs",
        "editor.transform_op_if_inside_handler")
} | {"cytape.optimizers.Optimizer", "cytape.profiling.Profile"}


def faults(full):
    """List the checks that the docstring of a name does not pass."""
    found = reference.resolve(full)
    left_out = CHECKS - {"GL08", "SS01"} if full.startswith(NAMESAKES) else set()
    if "Parameters\n" not in (found.__doc__ or ""):  # the summary describes them
        left_out.add("PR01")
    if reference.paragraphs(found)[0]:  # compiled, with the signature at its head
        left_out |= {"SS03", "PR02"}
    if full in SHOWN_ELSEWHERE:
        left_out.add("EX01")
    # numpydoc takes cls for an argument of a class method.
    return [f"{full}: {code} {message}" for code, message in validation.validate(full)["errors"]
            if code in CHECKS - left_out and not re.search(r"\{'(\*+\w+|cls)'\}", message)]


@each("full", [full for full in ENTRIES if inspect.isclass(reference.resolve(full))
               or inspect.isroutine(reference.resolve(full))
               or type(reference.resolve(full)).__name__ in reference.FUNCTIONS])
def test_docstring(full):
    assert not faults(full)


def test_faults_are_found(monkeypatch):
    import cytape.testing

    def check_grads(f, x):
        """Check

        Parameters
        ----------
        f : callable
        y : array
        """

    monkeypatch.setattr(cytape.testing, "check_grads", check_grads)
    assert [fault.split()[1] for fault in faults("cytape.testing.check_grads")] == [
        "SS03", "PR01", "PR02", "EX01"]
