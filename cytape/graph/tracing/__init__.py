"""How a Python function becomes a graph: keys, signatures, traces, captures."""
