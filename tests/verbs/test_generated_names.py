"""Objects whose names the server makes."""

from __future__ import annotations

from tests.crd.defining import definition
from tests.live import Client


def job(**metadata: object) -> dict[str, object]:
    template = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    return {"metadata": metadata, "spec": {"template": template}}


def test_job_with_a_generated_name_gets_no_generated_labels(client: Client, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    created = client.post(path, job(generateName="j-"))
    assert created["metadata"]["labels"] == {"x": "y"}
    assert len(created["spec"]["template"]["metadata"]["labels"]) == 5
    named = client.post(path, job(name="j", generateName="j-"))
    assert named["metadata"]["labels"] == named["spec"]["template"]["metadata"]["labels"]


def test_generate_name_of_a_crd_is_held_to_the_rule_of_its_name(client: Client) -> None:
    crd = {**definition("Foo", "generated.example.com"), "metadata": {"generateName": "Foo-"}}
    answer = client.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert answer.status == 422
    causes = [(cause["field"], cause["message"][-45:]) for cause in answer.json["details"]["causes"]]
    rule = 'must be spec.names.plural+"."+spec.group'
    assert [field for field, _ in causes] == ["metadata.generateName"] * 2 + ["metadata.name"] * 2
    assert [message.endswith(rule) for _, message in causes] == [False, True, False, True]
