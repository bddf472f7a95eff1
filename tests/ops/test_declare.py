import inspect

from cytape.ops import declare
from cytape.ops.engine import op_kinds as engine
from cytape.ops.engine import user_rules


def test_users_find_every_declaration():
    declarations = {
        name: value for module in (engine, user_rules) for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith("_")
        and value.__module__ == module.__name__}
    assert set(declare.__all__) == set(declarations) - {
        "enter", "find", "op_of_name", "passing", "remedy"}  # cytape's own
    assert all(getattr(declare, name) is declarations[name] for name in declare.__all__)
