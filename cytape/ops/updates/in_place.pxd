# What changes a tensor: it names another value from then on. Who keeps tensors for later keeps
# others of the same ids (`another`), which these changes leave alone.
