"""`cytape.function`: traces of Python functions by signature, captures, derivatives of traces."""
