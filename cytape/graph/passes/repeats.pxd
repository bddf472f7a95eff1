# Repeats: ops that a backward pass recomputes. They read their inputs through identities that wait
# for gradients (`late`), so that no pass merges them with the originals, and fusion does not cross
# them. If a fused plan would not store the intermediates anyway, recomputation costs memory.
