"""Sessions: runs of a graph with feeds, and measurements of runs."""
