"""Bodies of patches and deletes with values of the wrong type: refused in the words of the reference."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.patch.values import format_value
from tests.live import Client


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"metadata": {"labels": "x"}}, "cannot restore map from string"),
        ({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"a": 1.5}}}, "unrecognized type: string"),
        ({"metadata": []}, "cannot restore struct from: slice"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"replicas": True}}, "unrecognized type: int32"),
        ({"spec": {"template": {"spec": {"volumes": {}}}}}, "cannot restore slice from map"),
        ({"spec": {"template": {"spec": {"volumes": [1]}}}}, "cannot restore struct from: int64"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            {"metadata": {"deletionTimestamp": 1}},
            "json: cannot unmarshal number into Go value of type string",
        ),
    ],
)
def test_strategic_patch_with_a_value_of_the_wrong_type(
    client: Client, namespace: str, patch: Any, why: str
) -> None:
    where = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    labels = {"a": "b"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    client.post(
        where, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": pod}}
    )
    answer = client.ask("PATCH", f"{where}/d", patch, "application/strategic-merge-patch+json")
    assert answer.status == 422, answer
    assert answer.json["message"] == f' "" is invalid: patch: Invalid value: "{format_value(patch)}": {why}'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b'{"apiVersion":"a/b/c"}', "unexpected GroupVersion string: a/b/c"),
        (
            b'{"gracePeriodSeconds":1e21}',
            "json: cannot unmarshal number 1e21 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            b'{"kind":1}',
            "couldn't get version/kind; json parse error: "
            "json: cannot unmarshal number into Go struct field .kind of type string",
        ),
    ],
)
def test_malformed_delete_options_are_rejected(client: Client, namespace: str, body: bytes, why: str) -> None:
    answer = client.ask("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/a", body)
    assert (answer.status, answer.json["message"]) == (400, why)
