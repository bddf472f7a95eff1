"""Functions that several families of ops use."""
