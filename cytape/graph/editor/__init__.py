"""The graph editor: selection, walks, views, copies, rerouting, detaching, control inputs."""

from cytape.graph.editor.arguments import make_list_of_op, make_list_of_t
from cytape.graph.editor.capturing import capture_ops
from cytape.graph.editor.connections import (
    ControlOutputs,
    check_cios,
    compute_boundary_ts,
    get_consuming_ops,
    get_generating_ops,
    get_ops_ios,
    get_tensors,
)
from cytape.graph.editor.control_inputs import add_control_inputs, remove_control_inputs
from cytape.graph.editor.copying import copy, copy_with_input_replacements, graph_replace
from cytape.graph.editor.detaching import (
    bypass,
    connect,
    detach,
    detach_control_inputs,
    detach_control_outputs,
    detach_inputs,
    detach_outputs,
)
from cytape.graph.editor.placeholders import (
    make_placeholder_from_dtype_and_shape,
    make_placeholder_from_tensor,
    placeholder_name,
)
from cytape.graph.editor.rerouting import (
    reroute_inputs,
    reroute_ios,
    reroute_outputs,
    reroute_ts,
    swap_inputs,
    swap_ios,
    swap_outputs,
    swap_ts,
)
from cytape.graph.editor.selection import (
    filter_ops,
    filter_ops_from_regex,
    filter_ts,
    filter_ts_from_regex,
    get_name_scope_ops,
    select_ops,
    select_ops_and_ts,
    select_ts,
)
from cytape.graph.editor.transformer import (
    Transformer,
    TransformerInfo,
    assign_renamed_collections_handler,
    copy_op_handler,
    keep_t_if_possible_handler,
    replace_t_with_placeholder_handler,
    transform_op_if_inside_handler,
)
from cytape.graph.editor.view import SubGraphView
from cytape.graph.editor.views import make_view, make_view_from_scope, sgv, sgv_scope
from cytape.graph.editor.walks import (
    get_backward_walk_ops,
    get_forward_walk_ops,
    get_walks_intersection_ops,
    get_walks_union_ops,
    get_within_boundary_ops,
)

__all__ = [
    "ControlOutputs",
    "SubGraphView",
    "Transformer",
    "TransformerInfo",
    "add_control_inputs",
    "assign_renamed_collections_handler",
    "bypass",
    "capture_ops",
    "check_cios",
    "compute_boundary_ts",
    "connect",
    "copy",
    "copy_op_handler",
    "copy_with_input_replacements",
    "detach",
    "detach_control_inputs",
    "detach_control_outputs",
    "detach_inputs",
    "detach_outputs",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_consuming_ops",
    "get_forward_walk_ops",
    "get_generating_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_tensors",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "graph_replace",
    "keep_t_if_possible_handler",
    "make_list_of_op",
    "make_list_of_t",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "make_view",
    "make_view_from_scope",
    "placeholder_name",
    "remove_control_inputs",
    "replace_t_with_placeholder_handler",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
    "sgv",
    "sgv_scope",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
    "transform_op_if_inside_handler",
]
