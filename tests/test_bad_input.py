"""Invalid input never makes the server fail: recorded requests with odd parts, and inputs that once failed.

The reference responds to some bad patches with a 500 without a reason. These responses are expected, not
failures.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from kubist.base.http.messages import Request, Response
from tests.crd.defining import define, definition, version
from tests.live import MERGE, TOKEN, Client, Live

SCENARIOS = Path(__file__).parent / "conformance" / "scenarios"
APPLY = "application/apply-patch+yaml"
ATTEMPTS = 4
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
TYPES = (
    "application/json",
    "application/yaml",
    MERGE,
    "application/json-patch+json",
    APPLY,
    "text/plain",
    "",
)
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
ACCEPTS = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", TABLE, "*/*")
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    2**64,
    10**30,
    1.5,
    1e308,
    "",
    "a" * 300,
    "\x00",
    "é\u202e😀",
]
ODD += [
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": None},
    {"$patch": "x"},
    "1e9999",
    "../..",
    "*",
    "[",
    "(a+)+$",
]
ODD += ["9999-99-99T99:99:99Z", "10.0.0.0/33", "::", "self ==", "*/0 * * * *", "-5%", "١٢", "a\nb", "=="]
NUMBERS: tuple[str, ...] = (
    "-0",
    "-0.0",
    "1.0",
    "1e3",
    "1E400",
    "-1e400",
    "1e-400",
    "9223372036854775808",
    "1" * 400,
)
NUMBERS += ("-9223372036854775809", "18446744073709551616", "12345678901234567890", "1.5e300", "0.1e1")
"""Numbers that Python does not write as they are here."""
TYPE_META: tuple[Any, ...] = (
    None,
    "",
    "v1",
    "v1/v2/v3",
    "/",
    "kubist.example/v9",
    "Pod",
    1,
    {},
    [],
    "example.com/v1",
    "é",
)
GADGETS = "/apis/fuzz.example.com/v1/namespaces/default/gadgets"
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SPEC = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "n": {"type": "number"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
        "either": {"x-kubernetes-int-or-string": True},
        "free": FREE,
        "inner": {**FREE, "x-kubernetes-embedded-resource": True},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "integer", "default": 1}, "v": FREE},
            },
        },
    },
    "x-kubernetes-validations": [{"rule": "!has(self.replicas) || self.replicas < 100"}],
}
CRD = definition(
    "Gadget",
    "fuzz.example.com",
    version(
        schema={"type": "object", "properties": {"spec": SPEC, "status": SPEC}},
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        additionalPrinterColumns=[
            {"name": kind, "type": kind, "jsonPath": path}
            for kind in ("integer", "number", "string", "boolean", "date")
            for path in (".spec.n", ".spec.free.x")
        ],
    ),
)
GADGET = {
    "apiVersion": "fuzz.example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "g", "labels": {"a": "b"}},
    "spec": {
        "replicas": 1,
        "n": 1.5,
        "set": [1, 2],
        "either": 5,
        "free": {"x": {"y": [1, {"z": 2}]}},
        "inner": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}},
        "map": {"a": 1},
        "keyed": [{"k": 1, "v": {"w": 1}}],
    },
    "status": {"replicas": 1, "n": 1},
}
SPEC_VALUES: dict[str, Any] = GADGET["spec"]  # type: ignore[assignment]
OPTIONS: tuple[str, ...] = (
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
)
OPTIONS += (
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "pretty",
)
VALUES = (
    "",
    "-1",
    "abc",
    "99999999999999999999",
    "a in (b",
    "==",
    "!a",
    "metadata.name=a\\",
    "W10",
    "All",
    "é",
    "\0",
)

Step = tuple[str, str, Any, str]


def custom() -> list[Step]:
    """Requests of every verb and format for custom resources."""
    apply = f"{GADGETS}/g?fieldManager=m&force=true"
    unnamed = {"metadata": {"labels": {"c": "d"}}, "spec": SPEC_VALUES, "status": GADGET["status"]}
    operations = [
        {"op": "add", "path": f"/spec/{name}", "value": value} for name, value in SPEC_VALUES.items()
    ]
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "g"},
        "spec": {"replicas": 2},
    }
    return [
        ("POST", GADGETS, GADGET, "application/json"),
        ("POST", GADGETS, GADGET, "application/yaml"),
        ("PUT", f"{GADGETS}/g", GADGET, "application/json"),
        ("PUT", f"{GADGETS}/g/status", GADGET, "application/json"),
        ("PATCH", f"{GADGETS}/g", unnamed, MERGE),
        ("PATCH", f"{GADGETS}/g/status", unnamed, MERGE),
        ("PATCH", f"{GADGETS}/g", operations, "application/json-patch+json"),
        (
            "PATCH",
            f"{GADGETS}/g",
            [{"op": "test", "path": "/spec", "value": SPEC_VALUES}],
            "application/json-patch+json",
        ),
        ("PATCH", apply, GADGET, APPLY),
        ("PUT", f"{GADGETS}/g/scale", scale, "application/json"),
        ("PATCH", f"{GADGETS}/g/scale", {"spec": {"replicas": 3}}, MERGE),
        ("PATCH", f"{GADGETS}/g/scale?fieldManager=m", scale, APPLY),
        ("GET", f"{GADGETS}/g/scale", {}, ""),
        ("GET", GADGETS, {}, ""),
        (
            "DELETE",
            f"{GADGETS}/g",
            {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 1},
            "application/json",
        ),
    ]


def recorded() -> list[Step]:
    """Verb, path, body and content type of recorded requests, all in one existing namespace."""
    found: list[Step] = []
    for file in sorted(SCENARIOS.glob("*.yaml"))[::3]:
        scenario = yaml.load(file.read_text(), yaml.CSafeLoader)
        names = scenario.get("vars") or {}
        for step in scenario["steps"]:
            verb = next((verb for verb in VERBS if verb in step), "")
            headers = {name.lower(): value for name, value in (step.get("headers") or {}).items()}
            if verb and isinstance(step.get("body"), (dict, list)):
                where = re.sub("/namespaces/[^/]+/", "/namespaces/default/", filled(step[verb], names))
                document = json.loads(filled(json.dumps(step["body"]), names))
                found.append((verb, where, document, headers.get("content-type", "application/json")))
    return found


def filled(text: str, names: dict[str, Any]) -> str:
    """Text with the variables of its scenario."""
    return re.sub(r"\$\{(\w+)\}", lambda match: json.dumps(str(names.get(match[1], "x")))[1:-1], text)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every item of a document, as its container and key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def spoilt(document: Any, chance: random.Random) -> Any:
    document = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not (found := list(places(document))):
            break
        container, key = chance.choice(found)
        if chance.random() < 0.25:
            del container[key]
        elif key in ("apiVersion", "kind") and chance.random() < 0.8:
            container[key] = chance.choice(TYPE_META)
        else:
            container[key] = copy.deepcopy(chance.choice(ODD))
    return document


def written(value: Any, chance: random.Random, often: float) -> str:
    """JSON with duplicate keys and extreme numbers, of a given frequency."""
    if isinstance(value, dict):
        pairs = [(key, written(inner, chance, often)) for key, inner in value.items()]
        for _ in range(chance.choice((1, 1, 3)) if chance.random() < often else 0):
            key = chance.choice(list(value) or ["a"])
            again = chance.choice((value.get(key), *ODD[:14], {}, [], {"a": {"a": 1}}, [{"name": "a"}]))
            pairs.insert(chance.randrange(len(pairs) + 1), (key, written(again, chance, often / 2)))
        return f"{{{','.join(f'{json.dumps(key)}:{text}' for key, text in pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(written(inner, chance, often) for inner in value)}]"
    if isinstance(value, (int, float)) and chance.random() < often:
        return chance.choice(NUMBERS)
    return json.dumps(value)


def bad_requests(seed: int) -> Iterator[Request]:
    chance = random.Random(seed)
    steps = recorded()
    # Custom requests come often enough, and between all others.
    for index, step in enumerate(custom() * (len(steps) // 60)):
        steps.insert(index * 5 % len(steps), step)
    for (verb, where, document, content_type), attempt in product(steps, range(ATTEMPTS)):
        path, _, query = where.partition("?")
        if attempt:
            document = spoilt(document, chance)
        if chance.random() < 0.1:
            verb, content_type = chance.choice(VERBS), chance.choice(TYPES)
        if chance.random() < 0.3:
            query += f"&{chance.choice(OPTIONS)}={quote(chance.choice(VALUES))}"
        often = chance.choice((0, 0.05, 0.3)) if attempt else 0
        body = written(document, chance, often).encode()
        if chance.random() < 0.05:
            at = chance.randrange(len(body))
            body = body[:at] + chance.choice((b"", b"\xff", b"{", b"\\ud800", b"&a", b"NaN")) + body[at + 1 :]
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": content_type}
        yield Request(
            verb,
            path,
            query,
            headers | {"accept": chance.choice(ACCEPTS if chance.random() < 0.98 else (";", "é", 'a/b;c="'))},
            body,
        )


def test_malformed_documents_are_rejected_without_a_500(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    define(live.client, CRD)

    async def send_all() -> list[tuple[str, str, bytes]]:
        failed = []
        for request in bad_requests(seed=36):
            answer = await live.server.api(request)
            text = answer.body if isinstance(answer, Response) and answer.status == 500 else b""
            if isinstance(text, bytes) and b"failed unexpectedly" in text:
                failed.append((request.method, request.path, request.body))
        return failed

    assert live.run(send_all()) == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


DEEP = json.loads('{"a":' * 400 + "1" + "}" * 400)
CASES = {
    "a service without a name": (
        "POST",
        "services",
        {"spec": {"ports": [{"port": 1}]}},
        "application/json",
        422,
    ),
    "metadata that is a text, applied": (
        "PATCH",
        "configmaps/a?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"},
        APPLY,
        500,
    ),
    "an applied configuration that is very deep": (
        "PATCH",
        "configmaps/a?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "data": DEEP},
        APPLY,
        400,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_that_once_failed_are_handled(client: Client, namespace: str, case: str) -> None:
    verb, path, document, content_type, code = CASES[case]
    answer = client.ask(verb, f"/api/v1/namespaces/{namespace}/{path}", document, content_type)
    assert answer.status == code, answer
    assert answer.json.get("reason") != "InternalError"


def test_string_as_metadata_is_rejected_by_a_merge_patch(client: Client, namespace: str) -> None:
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(where, {"metadata": {"name": "a"}})
    answer = client.ask("PATCH", f"{where}/a", {"metadata": "x"}, MERGE)
    assert answer.status == 422, answer


def test_yaml_may_clear_managed_fields(client: Client, namespace: str) -> None:
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(where, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    text = b'metadata: {name: a, "managedFields": []}\n'
    answer = client.ask("PUT", f"{where}/a", text, "application/yaml")
    assert answer.status == 200, answer
    assert "managedFields" not in answer.json["metadata"]


def test_many_equal_ports_do_not_block_the_server(client: Client, namespace: str) -> None:
    ports = [{"containerPort": 80}] * 5000
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a", "ports": ports}]}}
    answer = client.ask("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    assert answer.status == 201, answer.status
    warnings = answer.headers.get_all("Warning", [])
    assert 4096 <= sum(len(text) - len('299 - ""') for text in warnings) < 4096 + 256
