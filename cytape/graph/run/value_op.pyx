from cytape.tensor.tensor cimport as_ndarray
from cytape.tensor.values.value cimport Value, array_of, value_of_array

from cytape.errors import GraphError
from cytape.graph.model.failures import where_built


cdef class ValueOp(GeneralOp):
    """An op that plans call with Values, not with arrays."""

    def __init__(self, str name, *rules, **options):
        GeneralOp.__init__(self, name, self.run_arrays, *rules, **options)

    def run_arrays(self, *arrays, **attrs):
        """Compute the outputs of arrays: the op's forward function."""
        results = self.run_values([value_of_array(as_ndarray(x)) for x in arrays], attrs)
        return [array_of(value) for value in results]

    cpdef list run_values(self, list values, dict attrs):
        """Compute the outputs; all of them are new."""
        raise NotImplementedError

    cdef list run_node(self, Code code, int32_t node, list values):
        return self.run_values(values, code.graph.attrs[node])


cdef int check_fed(SymbolicGraph graph, tuple feeds, list values) except -1:
    """Raise unless values can be fed for symbols."""
    cdef Value value
    cdef Spec spec
    cdef int32_t symbol
    cdef Py_ssize_t k
    if len(values) != len(feeds):
        raise GraphError(f"{len(feeds)} values have to be fed, got {len(values)}")
    for k in range(len(feeds)):
        symbol = feeds[k]
        value = values[k]
        spec = <Spec>graph.symbols[symbol].spec
        if value.spec is not spec and not fits(value.spec, spec):
            where = where_built(graph.location_of(graph.node_of(symbol)))
            raise GraphError(
                f"the value fed for {graph.describe(symbol)}{where} has the shape "
                f"{value.spec.shape} and the dtype {value.spec.dtype}; expected were {spec.shape} "
                f"and {spec.dtype}")
    return 0


cdef bint fits(Spec found, Spec spec):
    """Return whether a value of one spec may be fed for a symbol with unknown extents."""
    if spec.known or found.dtype != spec.dtype:
        return False
    if spec.shape is None:
        return True
    return len(found.shape) == len(spec.shape) and all([
        extent is None or extent == other for extent, other in zip(spec.shape, found.shape)])
