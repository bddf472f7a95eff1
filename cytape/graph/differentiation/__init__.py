"""`cytape.gradients` and Hessians: derivatives of a graph's tensors, as ops added to the graph."""
