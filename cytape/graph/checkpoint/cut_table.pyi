from typing import Any

def filled(
    n_levels: int, times: Any, has_steps: Any, down: Any, between: Any, advance: Any, first: Any,
    kept: Any, inside: Any, inside_first: Any, beside: Any, beside_down: Any,
) -> tuple[Any, Any, Any, Any]: ...
