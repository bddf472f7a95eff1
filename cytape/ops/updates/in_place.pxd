# Writes to tensors: a tensor names another value from then on. Code that keeps tensors for later
# keeps others of the same ids (`another`), which a write does not affect.
