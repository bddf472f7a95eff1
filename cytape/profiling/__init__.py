"""Profiles of programs: time and memory of each op."""

from cytape.profiling.profile import Profile, profile

__all__ = ["Profile", "profile"]
