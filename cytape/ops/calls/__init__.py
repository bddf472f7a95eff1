"""Parts of op calls that all kinds of ops share: operands, nodes of graphs, tangents."""
