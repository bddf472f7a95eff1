"""The data model of graphs: operations, names, contexts, variables; listings, drawings, files."""
