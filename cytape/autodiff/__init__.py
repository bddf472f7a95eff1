"""Tapes for people: what is recorded when, and the functional transforms above it."""
