# Replay: nodes of a graph recorded on a tape or accumulator, or copied to another graph, one by
# one.
