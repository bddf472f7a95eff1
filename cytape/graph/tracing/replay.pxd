# Replay: the nodes of a graph, one by one, onto a tape, an accumulator, or another graph.
