# Gradient of one node of a graph: the gradient function of its op, called with symbolic tensors, so
# that its ops become nodes, too.
