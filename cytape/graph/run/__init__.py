"""How a graph is run: plans, the executor, sessions; and the same in plain Python."""
