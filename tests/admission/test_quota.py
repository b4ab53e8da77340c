"""Resource quota: usage of each kind, and charging under concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubist.api.admission.quota import evaluator_for
from kubist.model.meta.object import Object

from .conftest import Client

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def limit(client: Client, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    """Creates a quota with a known usage of zero, as a controller would leave it."""
    await client.post(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    answer = await client.patch(f"{QUOTAS}/{name}/status", {"status": status})
    assert answer.code == 200


async def used(client: Client, name: str = "q") -> dict[str, str]:
    found: dict[str, str] = (await client.get(f"{QUOTAS}/{name}")).body["status"]["used"]
    return found


def configmap(name: str) -> Object:
    return {"metadata": {"name": name}}


def test_concurrent_creates_never_exceed_the_quota(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"count/configmaps": "20"})
        await limit(client, {"configmaps": "25"}, "wider")
        answers = await asyncio.gather(*(client.post(CONFIGMAPS, configmap(f"c{n}")) for n in range(60)))
        codes = [answer.code for answer in answers]
        assert (codes.count(201), codes.count(403)) == (20, 40)
        assert await used(client) == {"count/configmaps": "20"}
        assert await used(client, "wider") == {"configmaps": "20"}
        assert len((await client.get(CONFIGMAPS)).body["items"]) == 20

    run(test)


def test_rejection_shows_requested_used_and_limited_amounts(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"configmaps": "1"})
        await client.post(CONFIGMAPS, configmap("a"))
        answer = await client.post(CONFIGMAPS, configmap("b"))
        why = "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
        assert (answer.code, answer.message) == (403, f'configmaps "b" is forbidden: {why}')

    run(test)


def test_dry_run_and_invalid_objects_are_not_charged_but_conflicts_are(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"configmaps": "9"})
        await client.post(f"{CONFIGMAPS}?dryRun=All", configmap("a"))
        await client.post(CONFIGMAPS, configmap("Not A Name"))
        assert await used(client) == {"configmaps": "0"}
        await client.post(CONFIGMAPS, configmap("a"))
        assert (await client.post(CONFIGMAPS, configmap("a"))).code == 409
        assert await used(client) == {"configmaps": "2"}

    run(test)


def test_scoped_quota_counts_only_its_pods(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"pods": "1"}, scopes=["BestEffort"])
        bare = {"name": "c", "image": "i"}
        sized = {**bare, "resources": {"requests": {"cpu": "1"}}}
        for name, container, code in (("a", bare, 201), ("b", sized, 201), ("c", bare, 403)):
            body = {"metadata": {"name": name}, "spec": {"containers": [container]}}
            assert (await client.post(PODS, body)).code == code
        assert await used(client) == {"pods": "1"}

    run(test)


def test_limited_compute_resources_must_be_set(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"requests.cpu": "1", "limits.memory": "1Gi"})
        body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        answer = await client.post(PODS, body)
        assert answer.message.endswith(
            "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
        )

    run(test)


def test_quota_without_known_usage_rejects(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await client.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}})
        assert (await client.post(CONFIGMAPS, configmap("a"))).code == 201
        await client.patch(f"{QUOTAS}/q/status", {"status": {"hard": {"configmaps": "1"}}})
        answer = await client.post(CONFIGMAPS, configmap("b"))
        assert answer.message.endswith("status unknown for quota: q, resources: configmaps")

    run(test)


def test_growing_service_is_charged_its_growth(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        await limit(client, {"services": "5", "services.nodeports": "2", "services.loadbalancers": "1"})
        path = "/api/v1/namespaces/default/services"
        ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
        await client.post(path, {"metadata": {"name": "s"}, "spec": {"ports": ports}})
        assert (await client.patch(f"{path}/s", {"spec": {"type": "NodePort"}})).code == 200
        held = {"services": "1", "services.nodeports": "2", "services.loadbalancers": "0"}
        assert await used(client) == held
        more = [*ports, {"name": "c", "port": 3}]
        assert (await client.patch(f"{path}/s", {"spec": {"ports": more}})).code == 403

    run(test)


@pytest.mark.parametrize(
    ("resource", "obj", "usage"),
    [
        ("deployments.apps", {}, {"count/deployments.apps": "1"}),
        ("secrets", {}, {"count/secrets": "1", "secrets": "1"}),
        (
            "persistentvolumeclaims",
            {
                "metadata": {},
                "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
            },
            {
                "count/persistentvolumeclaims": "1",
                "persistentvolumeclaims": "1",
                "requests.storage": "2",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "2",
            },
        ),
        (
            "pods",
            {
                "metadata": {},
                "spec": {
                    "overhead": {"cpu": "10m"},
                    "initContainers": [
                        {
                            "name": "side",
                            "restartPolicy": "Always",
                            "resources": {"requests": {"cpu": "100m"}},
                        },
                        {"name": "init", "resources": {"requests": {"cpu": "1"}}},
                    ],
                    "containers": [
                        {"name": "c", "resources": {"requests": {"cpu": "200m", "example.com/gpu": "2"}}}
                    ],
                },
            },
            {
                "count/pods": "1",
                "pods": "1",
                "cpu": "1110m",
                "requests.cpu": "1110m",
                "requests.example.com/gpu": "2",
            },
        ),
        (
            "pods",
            {"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Succeeded"}},
            {"count/pods": "1"},
        ),
        (
            "resourceclaims.resource.k8s.io",
            {
                "spec": {
                    "devices": {"requests": [{"exactly": {"deviceClassName": "g", "allocationMode": "All"}}]}
                }
            },
            {
                "count/resourceclaims.resource.k8s.io": "1",
                "g.deviceclass.resource.k8s.io/devices": "32",
                "requests.deviceclass.resource.kubernetes.io/g": "32",
            },
        ),
    ],
)
def test_usage_of_each_kind(resource: str, obj: Object, usage: dict[str, str]) -> None:
    found = evaluator_for(resource).usage(obj)
    assert {name: str(amount) for name, amount in found.items()} == usage
