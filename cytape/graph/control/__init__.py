"""Branches and loops in graphs."""
