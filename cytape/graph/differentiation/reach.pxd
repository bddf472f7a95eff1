# Nodes between sources and targets: two sweeps over the nodes of a graph, in run order.
#
# Both work on one byte per symbol, of these bits.

cpdef enum:
    SOURCE = 1    # its gradient is asked for
    STOPPED = 2   # no gradient passes to what it is made of
    REACHED = 4   # it depends on a source, by floating or complex tensors
    BETWEEN = 8   # ... and a target depends on it in that way: its gradient is to be computed
