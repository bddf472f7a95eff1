# Reach: the nodes between sources and targets of a gradient, found by two sweeps over a graph.
#
# The sweeps set these bits in one byte per symbol.

cpdef enum:
    SOURCE = 1    # its gradient is requested
    STOPPED = 2   # gradients end here
    REACHED = 4   # it depends on a source, by floating or complex tensors
    BETWEEN = 8   # ... and a target depends on it in that way: its gradient is needed
