"""Lending against the simple version: patches of a lent object and of a copied one have the same result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.api.verbs import write_path
from kubist.api.verbs.lending import Stored, attempt
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry
from kubist.testing import Cluster
from kubist.testing.cluster import Refused

pytestmark = pytest.mark.kubist(controllers=())
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CONTAINERS = [
    {"name": "a", "image": "a:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    {"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]},
]
OBJECTS: dict[str, Object] = {
    f"{PODS}/x": {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
    f"{DEPLOYMENTS}/x": {
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
        },
    },
}


async def copied(
    ctx: ResourceRequest,
    entry: Entry,
    obj: Object,
    run: Callable[[Stored], Awaitable[Any]],
    *,
    lend: bool,
) -> Any:
    """The simple version: every try gets a copy."""
    del lend
    return await attempt(ctx, entry, obj, run, lend=False)


@pytest.fixture
def objects(cluster: Cluster) -> Cluster:
    cluster.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for path, body in OBJECTS.items():
        cluster.request("POST", path.rpartition("/")[0], body)
    return cluster


def answer(cluster: Cluster, path: str, body: Any, content_type: str) -> Any:
    query = "dryRun=All&fieldManager=m" + ("&force=true" if content_type == APPLY else "")
    try:
        found = cluster.request("PATCH", f"{path}?{query}", body, content_type)
    except Refused as refused:
        return refused.status
    for entry in found["metadata"]["managedFields"]:
        entry.pop("time", None)
    return found


def same_without_lending(cluster: Cluster, path: str, body: Any, content_type: str) -> None:
    lent = answer(cluster, path, body, content_type)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(write_path, "attempt", copied)
        assert lent == answer(cluster, path, body, content_type)


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["b", "c", None]), max_size=3)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc")},
        optional={
            "image": st.sampled_from(["a:1", "a:2", ""]),
            "env": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("AB"), "value": st.just("3")}), max_size=2
            ),
            "ports": st.just([]),
        },
    ),
    max_size=3,
)


def whole(path: str, metadata: Object, items: list[Object]) -> Object:
    """A patch of labels and containers."""
    inside: Object = {"containers": items}
    if path.startswith(DEPLOYMENTS):
        inside = {"template": {"spec": inside, "metadata": metadata}}
    return {"metadata": metadata, "spec": inside}


def to_kind(path: str, body: Object) -> Object:
    pod = path.startswith(PODS)
    return {"apiVersion": "v1" if pod else "apps/v1", "kind": "Pod" if pod else "Deployment", **body}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(list(OBJECTS)), st.sampled_from([MERGE, STRATEGIC, APPLY]), labels, containers)
def test_patch_of_a_lent_object_gives_the_same(
    objects: Cluster, path: str, content_type: str, changed: dict[str, str | None], items: list[Object]
) -> None:
    body = whole(path, {"labels": changed}, items)
    same_without_lending(objects, path, to_kind(path, body) if content_type == APPLY else body, content_type)


@pytest.mark.parametrize("path", OBJECTS)
@pytest.mark.parametrize("operation", ["copy", "move", "add", "remove"])
def test_json_patch_of_a_lent_object_gives_the_same(objects: Cluster, path: str, operation: str) -> None:
    inside = "/spec/containers" if path.startswith(PODS) else "/spec/template/spec/containers"
    step: Object = {"op": operation, "path": f"{inside}/0/env/0"}
    if operation in ("copy", "move"):
        step["from"] = f"{inside}/0/env/1"
    if operation == "add":
        step["value"] = {"name": "C", "value": "3"}
    same_without_lending(objects, path, [step], JSON)


def test_change_in_place_of_a_lent_object_starts_again_with_a_copy(
    objects: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish: Callable[..., Any] = write_path.finish_transform
    tries: list[Object] = []

    async def careless(ctx: Any, target: Any, new: Object, old: Object, *rest: Any, **more: Any) -> Object:
        tries.append(old)
        new["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "D", "value": "4"})
        finished: Object = await finish(ctx, target, new, old, *rest, **more)
        return finished

    monkeypatch.setattr(write_path, "finish_transform", careless)
    labels = {"metadata": {"labels": {"c": "d"}}}
    found = objects.request("PATCH", f"{DEPLOYMENTS}/x?dryRun=All", labels, MERGE)
    assert len(tries) == 2
    assert found["metadata"]["generation"] == 2
    [first, _] = found["spec"]["template"]["spec"]["containers"]
    assert [variable["name"] for variable in first["env"]] == ["A", "B", "D"]
