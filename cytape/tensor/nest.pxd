# Nested structures: flattening to leaves, and packing.

cpdef list flatten(structure, bint expand=*)
cpdef pack_sequence_as(structure, flat_sequence, bint expand=*)
cpdef with_children(container, list children)
cpdef rules_of(structure)
cpdef composition_of(structure)
