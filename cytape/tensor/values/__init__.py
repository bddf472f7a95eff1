"""Values: immutable arrays with a spec, a buffer and an id, which handles and tapes share."""
