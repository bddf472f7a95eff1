"""Examples of public docstrings, run without the globals of their modules, as a reader does."""

import doctest
import inspect

import cytape
import cytape.core
import cytape.nn
import cytape.optimizers
import cytape.testing
from tests.cases import each

MODULES = [cytape, cytape.core, cytape.nn, cytape.optimizers, cytape.testing]


def public_examples():
    """Return the distinct public docstrings that have examples, by name."""
    found = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            members = vars(thing) if inspect.isclass(thing) else {}
            things = {name: thing} | {
                f"{name}.{member}": x for member, x in members.items() if member[0] != "_"}
            for key, x in things.items():
                text = None if inspect.ismodule(x) else inspect.getdoc(x)
                if text and ">>>" in text:
                    found.setdefault(text, f"{module.__name__}.{key}")
    return {name: text for text, name in found.items()}


EXAMPLES = public_examples()


@each("name", list(EXAMPLES))
def test_example_imports_the_names_that_it_uses(name):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    assert runner.run(test).failed == 0
