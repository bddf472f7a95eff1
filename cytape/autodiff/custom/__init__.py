"""Users' derivatives: of calls, of functions of arrays, of elementwise functions."""
