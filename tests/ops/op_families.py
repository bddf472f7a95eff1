"""The records of all ops by family, and the sample of them that most tables take by default."""

import importlib
from pathlib import Path

from tests import ways
from tests.ops.op_specs import OpSpec

FAMILIES = {
    path.stem.removeprefix("specs_"): importlib.import_module(f"tests.ops.{path.stem}").SPECS
    for path in sorted(Path(__file__).parent.glob("specs_*.py"))
}
SPECS: list[OpSpec] = [spec for specs in FAMILIES.values() for spec in specs]
FAMILY_OF = {id(spec): family for family, specs in FAMILIES.items() for spec in specs}
NUMBER_OF = {id(spec): number for number, spec in enumerate(SPECS)}
# Many functions that are declared alike: of these most tables take one in eight by default.
LARGE_FAMILIES = {"distributions", "special_families"}


def is_sampled(spec):
    """Return whether a record is in the sample of a large family, or its family is not large."""
    return FAMILY_OF[id(spec)] not in LARGE_FAMILIES or NUMBER_OF[id(spec)] % 8 == 0


def in_turn(items, spec):
    """Return one in three of them by default, others for the next record; all for other records."""
    if ways.takes_all or id(spec) not in NUMBER_OF:
        return [*items]
    return [*items][NUMBER_OF[id(spec)] % 3::3]
