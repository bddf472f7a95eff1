"""Ops that call Python functions, and the state that these read: names, random streams."""
