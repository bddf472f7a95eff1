# The gradient of one op of a graph: its gradient function called with symbolic tensors, so that
# what it computes becomes part of the graph.
