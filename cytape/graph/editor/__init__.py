"""The graph editor: selection, walks, views, copies, rerouting, detaching, control inputs."""

from cytape.graph.editor.capturing import *  # noqa: F403
from cytape.graph.editor.connections import *  # noqa: F403
from cytape.graph.editor.control_inputs import *  # noqa: F403
from cytape.graph.editor.copying import *  # noqa: F403
from cytape.graph.editor.detaching import *  # noqa: F403
from cytape.graph.editor.listed_arguments import *  # noqa: F403
from cytape.graph.editor.placeholders import *  # noqa: F403
from cytape.graph.editor.rerouting import *  # noqa: F403
from cytape.graph.editor.selected_ops import *  # noqa: F403
from cytape.graph.editor.subgraph_view import *  # noqa: F403
from cytape.graph.editor.transformer import *  # noqa: F403
from cytape.graph.editor.view_makers import *  # noqa: F403
from cytape.graph.editor.walks import *  # noqa: F403

__all__ = sorted(
    name for name, x in globals().items() if hasattr(x, "__module__") and name[0] != "_")
