"""CRD of a monitoring operator: a full pod template, and scrape targets."""

from __future__ import annotations

from tests.crd.defining import definition, version
from tests.crd.definitions.building import (
    boolean,
    builtin,
    choice,
    conditions,
    integer,
    items,
    keyed,
    mapping,
    obj,
    rule,
    text,
)

_EXPRESSION = obj("key operator", key=text(316), operator=text(16), values=items(text(63)))
_SELECTOR = obj(matchLabels=mapping(text(63)), matchExpressions=items(_EXPRESSION))
_RELABEL = obj(
    sourceLabels=items(text(128)),
    targetLabel=text(128),
    regex=text(512, default="(.*)"),
    action=choice("replace", "keep", "drop", "labelmap", default="replace"),
)
_ENDPOINT = obj(
    "port",
    port=text(63),
    path=text(256, default="/metrics"),
    interval=text(16, pattern="^([0-9]+(ms|s|m|h))+$", default="30s"),
    scheme=choice("http", "https", default="http"),
    params=mapping(items(text(128), 4)),
    relabelings=items(_RELABEL, 8),
)
SPEC = obj(
    replicas=integer(0, 50, default=1),
    shards=integer(1, 50, default=1),
    retention=text(16, pattern="^(([0-9]+)(y|w|d|h|m|s|ms))+$", default="24h"),
    image=text(512),
    paused=boolean(default=False),
    podMetadata=obj(labels=mapping(text(63)), annotations=mapping(text(1024))),
    containers=items(builtin("core.v1.Container"), 16),
    initContainers=items(builtin("core.v1.Container"), 16),
    volumes=items(builtin("core.v1.Volume"), 32),
    affinity=builtin("core.v1.Affinity"),
    securityContext=builtin("core.v1.PodSecurityContext"),
    topologySpreadConstraints=items(builtin("core.v1.TopologySpreadConstraint"), 8),
    endpoints=keyed(_ENDPOINT, "port", most=64),
    selector=_SELECTOR,
    storage=obj(
        emptyDir=builtin("core.v1.EmptyDirVolumeSource"),
        volumeClaimTemplate={"type": "object", "x-kubernetes-embedded-resource": True}
        | {"x-kubernetes-preserve-unknown-fields": True},
        rules=[rule("has(self.emptyDir) != has(self.volumeClaimTemplate)", "exactly one kind of storage")],
    ),
    rules=[
        rule(
            "self.shards >= oldSelf.shards || self.paused",
            "pause it to take shards away",
            fieldPath=".shards",
        )
    ],
)
STATUS = obj(replicas=integer(0), availableReplicas=integer(0), selector=text(512), conditions=conditions())
DEFINITION = definition(
    "Monitor",
    "monitoring.example.org",
    version(
        schema=obj("spec", spec=SPEC, status=STATUS),
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.shards", "statusReplicasPath": ".status.replicas"},
        },
        additionalPrinterColumns=[
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Images", "type": "string", "jsonPath": ".spec.containers[*].image", "priority": 1},
        ],
    ),
)
SAMPLE = {
    "containers": [
        {
            "name": "server",
            "image": "monitor:1",
            "ports": [{"containerPort": 9090}],
            "resources": {"limits": {"memory": "1Gi", "cpu": 2}},
            "livenessProbe": {"httpGet": {"path": "/-/healthy", "port": "web"}},
        }
    ],
    "endpoints": [{"port": "web"}, {"port": "tls", "scheme": "https"}],
    "storage": {
        "volumeClaimTemplate": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        }
    },
    "shards": 2,
}
DEFAULTED = {"replicas": 1, "retention": "24h", "paused": False}
PATCH = {"replicas": 3, "paused": True, "shards": 1}
WRONG = [
    ({"shards": 1}, ["spec.shards"]),
    ({"storage": {"emptyDir": {}}}, ["spec.storage"]),
    ({"storage": {"volumeClaimTemplate": {"kind": ""}}}, ["spec.storage.volumeClaimTemplate.kind"]),
    ({"retention": "soon"}, ["spec.retention"]),
    ({"endpoints": [{"port": "web"}, {"port": "web"}]}, ["spec.endpoints[1]"]),
    ({"containers": [{"name": 5}]}, ["spec.containers[0].name", "<nil>"]),
    ({"replicas": 51}, ["spec.replicas"]),
]
SELECTED = ""
CELLS = [1, "monitor:1"]
