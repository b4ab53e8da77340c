"""Defaults of a PodSpec, and deprecated fields that mirror newer ones. The imagePullPolicy depends on the image's tag.

`default_pod_spec` has the defaults of pods and templates. `api/kinds/core/pod.py` has the defaults that only pods have.
"""

from __future__ import annotations

import re
from typing import Any

from kubist.api.kinds.core.podspec.resources import round_up_to_milli
from kubist.api.kinds.core.podspec.visit import FIELDS
from kubist.api.kinds.core.podspec.volume_claims import default_claim_spec
from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object

_FILE_MODE = 0o644
_HOUR = 3600

_VOLUME_DEFAULTS: dict[str, dict[str, Any]] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_INIT_CONTAINER_ANNOTATIONS = frozenset(
    (
        "pod.beta.kubernetes.io/init-containers",
        "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses",
        "pod.alpha.kubernetes.io/init-container-statuses",
    )
)


def default_pod_template(template: Object) -> None:
    """Sets the defaults of a PodTemplateSpec."""
    default_pod_spec(template.setdefault("spec", {}))
    drop_init_container_annotations(template)


def drop_init_container_annotations(obj: Object) -> None:
    """Drops annotations that described init containers before the field existed. Old clients may still send them."""
    annotations = (obj.get("metadata") or {}).get("annotations")
    if annotations and not _INIT_CONTAINER_ANNOTATIONS.isdisjoint(annotations):
        for key in _INIT_CONTAINER_ANNOTATIONS:
            annotations.pop(key, None)
        if not annotations:
            del obj["metadata"]["annotations"]


def default_pod_spec(spec: Object) -> None:
    """Sets the defaults of a PodSpec. Decoding has already removed zero values that mean absent."""
    if "dnsPolicy" not in spec:
        spec["dnsPolicy"] = "ClusterFirst"
    if "restartPolicy" not in spec:
        spec["restartPolicy"] = "Always"
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = 30
    if "schedulerName" not in spec:
        spec["schedulerName"] = "default-scheduler"
    if "serviceAccountName" in spec or "serviceAccount" in spec:
        account = spec.get("serviceAccountName") or spec.get("serviceAccount")
        if account:
            spec["serviceAccountName"] = spec["serviceAccount"] = account
    if "volumes" in spec:
        for volume in spec["volumes"] or ():
            default_volume(volume)
    for field in FIELDS:
        if field in spec:
            for container in spec[field] or ():
                _default_container(container)
    if "overhead" in spec:
        round_up_to_milli(spec["overhead"])
    if "resources" in spec:
        _default_resources(spec["resources"])


def default_volume(volume: Object) -> None:
    """Sets the defaults of a volume. A volume without a source becomes an emptyDir."""
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
        return
    for source in volume.keys() & _VOLUME_DEFAULTS.keys():
        for field, value in _VOLUME_DEFAULTS[source].items():
            volume[source].setdefault(field, value)
    if "image" in volume:
        image = volume["image"]
        image.setdefault("pullPolicy", _pull_policy(image.get("reference", "")))
    if "downwardAPI" in volume:
        _default_downward_items(volume["downwardAPI"])
    if "projected" in volume:
        for source in volume["projected"].get("sources") or ():
            if "downwardAPI" in source:
                _default_downward_items(source["downwardAPI"])
            if "serviceAccountToken" in source:
                source["serviceAccountToken"].setdefault("expirationSeconds", _HOUR)
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        default_claim_spec(volume["ephemeral"]["volumeClaimTemplate"].setdefault("spec", {}))


def _default_downward_items(source: Object) -> None:
    for item in source.get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _default_container(container: Object) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    if "ports" in container:
        for port in container["ports"] or ():
            if "protocol" not in port:
                port["protocol"] = "TCP"
    if "env" in container:
        for variable in container["env"] or ():
            if "valueFrom" in variable:
                source = variable["valueFrom"]
                if "fieldRef" in source:
                    source["fieldRef"].setdefault("apiVersion", "v1")
                if "fileKeyRef" in source:
                    source["fileKeyRef"].setdefault("optional", False)
    if "resources" in container:
        _default_resources(container["resources"])
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _default_probe(container[probe])
    if "lifecycle" in container:
        for handler in container["lifecycle"].values():
            if isinstance(handler, dict) and "httpGet" in handler:
                _default_http_get(handler["httpGet"])


def _default_probe(probe: Object) -> None:
    set_default = probe.setdefault
    set_default("timeoutSeconds", 1)
    set_default("periodSeconds", 10)
    set_default("successThreshold", 1)
    set_default("failureThreshold", 3)
    if "httpGet" in probe:
        _default_http_get(probe["httpGet"])
    if "grpc" in probe and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_http_get(action: Object) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _default_resources(resources: Object) -> None:
    if "limits" in resources:
        round_up_to_milli(resources["limits"])
    if "requests" in resources:
        round_up_to_milli(resources["requests"])


_DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_reference = re.compile(
    rf"(?P<name>{_DOMAIN}(?:/{_PATH_PART})+)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
).fullmatch
_identifier = re.compile("[a-f0-9]{64}").fullmatch
_HASH_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def _normalized(image: str) -> str:
    """`image` with the registry and the `library/` path that short names omit."""
    first, slash, rest = image.partition("/")
    is_domain = slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    domain, path = (first, rest) if is_domain else ("docker.io", image)
    if domain == "index.docker.io":
        domain = "docker.io"
    if domain == "docker.io" and "/" not in path:
        path = "library/" + path
    return f"{domain}/{path}"


def _digest_is_known(digest: str) -> bool:
    algorithm, _, encoded = digest.partition(":")
    return _HASH_LENGTHS.get(algorithm) == len(encoded) and encoded == encoded.lower()


@bounded_cache(entries=4096, key_length=256)
def _pull_policy(image: str) -> str:
    """Default imagePullPolicy: Always if the tag is `latest` or absent, else IfNotPresent."""
    reference = None if _identifier(image) else _reference(_normalized(image))
    if reference is None or len(reference["name"]) > 255:
        return "IfNotPresent"
    if reference["digest"] and not _digest_is_known(reference["digest"]):
        return "IfNotPresent"
    tag = reference["tag"] or ("" if reference["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
