"""The graph that most tests of this folder build by its methods."""

import pytest

import cytape


@pytest.fixture
def graph():
    """Return a new graph, which is not the default one."""
    return cytape.Graph()
