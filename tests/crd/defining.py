"""CRDs for tests, and a wait until they are served."""

from __future__ import annotations

from typing import Any

from kubist.model.meta.object import Object
from tests.live import Client
from tests.waiting import wait_for

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def version(name: str = "v1", schema: Object | None = None, **more: Any) -> Object:
    props = schema if schema is not None else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": props},
        **more,
    }


def definition(kind: str, group: str, *versions: Object, scope: str = "Namespaced", **spec: Any) -> Object:
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def define(client: Client, crd: Object) -> str:
    """Creates a CRD and waits until each of its served versions is served. Returns the path of its group."""
    client.post(CRDS, crd)
    spec = crd["spec"]
    for found in spec["versions"]:
        if found["served"]:
            await_status(client, f"/apis/{spec['group']}/{found['name']}/{spec['names']['plural']}", 200)
    return f"/apis/{spec['group']}"


def await_status(client: Client, path: str, wanted: int, seconds: float = 10) -> Any:
    answer = None

    def has_status() -> bool:
        nonlocal answer
        answer = client.ask("GET", path)
        return answer.status == wanted

    wait_for(has_status, seconds, explain=lambda: answer)
    return answer


def obj(kind: str, api_version: str, name: str, **rest: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}
