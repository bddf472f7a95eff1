"""Which tensors are kept."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import checkpoint
from cytape.graph.checkpoint.checkpoint_choice import chosen
from cytape.ops.engine.op_kinds import general
from tests.cases import each
from tests.graph.checkpoint.chains import chain, mlp, named


def names(ys, xs, checkpoints, least_size=1024, **options):
    graph = ys.graph
    symbols = chosen(ys, xs, None, checkpoints, least_size, options)
    return [graph.tensor_name_of(symbol).removesuffix(":0") for symbol in symbols]


def test_d_5b_02_a_list_of_tensors():
    a = chain(6)
    assert names(a[-1], a[0], [a[3], a[1], a[3]]) == ["a01", "a03"]


def test_d_5b_02_a_list_of_parts_of_names():
    a = chain(12)
    assert names(a[-1], a[0], ["a02", "3"]) == ["a02", "a03"]
    assert names(a[-1], a[0], ["a1"]) == ["a10"]
    assert names(a[-1], a[0], ["a02", a[7]]) == ["a02", "a07"]


def test_d_5b_02_the_collection_of_the_graph():
    a = chain(6)
    a[0].graph.add_to_collection("checkpoints", a[4])
    a[0].graph.add_to_collection("checkpoints", a[2])
    assert names(a[-1], a[0], "collection") == ["a02", "a04"]
    n_before = a[0].graph.n_nodes
    checkpoint.gradients(a[-1], a[0])  # the default
    assert a[0].graph.get_operation_by_name("a04_sg").node > n_before


@each("checkpoints, error, said", [
    (("a02",), TypeError, "a list of tensors"), (None, TypeError, "NoneType"),
    (3, TypeError, "got int: 3"),
    ("fast", ValueError, "'fast' is unknown.*'auto'"),
    (cytape.constant(1.0), TypeError, r"pass \[tensor\]"),
    ([3], TypeError, "got int: 3"), ([["a02"]], TypeError, "got list"),
])
def test_d_5b_02_anything_else_is_refused(checkpoints, error, said):
    a = chain(6)
    with pytest.raises(error, match=said):
        checkpoint.gradients(a[-1], a[0], checkpoints=checkpoints)


@each("checkpoints", ["collection", [], ["nothing"], ["a00"], ["a05"]])
def test_d_5b_03_nothing_to_keep(checkpoints):
    a = chain(6)
    with pytest.raises(ValueError, match="no checkpoint nodes were found"):
        checkpoint.gradients(a[-1], a[0], checkpoints=checkpoints)


def test_d_5b_03_only_xs_or_ys():
    a = chain(6)
    for tensors in ([a[0]], [a[-1]], [a[0], a[-1]]):
        with pytest.raises(ValueError, match="no checkpoint nodes were found"):
            checkpoint.gradients(a[-1], a[0], checkpoints=tensors)


def test_d_5b_04_tensors_outside_of_the_path_are_ignored():
    a = chain(6)
    with a[0].graph.as_default():
        apart = np.tanh(cytape.constant(1.0))
    other = chain(3)
    assert names(a[-1], a[1], [a[0], a[1], a[2], a[-1], apart, other[1]]) == ["a02"]


def test_d_5b_05_ops_that_can_be_computed_again():
    with cytape.Graph().as_default() as graph:
        v = cytape.Variable(np.ones(3))
        x = cytape.placeholder("float64", (3,), name="x")
        apart = named(np.tanh(cytape.constant(np.ones(3))), "apart")
        noise = named(cytape.numpy.random.random((3,)), "noise")
        a = named(np.tanh(x * v) + apart, "a")
        b = named(np.tanh(a * noise), "b")
        c = named(np.tanh(b), "c")
        y = np.tanh(c)
        cytape.gradients(y, [x, v, b], checkpoints=[a])
    copied = {op.name for op in graph.get_operations() if op.name.endswith("_1")}
    assert {"c_1", "Tanh_1"} <= copied  # and a, for it is differentiated
    assert not {"b_1", "apart_1", "noise_1", "x_1", "ReadVariable_1"} & copied


def test_d_5b_06_speed_goes_by_names():
    loss, weights, layers = mlp(4)
    found = names(loss, weights, "speed")
    assert found == ["MatMul", "MatMul_1", "MatMul_2", "MatMul_3"]
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (3, 3))
        y = np.tanh(named(np.tanh(x) @ x, "product"))
    with pytest.raises(ValueError, match="no checkpoint nodes"):
        checkpoint.gradients_speed(y, x)
    with cytape.Graph().as_default():
        y = np.tanh(named(np.tanh(x := cytape.placeholder("float64", (3,))), "myconv2d_7"))
    assert names(y, x, "speed") == ["myconv2d_7"]


def test_d_5b_07_small_tensors_and_those_with_certain_names_are_not_kept():
    a = chain(12, size=1024)
    with pytest.raises(ValueError, match="more than 1024 .* has 1024: set .*_NODE_SIZE"):
        checkpoint.gradients_memory(a[-1], a[0])  # more, not as many
    a = chain(12, size=1025)
    assert names(a[-1], a[0], "memory") == ["a05", "a09"]
    for part in ("L2Loss", "entropy", "FusedBatchNorm", "Switch", "dropout", "Cast"):
        with cytape.Graph().as_default():
            x = cytape.placeholder("float64", (2000,))
            h = x
            for i in range(6):
                h = named(np.tanh(h), f"some{part}{i}" if i != 3 else "h")
        assert names(np.tanh(h), x, "memory") == ["h"]
        with pytest.raises(ValueError, match="no checkpoint nodes"):
            checkpoint.gradients(np.tanh(h), x, checkpoints=[part])


@each("shape, is_kept", [
    ((None, 17), True), ((None, 16), False), ((None, None), True), (None, False)])
def test_d_5b_07_unknown_extents_count_as_64(shape, is_kept):
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", shape)
        h = np.tanh(np.tanh(np.tanh(x)))
        if is_kept:
            assert names(np.tanh(h), x, "memory")
        else:
            with pytest.raises(ValueError, match="no bottleneck"):
                names(np.tanh(h), x, "memory")


def test_d_5b_07_the_least_size_can_be_set(monkeypatch):
    a = chain(8, size=3)
    monkeypatch.setattr(checkpoint, "MIN_CHECKPOINT_NODE_SIZE", 2)
    [dx] = checkpoint.gradients_memory(a[-1], a[0])
    assert dx.shape == (3,)


def test_d_5b_08_first_what_the_backward_pass_reads():
    """Sums are not read: only where there are not enough bottlenecks, they are kept, too."""
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (2000,), name="x")
        h = x
        for i in range(20):
            h = named(np.tanh(named(named(h + 1.0, f"s{i}") + 1.0, f"t{i}")), f"h{i}")
        found = names(h, x, "memory")
    assert all(name.startswith("h") for name in found) and len(found) == 3


def test_d_5b_08_none_is_an_error():
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (2000,))
        y = np.tanh(np.tanh(np.tanh(x))) + np.sin(np.sin(np.sin(x)))
        with pytest.raises(ValueError, match="no bottleneck was found, a tensor that.*give a list"):
            checkpoint.gradients_memory(y, x)


@each("n, wanted", [(6, ["a03"]), (10, ["a04", "a07"]), (100, [f"a{i}1" for i in range(1, 10)])])
def test_d_5b_09_which_of_the_bottlenecks(n, wanted):
    a = chain(n)
    assert names(a[-1], a[0], "memory") == wanted


def test_d_5b_09_all_if_there_are_few():
    """Two products a layer: what lies between is read backwards, but is no bottleneck."""
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (2000,), name="x")
        h = x
        for i in range(4):
            arms = [named(np.tanh(np.tanh(h * (k + 2.0))), f"arm{i}{k}") for k in range(4)]
            h = named(arms[0] * arms[1] * arms[2] * arms[3], f"h{i}")
        found = names(np.tanh(h), x, "memory")
    assert set(found) <= {"h0", "h1", "h2", "h3"} and len(found) >= 3


def test_d_5b_13_the_choice_adds_nothing_to_the_graph():
    a = chain(20)
    n_before = a[0].graph.n_nodes
    assert names(a[-1], a[0], "memory")
    assert a[0].graph.n_nodes == n_before


def test_the_choice_is_the_same_each_time():
    loss, weights, _ = mlp(30)
    assert names(loss, weights, "memory") == names(loss, weights[::-1], "memory")


def test_all_ways_to_ask_agree():
    a = chain(10)
    graph = a[0].graph
    session = cytape.Session(graph)
    wanted = session.run(cytape.gradients(a[-1], a[0]))
    for found in (
        cytape.gradients(a[-1], a[0], checkpoints="memory"),
        checkpoint.gradients(a[-1], a[0], None, "memory"),
        cytape.graph.checkpoint.gradients_memory(a[-1], a[0]),
    ):
        assert np.array_equal(session.run(found), wanted)


def test_the_choice_is_logged(caplog):
    a = chain(6)
    with caplog.at_level("DEBUG", "cytape"):
        checkpoint.gradients(a[-1], a[0], checkpoints=[a[2], a[4]])
    assert [(x.levelname, x.getMessage()) for x in caplog.records] == [
        ("INFO", "keep 2 of 4 tensors between xs and ys"), ("DEBUG", "keep a02:0, a04:0"),
        ("DEBUG", "compute 1 ops again: a05"), ("DEBUG", "compute 2 ops again: a03, a04"),
        ("DEBUG", "compute 2 ops again: a01, a02")]


def test_the_search_for_bottlenecks_is_logged(caplog):
    a = chain(12)
    with caplog.at_level("DEBUG", "cytape"):
        names(a[-1], a[0], "memory")
    assert [x.getMessage() for x in caplog.records][:2] == [
        "exclude 0 of 10 tensors by name or kind",
        "10 tensors have more than 1024 elements: 10 are bottlenecks, the backward pass reads 10"]


@each("traced", [False, True])
def test_a_mask_of_dropout_and_its_product_are_excluded(traced):
    def built(x):
        kept = cytape.identity(cnp.tanh(x), name="kept")
        dropped = cytape.nn.dropout(kept, 0.5)
        found.append(names(cnp.tanh(cnp.tanh(dropped * 2.0)), x, ["kept", "dropout", "Where"]))
        return dropped

    found = []
    if traced:
        cytape.function(built)(np.ones(2000))
    else:
        with cytape.Graph().as_default():
            built(cytape.placeholder("float64", (2000,)))
    assert found == [["kept"]]


@each("loss", [
    lambda x: cytape.nn.softmax_cross_entropy_with_logits(np.ones((4, 4)) / 4, x),
    lambda x: cytape.nn.sparse_softmax_cross_entropy_with_logits(np.arange(4), x)])
def test_d_5b_07_losses_are_excluded_by_their_kind(loss):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (4, 4), name="x")
        kept = cytape.identity(cnp.tanh(x), name="kept")
        losses = loss(kept)
        y = cnp.sum(losses * 2.0)
    assert names(y, x, ["kept", losses.op.name]) == ["kept"]


def squared(name, **facts):
    return general(name, lambda x: x * x, lambda op, g: 2 * g * op.inputs[0],
                   shape_rule=lambda x: x, **facts)


@each("op, n_kept", [
    (squared("DeclaredCrossEntropy"), 2), (squared("DeclaredLoss", is_passed_over=True), 1)])
def test_an_op_is_excluded_by_its_declaration_not_by_its_name(op, n_kept):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (4, 4), name="x")
        y = op(named(cnp.tanh(x), "kept"))
        wanted = ["kept", y.op.name]
        assert names(cnp.sum(y * 2.0), x, wanted) == wanted[:n_kept]
