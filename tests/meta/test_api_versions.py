"""API versions: the order in which clients prefer them."""

from __future__ import annotations

import random

from kubist.model.meta.api_versions import priority


def test_versions_sort_by_stability_then_number() -> None:
    ordered = ["v10", "v3", "v2", "v1", "v11beta2", "v1beta2", "v1beta1", "v1alpha3", "alpha7", "v0", "zeta"]
    mixed = ordered[:]
    random.Random(1).shuffle(mixed)
    assert sorted(mixed, key=priority) == ordered
