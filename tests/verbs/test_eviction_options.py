"""Options of an eviction: checks and their order."""

from __future__ import annotations

import pytest

from tests.live import Client


def test_eviction_with_an_unknown_dry_run(client: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    client.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    body = {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["x"]}}
    answer = client.ask("POST", f"{pods}/p/eviction", body)
    message = (
        'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"'
    )
    assert (answer.status, answer.json["message"]) == (422, message)
    assert client.ask("GET", f"{pods}/p").status == 200


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            {"propagationPolicy": "X"},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "X": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            {"preconditions": {"uid": "x"}},
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x)',
        ),
        ({"dryRun": ["x"]}, 500, "Non-matching dry-run options in request and content: [All] and [x]"),
    ],
)
def test_dry_run_of_an_eviction_checks_its_options(
    client: Client, namespace: str, options: dict[str, object], code: int, message: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    client.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    answer = client.ask(
        "POST", f"{pods}/p/eviction?dryRun=All", {"metadata": {"name": "p"}, "deleteOptions": options}
    )
    assert answer.status == code, answer
    assert answer.json["message"].startswith(message)


def test_eviction_marks_the_pod_before_its_options_are_checked(client: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    client.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    body = {"metadata": {"name": "p"}, "deleteOptions": {"propagationPolicy": "X"}}
    assert client.ask("POST", f"{pods}/p/eviction", body).status == 422
    (condition,) = client.get(f"{pods}/p")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")
