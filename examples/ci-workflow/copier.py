"""A small operator: copies ConfigMaps to the namespaces that their annotation `example.com/copy-to` names."""

from __future__ import annotations

from kubernetes import client
from kubernetes.client.rest import ApiException

ANNOTATION = "example.com/copy-to"
LABEL = "example.com/copy"


def reconcile(core: client.CoreV1Api) -> None:
    """Makes all copies, and removes copies whose original is gone or no longer names their namespace."""
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for original in core.list_config_map_for_all_namespaces().items:
        targets = (original.metadata.annotations or {}).get(ANNOTATION, "")
        for namespace in filter(None, (name.strip() for name in targets.split(","))):
            wanted[namespace, original.metadata.name] = original.data or {}
    for (namespace, name), data in wanted.items():
        _write_copy(core, namespace, name, data)
    for copy in core.list_config_map_for_all_namespaces(label_selector=LABEL).items:
        if (copy.metadata.namespace, copy.metadata.name) not in wanted:
            core.delete_namespaced_config_map(copy.metadata.name, copy.metadata.namespace)


def _write_copy(core: client.CoreV1Api, namespace: str, name: str, data: dict[str, str]) -> None:
    metadata = client.V1ObjectMeta(name=name, labels={LABEL: "true"})
    body = client.V1ConfigMap(metadata=metadata, data=data)
    try:
        core.create_namespaced_config_map(namespace, body)
    except ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, body)
