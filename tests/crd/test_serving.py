"""Serving of CRDs: served within milliseconds, changed while served, deleted with their objects, on several servers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kubist.model.meta.object import Object
from tests.crd.defining import CRDS, await_status, define, definition, obj, version
from tests.live import Live, Pki
from tests.storage.etcd_server import EtcdServer


def spec(**properties: Object) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def test_new_crd_is_served_within_milliseconds(live: Live) -> None:
    live.client.get("/version")
    crd = definition("Fast", "fast.example.com")
    live.client.post(CRDS, crd)
    # A request takes milliseconds. The number of requests does not depend on the load of the machine; time
    # does.
    for tries in itertools.count():
        if live.client.ask("GET", "/apis/fast.example.com/v1/fasts").status == 200:
            break
        assert tries < 50
    conditions = live.client.get(f"{CRDS}/fasts.fast.example.com")["status"]["conditions"]
    assert [(c["type"], c["status"]) for c in conditions] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]


def test_crd_conditions_are_set_one_at_a_time(live: Live) -> None:
    with live.client.watch(CRDS) as watch:
        live.client.post(CRDS, definition("Step", "step.example.com"))
        events = watch.take(3)
    reasons = [[c["reason"] for c in e["object"]["status"]["conditions"] or ()] for e in events]
    assert reasons == [[], ["NoConflicts", "Installing"], ["NoConflicts", "InitialNamesAccepted"]]


def test_approval_is_the_first_condition_of_a_crd_in_a_protected_group(live: Live) -> None:
    crd = definition("Step", "step.k8s.io")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/pull/1"}
    with live.client.watch(CRDS) as watch:
        live.client.post(CRDS, crd)
        events = watch.take(4)
    assert [c["type"] for c in events[-1]["object"]["status"]["conditions"]] == [
        "KubernetesAPIApprovalPolicyConformant",
        "NamesAccepted",
        "Established",
    ]


def test_schema_change_ends_watches_that_resume_without_gap(live: Live) -> None:
    client = live.client
    at = define(client, definition("Gap", "gap.example.com", version(schema=spec(a={"type": "string"}))))
    path = f"{at}/v1/namespaces/default/gaps"
    first = client.post(path, obj("Gap", "gap.example.com/v1", "one", spec={"a": "1"}))
    with client.watch(f"{path}?resourceVersion={first['metadata']['resourceVersion']}") as watch:
        held = client.get(f"{CRDS}/gaps.gap.example.com")
        held["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = spec(
            a={"type": "string"}, b={"type": "string", "default": "new"}
        )
        client.put(f"{CRDS}/gaps.gap.example.com", held)
        assert watch.next() is None
    await_status(client, path, 200)
    client.post(path, obj("Gap", "gap.example.com/v1", "two", spec={"a": "2"}))
    with client.watch(f"{path}?resourceVersion={first['metadata']['resourceVersion']}") as watch:
        (event,) = watch.take(1)
    assert event["object"]["metadata"]["name"] == "two" and event["object"]["spec"]["b"] == "new"
    assert client.get(f"{path}/one")["spec"] == {"a": "1", "b": "new"}, (
        "defaults are seen by objects of before"
    )


def test_json_patch_of_scale_without_replicas(live: Live) -> None:
    scaled = version(schema=spec(replicas={"type": "integer"}))
    scaled["subresources"] = {
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    }
    at = define(live.client, definition("Few", "few.example.com", scaled))
    path = f"{at}/v1/namespaces/default/fews"
    live.client.post(path, obj("Few", "few.example.com/v1", "one"))

    def patch(*operations: Object) -> Any:
        return live.client.ask("PATCH", f"{path}/one/scale", list(operations), "application/json-patch+json")

    assert patch({"op": "add", "path": "/metadata/labels", "value": {}}).status == 400
    assert patch({"op": "test", "path": "/spec", "value": {}}).status == 422
    assert patch({"op": "remove", "path": "/spec/replicas"}).json["spec"] == {}
    assert live.client.get(f"{path}/one")["spec"] == {"replicas": 0}


def test_custom_resources_are_deleted_before_their_crd(live: Live) -> None:
    client = live.client
    at = define(client, definition("Held", "held.example.com"))
    path = f"{at}/v1/namespaces/default/helds"
    body = obj("Held", "held.example.com/v1", "kept")
    body["metadata"]["finalizers"] = ["example.com/wait"]
    client.post(path, body)
    client.post(path, obj("Held", "held.example.com/v1", "free"))
    client.delete(f"{CRDS}/helds.held.example.com")
    await_status(client, f"{path}/free", 404)
    assert client.get(f"{path}/kept")["metadata"]["deletionTimestamp"]
    assert client.ask("POST", path, obj("Held", "held.example.com/v1", "late")).status == 403
    client.patch(f"{path}/kept", {"metadata": {"finalizers": None}})
    await_status(client, f"{CRDS}/helds.held.example.com", 404)
    await_status(client, path, 404)
    await_status(client, "/apis/apiregistration.k8s.io/v1/apiservices/v1.held.example.com", 404)
    define(client, definition("Held", "held.example.com"))
    assert client.get(path)["items"] == []


def test_crd_accepts_names_that_another_crd_released(live: Live) -> None:
    client = live.client
    define(client, definition("Dup", "dup.example.com"))
    rival = definition("Rival", "dup.example.com")
    rival["spec"]["names"]["singular"] = "dup"
    client.post(CRDS, rival)
    client.delete(f"{CRDS}/dups.dup.example.com")
    await_status(client, "/apis/dup.example.com/v1/rivals", 200)


def test_restarted_server_serves_existing_crds(server_pki: Pki, tmp_path: Any) -> None:
    with Live(server_pki, data_dir=str(tmp_path)) as first:
        at = define(
            first.client, definition("Again", "again.example.com", version(schema=spec(a={"type": "string"})))
        )
        first.client.post(
            f"{at}/v1/namespaces/default/agains", obj("Again", "again.example.com/v1", "x", spec={"a": "1"})
        )
    with Live(server_pki, data_dir=str(tmp_path)) as second:
        assert second.client.get(f"{at}/v1/namespaces/default/agains/x")["spec"] == {"a": "1"}


@pytest.mark.etcd
def test_all_servers_on_a_store_serve_a_crd(server_pki: Pki, real_etcd: EtcdServer) -> None:
    servers = (real_etcd.endpoint,)
    with Live(server_pki, etcd_servers=servers) as one, Live(server_pki, etcd_servers=servers) as other:
        at = define(
            one.client, definition("Both", "both.example.com", version(schema=spec(a={"type": "string"})))
        )
        path = f"{at}/v1/namespaces/default/boths"
        await_status(other.client, path, 200)
        other.client.post(path, obj("Both", "both.example.com/v1", "x", spec={"a": "1"}))
        assert one.client.get(f"{path}/x")["spec"] == {"a": "1"}
        other.client.delete(f"{CRDS}/boths.both.example.com")
        await_status(one.client, path, 404)
        await_status(other.client, path, 404)
