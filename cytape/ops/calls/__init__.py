"""Parts of an op call that all kinds of ops share: operands, nodes, tangents, symbols."""
