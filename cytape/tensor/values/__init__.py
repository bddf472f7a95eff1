"""Specs, buffers and values: arrays with an id, below the handles that users hold."""
