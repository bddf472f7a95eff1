import inspect

from cytape.ops import declare
from cytape.ops.engine import declare as engine


def test_users_find_every_declaration():
    declarations = {name for name, value in vars(engine).items() if inspect.isfunction(value)
                    and not name.startswith("_") and value.__module__ == engine.__name__}
    assert set(declare.__all__) == declarations - {"enter"}
    assert all(getattr(declare, name) is getattr(engine, name) for name in declare.__all__)
