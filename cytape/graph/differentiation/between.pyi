from cytape.ops.engine.symbolic import SymbolicGraph

SOURCE: int
STOPPED: int
REACHED: int
BETWEEN: int

def reach(graph: SymbolicGraph, marks: bytearray) -> None: ...
def nodes_between(graph: SymbolicGraph, marks: bytearray) -> list[int]: ...
