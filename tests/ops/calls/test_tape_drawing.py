"""Drawings of tapes."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import cytape
from cytape.ops.calls.tape_drawing import diagram_of_tape


def recorded():
    x = cytape.constant(np.ones((3, 2)))
    w = cytape.Variable(np.ones(2), name="w")
    with cytape.GradientTape() as tape:
        tape.watch(x)
        mask = cytape.constant(np.arange(3.0))
        y = np.tanh(x * w).sum(axis=1) * mask
        loss = (y * 2.0).sum()
    return tape, x, loss


def test_kinds_names_and_arrows():
    tape, x, loss = recorded()
    diagram = diagram_of_tape(tape._recorder, {"x": x, "loss": loss})
    labels = {box.label: box for box in diagram.boxes}
    assert labels["x\nwatched"].kind == "input"
    assert labels["w\nvariable"].kind == "variable"
    assert labels["2.0"].kind == "number"
    assert labels["Sum(axis=1)"].results == "float64 (3,)"
    assert labels["loss\nSum"].kind == "result"
    kinds = [box.kind for box in diagram.boxes]
    assert kinds.count("constant") == kinds.count("result") == 1
    keys = {box.key for box in diagram.boxes}
    assert len(keys) == len(diagram.boxes)
    assert all(arrow.start in keys and arrow.end in keys for arrow in diagram.arrows)
    n_inputs = sum(len(inputs) for _, inputs, _ in tape.recorded_ops())
    assert len(diagram.arrows) == n_inputs


def test_drawing_leaves_the_tape_as_it_was():
    tape, x, loss = recorded()
    before = tape.recorded_ops()
    ElementTree.fromstring(tape._repr_svg_())
    assert tape.recorded_ops() == before
    assert tape.gradient(loss, x) is not None
    assert "tape whose gradient has been taken" in str(tape.draw())


def test_inside_the_block_nothing_is_recorded():
    x = cytape.constant(2.0)
    with cytape.GradientTape() as outer, cytape.GradientTape() as tape:
        outer.watch(x)
        tape.watch(x)
        y = x * x
        n_ops = len(outer.recorded_ops())
        tape.draw()
        assert len(outer.recorded_ops()) == n_ops
    assert float(tape.gradient(y, x)) == 4.0


@pytest.mark.parametrize("record", [
    lambda x: cytape.function(lambda x: np.sin(x) * 2)(x),
    lambda x: cytape.custom_gradient(lambda x: (x * 2, lambda g: g))(x),
    lambda x: np.linalg.svd(np.outer(x, x))[1],
    lambda x: x[[0, 1]].reshape(1, 2),
    lambda x: cytape.checkpoint(np.sin)(x),
    lambda x: cytape.autograd.grad(lambda y: np.sum(y * x))(np.ones(3)),
], ids="function custom svd index checkpoint autograd".split())
def test_all_kinds_of_entries(record):
    x = cytape.constant([1.0, 2.0, 3.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        record(x)
        ElementTree.fromstring(str(tape.draw()))
    ElementTree.fromstring(str(tape.draw({"x": x})))


def test_symbols():
    graph = cytape.Graph()
    with graph.as_default(), cytape.GradientTape() as tape:
        x = cytape.placeholder("float64", (None, 2))
        tape.watch(x)
        y = np.sum(x * x)
    assert "float64 (None, 2)" in str(tape.draw({"y": y}))


def test_long_tapes_are_refused_and_shown_in_part():
    x = cytape.constant(1.0)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(1001):
            y = y * x
    assert "801 operations" in tape._repr_svg_()  # between the ends
    with pytest.raises(ValueError, match="1002 boxes, more than most=1000"):
        tape.draw()
    assert sys.getrefcount(y) == 2


def test_names_must_be_a_dict_and_a_consumed_tape_says_so():
    v = cytape.Variable([1.0, 2.0])
    with cytape.GradientTape() as tape:
        y = np.sum(v * v)
    for wrong in (y, v, [y]):
        with pytest.raises(TypeError, match="names must be a dict of str to Tensor"):
            tape.draw(wrong)
    tape.gradient(y, v)
    assert "gradient has been taken: draw before it" in str(tape.draw())
