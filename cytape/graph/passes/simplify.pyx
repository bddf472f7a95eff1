from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec

from .folding cimport known_result, neutral, parts_known
from .merging cimport NodeTable, copy_or_merge
from .rewriting cimport ABSENT, set_spec, spec_at

from cytape.graph.model.failures import note_operation


def simplified(subgraph):
    """Remove dead nodes, fold constants, merge repeated nodes and remove identities.

    Ops that raise or warn are left to be run, and so are ops that would make large constants of
    small ones. A number stays what it is if it is multiplied by one or added to minus zero; not if
    it is added to zero or multiplied by zero. Stateful ops, and nodes that others wait for, are
    left as they are. Nodes that become dead stay.
    """
    cdef Rewriting rewriting = Rewriting(subgraph)
    cdef NodeTable table = NodeTable(rewriting.target, rewriting.source.n_nodes)
    cdef int32_t node, symbol
    for node in range(rewriting.source.n_nodes):
        if rewriting.skip(node) or parts_known(rewriting, node):
            continue
        symbol = known_result(rewriting, node)
        if symbol == ABSENT:
            copy_or_merge(rewriting, table, node)
        else:
            rewriting.replace(node, symbol)
    return rewriting.result()


def with_known_specs(subgraph, specs):
    """Infer all shapes again from the specs of the fed values, which may be more specific.

    Ops that sum or broadcast to the shape that their input already has are removed. An op that
    cannot be applied to the new shapes raises its error.
    """
    cdef Rewriting rewriting
    cdef int32_t node
    if not says_more(subgraph, specs):
        return subgraph
    rewriting = Rewriting(subgraph, specs)
    for node in range(rewriting.source.n_nodes):
        if rewriting.skip(node):
            continue
        if specs_follow(rewriting, node):
            copy_with_specs(rewriting, node)
        else:
            rewriting.copy(node)
    return rewriting.result()


cdef bint says_more(subgraph, specs) except -1:
    cdef int32_t symbol
    for symbol, spec in zip(subgraph.feeds, specs, strict=True):
        if spec is not spec_at(subgraph.graph, symbol):
            return True
    return False


cdef bint specs_follow(Rewriting rewriting, int32_t node) except -1:
    """Return whether a node's output specs, or its validity, may follow from more specific inputs.

    The sum of (None,) and (3,) is (3,), but an error if None is 2.
    """
    cdef Node* found = &rewriting.source.nodes[node]
    cdef int32_t i
    for i in range(found.n_inputs):
        if not spec_at(rewriting.source, rewriting.source.args[found.inputs + i]).known:
            return True
    for i in range(found.n_outputs):
        if not spec_at(rewriting.source, found.first_output + i).known:
            return True
    return False


cdef int copy_with_specs(Rewriting rewriting, int32_t node) except -1:
    cdef SymbolicGraph source = rewriting.source, target = rewriting.target
    cdef Op op = <Op>source.ops[node]
    cdef Node* found = &source.nodes[node]
    cdef int32_t i, symbol
    values = [target.value_at(rewriting.mapping[source.args[found.inputs + i]])
              for i in range(found.n_inputs)]
    try:
        result = op.infer(values, source.attrs[node])
    except Exception as error:
        note_operation(error, source, node)
        raise
    if type(result) is Spec and found.n_inputs:
        symbol = neutral(rewriting, node, result)
        if symbol != ABSENT:
            return rewriting.replace(node, symbol)
    found = &target.nodes[rewriting.copy(node)]
    for i, spec in enumerate([result] if type(result) is Spec else result):
        if not spec_at(target, found.first_output + i).known:
            set_spec(target, found.first_output + i, spec)
    return 0
