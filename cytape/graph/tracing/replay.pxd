# Replay: the nodes of a graph told to somebody: to a tape, an accumulator, or another graph.
