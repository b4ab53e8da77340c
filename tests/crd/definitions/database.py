"""CRD of database clusters: scale subresource, two versions, sizes that may only grow, immutable fields."""

from __future__ import annotations

from typing import Any

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
    set_of,
    text,
)

_STORAGE = obj(
    "size",
    size=text(20, pattern=r"^[0-9]+[KMGT]i$"),
    storageClass=text(),
    rules=[
        rule("isQuantity(self.size)", "must be a quantity", fieldPath=".size"),
        rule(
            "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            messageExpression="'cannot shrink from ' + oldSelf.size + ' to ' + self.size",
            fieldPath=".size",
        ),
        rule(
            "!oldSelf.hasValue() || (has(self.storageClass) ? [self.storageClass] : []) == "
            "(has(oldSelf.value().storageClass) ? [oldSelf.value().storageClass] : [])",
            "storageClass is immutable",
            optionalOldSelf=True,
            reason="FieldValueForbidden",
        ),
    ],
)
_USER = obj(
    name=text(63, pattern="^[a-z_][a-z0-9_]*$"),
    superuser=boolean(default=False),
    databases=set_of(text(63)),
    connectionLimit=integer(-1, 10_000, default=-1),
)
SPEC = obj(
    "instances storage",
    instances=integer(1, 9),
    engine=choice("postgres", "mysql", default="postgres"),
    version_=text(16, pattern=r"^[0-9]+(\.[0-9]+)?$", default="16"),
    storage=_STORAGE,
    wal=_STORAGE,
    parameters=mapping(text(256), 64),
    users=keyed(
        _USER,
        "name",
        rules=[
            rule("self.exists_one(u, u.name == 'owner')", "exactly one user is the owner"),
            rule("self.filter(u, u.superuser).size() <= 2", "at most two superusers"),
        ],
    ),
    replication=obj(
        mode=choice("async", "sync", default="async"),
        minimum=integer(0, 8),
        rules=[
            rule("self.mode == 'sync' || !has(self.minimum)", "only when synchronous", fieldPath=".minimum")
        ],
    ),
    backups=keyed(
        obj(name=text(63), schedule=text(100), retention=text(32, format="duration"), target=text(1024)),
        "name",
        most=8,
    ),
    affinity=builtin("core.v1.Affinity"),
    resources=builtin("core.v1.ResourceRequirements", without=("claims",)),
    tolerations=items(builtin("core.v1.Toleration"), 50),
    rules=[
        rule(
            "!has(self.replication) || !has(self.replication.minimum) || self.replication.minimum < self.instances",
            "needs more instances than must confirm",
            fieldPath=".instances",
        ),
        rule("self.engine == oldSelf.engine", "is immutable", fieldPath=".engine"),
        rule(
            "self.version.split('.')[0] >= oldSelf.version.split('.')[0]",
            "cannot be downgraded",
            fieldPath=".version",
        ),
    ],
)
STATUS = obj(
    instances=integer(0),
    readyInstances=integer(0),
    selector=text(512),
    primary=text(),
    conditions=conditions(),
)
_MORE: dict[str, Any] = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.instances",
            "statusReplicasPath": ".status.instances",
            "labelSelectorPath": ".status.selector",
        },
    },
    "additionalPrinterColumns": [
        {"name": "Instances", "type": "integer", "jsonPath": ".spec.instances"},
        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyInstances"},
        {"name": "Engine", "type": "string", "jsonPath": ".spec.engine"},
    ],
}
DEFINITION = definition(
    "Cluster",
    "databases.example.org",
    version(schema=obj("spec", spec=SPEC, status=STATUS), **_MORE),
    version(
        "v1beta1",
        obj("spec", spec=SPEC, status=STATUS),
        deprecated=True,
        deprecationWarning="use databases.example.org/v1",
        **_MORE,
    ),
)
SAMPLE = {
    "instances": 3,
    "storage": {"size": "10Gi", "storageClass": "fast"},
    "parameters": {"max_connections": "200"},
    "users": [{"name": "owner", "databases": ["app"]}, {"name": "reader"}],
    "replication": {"mode": "sync", "minimum": 1},
    "resources": {"requests": {"cpu": 1, "memory": "2Gi"}},
}
DEFAULTED = {"engine": "postgres", "version": "16"}
PATCH = {"storage": {"size": "20Gi"}, "version": "17.1"}
WRONG = [
    ({"storage": {"size": "5Gi"}}, ["spec.storage.size"]),
    ({"storage": {"storageClass": "slow"}}, ["spec.storage"]),
    ({"instances": 1}, ["spec.instances"]),
    ({"engine": "mysql"}, ["spec.engine"]),
    ({"version": "15"}, ["spec.version"]),
    ({"users": [{"name": "reader"}]}, ["spec.users"]),
    ({"users": [{"name": "owner"}, {"name": "owner"}]}, ["spec.users[1]", "spec.users"]),
    ({"replication": {"mode": "async"}}, ["spec.replication.minimum"]),
]
SELECTED = ""
CELLS = [3, None, "postgres"]
