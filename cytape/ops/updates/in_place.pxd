# Writes to tensors: afterwards the handle has another value. Code that keeps a tensor for later
# keeps another handle of the same value (`another_handle`), which writes do not affect.
