from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor, new_tensor
from cytape.tensor.values.value cimport symbol_of
from numpy cimport NPY_DOUBLE, NPY_FLOAT

from .rewriting cimport located_as, spec_at

from cytape.errors import GraphError
from cytape.graph.passes.simplify import simplified
from cytape.tensor.recording.state import building_into, unrecorded


def decomposed(subgraph):
    """Replace ops by their compositions of simpler ops, which plans run without Python.

    Common subexpressions of the compositions are merged.
    """
    cdef Rewriting rewriting
    cdef int32_t node, n_decomposed = 0
    if not any_composites(subgraph.graph):
        return subgraph
    rewriting = Rewriting(subgraph)
    for node in range(rewriting.source.n_nodes):
        if rewriting.skip(node):
            continue
        if decompose(rewriting, node):
            n_decomposed += 1
        else:
            rewriting.copy(node)
    return simplified(rewriting.result()) if n_decomposed else subgraph


cdef bint any_composites(SymbolicGraph graph) except -1:
    cdef int32_t node
    for node in range(graph.n_nodes):
        if (<Op>graph.ops[node]).composition is not None:
            return True
    return False


cdef bint decompose(Rewriting rewriting, int32_t node) except -1:
    """Replace a node by simpler ops; return False if it is kept."""
    cdef SymbolicGraph source = rewriting.source, target = rewriting.target
    cdef Op op = <Op>source.ops[node]
    cdef Node* found = &source.nodes[node]
    cdef int32_t i, first = target.n_nodes
    cdef Spec spec
    cdef Tensor result
    cdef list tensors = []
    if op.composition is None or found.n_outputs != 1 or rewriting.pinned[node]:
        return False
    for i in range(found.n_inputs):
        spec = spec_at(source, source.args[found.inputs + i])
        if not spec.known or spec.type_num not in (NPY_DOUBLE, NPY_FLOAT) or spec.size == 0:
            return False
    for i in range(found.n_inputs):
        tensors.append(new_tensor(target.value_at(
            rewriting.mapping[source.args[found.inputs + i]])))
    with unrecorded(), building_into(target):
        made = op.composition(*tensors, **source.attrs[node])
    if made is NotImplemented:
        target.truncate(first)
        return False
    result = made
    spec = spec_at(source, found.first_output)
    if result.held.spec is not spec and spec.known:
        raise GraphError(f"the composition of op {op.name!r} has the shape {result.shape} and the "
                         f"dtype {result.dtype}; expected were {spec.shape} and {spec.dtype}")
    for i in range(first, target.n_nodes):
        located_as(target, i, source, node)
        target.nodes[i].context = found.context
    rewriting.replace(node, <int32_t>symbol_of(result.held))
    return True
