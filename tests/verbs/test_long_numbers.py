"""Numbers of more digits than Python reads: refused like any other that is too large, never a failure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live import MERGE, Client

NINES = "9" * 5000


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"resourceVersion={NINES}", 400),
        (f"watch=1&resourceVersion={NINES}", 500),
        (f"limit={NINES}", 400),
        (f"timeout={NINES}s", 400),
    ],
)
def test_in_a_query(client: Client, query: str, code: int) -> None:
    answer = client.ask("GET", f"/api/v1/namespaces/default/configmaps?{query}")
    assert answer.status == code and b"unexpectedly" not in answer.body


def test_as_the_version_of_a_write(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    stored: dict[str, Any] = client.post(maps, {"metadata": {"name": "a"}})
    stored["metadata"]["resourceVersion"] = NINES
    version = {"metadata": {"resourceVersion": NINES}}
    for answer in (
        client.ask("PUT", f"{maps}/a", stored),
        client.ask("PATCH", f"{maps}/a", version, MERGE),
        client.ask("PATCH", f"{maps}/a?fieldManager=x", stored, "application/apply-patch+yaml"),
    ):
        assert answer.status >= 400 and b"unexpectedly" not in answer.body, answer
