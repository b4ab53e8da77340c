"""APIService: the name, validation of spec, and the Available condition."""

from typing import Any

import pytest


@pytest.fixture
def services(kind_of: Any) -> Any:
    return kind_of("apiregistration.k8s.io/v1", "APIService")


def service(name: str = "v1.example.com", **spec: Any) -> dict[str, Any]:
    fine = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    return {"metadata": {"name": name}, "spec": {**fine, **spec}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (service(), []),
        (service("v2.example.com"), [("metadata.name", "Invalid")]),
        (service("v2.", group="", version="v2"), [("spec.group", "Required")]),
        (service(versionPriority=1001), [("spec.versionPriority", "Invalid")]),
        (
            service(caBundle="YQ==", insecureSkipTLSVerify=True),
            [("spec.caBundle", "Invalid"), ("spec.insecureSkipTLSVerify", "Invalid")],
        ),
        (service(service={}), [("spec.service.namespace", "Required"), ("spec.service.name", "Required")]),
        (service(service={"name": "s", "namespace": "d", "port": 70000}), [("spec.service.port", "Invalid")]),
    ],
)
def test_invalid_api_service_is_rejected(services: Any, given: Any, expected: list[tuple[str, str]]) -> None:
    assert services.create_errors(given) == expected


def test_only_local_api_service_is_available_on_create(services: Any) -> None:
    (condition,) = services.stored(service())["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Available", "Local")
    remote = services.stored(service(service={"name": "s", "namespace": "d"}))
    assert remote["status"] == {} and remote["spec"]["service"]["port"] == 443
