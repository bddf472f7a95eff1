"""Collections: lists that a graph stores under names."""

import gc
import weakref

import cytape


def test_a_collection_is_copied(graph):
    graph.add_to_collection("a", 1)
    graph.add_to_collection("a", 1)
    graph.get_collection("a").append(2)
    assert graph.get_collection("a") == [1, 1]
    assert graph.get_collection("b") == []
    assert graph.get_all_collection_keys() == ["a"]


def test_several_collections_at_once(graph):
    graph.add_to_collections(["a", "b", "a"], 1)
    graph.add_to_collections("cd", 2)
    graph.add_to_collections(("a", "cd"), 3)
    assert graph.get_collection("a") == [1, 3]
    assert graph.get_collection("b") == [1]
    assert graph.get_collection("cd") == [2, 3]


def test_the_very_list_can_be_changed(graph):
    kept = graph.get_collection_ref("a")
    assert graph.get_all_collection_keys() == []
    kept.extend([1, 2, 3])
    del kept[0]
    kept[0] = 5
    kept[1:] = [6, 7]
    assert graph.get_collection("a") == [5, 6, 7] == kept[:]
    assert graph.get_collection_ref("a") is kept
    assert (len(kept), kept[-1], 6 in kept) == (3, 7, True)
    graph.clear_collection("a")
    graph.clear_collection("never there")
    assert graph.get_collection("a") == []


def test_items_can_be_chosen_by_scope(graph):
    x = graph.placeholder("float64", name="x")
    with graph.name_scope("a"):
        y = graph.placeholder("float64", name="y")
    v = cytape.Variable(1.0, name="a/v")
    for item in (x, y, y.op, v, "a", cytape.constant(1.0)):
        graph.add_to_collection("c", item)
    found = graph.get_collection("c", scope="a/")
    assert [item.name for item in found] == ["a/y:0", "a/y", "a/v"]


def test_tensors_come_back_as_tensors(graph):
    x = graph.placeholder("float64", name="x")
    other = cytape.Graph().placeholder("float64", name="other")
    kept = graph.get_collection_ref("c")
    kept.append(x)
    kept.insert(0, other)
    kept[2:] = [x]
    assert [item.name for item in graph.get_collection("c")] == ["other:0", "x:0", "x:0"]
    assert graph.get_collection("c")[1].ref() == x.ref()
    assert "x:0" in repr(kept)


def test_a_kept_tensor_does_not_keep_the_graph():
    graph = cytape.Graph()
    graph.add_to_collection("c", graph.placeholder("float64"))
    graph.get_collection_ref("c")[0] = graph.placeholder("float64")
    reference = weakref.ref(graph)
    del graph
    gc.collect()
    assert reference() is None
