"""Loops over memory that single families of ops need."""
