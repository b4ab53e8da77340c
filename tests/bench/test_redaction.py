"""Secrets and tokens never appear in recordings."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubist.testbench.recording.redaction import CHANGED, LAST_APPLIED, REDACTED
from kubist.testing import Cluster
from tests.bench.fault_clients import ask, connect
from tests.bench.recording_clients import lines, recording

SECRETS = "/api/v1/namespaces/default/secrets"
PASSWORD = "correct-horse"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()
OTHER = base64.b64encode(b"battery").decode()


def secret(name: str = "s") -> dict[str, Any]:
    annotations = {LAST_APPLIED: json.dumps({"data": {"p": ENCODED}}), "kept": "yes"}
    return {"metadata": {"name": name, "annotations": annotations}, "data": {"p": ENCODED, "q": OTHER}}


def without_values(text: str) -> bool:
    return not any(value in text for value in (PASSWORD, ENCODED, OTHER))


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type"),
    [
        ("POST", SECRETS, secret("new"), "application/json"),
        ("PUT", f"{SECRETS}/s", secret(), "application/json"),
        ("GET", f"{SECRETS}/s", None, "application/json"),
        ("GET", SECRETS, None, "application/json"),
        ("PATCH", f"{SECRETS}/s", {"stringData": {"p": PASSWORD}}, "application/merge-patch+json"),
        ("PATCH", f"{SECRETS}/s", {"data": {"p": OTHER}}, "application/strategic-merge-patch+json"),
        (
            "PATCH",
            f"{SECRETS}/s",
            [
                {"op": "replace", "path": "/data/p", "value": OTHER},
                {"op": "add", "path": "/data", "value": {"p": ENCODED}},
                {"op": "add", "path": "/metadata/annotations", "value": {LAST_APPLIED: ENCODED}},
                {"op": "add", "path": "/metadata/labels", "value": {"shown": "yes"}},
            ],
            "application/json-patch+json",
        ),
        ("POST", SECRETS, {"metadata": {"name": "bad"}, "data": {"p": PASSWORD}}, "application/json"),
        (
            "POST",
            SECRETS,
            {"metadata": {"name": "bad"}, "data": {"p": {"deep": PASSWORD}}},
            "application/json",
        ),
        (
            "PATCH",
            f"{SECRETS}/s",
            [{"op": "test", "path": "/data/p", "value": PASSWORD}],
            "application/json-patch+json",
        ),
        ("POST", SECRETS, {"metadata": {"name": "bad"}, "stringdata": {"p": PASSWORD}}, "application/json"),
        (
            "POST",
            SECRETS,
            {"metadata": PASSWORD, "type": {"p": PASSWORD}, "kind": [PASSWORD]},
            "application/json",
        ),
        ("POST", SECRETS, {**secret("x"), "kind": "TokenReview"}, "application/json"),
        ("POST", SECRETS, {**secret("x"), "kind": "Status"}, "application/json"),
        (
            "POST",
            SECRETS,
            {"items": [PASSWORD], "rows": [[PASSWORD]], "data": [PASSWORD]},
            "application/json",
        ),
        ("DELETE", f"{SECRETS}/s", None, "application/json"),
        (
            "DELETE",
            f"{SECRETS}/s",
            {**secret(), "preconditions": {"uid": "x", "p": PASSWORD}},
            "application/json",
        ),
        (
            "DELETE",
            f"{SECRETS}/s",
            {"preconditions": [PASSWORD], "dryRun": {"p": PASSWORD}},
            "application/json",
        ),
        ("DELETE", f"{SECRETS}/s", [PASSWORD], "application/json"),
        ("POST", SECRETS, [PASSWORD], "application/json"),
        ("POST", SECRETS, PASSWORD, "application/json"),
        (
            "PATCH",
            f"{SECRETS}/s",
            [PASSWORD, {"op": "add", "vallue": PASSWORD}],
            "application/json-patch+json",
        ),
        ("PATCH", f"{SECRETS}/s", PASSWORD, "application/merge-patch+json"),
    ],
)
def test_secret_data_is_redacted(
    cluster: Cluster, method: str, path: str, body: Any, content_type: str
) -> None:
    cluster.request("POST", SECRETS, secret())
    with recording(cluster) as recorded:
        code, _, _ = ask(cluster, method, path, body, Content_Type=content_type)
        [line] = lines(cluster, recorded)
    assert line["status"] == code
    assert without_values(json.dumps(line))


def test_redacted_secrets_keep_their_keys_and_show_changes(cluster: Cluster) -> None:
    cluster.request("POST", SECRETS, secret())
    with recording(cluster) as recorded:
        patch = {"data": {"p": OTHER}, "metadata": {"labels": {"a": "b"}}}
        cluster.request("PATCH", f"{SECRETS}/s", patch, "application/merge-patch+json")
        [line] = lines(cluster, recorded)
    assert line["patch"] == {"data": {"p": REDACTED}, "metadata": {"labels": {"a": "b"}}}
    assert line["before"]["data"] == {"p": REDACTED, "q": REDACTED}
    assert line["after"]["data"] == {"p": CHANGED, "q": REDACTED}
    assert line["after"]["metadata"]["annotations"] == {LAST_APPLIED: REDACTED, "kept": "yes"}


def test_options_of_a_delete_are_shown(cluster: Cluster) -> None:
    cluster.request("POST", SECRETS, secret())
    options = {"preconditions": {"uid": "other"}, "propagationPolicy": "Background", "gracePeriodSeconds": 0}
    with recording(cluster) as recorded:
        code, _, _ = ask(cluster, "DELETE", f"{SECRETS}/s", options)
        [line] = lines(cluster, recorded)
    assert code == 409
    assert line["requestObject"] == options
    assert "the UID in the precondition (other) does not match" in line["responseObject"]["message"]


def test_tables_of_secrets_are_redacted(cluster: Cluster) -> None:
    cluster.request("POST", SECRETS, secret())
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    with recording(cluster) as recorded:
        ask(cluster, "GET", f"{SECRETS}?includeObject=Object", Accept=table)
        [line] = lines(cluster, recorded)
    assert line["responseObject"]["kind"] == "Table" and without_values(json.dumps(line))


def test_tokens_are_redacted(cluster: Cluster) -> None:
    with recording(cluster) as recorded:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        token = cluster.request("POST", path, {"spec": {}})["status"]["token"]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        found = lines(cluster, recorded)
    assert token not in json.dumps(found)
    assert found[0]["responseObject"]["status"]["token"] == REDACTED
    assert found[0]["responseObject"]["status"]["expirationTimestamp"]
    assert found[1]["requestObject"]["spec"]["token"] == REDACTED


@pytest.mark.parametrize("kind", [{}, {"kind": "TokenRequest"}, {"kind": ["TokenReview"]}, {"kind": {}}])
def test_tokens_are_redacted_whatever_kind_a_request_names(cluster: Cluster, kind: dict[str, Any]) -> None:
    with recording(cluster) as recorded:
        review = {**kind, "spec": {"token": PASSWORD}}
        code, _, _ = ask(cluster, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        [line] = lines(cluster, recorded)
    assert line["status"] == code
    assert PASSWORD not in json.dumps(line)


def test_request_that_cannot_be_read_does_not_end_the_recording(cluster: Cluster) -> None:
    with recording(cluster) as recorded:
        bodies: tuple[Any, ...] = ({"kind": []}, {"kind": {}}, [], "x", {"items": [1], "rows": {}})
        for body in bodies:
            ask(cluster, "POST", SECRETS, body)
        found = lines(cluster, recorded)
    assert [line["status"] for line in found] == [400] * 4 + [422]


@pytest.mark.parametrize("long", [False, True])
def test_messages_do_not_show_bodies_of_secrets(cluster: Cluster, long: bool) -> None:
    value = ENCODED + "A" * 100_000 * long
    with recording(cluster) as recorded:
        connection = connect(cluster)
        headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
        for body in (f'{{"data": {{"p": "{value}"}},}}', f'{{"data": {{"p": "{value}"}}, "kind": []}}'):
            connection.request("POST", SECRETS, body, headers)
            assert connection.getresponse().read()
        connection.close()
        found = lines(cluster, recorded)
    assert [line["status"] for line in found] == [400, 400]
    assert without_values(json.dumps(found))
