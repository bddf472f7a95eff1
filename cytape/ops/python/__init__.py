"""Ops that call Python functions, and the state that these reach: names, random streams."""
