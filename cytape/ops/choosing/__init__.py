"""Choices, padding, insertion, blocks, functions along axes. Imported at first use."""
