"""Smaller kinds of the core group: validation, defaults and immutable fields."""

from typing import Any

import pytest

CLAIM = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
AVOID_PODS = "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods"
VOLUME = "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}"


def merged(text: str, more: str) -> str:
    return text.rstrip("}") + "}" * (len(text) - len(text.rstrip("}")) - 1) + f", {more}}}"


REFUSED: list[tuple[str, str, list[tuple[str, str]]]] = [
    (
        "ConfigMap",
        "{data: {a: b, 'a b': c}, binaryData: {a: eA==}}",
        [
            ("data[a]", "Invalid"),
            ("data[a b]", "Invalid"),
        ],
    ),
    ("ConfigMap", "{data: {..x: b}}", [("data[..x]", "Invalid")]),
    (
        "Secret",
        "{type: kubernetes.io/basic-auth}",
        [("data[username]", "Required"), ("data[password]", "Required")],
    ),
    ("Secret", "{type: kubernetes.io/basic-auth, data: {password: ''}}", []),
    (
        "Secret",
        "{type: kubernetes.io/ssh-auth, data: {ssh-privatekey: ''}}",
        [("data[ssh-privatekey]", "Required")],
    ),
    ("Secret", "{type: kubernetes.io/tls, data: {tls.crt: ''}}", [("data[tls.key]", "Required")]),
    (
        "Secret",
        "{type: kubernetes.io/dockercfg, stringData: {.dockercfg: '[]'}}",
        [("data[.dockercfg]", "Invalid")],
    ),
    ("Secret", "{type: kubernetes.io/dockercfg, stringData: {.dockercfg: '{}'}}", []),
    (
        "Secret",
        "{type: kubernetes.io/service-account-token}",
        [("metadata.annotations[kubernetes.io/service-account.name]", "Required")],
    ),
    ("Secret", "{type: example.com/anything}", []),
    ("Namespace", "{spec: {finalizers: [plain, example.com/x]}}", [("spec.finalizers", "Invalid")]),
    ("Endpoints", "{subsets: [{ports: [{port: 80}]}]}", [("subsets[0]", "Required")]),
    (
        "Endpoints",
        "{subsets: [{addresses: [{ip: 169.254.0.1, nodeName: A_B}], ports: [{port: 1}, {port: 2, "
        "name: b}]}]}",
        [
            ("subsets[0].addresses[0].nodeName", "Invalid"),
            ("subsets[0].addresses[0].ip", "Invalid"),
            ("subsets[0].ports[0].name", "Required"),
        ],
    ),
    (
        "LimitRange",
        "{spec: {limits: [{type: Pod, default: {cpu: 1}}, {type: Pod, max: {storage: 1}}]}}",
        [
            ("spec.limits[0].default", "Forbidden"),
            ("spec.limits[1].type", "Duplicate"),
            ("spec.limits[1].max[storage]", "Invalid"),
        ],
    ),
    (
        "LimitRange",
        "{spec: {limits: [{type: Container, min: {cpu: 2}, max: {cpu: 1}, "
        "maxLimitRequestRatio: {cpu: 500m}}]}}",
        [
            ("spec.limits[0].min[cpu]", "Invalid"),
            ("spec.limits[0].defaultRequest[cpu]", "Invalid"),
            ("spec.limits[0].default[cpu]", "Invalid"),
            ("spec.limits[0].maxLimitRequestRatio[cpu]", "Invalid"),
        ],
    ),
    (
        "LimitRange",
        "{spec: {limits: [{type: PersistentVolumeClaim}]}}",
        [("spec.limits[0].limits", "Required")],
    ),
    (
        "ResourceQuota",
        "{spec: {hard: {pods: 1500m, odd: 1, example.com/gpu: '-1'}}}",
        [
            ("spec.hard[example.com/gpu]", "Invalid"),
            ("spec.hard[odd]", "Invalid"),
            ("spec.hard[odd]", "Invalid"),
            ("spec.hard[pods]", "Invalid"),
        ],
    ),
    (
        "ResourceQuota",
        "{spec: {hard: {services: 1}, scopes: [BestEffort, NotBestEffort, Odd]}}",
        [
            ("spec.scopes", "Invalid"),
            ("spec.scopes", "Invalid"),
            ("spec.scopes", "Invalid"),
            ("spec.scopes", "Invalid"),
        ],
    ),
    (
        "ResourceQuota",
        "{spec: {scopeSelector: {matchExpressions: [{scopeName: Terminating, operator: In}]}}}",
        [
            ("spec.scopeSelector.matchExpressions.operator", "Invalid"),
            ("spec.scopeSelector.matchExpressions.values", "Required"),
        ],
    ),
    (
        "Node",
        "{spec: {podCIDRs: [10.0.0.0/24, 10.0.1.0/24], taints: [{key: a, effect: Odd}, {key: a, "
        "effect: Odd}]}}",
        [
            ("metadata.taints[0].effect", "NotSupported"),
            ("metadata.taints[1].effect", "NotSupported"),
            ("metadata.taints[1]", "Duplicate"),
            ("spec.podCIDRs", "Invalid"),
        ],
    ),
    (
        "Node",
        "{status: {capacity: {example.com/gpu: 500m, cpu: '-1'}, allocatable: {cpu: 1}}}",
        [
            ("status.capacity.cpu", "Invalid"),
            ("status.capacity.example.com/gpu", "Invalid"),
        ],
    ),
    (
        "Node",
        "{status: {nodeInfo: {swap: {capacity: 0}}}}",
        [("metadata.nodeSwapStatus.capacity", "Invalid")],
    ),
    (
        "Node",
        "{metadata: {annotations: {scheduler.alpha.kubernetes.io/preferAvoidPods: nope, "
        'scheduler.alpha.kubernetes.io/taints: \'[{"key": "a"}]\'}}}',
        [
            ("metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect", "Required"),
            ("metadata.annotations.AvoidPods", "Invalid"),
        ],
    ),
    (
        "Node",
        '{metadata: {annotations: {scheduler.alpha.kubernetes.io/preferAvoidPods: \'{"preferAvoidPods": '
        '[{}, {"podSignature": {"podController": {"controller": false}}}]}\'}}}',
        [
            (f"{AVOID_PODS}[0].PodSignature", "Required"),
            (f"{AVOID_PODS}[1].PodSignature.PodController.Controller", "Invalid"),
        ],
    ),
    (
        "LimitRange",
        "{spec: {limits: [{type: Pod, min: {cpu: -1}, max: {cpu: 4}, maxLimitRequestRatio: {cpu: 4}}]}}",
        [("spec.limits[0].maxLimitRequestRatio[cpu]", "Invalid")],
    ),
    ("PersistentVolume", VOLUME, []),
    (
        "PersistentVolume",
        "{spec: {}}",
        [
            ("spec.accessModes", "Required"),
            ("spec.capacity", "Required"),
            ("spec.capacity", "NotSupported"),
            ("spec", "Required"),
        ],
    ),
    ("PersistentVolume", merged(VOLUME, "nfs: {server: s, path: /p}"), [("spec.nfs", "Forbidden")]),
    (
        "PersistentVolume",
        VOLUME.replace("hostPath: {path: /x}", "local: {path: ../x}"),
        [
            ("spec.local.path", "Invalid"),
            ("spec.nodeAffinity", "Required"),
        ],
    ),
    (
        "PersistentVolume",
        VOLUME.replace(
            "hostPath: {path: /x}", "csi: {driver: d.e, volumeHandle: h, nodePublishSecretRef: {name: n}}"
        ),
        [("spec.csi.nodePublishSecretRef.namespace", "Required")],
    ),
    ("PersistentVolumeClaim", CLAIM, []),
    (
        "PersistentVolumeClaim",
        "{spec: {accessModes: [ReadWriteOncePod, ReadWriteOnce]}}",
        [
            ("spec.accessModes", "Forbidden"),
            ("spec.resources[storage]", "Required"),
        ],
    ),
    (
        "PersistentVolumeClaim",
        merged(CLAIM, "dataSourceRef: {kind: Thing, name: t}"),
        [
            ("spec.dataSource", "Invalid"),
            ("spec.dataSourceRef", "Invalid"),
        ],
    ),
    ("Event", "{involvedObject: {namespace: elsewhere}}", [("involvedObject.namespace", "Invalid")]),
    (
        "Event",
        "{involvedObject: {namespace: elsewhere}, eventTime: '2024-01-01T00:00:00.000000Z', "
        "reportingComponent: a/b, reportingInstance: i, action: a, reason: r}",
        [],
    ),
]


@pytest.mark.parametrize(("kind", "text", "expected"), REFUSED)
def test_invalid_object_is_rejected_on_create(
    kind_of: Any, kind: str, text: str, expected: list[tuple[str, str]]
) -> None:
    assert kind_of("v1", kind).create_errors(text) == expected


REFUSED_UPDATES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    (
        "ConfigMap",
        "{immutable: true, data: {a: b}}",
        "{data: {a: c}}",
        [("immutable", "Forbidden"), ("data", "Forbidden")],
    ),
    ("ConfigMap", "{data: {a: b}}", "{immutable: true, data: {a: c}}", []),
    ("Secret", "{type: a.b/c}", "{type: a.b/d}", [("type", "Invalid")]),
    (
        "Secret",
        "{immutable: true, data: {a: YQ==}}",
        "{immutable: true, data: {a: Yg==}}",
        [("data", "Forbidden")],
    ),
    ("ResourceQuota", "{spec: {scopes: [BestEffort]}}", "{spec: {}}", [("spec.scopes", "Invalid")]),
    (
        "Node",
        "{spec: {podCIDR: 10.0.0.0/24, providerID: a}}",
        "{spec: {podCIDR: 10.0.1.0/24}}",
        [
            ("spec.podCIDRs", "Forbidden"),
            ("spec.providerID", "Forbidden"),
        ],
    ),
    ("Node", "{}", "{spec: {podCIDR: 10.0.1.0/24, providerID: a, unschedulable: true}}", []),
    ("PersistentVolume", VOLUME, VOLUME.replace("1Gi", "2Gi"), []),
    ("PersistentVolume", VOLUME, VOLUME.replace("/x", "/y"), [("spec.persistentvolumesource", "Forbidden")]),
    ("PersistentVolumeClaim", CLAIM, CLAIM.replace("1Gi", "2Gi"), [("spec", "Forbidden")]),
    ("PersistentVolumeClaim", CLAIM, CLAIM.replace("1Gi", "1024Mi"), []),
    ("PersistentVolumeClaim", CLAIM, merged(CLAIM, "volumeName: v, storageClassName: c"), []),
    ("PersistentVolumeClaim", CLAIM + "\nstatus: {phase: Bound}", CLAIM.replace("1Gi", "2Gi"), []),
    (
        "PersistentVolumeClaim",
        CLAIM.replace("1Gi", "3Gi") + "\nstatus: {phase: Bound, capacity: {storage: 2Gi}}",
        CLAIM,
        [("spec.resources.requests.storage", "Forbidden")],
    ),
]


@pytest.mark.parametrize(("kind", "old", "new", "expected"), REFUSED_UPDATES)
def test_update_rules(kind_of: Any, kind: str, old: str, new: str, expected: list[tuple[str, str]]) -> None:
    assert kind_of("v1", kind).update_errors(old, new) == expected


def test_string_data_is_moved_to_data(kind_of: Any) -> None:
    secret = kind_of("v1", "Secret").create("{data: {a: YQ==, b: Yg==}, stringData: {b: c, d: ''}}")
    assert secret["data"] == {"a": "YQ==", "b": "Yw==", "d": ""}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


def test_container_defaults_follow_from_bounds(kind_of: Any) -> None:
    text = (
        "{spec: {limits: [{type: Container, max: {cpu: 2}, min: {memory: 1Mi}, defaultRequest: {cpu: 1}}]}}"
    )
    item = kind_of("v1", "LimitRange").create(text)["spec"]["limits"][0]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "1", "memory": "1Mi"}


def test_namespace_gets_name_label_and_finalizer(kind_of: Any) -> None:
    namespaces = kind_of("v1", "Namespace")
    made = namespaces.create(
        "{metadata: {name: n}, spec: {finalizers: [a.b/c]}, status: {phase: Terminating}}"
    )
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert made["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
    assert made["status"] == {"phase": "Active"}
    assert namespaces.strategy.mark_deleted(namespaces.context, made)
    assert made["status"] == {"phase": "Terminating"}
    assert namespaces.strategy.blocks_removal(made)
    assert not namespaces.strategy.mark_deleted(namespaces.context, made)


@pytest.mark.parametrize(
    ("text", "source", "reference"),
    [
        ("dataSource: {kind: PersistentVolumeClaim, name: p}", "p", "p"),
        ("dataSource: {kind: Odd, name: p}", None, None),
        ("dataSourceRef: {apiGroup: a.b, kind: Odd, name: p}", "p", "p"),
        ("dataSourceRef: {apiGroup: a.b, kind: Odd, name: p, namespace: n}", None, None),
    ],
)
def test_data_source_and_data_source_ref_are_mirrored(
    kind_of: Any, text: str, source: Any, reference: Any
) -> None:
    spec = kind_of("v1", "PersistentVolumeClaim").create(merged(CLAIM, text))["spec"]
    assert (spec.get("dataSource") or {}).get("name") == source
    assert (spec.get("dataSourceRef") or {}).get("name") == reference


def test_phase_change_sets_transition_time(kind_of: Any) -> None:
    volumes = kind_of("v1", "PersistentVolume")
    bound = volumes.update(VOLUME, VOLUME + "\nstatus: {phase: Bound}", "status")
    assert bound["status"] == {"phase": "Bound", "lastPhaseTransitionTime": volumes.context.now}


def test_service_account_secrets_keep_names_only(kind_of: Any) -> None:
    account = kind_of("v1", "ServiceAccount").create("{secrets: [{name: s, kind: Secret, namespace: n}]}")
    assert account["secrets"] == [{"name": "s"}]


def test_unusable_key_pair_warns(kind_of: Any) -> None:
    warnings = kind_of("v1", "Secret").warnings(
        "{type: kubernetes.io/tls, stringData: {tls.crt: x, tls.key: y}}"
    )
    assert warnings == ["tls: failed to find any PEM data in certificate input"]


def test_non_canonical_addresses_warn(kind_of: Any) -> None:
    text = "{subsets: [{addresses: [{ip: '2001:DB8::1'}]}]}"
    (warning,) = kind_of("v1", "Endpoints").warnings(text)
    assert warning.startswith("subsets[0].addresses[0].ip: IPv6 address")
