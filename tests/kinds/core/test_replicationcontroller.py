"""ReplicationControllers and PodTemplates."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object

TEMPLATE: Object = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "a", "image": "i"}]},
}


@pytest.fixture
def controllers(kind_of: Any) -> Any:
    return kind_of("v1", "ReplicationController")


@pytest.fixture
def templates(kind_of: Any) -> Any:
    return kind_of("v1", "PodTemplate")


def test_selector_and_labels_default_to_template_labels(controllers: Any) -> None:
    created = controllers.stored({"spec": {"template": TEMPLATE}})
    assert created["spec"]["selector"] == created["metadata"]["labels"] == {"app": "x"}
    assert created["spec"]["replicas"] == 1


SPECS: list[tuple[Object, list[tuple[str, str]]]] = [
    ({}, [("spec.selector", "Required"), ("spec.template", "Required")]),
    ({"template": TEMPLATE, "replicas": -1}, [("spec.replicas", "Invalid")]),
    ({"template": TEMPLATE, "minReadySeconds": -1}, [("spec.minReadySeconds", "Invalid")]),
    ({"template": TEMPLATE, "selector": {"b": "c"}}, [("spec.template.metadata.labels", "Invalid")]),
    (
        {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
        [("spec.template.spec.restartPolicy", "NotSupported")],
    ),
]


@pytest.mark.parametrize(("spec", "causes"), SPECS)
def test_invalid_spec_is_rejected(controllers: Any, spec: Object, causes: list[tuple[str, str]]) -> None:
    assert controllers.create_errors({"spec": spec}) == causes


def test_available_replicas_cannot_exceed_ready(controllers: Any) -> None:
    old = controllers.stored({"spec": {"template": TEMPLATE}})
    causes = controllers.change_errors(
        old, lambda obj: obj["status"].update(replicas=1, availableReplicas=1), "status"
    )
    assert causes == [("status.availableReplicas", "Invalid")]


def test_template_gets_no_pod_only_defaults(templates: Any) -> None:
    container = {"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}
    spec = {"hostNetwork": True, "containers": [{"name": "a", "image": " ", **container}]}
    created = templates.stored({"template": {"spec": spec}})["template"]["spec"]
    assert "enableServiceLinks" not in created
    assert "requests" not in created["containers"][0]["resources"]
    assert "hostPort" not in created["containers"][0]["ports"][0]


def test_templates_may_not_have_ephemeral_containers(templates: Any) -> None:
    spec = {**TEMPLATE["spec"], "ephemeralContainers": [{"name": "e", "image": "i"}]}
    assert templates.create_errors({"template": {"spec": spec}}) == [
        ("template.spec.ephemeralContainers", "Forbidden")
    ]
