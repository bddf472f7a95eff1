"""Calls of ops, kind by kind: computation, entries on tapes, derivatives."""
