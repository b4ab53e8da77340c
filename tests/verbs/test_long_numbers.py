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


@pytest.mark.parametrize(
    ("body", "content_type", "cpu"),
    [
        (b'{"spec":{"hard":{"cpu":1e3}}}', MERGE, "1e3"),
        (b'{"spec":{"hard":{"cpu":12345678901234567891}}}', MERGE, "12345678901234567891"),
        (b'{"spec":{"hard":{"cpu":123456789012345678901}}}', MERGE, "123456789012345678901"),
        (b'[{"op":"add","path":"/spec/hard","value":{"cpu":1E3}}]', "application/json-patch+json", "1E3"),
        (b'{"spec":{"hard":{"cpu":1e3}}}', "application/strategic-merge-patch+json", "1k"),
        (
            b'{"spec": {"hard": {"cpu": 12345678901234567891}}}',
            "application/strategic-merge-patch+json",
            "12345678901234567k",
        ),
    ],
)
def test_number_of_a_quantity(
    client: Client, namespace: str, body: bytes, content_type: str, cpu: str
) -> None:
    """JSON and merge patches keep its text, a strategic merge patch makes a float of it."""
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    client.post(quotas, {"metadata": {"name": "a"}, "spec": {"hard": {}}})
    answer = client.ask("PATCH", f"{quotas}/a", body, content_type)
    assert answer.json["spec"]["hard"]["cpu"] == cpu


def test_number_of_a_quantity_beside_raw_json(client: Client, namespace: str) -> None:
    claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    client.post(claims, {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}})
    device = (
        '"driver":"d.example.com","pool":"p","device":"x","shareID":"7b3a3d3e-5f0f-4f3c-8d0f-1a2b3c4d5e6f"'
    )
    result = f'{{"request":"r",{device},"consumedCapacity":{{"memory":2e3}}}}'
    data = f'{{{device},"data":{{"ratio":1.5,"large":1e20}}}}'
    status = f'{{"allocation":{{"devices":{{"results":[{result}]}}}},"devices":[{data}]}}'
    patched = client.ask("PATCH", f"{claims}/a/status", b'{"status":%s}' % status.encode(), MERGE)
    assert patched.status == 200, patched
    (consumed,) = patched.json["status"]["allocation"]["devices"]["results"]
    assert consumed["consumedCapacity"] == {"memory": "2e3"}
    assert patched.json["status"]["devices"][0]["data"] == {"ratio": 1.5, "large": 1e20}
