"""Tables of which ``make test`` runs a part, and ``make test-all`` the rest."""

import pytest


def table(always, rest):
    """Return the values of a parameter: some that are always tried, and those that are not."""
    return [*always, *[pytest.param(value, marks=pytest.mark.exhaustive) for value in rest]]
