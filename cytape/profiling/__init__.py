"""Profiles of programs: time and memory of each op."""

from cytape.profiling.profiles import Profile, profile

__all__ = ["Profile", "profile"]
