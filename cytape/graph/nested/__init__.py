"""Nested plans: bodies of branches, loops and checkpointed loops, run by instructions of a plan."""
