"""Conversion webhooks of tests."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, Denied
from kubist.testing.cluster import Refused
from tests.crd.defining import definition, version

CRD = definition("Widget", "example.com", version(), version("v2"))
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"


def widget(name: str = "w", **spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def convert(obj: Object, api_version: str) -> Object:
    """v1 has a size in centimetres, v2 in metres."""
    factor = 0.01 if api_version == "example.com/v2" else 100
    return {**obj, "apiVersion": api_version, "spec": {"size": obj["spec"]["size"] * factor}}


def read(cluster: Cluster, version: str) -> Object:
    found: Object = cluster.request("GET", f"{WIDGETS.format(version)}/w")
    return found


def test_objects_are_converted(cluster: Cluster) -> None:
    cluster.load(CRD)
    cluster.load(widget(size=200))
    with cluster.conversion_webhook("widgets.example.com")(convert) as hook:
        assert read(cluster, "v2")["spec"] == {"size": 2}
        assert read(cluster, "v1")["spec"] == {"size": 200}
        made = {**widget("x", size=3), "apiVersion": "example.com/v2"}
        cluster.request("POST", WIDGETS.format("v2"), made)
        assert cluster.request("GET", f"{WIDGETS.format('v1')}/x")["spec"] == {"size": 300}
        call = hook.calls[0]
        assert call.object["spec"] == {"size": 200} and call.api_version == "example.com/v2"
        assert repr(call) == "<Widget default/w: example.com/v1 to example.com/v2>"
        assert repr(hook).startswith("<conversion webhook convert: widgets.example.com; ")
        assert cluster.get("crd/widgets.example.com")["spec"]["conversion"]["strategy"] == "Webhook"
    calls = len(hook.calls)
    assert cluster.get("crd/widgets.example.com")["spec"]["conversion"] == {"strategy": "None"}
    assert read(cluster, "v2")["spec"] == {"size": 200} and len(hook.calls) == calls


def in_place(obj: Object, version: str) -> None:
    obj["spec"]["seen"] = version


async def coroutine(obj: Object, version: str) -> Object:
    return {**obj, "spec": {"seen": version}}


@pytest.mark.parametrize("function", [in_place, coroutine])
def test_forms_of_conversion_functions(cluster: Cluster, function: Any) -> None:
    cluster.load(CRD)
    cluster.load(widget())
    cluster.conversion_webhook("widgets.example.com")(function)
    found = read(cluster, "v2")
    assert found["apiVersion"] == "example.com/v2" and found["spec"] == {"seen": "example.com/v2"}


def refuse(obj: Object, version: str) -> Object:
    raise Denied("too old")


def fail(obj: Object, version: str) -> Object:
    raise KeyError("size")


@pytest.mark.parametrize(
    ("function", "message", "errors"),
    [
        (refuse, "failed: too old", 0),
        (fail, r"failed: KeyError: 'size' \(test_conversion.py:\d+\)", 1),
        (lambda obj, version: 5, "returned int; return the object", 1),
        (lambda obj, version: {**obj, "metadata": {"name": "other"}}, "must have the same name", 0),
    ],
)
def test_errors_of_conversion_functions(cluster: Cluster, function: Any, message: str, errors: int) -> None:
    cluster.load(CRD)
    cluster.load(widget(size=1))
    hook = cluster.conversion_webhook("widgets.example.com")(function)
    with pytest.raises(Refused, match=message) as refused:
        read(cluster, "v2")
    assert refused.value.code == 500 and len(hook.errors) == errors


def test_earlier_conversion_is_restored(cluster: Cluster) -> None:
    cluster.load(CRD)
    cluster.load(widget(size=1))
    first = cluster.conversion_webhook("widgets.example.com")(lambda obj, version: {**obj, "spec": {"by": 1}})
    with cluster.conversion_webhook("widgets.example.com")(lambda obj, version: {**obj, "spec": {"by": 2}}):
        assert read(cluster, "v2")["spec"] == {"by": 2}
    assert read(cluster, "v2")["spec"] == {"by": 1}
    first.remove()
    assert read(cluster, "v2")["spec"] == {"size": 1}


def test_deleted_crd_and_mistakes(cluster: Cluster) -> None:
    with pytest.raises(LookupError, match=r'there is no CRD "widgets.example.com"; load it first'):
        cluster.conversion_webhook("widgets.example.com")(convert)
    cluster.load(CRD)
    with pytest.raises(LookupError, match=r'there is no CRD "widget.example.com"; did you mean'):
        cluster.conversion_webhook("widget.example.com")(convert)
    with pytest.raises(TypeError, match="needs a CRD"):
        cluster.conversion_webhook(convert)  # type: ignore[arg-type]
    hook = cluster.conversion_webhook("widgets.example.com")(convert)
    cluster.delete("crd/widgets.example.com")
    cluster.wait("crd/widgets.example.com", "delete")
    hook.remove()
