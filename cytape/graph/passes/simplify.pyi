from collections.abc import Sequence

from cytape.graph.model.subgraph import Subgraph
from cytape.tensor.spec import Spec

def simplified(subgraph: Subgraph) -> Subgraph: ...
def with_known_specs(subgraph: Subgraph, specs: Sequence[Spec]) -> Subgraph: ...
