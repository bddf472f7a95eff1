"""Calls against the order of imports: each name leads to a function or class of the package."""

import importlib

from cytape.ops.calls.late import UPPER, upper
from tests.cases import each


@each("name", UPPER)
def test_each_name_leads_to_a_function_or_class_of_its_module(name):
    assert callable(upper(name))
    assert upper(name) is getattr(importlib.import_module(UPPER[name]), name)
