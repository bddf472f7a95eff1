# Nested structures of leaves, flattened and packed.

cpdef list flatten(structure)
cpdef pack_sequence_as(structure, flat_sequence)
cpdef with_children(container, list children)
