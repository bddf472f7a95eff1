"""The data of a graph: operations, names, contexts and variables; listings, drawings and files."""
