"""Objects of all built-in kinds, taken from the recorded answers of kube-apiserver in `tests/conformance`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kubist.model.meta.object import Object

GOLDEN = Path(__file__).parent.parent / "conformance" / "golden"
NAMESPACE = "shared"
TIME = "2026-01-02T03:04:05Z"
PRECISE_TIME = "2026-01-02T03:04:05.000006Z"
_TIMES = re.compile(r'"(\w+)": "<time>"')
_PRECISE = ("acquireTime", "eventTime", "lastObservedTime", "renewTime")
_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
_NOT_STORED = ("reviews", "/token", "/eviction", "/binding", "/pods/")
_ACTIVE = ("admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io")
"""Groups whose objects would change the answers of the servers. `_inactive` has some that match nothing."""


class Sample(NamedTuple):
    """An object to create at a collection's path."""

    collection: str
    body: Object

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.body['metadata']['name']}"

    @property
    def kind(self) -> str:
        return f"{self.body['apiVersion']} {self.body['kind']}"


def samples(per_kind: int) -> list[Sample]:
    """Up to `per_kind` different objects of every recorded kind, in the namespace `shared`."""
    found: dict[str, dict[str, Sample]] = {}
    for sample in (*_recorded(), *_inactive()):
        of_kind = found.setdefault(sample.kind, {})
        content = {name: value for name, value in sample.body.items() if name != "metadata"}
        of_kind.setdefault(json.dumps(content, sort_keys=True), sample)
    chosen = [sample for of_kind in found.values() for sample in list(of_kind.values())[:per_kind]]
    for number, sample in enumerate(chosen):
        _rename(sample, number)
    return chosen


def _time(match: re.Match[str]) -> str:
    precise = match[1] in _PRECISE
    return match[0].replace("<time>", PRECISE_TIME if precise else TIME)


def _recorded() -> Iterator[Sample]:
    for file in sorted(GOLDEN.glob("*.json")):
        for step in json.loads(_TIMES.sub(_time, file.read_text())):
            method, _, target = step["step"].partition(" ")
            body = step.get("body")
            if method == "POST" and step["status"] == 201 and isinstance(body, dict):
                sample = _sample(urlsplit(target).path, body)
                if sample is not None:
                    yield sample


def _inactive() -> Iterator[Sample]:
    rule = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["none"]}
    rules = [{**rule, "operations": ["CREATE"]}]
    constraints = {"resourceRules": rules}
    hook = {
        "name": "none.example.com",
        "clientConfig": {"url": "https://none.example.com/hook"},
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
    validating = {"matchConstraints": constraints, "validations": [{"expression": "true"}]}
    mutating = {"matchConstraints": constraints, "mutations": [patch], "reinvocationPolicy": "Never"}
    bodies: dict[str, Object] = {
        "ValidatingAdmissionPolicy": {"spec": validating},
        "MutatingAdmissionPolicy": {"spec": mutating},
        "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "none", "validationActions": ["Deny"]}},
        "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "none"}},
        "ValidatingWebhookConfiguration": {"webhooks": [hook]},
        "MutatingWebhookConfiguration": {"webhooks": [hook]},
    }
    for kind, body in bodies.items():
        plural = kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {}}
        yield Sample(f"/apis/admissionregistration.k8s.io/v1/{plural}", {**head, **body})
    service = {"name": "none", "namespace": NAMESPACE}
    spec: Object = {"group": "none.example.com", "version": "v1", "service": service, "caBundle": "YQ=="}
    spec |= {"groupPriorityMinimum": 10, "versionPriority": 10}
    head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {}}
    yield Sample("/apis/apiregistration.k8s.io/v1/apiservices", {**head, "spec": spec})


def _sample(path: str, body: Object) -> Sample | None:
    metadata = body.get("metadata", {})
    group = path.split("/")[2]
    custom = path.startswith("/apis/") and "." in group and not group.endswith(".k8s.io")
    if custom or group in _ACTIVE or body.get("kind") == "Namespace" or "name" not in metadata:
        return None
    if body["apiVersion"].startswith("meta.k8s.io/") or any(word in path for word in _NOT_STORED):
        return None
    if "<" in json.dumps(body.get("spec", {})):  # a placeholder of the recording
        return None
    metadata = {name: value for name, value in metadata.items() if name not in _SET_BY_SERVER}
    if "namespace" in metadata:
        body = json.loads(json.dumps(body).replace(json.dumps(metadata["namespace"]), json.dumps(NAMESPACE)))
        path = path.replace(f"/namespaces/{metadata['namespace']}/", f"/namespaces/{NAMESPACE}/")
        metadata["namespace"] = NAMESPACE
    metadata.pop("ownerReferences", None)
    metadata.pop("generateName", None)
    return Sample(path, {**body, "metadata": metadata})


def _rename(sample: Sample, number: int) -> None:
    """Names must differ; addresses and ports must be allocated anew."""
    metadata, kind = sample.body["metadata"], sample.body["kind"]
    if kind == "APIService":
        metadata["name"] = f"{sample.body['spec']['version']}.{sample.body['spec']['group']}"
    elif kind not in ("IPAddress", "CSINode"):
        metadata["name"] = f"s{number}"
    if kind == "Service":
        spec = sample.body["spec"]
        for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
            if spec.get(name) not in ("None", ["None"]):
                spec.pop(name, None)
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
