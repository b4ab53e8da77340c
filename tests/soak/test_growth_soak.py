"""Every list and map of every built-in kind, with every kind of write: thousands of items cost linear time.

`KUBIST_SOAK_ITEMS` sets the items of the smaller of two requests (400). The short run has only creates.
"""

from __future__ import annotations

import pytest

from kubist.api.resources.resource import Resource
from tests.growth.filling import METADATA, VARIANTS, below, long_fields
from tests.growth.measuring import VERBS, Growth, Prober
from tests.growth.test_every_field import created
from tests.live import Live, Pki
from tests.soak.sizes import SHORT, size

ITEMS = size("ITEMS", 400, 400)
ONCE = "deployments"
"""Kind with the checked pod template. The templates of other kinds have the same rules."""


@pytest.mark.parametrize(
    "resource", created(), ids=lambda resource: f"{resource.resource}.{resource.version}"
)
def test_every_write_of_a_long_list_costs_linear_time(server_pki: Pki, resource: Resource) -> None:
    paths = [
        path for path in long_fields(resource.schema) if "template" not in path or resource.resource == ONCE
    ]
    variants, verbs = (VARIANTS[:1], VERBS[:1]) if SHORT else (VARIANTS, VERBS)
    grown: list[Growth] = []
    with Live(server_pki) as live:
        prober = Prober(live)
        template = prober.template(resource)
        for path in [*METADATA, *paths] if "update" in resource.verbs else paths:
            for variant in variants:
                if variant != "repeated" or below(resource.schema, path).type == "list":
                    grown += prober.check(resource, template, path, variant, ITEMS, verbs)
    assert [str(growth) for growth in grown] == []
