"""Every list and map of every built-in kind: a create with thousands of items costs linear time.

This test finds quadratic cost in new fields and new rules. The soak tests use every verb and more items
(`tests/soak/test_growth_soak.py`).
"""

from __future__ import annotations

import pytest

from kubist.api.resources.resource import Resource, Resources
from tests.growth.filling import METADATA, VARIANTS, below, long_fields
from tests.growth.measuring import Growth, Prober

COUNT = 400
DEEP = 4
"""Maximum steps of a path. Deeper lists, such as those of pod templates, are left to the soak tests."""


def created() -> list[Resource]:
    return [resource for resource in Resources() if "create" in resource.verbs]


@pytest.mark.parametrize(
    "resource", created(), ids=lambda resource: f"{resource.resource}.{resource.version}"
)
def test_create_with_a_long_list_costs_linear_time(prober: Prober, resource: Resource) -> None:
    paths = [path for path in long_fields(resource.schema) if "template" not in path and len(path) <= DEEP]
    if resource.resource == "configmaps":
        paths += METADATA
    template = prober.template(resource) if paths else {}
    grown: list[Growth] = []
    for number, path in enumerate(paths):
        variant = VARIANTS[number % 2] if below(resource.schema, path).type == "list" else "distinct"
        grown += prober.check(resource, template, path, variant, COUNT, ("create",))
    assert [str(growth) for growth in grown] == []


def test_update_that_compares_long_lists_costs_linear_time(prober: Prober) -> None:
    found = next(resource for resource in created() if resource.resource == "csinodes")
    grown = prober.check(
        found, prober.template(found), ("spec", "drivers"), "distinct", COUNT, ("update", "merge")
    )
    assert [str(growth) for growth in grown] == []
