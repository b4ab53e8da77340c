"""Paths with more slashes than they need."""

from __future__ import annotations

import pytest

from kubist.api.request import parse
from tests.live import Live

SPLIT = [
    ("/apis/apps/v1/deployments//", ("apps", "v1", "deployments", "")),
    ("/apis/apps/v1/namespaces/n/deployments/d//", ("apps", "v1", "deployments", "d")),
    ("/api/v1//pods", ("", "v1", "", "pods")),
    ("//api/v1/pods", ("", "", "", "")),
]


@pytest.mark.parametrize(("path", "expected"), SPLIT)
def test_slashes_at_the_end_do_not_count(path: str, expected: tuple[str, ...]) -> None:
    info = parse("GET", path, {})
    assert (info.group, info.version, info.resource, info.name) == expected


@pytest.mark.parametrize("path", ["/apis//", "/apis//apps", "/apis//apps/v1", "/apis//apps/v1/deployments"])
def test_a_group_without_a_name_is_not_served(live: Live, path: str) -> None:
    answer = live.client.ask("GET", path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
