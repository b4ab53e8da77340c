"""Bootstrap objects that are the same in every cluster, expanded from `objects.json`.

In the file, a rule of a role is a row: verbs, API groups, resources, names; or verbs and URLs. Words are separated by
spaces, and the core group is `core`. A subject is its kind and name. A label is the suffix of its name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from kubist.api.bootstrap import dangling
from kubist.model.meta.object import Object

RBAC = "rbac.authorization.k8s.io"
FLOW = "flowcontrol.apiserver.k8s.io/v1"
REGISTRATION = "apiregistration.k8s.io/v1"
_AGGREGATE = f"{RBAC}/aggregate-to-"
_FLOW_PRODUCER = "api-priority-and-fairness-config-producer-v1"
_PRIORITY_CLASSES = {
    "system-node-critical": (
        2_000_001_000,
        "For pods that a node cannot do without, where they are.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "For pods that a cluster cannot do without, anywhere.",
    ),
}


@functools.cache
def _bytes() -> bytes:
    return Path(__file__).with_name("objects.json").read_bytes()


def _data() -> Any:
    return orjson.loads(_bytes())


def builtin(kind: str, name: str) -> Object:
    """Fixed FlowSchema or PriorityLevelConfiguration. The mandatory ones, `exempt` and `catch-all`, cannot be
    changed."""
    return _mandatory()[kind, name]


@functools.cache
def _mandatory() -> dict[tuple[str, str], Object]:
    objects = flow_control(_data(), "")
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}


def fixed_objects(now: str) -> Iterator[Object]:
    """All fixed objects, without uid and creationTimestamp."""
    data = _data()
    yield from _api_services(data, now)
    yield from flow_control(data, now)
    yield from _priority_classes(now)
    for name, row in data["clusterRoles"].items():
        yield _role("ClusterRole", name, row, now)
    for name, row in data["clusterRoleBindings"].items():
        yield _binding("ClusterRoleBinding", name, row, now)
    for name, row in data["roles"].items():
        yield _role("Role", name, row, now)
    for name, row in data["roleBindings"].items():
        yield _binding("RoleBinding", name, row, now)


def _api_services(data: Any, now: str) -> Iterator[Object]:
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    for group, version, group_priority, version_priority in data["apiServices"]:
        spec = {"group": group} if group else {}
        spec |= {
            "version": version,
            "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority,
        }
        yield owned(
            {
                "apiVersion": REGISTRATION,
                "kind": "APIService",
                "metadata": {
                    "name": f"{version}.{group}",
                    "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
                },
                "spec": spec,
                "status": {"conditions": [available]},
            },
            now,
        )


def flow_control(data: Any, now: str) -> Iterator[Object]:
    for kind, rows in (
        ("PriorityLevelConfiguration", data["priorityLevels"]),
        ("FlowSchema", data["flowSchemas"]),
    ):
        for name, spec in rows.items():
            obj: Object = {
                "apiVersion": FLOW,
                "kind": kind,
                "metadata": {
                    "name": name,
                    "generation": 1,
                    "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
                },
                "spec": spec,
                "status": {},
            }
            owned(obj, now, _FLOW_PRODUCER)
            if kind == "FlowSchema":
                dangling.apply(obj, level_exists=True, now=now)
            yield obj


def _priority_classes(now: str) -> Iterator[Object]:
    for name, (value, description) in _PRIORITY_CLASSES.items():
        yield owned(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            now,
        )


def _rbac(kind: str, full_name: str) -> Object:
    namespace, _, name = full_name.rpartition("/")
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    metadata["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}


def _role(kind: str, name: str, row: Object, now: str) -> Object:
    obj = _rbac(kind, name)
    if "aggregate-to" in row:
        obj["metadata"]["labels"][_AGGREGATE + row["aggregate-to"]] = "true"
    obj["rules"] = [_rule(*words) for words in row["rules"]] if "rules" in row else None
    if "aggregate" in row:
        selector = {"matchLabels": {_AGGREGATE + row["aggregate"]: "true"}}
        obj["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return owned(obj, now)


def _rule(verbs: str, groups: str, resources: str = "", resource_names: str = "") -> Object:
    if not resources:
        return {"verbs": verbs.split(), "nonResourceURLs": groups.split()}
    rule = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
    }
    if resource_names:
        rule["resourceNames"] = resource_names.split()
    return rule


def _binding(kind: str, name: str, row: Object, now: str) -> Object:
    obj = _rbac(kind, name)
    if row["subjects"]:
        obj["subjects"] = [_subject(text) for text in row["subjects"]]
    role = "Role" if kind == "RoleBinding" else "ClusterRole"
    obj["roleRef"] = {"apiGroup": RBAC, "kind": role, "name": row["role"]}
    return owned(obj, now)


def _subject(text: str) -> Object:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": RBAC, "name": name}


_ALWAYS_THERE = frozenset(("spec", "priorityLevelConfiguration"))
"""Structs that are always present. Managers own only their fields, not the structs."""
_ATOMIC = frozenset(("roleRef",))
_NOT_OWNED = frozenset(("apiVersion", "kind", "metadata", "status"))
_METADATA = ("annotations", "labels")


def owned(obj: Object, now: str, manager: str = "kube-apiserver", *, skip: tuple[str, ...] = ()) -> Object:
    """`obj` with `manager` as owner of all its fields except status and `skip` (dotted paths).
    managedFields are computed without schemas, because bootstrap objects have few shapes."""
    fields = {
        f"f:{name}": _fields(name, value, name, skip)
        for name, value in obj.items()
        if name not in _NOT_OWNED and value is not None and name not in skip
    }
    metadata = obj["metadata"]
    said = {f"f:{n}": _fields(n, metadata[n], f"metadata.{n}", skip) for n in _METADATA if n in metadata}
    if said:
        fields["f:metadata"] = said
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": dict(sorted(fields.items())),
    }
    metadata["managedFields"] = [entry]
    return obj


def _fields(name: str, value: Any, path: str, skip: tuple[str, ...]) -> Object:
    if name in _ATOMIC:
        return {}
    if isinstance(value, dict):
        inside = {
            f"f:{key}": _fields(key, item, f"{path}.{key}", skip)
            for key, item in sorted(value.items())
            if f"{path}.{key}" not in skip
        }
        return inside if name in _ALWAYS_THERE else {".": {}, **inside}
    if path == "spec.ports":  # Service ports are owned item by item, other lists as a whole.
        ports: Object = {".": {}}
        for item in value:
            key = f'k:{{"port":{item["port"]},"protocol":"{item["protocol"]}"}}'
            ports[key] = {".": {}, **{f"f:{field}": {} for field in sorted(item)}}
        return ports
    return {}
