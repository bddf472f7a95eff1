"""The op table: every operation of NumPy with its derivatives, one module per family."""

from cytape.ops.engine.op_kinds import OPS

__all__ = ["OPS"]
