"""`vmap`: graphs traced for one member of a batch, computed for all members at once."""
