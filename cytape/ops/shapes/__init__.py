"""Shapes and dtypes of results of calls, also with unknown extents."""
