# Repeats: ops that a backward pass computes again. What they read is shown by identities, which
# wait for the gradients that have arrived (`late`), so that no pass makes one op of an op and its
# repeat. Nor does a plan fuse across them: where it would store nothing of a chain, repeats take
# memory.
