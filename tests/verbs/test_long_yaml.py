"""Long YAML bodies are read off the event loop: others do not wait for them."""

from __future__ import annotations

import threading
import time

from tests.live import Client, Live

YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"


def config_map(name: str, namespace: str, keys: int = 9000) -> bytes:
    data = "".join(f"  key-{number}: value {number}\n" for number in range(keys))
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n"
    return (head + data).encode()


def test_long_bodies_are_created_replaced_and_applied(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    body = config_map("long", namespace)
    made = client.ask("POST", maps, body, YAML)
    assert (made.status, made.json["data"]["key-8999"]) == (201, "value 8999"), made
    replaced = client.ask("PUT", f"{maps}/long", body + b"  more: yes it is\n", YAML)
    assert replaced.json["data"]["more"] == "yes it is"
    applied = client.ask("PATCH", f"{maps}/other?fieldManager=me", config_map("other", namespace), APPLY)
    assert (applied.status, len(applied.json["data"])) == (201, 9000)


def test_long_malformed_yaml_is_rejected_like_a_short_one(client: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    body = config_map("long", namespace) + b"  - wrong\n"
    for method, path, content_type in (("POST", maps, YAML), ("PATCH", f"{maps}/a?fieldManager=me", APPLY)):
        answer = client.ask(method, path, body, content_type)
        assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
        assert "yaml: line" in answer.json["message"]


def test_others_are_answered_meanwhile(live: Live) -> None:
    client = live.client
    body = config_map("long", "default", 60_000)
    turns: list[float] = []
    sender = threading.Thread(
        target=client.ask, args=("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", body, YAML)
    )
    sender.start()
    begun = time.monotonic()
    while sender.is_alive():
        client.get("/api/v1/namespaces/default")
        turns.append(time.monotonic() - begun)
    assert len(turns) > 5
