"""Sessions: runs of a graph with feeds, and their times."""
