"""What a graph is: operations, names, contexts, variables; how it is shown and kept in files."""
