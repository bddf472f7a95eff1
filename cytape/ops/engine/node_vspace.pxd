# The gradient of one op of a graph: its gradient function called with symbolic tensors, so that its
# ops become nodes of the graph.
