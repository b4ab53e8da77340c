"""CRD of task pipelines with a pod for each task: thousands of schema nodes, and many CEL rules."""

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

_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_PARAMETER = obj(
    name=text(63, pattern=_NAME),
    type=choice("string", "array", default="string"),
    default=text(1024),
    values=items(text(256), 16),
    rules=[
        rule("self.type == 'array' || !has(self.values)", "only of an array", fieldPath=".values"),
        rule("self.type == 'string' || !has(self.default)", "only of a string", fieldPath=".default"),
    ],
)
_POD = builtin("core.v1.PodSpec", without=("ephemeralContainers",))
_RETRY = obj(
    limit=integer(0, 10, default=0),
    backoff=text(16, format="duration", default="1s"),
    longest=text(16, format="duration"),
    rules=[
        rule("!has(self.longest) || self.longest >= self.backoff", "less than backoff", fieldPath=".longest"),
        rule("self.backoff > duration('0s')", "must be positive", fieldPath=".backoff"),
    ],
)
_TASK = obj(
    name=text(63, pattern=_NAME),
    runAfter=set_of(text(63), 8),
    when=text(512),
    parameters=mapping(text(1024), 16),
    retry=_RETRY,
    timeout=text(16, format="duration"),
    image=text(256),
    matrix=mapping(items(text(64), 8), 4),
    weight=integer(1, 100, default=1),
    rules=[
        rule(
            "!has(self.runAfter) || !(self.name in self.runAfter)",
            messageExpression="self.name + ' cannot wait for itself'",
            fieldPath=".runAfter",
        ),
        rule(
            "!has(self.timeout) || self.timeout <= duration('24h')", "a day is enough", fieldPath=".timeout"
        ),
        rule("!has(self.image) || !self.image.endsWith(':latest')", "name a version", fieldPath=".image"),
        rule(
            "!has(self.image) || !has(oldSelf.image) || self.image.split(':')[0] == oldSelf.image.split(':')[0]"
        ),
    ],
)
SPEC = obj(
    "tasks",
    description=text(4096),
    schedule=text(100),
    suspend=boolean(default=False),
    owner=text(254, format="email"),
    concurrency=integer(1, 100, default=5),
    priority=integer(0, 1000),
    revision=text(40, pattern="^[0-9a-f]*$"),
    parameters=keyed(_PARAMETER, "name", most=8),
    tasks=keyed(
        _TASK,
        "name",
        most=12,
        rules=[
            rule("self.size() > 0", "there is nothing to do", reason="FieldValueRequired"),
            rule(
                "self.all(t, !has(t.runAfter) || t.runAfter.all(n, self.exists(o, o.name == n)))",
                "tasks may only wait for tasks that there are",
            ),
            rule("self.map(t, t.weight).sum() <= 500", "too much for one pipeline"),
            rule("oldSelf.all(o, self.exists(t, t.name == o.name))", "tasks may not go"),
        ],
    ),
    finally_=keyed(_TASK, "name", most=2),
    template=obj(metadata=obj(labels=mapping(text(63)), annotations=mapping(text(512))), spec=_POD),
    debug=obj(enabled=boolean(default=False), spec=_POD),
    cleanup=obj(after=text(16, format="duration"), spec=_POD),
    sidecar=builtin("core.v1.Container"),
    workspaces=keyed(
        obj(
            name=text(63),
            size=text(16),
            claim=text(253),
            rules=[
                rule("has(self.size) != has(self.claim)", "either a size or a claim"),
                rule("!has(self.size) || isQuantity(self.size)", "must be a quantity", fieldPath=".size"),
            ],
        ),
        "name",
        most=8,
    ),
    notify=obj(
        url=text(512),
        events=set_of(choice("started", "failed", "finished")),
        rules=[
            rule(
                "isURL(self.url) && url(self.url).getScheme() == 'https'", "must be https", fieldPath=".url"
            ),
        ],
    ),
    network=obj(
        allow=set_of(text(49), 8),
        rules=[rule("!has(self.allow) || self.allow.all(c, isCIDR(c))", "must be CIDRs", fieldPath=".allow")],
    ),
    rules=[
        rule(
            "!has(self.schedule) || self.schedule.split(' ').size() == 5",
            "five fields",
            fieldPath=".schedule",
        ),
        rule(
            "self.concurrency <= 10 || has(self.owner)", "so many need an owner", reason="FieldValueRequired"
        )
        | {"fieldPath": ".owner"},
        rule(
            "!oldSelf.hasValue() || !oldSelf.value().suspend || self.suspend || has(self.owner)",
            "only who is known may resume it",
            optionalOldSelf=True,
            fieldPath=".suspend",
        ),
        rule("!has(oldSelf.revision) || has(self.revision)", "may not go", fieldPath=".revision"),
        rule("!has(self.priority) || self.?owner.orValue('').endsWith('.org') || self.priority < 500"),
    ],
)
STATUS = obj(
    phase=choice("Pending", "Running", "Failed", "Done"),
    runs=keyed(
        obj(
            task=text(63),
            attempts=integer(0),
            startTime=text(32, format="date-time"),
            endTime=text(32, format="date-time"),
            rules=[
                rule("!has(self.endTime) || self.endTime >= self.startTime", "ends before it starts"),
                rule("self.attempts >= oldSelf.attempts", "can only rise", fieldPath=".attempts"),
            ],
        ),
        "task",
        most=14,
    ),
    conditions=conditions(),
)
_MORE: dict[str, Any] = {
    "subresources": {"status": {}},
    "additionalPrinterColumns": [
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Tasks", "type": "string", "jsonPath": ".spec.tasks[*].name"},
        {"name": "Suspended", "type": "boolean", "jsonPath": ".spec.suspend"},
    ],
    "selectableFields": [{"jsonPath": ".spec.suspend"}, {"jsonPath": ".spec.concurrency"}],
}
DEFINITION = definition(
    "Pipeline",
    "flows.example.org",
    version(schema=obj("spec", spec=SPEC, status=STATUS), **_MORE),
    version("v1alpha1", obj("spec", spec=SPEC, status=STATUS), deprecated=True, **_MORE),
)
SAMPLE = {
    "parameters": [{"name": "target", "default": "all"}],
    "tasks": [
        {"name": "build", "image": "builder:1", "timeout": "1h"},
        {"name": "test", "runAfter": ["build"], "retry": {"limit": 2}},
    ],
    "template": {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}},
    "workspaces": [{"name": "source", "size": "1Gi"}],
    "notify": {"url": "https://example.org/hook", "events": ["failed"]},
    "network": {"allow": ["10.0.0.0/8"]},
    "revision": "abc",
}
DEFAULTED = {"suspend": False, "concurrency": 5}
PATCH = {"concurrency": 20, "owner": "me@example.org"}
WRONG = [
    ({"concurrency": 20}, ["spec.owner"]),
    ({"tasks": [{"name": "build", "image": "other:1"}, {"name": "test"}]}, ["spec.tasks[0]"]),
    ({"tasks": [{"name": "build"}]}, ["spec.tasks"]),
    ({"tasks": [{"name": "build", "runAfter": ["build"]}, {"name": "test"}]}, ["spec.tasks[0].runAfter"]),
    ({"tasks": [{"name": "build", "runAfter": ["x"]}, {"name": "test"}]}, ["spec.tasks"]),
    ({"revision": None}, ["spec.revision"]),
    ({"notify": {"url": "ftp://x"}}, ["spec.notify.url"]),
    ({"network": {"allow": ["10.0.0.0"]}}, ["spec.network.allow"]),
    ({"workspaces": [{"name": "source"}]}, ["spec.workspaces[0]"]),
    ({"parameters": [{"name": "p", "type": "array", "default": "x"}]}, ["spec.parameters[0].default"]),
    ({"schedule": "* *"}, ["spec.schedule"]),
]
SELECTED = "spec.suspend=false,spec.concurrency=5"
CELLS = [None, "build", False]
