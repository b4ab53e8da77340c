"""CRD of gateway routes: unions of filters, matches, weights. CEL rules find most errors."""

from __future__ import annotations

from tests.crd.defining import definition, version
from tests.crd.definitions.building import choice, conditions, integer, items, keyed, obj, rule, set_of, text

_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_REFERENCE = obj(
    "name",
    group=text(pattern=r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", default=""),
    kind=text(63, minLength=1, default="Service"),
    namespace=text(63, pattern=_LABEL),
    name=text(minLength=1),
    port=integer(1, 65535),
    rules=[
        rule(
            "self.kind != 'Service' || self.group != '' || has(self.port)",
            "must name a port of a service",
            reason="FieldValueRequired",
            fieldPath=".port",
        )
    ],
)
_HEADER = obj("value", name=text(256, minLength=1), value=text(4096))
_FILTER = obj(
    "type",
    type=choice("Headers", "Redirect", "Mirror"),
    headers=obj(set=keyed(_HEADER, "name"), add=keyed(_HEADER, "name"), remove=set_of(text(256))),
    redirect=obj(
        scheme=choice("http", "https"),
        hostname=text(),
        port=integer(1, 65535),
        code={"type": "integer", "enum": [301, 302, 307], "default": 302},
    ),
    mirror=obj("to", to=_REFERENCE, percent=integer(0, 100)),
    rules=[
        rule(
            f"(self.type == '{kind}') == has(self.{field})",
            f"{field} goes with {kind}",
            fieldPath=f".{field}",
        )
        for kind, field in (("Headers", "headers"), ("Redirect", "redirect"), ("Mirror", "mirror"))
    ],
)
_MATCH = obj(
    path=obj(
        type=choice("Exact", "Prefix", "Pattern", default="Prefix"),
        value=text(1024, default="/"),
        rules=[
            rule(
                "self.type == 'Pattern' || self.value.startsWith('/')",
                "must be an absolute path",
                fieldPath=".value",
            ),
            rule(
                "self.type == 'Pattern' || !self.value.contains('//')",
                "must not contain '//'",
                fieldPath=".value",
            ),
        ],
    ),
    headers=keyed(_HEADER, "name"),
    method=choice("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"),
)
_RULE = obj(
    name=text(63, pattern=_LABEL),
    matches=items(_MATCH, 8, default=[{"path": {"type": "Prefix", "value": "/"}}]),
    filters=items(_FILTER, 8),
    backends=items(
        obj("to", to=_REFERENCE, weight=integer(0, 1_000_000, default=1), filters=items(_FILTER, 4)), 8
    ),
    timeouts=obj(
        request=text(16, format="duration"),
        backend=text(16, format="duration"),
        rules=[
            rule(
                "!(has(self.request) && has(self.backend)) || self.backend <= self.request",
                "the backend cannot take longer than the request",
                fieldPath=".backend",
            )
        ],
    ),
    rules=[
        rule(
            "!has(self.filters) || !self.filters.exists(f, f.type == 'Redirect') || !has(self.backends)",
            "what is redirected has no backends",
            reason="FieldValueForbidden",
            fieldPath=".backends",
        ),
        rule(
            "!has(self.filters) || self.filters.filter(f, f.type == 'Redirect').size() <= 1",
            "only one redirect",
        ),
    ],
)
SPEC = obj(
    "parents",
    parents=keyed(obj(name=text(63), section=text(63, default="default")), "name", "section", most=8),
    hostnames=set_of(
        text(pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    ),
    rules=[
        rule(
            "!has(self.rules) || self.rules.filter(r, has(r.name)).all(r, self.rules.filter(o, has(o.name) && "
            "o.name == r.name).size() == 1)",
            "names of rules must be unique",
            fieldPath=".rules",
        )
    ],
)
SPEC["properties"]["rules"] = items(_RULE, 8)
STATUS = obj(parents=items(obj("name", name=text(63), conditions=conditions()), 8))
DEFINITION = definition(
    "Route",
    "mesh.example.org",
    version(
        schema=obj("spec", spec=SPEC, status=STATUS),
        subresources={"status": {}},
        additionalPrinterColumns=[
            {"name": "Hostnames", "type": "string", "jsonPath": ".spec.hostnames"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    ),
)
_TO = {"name": "web", "port": 80}
SAMPLE = {
    "parents": [{"name": "edge"}],
    "hostnames": ["*.example.org"],
    "rules": [
        {
            "name": "main",
            "matches": [{"path": {"type": "Exact", "value": "/a"}}],
            "filters": [{"type": "Headers", "headers": {"set": [{"name": "x", "value": "y"}]}}],
            "backends": [{"to": _TO, "weight": 9}, {"to": {"name": "canary", "port": 80}}],
        }
    ],
}
DEFAULTED = {"parents": [{"name": "edge", "section": "default"}]}
PATCH = {"hostnames": ["a.example.org", "b.example.org"]}
WRONG = [
    ({"rules": [{"backends": [{"to": {"name": "web"}}]}]}, ["spec.rules[0].backends[0].to.port"]),
    ({"rules": [{"filters": [{"type": "Redirect"}]}]}, ["spec.rules[0].filters[0].redirect"]),
    (
        {"rules": [{"filters": [{"type": "Redirect", "redirect": {}}], "backends": [{"to": _TO}]}]},
        ["spec.rules[0].backends"],
    ),
    ({"rules": [{"name": "x"}, {"name": "x"}]}, ["spec.rules"]),
    ({"rules": [{"matches": [{"path": {"value": "/a//b"}}]}]}, ["spec.rules[0].matches[0].path.value"]),
    ({"rules": [{"timeouts": {"request": "1s", "backend": "2s"}}]}, ["spec.rules[0].timeouts.backend"]),
    ({"hostnames": ["UPPER"]}, ["spec.hostnames[0]"]),
    ({"parents": [{"name": "e"}, {"name": "e", "section": "default"}]}, ["spec.parents[1]"]),
]
SELECTED = ""
CELLS = ['["*.example.org"]']
