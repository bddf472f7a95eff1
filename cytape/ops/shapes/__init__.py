"""Shape rules: specs of the results of op calls, also with unknown extents."""
