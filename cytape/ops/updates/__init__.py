"""Updates of parts of tensors: assignments, in place or not. Imported at the first update."""
