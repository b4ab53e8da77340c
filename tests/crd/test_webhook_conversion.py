"""Webhook conversion against a real HTTPS server of the standard library: valid and invalid responses, outages."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kubist.base.http.tls.certificates import load_authority, new_authority, save
from kubist.model.meta.object import Object
from tests.crd.defining import CRDS, define, definition, obj, version
from tests.live import Live, Pki

V1 = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string"}}}},
}
V2 = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
    },
}


def split_host(one: Object, wanted: str) -> Object:
    """v1 has `host: name:port`; v2 has separate `name` and `port`."""
    spec = one.get("spec") or {}
    new = {**one, "apiVersion": wanted}
    if wanted.endswith("/v2"):
        name, _, port = spec.get("host", "").partition(":")
        new["spec"] = {"name": name, "port": int(port or 0)}
    else:
        new["spec"] = {"host": f"{spec.get('name', '')}:{spec.get('port', 0)}"}
    return new


class Webhook:
    """Conversion webhook whose behaviour a test can change."""

    def __init__(self, pki: Pki, certificate: Path | None = None) -> None:
        self.reviews: list[Object] = []
        self.convert: Callable[[Object, str], Object] = split_host
        self.alter: Callable[[Object], Any] = lambda review: review
        self.delay = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(outer.answer(review)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        where = certificate or pki.directory
        context.load_cert_chain(where / "tls.crt", where / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.port = self.server.server_address[1]
        self.bundle = base64.b64encode(pki.path("ca.crt").read_bytes()).decode()

    def answer(self, review: Object) -> Any:
        self.reviews.append(review)
        time.sleep(self.delay)
        request = review["request"]
        converted = [self.convert(one, request["desiredAPIVersion"]) for one in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        return self.alter({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response})

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def conversion(self, **client: Any) -> Object:
        config = {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": self.bundle, **client}
        return {
            "strategy": "Webhook",
            "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
        }


@pytest.fixture
def webhook(server_pki: Pki) -> Iterator[Webhook]:
    running = Webhook(server_pki)
    yield running
    running.stop()


@pytest.fixture
def at(live: Live, webhook: Webhook) -> str:
    crd = definition(
        "Link", "links.example.com", version(schema=V1), version("v2", V2), conversion=webhook.conversion()
    )
    return define(live.client, crd)


def links(at: str, name: str) -> str:
    return f"{at}/{name}/namespaces/default/links"


def test_objects_are_read_and_written_in_either_version(live: Live, at: str) -> None:
    client = live.client
    made = client.post(
        links(at, "v2"), obj("Link", "links.example.com/v2", "a", spec={"name": "x", "port": 1})
    )
    assert made["spec"] == {"name": "x", "port": 1}
    assert client.get(links(at, "v1") + "/a")["spec"] == {"host": "x:1"}
    assert client.get(links(at, "v2"))["items"][0]["spec"] == {"name": "x", "port": 1}
    patched = client.patch(links(at, "v2") + "/a", {"spec": {"port": 7}})
    assert patched["spec"] == {"name": "x", "port": 7} and patched["metadata"]["generation"] == 2
    assert client.get(links(at, "v1") + "/a")["spec"] == {"host": "x:7"}


@pytest.mark.parametrize("existing", [False, True])
def test_dry_run_converts_to_the_stored_version_and_back(
    live: Live, at: str, webhook: Webhook, existing: bool
) -> None:
    client, path = live.client, links(at, "v2")
    link = obj("Link", "links.example.com/v2", "a", spec={"name": "x", "port": 1})
    if existing:
        client.post(path, link)
    method, where = ("PUT", f"{path}/a") if existing else ("POST", path)
    webhook.convert = lambda one, wanted: {**split_host(one, wanted), "note": "dropped"}
    webhook.reviews.clear()
    link["spec"]["port"] = 3
    if existing:
        link["metadata"] = client.get(f"{path}/a")["metadata"]
    answer = client.ask(method, f"{where}?dryRun=All", link)
    assert answer.json["spec"] == {"name": "x", "port": 3} and "note" not in answer.json
    wanted = [review["request"]["desiredAPIVersion"].rpartition("/")[2] for review in webhook.reviews]
    assert wanted[-2:] == ["v1", "v2"]
    webhook.alter = lambda review: {**review, "response": {**review["response"], "uid": "other"}}
    answer = client.ask(method, f"{where}?dryRun=All", link)
    assert answer.status == 500 and "conversion webhook" in answer.json["message"]


def test_watch_sends_the_requested_version(live: Live, at: str) -> None:
    client = live.client
    client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    with client.watch(links(at, "v2")) as watch:
        assert watch.take(1)[0]["object"]["spec"] == {"name": "x", "port": 1}
        client.patch(links(at, "v1") + "/a", {"spec": {"host": "y:2"}})
        client.delete(links(at, "v1") + "/a")
        changed, gone = watch.take(2)
    assert changed["type"] == "MODIFIED" and changed["object"]["spec"] == {"name": "y", "port": 2}
    assert gone["type"] == "DELETED" and gone["object"]["apiVersion"] == "links.example.com/v2"


def test_webhook_gets_one_review_per_object(live: Live, at: str, webhook: Webhook) -> None:
    live.client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    assert webhook.reviews == []
    live.client.get(links(at, "v2") + "/a")
    (review,) = webhook.reviews
    assert review["request"]["desiredAPIVersion"] == "links.example.com/v2"
    assert [one["metadata"]["name"] for one in review["request"]["objects"]] == ["a"]
    live.client.get(links(at, "v2") + "/a")
    assert len(webhook.reviews) == 1, "an unchanged object is not converted twice"


def _renamed(one: Object, wanted: str) -> Object:
    return {**split_host(one, wanted), "metadata": {**one["metadata"], "name": "other"}}


def _responding(**fields: Any) -> Callable[[Webhook], None]:
    def change(hook: Webhook) -> None:
        hook.alter = lambda review: {**review, "response": {**review["response"], **fields}}

    return change


def _with_metadata(**fields: Any) -> Callable[[Webhook], None]:
    def change(hook: Webhook) -> None:
        hook.convert = lambda one, wanted: {
            **split_host(one, wanted),
            "metadata": {**one["metadata"], **fields},
        }

    return change


def _with_spec(spec: Any) -> Callable[[Webhook], None]:
    def change(hook: Webhook) -> None:
        hook.convert = lambda one, wanted: {**split_host(one, wanted), "spec": spec}

    return change


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


MISTYPED: list[tuple[Callable[[Webhook], None], str]] = [
    (
        _responding(result="Success"),
        "string into Go struct field ConversionResponse.response.result of type v1.",
    ),
    (
        _responding(result={"message": 7}),
        "number into Go struct field Status.response.result.message of type",
    ),
    (_responding(uid=7), "number into Go struct field ConversionResponse.response.uid of type types.UID"),
    (_responding(convertedObjects={}), "response.convertedObjects of type []runtime.RawExtension"),
    (_responding(convertedObjects="x"), "response.convertedObjects of type []runtime.RawExtension"),
    (_responding(convertedObjects=["x"]), "webhook returned invalid object at index 0"),
    (_responding(convertedObjects=[None]), "webhook returned invalid object at index 0"),
    (
        lambda hook: setattr(hook, "alter", lambda review: {**review, "response": 7}),
        "number into Go struct field",
    ),
    (
        lambda hook: setattr(hook, "alter", lambda review: {"kind": 7}),
        "into Go struct field .kind of type string",
    ),
    (
        lambda hook: setattr(hook, "alter", lambda review: 7),
        "cannot unmarshal number into Go value of type struct",
    ),
    (_with_spec(_nested(300)), "exceeded max depth"),
    (_with_spec([_nested(300), "x" * 300_000]), "exceeded max depth"),
    (_with_metadata(labels=7), "invalid metadata.labels of type int64 in converted object"),
    (
        _with_metadata(labels={"a": 7}),
        "metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    (_with_metadata(annotations={"a": {}}), "must be a string, but is map[string]interface {} in converted"),
    (_with_metadata(name=7), "must have the same name"),
]


@pytest.mark.parametrize(("change", "says"), MISTYPED)
def test_wrong_type_in_a_response_fails_the_conversion(
    live: Live, at: str, webhook: Webhook, change: Callable[[Webhook], None], says: str
) -> None:
    client = live.client
    client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    change(webhook)
    for answer in (
        client.ask("GET", links(at, "v2") + "/a"),
        client.ask("GET", links(at, "v2")),
        client.ask("POST", links(at, "v2"), obj("Link", "links.example.com/v2", "b", spec={"name": "x"})),
    ):
        assert answer.status == 500 and says in answer.json["message"], answer.json
        assert "conversion webhook for links.example.com/" in answer.json["message"]


WRONG: dict[str, Callable[[Webhook], None]] = {
    "another uid": lambda hook: setattr(
        hook, "alter", lambda review: {**review, "response": {**review["response"], "uid": "no"}}
    ),
    "a failure": lambda hook: setattr(
        hook,
        "alter",
        lambda review: {
            **review,
            "response": {**review["response"], "result": {"status": "Failure", "message": "no way"}},
        },
    ),
    "no objects": lambda hook: setattr(
        hook, "alter", lambda review: {**review, "response": {**review["response"], "convertedObjects": []}}
    ),
    "another kind of answer": lambda hook: setattr(
        hook, "alter", lambda review: {**review, "kind": "Review"}
    ),
    "no response": lambda hook: setattr(hook, "alter", lambda review: {}),
    "not an object": lambda hook: setattr(hook, "alter", lambda review: [1]),
    "another name": lambda hook: setattr(hook, "convert", _renamed),
    "the same version": lambda hook: setattr(hook, "convert", lambda one, wanted: one),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_webhook_response_fails_only_its_request(
    live: Live, at: str, webhook: Webhook, wrong: str
) -> None:
    client = live.client
    client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    WRONG[wrong](webhook)
    answer = client.ask("GET", links(at, "v2") + "/a")
    assert answer.status == 500 and answer.json["status"] == "Failure"
    assert client.get(links(at, "v1") + "/a")["spec"] == {"host": "x:1"}
    webhook.convert, webhook.alter = split_host, lambda review: review
    assert client.get(links(at, "v2") + "/a")["spec"] == {"name": "x", "port": 1}


def test_webhook_may_change_only_labels_and_annotations(live: Live, at: str, webhook: Webhook) -> None:
    def labelled(one: Object, wanted: str) -> Object:
        new = split_host(one, wanted)
        return {**new, "metadata": {**one["metadata"], "labels": {"a": "b"}, "finalizers": ["x.io/y"]}}

    client = live.client
    client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    webhook.convert = labelled
    metadata = client.get(links(at, "v2") + "/a")["metadata"]
    assert metadata["labels"] == {"a": "b"} and "finalizers" not in metadata


def test_unreachable_webhook_does_not_affect_the_stored_version(
    live: Live, at: str, webhook: Webhook
) -> None:
    client = live.client
    client.post(links(at, "v1"), obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"}))
    webhook.stop()
    assert client.ask("GET", links(at, "v2") + "/a").status == 500
    assert client.ask("POST", links(at, "v2"), obj("Link", "links.example.com/v2", "b")).status == 500
    assert client.ask("GET", links(at, "v2") + "/nobody").status == 404
    assert client.get(links(at, "v1") + "/a")["spec"] == {"host": "x:1"}
    client.delete(links(at, "v1") + "/a")


def test_untrusted_webhook_is_not_called(live: Live, webhook: Webhook, tmp_path: Path) -> None:
    new_authority("somebody").save(tmp_path / "ca.crt", tmp_path / "ca.key")
    other = (tmp_path / "ca.crt").read_bytes()
    crd = definition(
        "Link",
        "untrusted.example.com",
        version(schema=V1),
        version("v2", V2),
        conversion=webhook.conversion(caBundle=base64.b64encode(other).decode()),
    )
    at = define(live.client, crd)
    live.client.post(links(at, "v1"), obj("Link", "untrusted.example.com/v1", "a"))
    answer = live.client.ask("GET", links(at, "v2") + "/a")
    assert answer.status == 500 and "certificate" in answer.json["message"]
    assert webhook.reviews == []


def test_webhook_service_is_called_by_its_cluster_dns_name(
    live: Live, server_pki: Pki, tmp_path: Path
) -> None:
    authority = load_authority(server_pki.path("ca.crt"), server_pki.path("ca.key"))
    save(authority.issue_server(["hook.default.svc"]), tmp_path / "tls.crt", tmp_path / "tls.key")
    webhook = Webhook(server_pki, tmp_path)
    client = live.client
    client.post(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
    )
    service = {"namespace": "default", "name": "hook", "path": "/convert", "port": webhook.port}
    config = webhook.conversion(service=service)
    del config["webhook"]["clientConfig"]["url"]
    crd = definition("Link", "service.example.com", version(schema=V1), version("v2", V2), conversion=config)
    at = define(client, crd)
    client.post(links(at, "v1"), obj("Link", "service.example.com/v1", "a", spec={"host": "x:1"}))
    assert client.get(links(at, "v2") + "/a")["spec"] == {"name": "x", "port": 1}
    webhook.stop()


def test_objects_stored_in_an_older_version_are_converted_on_read(live: Live, webhook: Webhook) -> None:
    client = live.client
    crd = definition(
        "Link", "older.example.com", version(schema=V1), version("v2", V2), conversion=webhook.conversion()
    )
    at = define(client, crd)
    client.post(links(at, "v1"), obj("Link", "older.example.com/v1", "a", spec={"host": "x:1"}))
    held = client.get(f"{CRDS}/links.older.example.com")
    held["spec"]["versions"][0]["storage"], held["spec"]["versions"][1]["storage"] = False, True
    changed = client.put(f"{CRDS}/links.older.example.com", held)
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    assert client.get(links(at, "v2") + "/a")["spec"] == {"name": "x", "port": 1}
    assert client.get(links(at, "v1") + "/a")["spec"] == {"host": "x:1"}


def owners(made: Object) -> dict[str, Object]:
    return {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in made["metadata"]["managedFields"]}


def test_apply_conflicts_name_fields_of_the_owning_version(live: Live, at: str) -> None:
    client = live.client
    configuration = obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"})
    apply = "application/apply-patch+yaml"
    path = links(at, "v1") + "/a?fieldManager=one"
    client.ask("PATCH", path, configuration, apply)
    other = obj("Link", "links.example.com/v2", "a", spec={"name": "x", "port": 2})
    clash = client.ask("PATCH", links(at, "v2") + "/a?fieldManager=two", other, apply)
    assert clash.status == 409, "another port changes the host that one owns"
    assert [cause["field"] for cause in clash.json["details"]["causes"]] == [".spec.host"]
    taken = client.ask("PATCH", links(at, "v2") + "/a?fieldManager=two&force=true", other, apply).json
    assert owners(taken) == {"two": {"f:name": {}, "f:port": {}}}
    agreed = client.ask("PATCH", path, obj("Link", "links.example.com/v1", "a", spec={"host": "x:2"}), apply)
    assert owners(agreed.json) == {"one": {"f:host": {}}, "two": {"f:name": {}, "f:port": {}}}


def test_update_takes_ownership_across_versions(live: Live, at: str) -> None:
    client = live.client
    configuration = obj("Link", "links.example.com/v1", "a", spec={"host": "x:1"})
    client.ask(
        "PATCH", links(at, "v1") + "/a?fieldManager=one", configuration, "application/apply-patch+yaml"
    )
    patched = client.patch(links(at, "v2") + "/a?fieldManager=two", {"spec": {"port": 9}})
    assert patched["spec"] == {"name": "x", "port": 9}
    assert owners(patched) == {"two": {"f:port": {}}}, "the host is no longer what one applied"


def test_field_selectors_match_the_converted_object(live: Live, webhook: Webhook) -> None:
    client = live.client
    crd = definition(
        "Link",
        "links.example.com",
        version(schema=V1, selectableFields=[{"jsonPath": ".spec.host"}]),
        version("v2", V2, selectableFields=[{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.port"}]),
        conversion=webhook.conversion(),
    )
    at = define(client, crd)
    for name, host in (("a", "x:1"), ("b", "y:1"), ("c", "x:2")):
        client.post(links(at, "v1"), obj("Link", "links.example.com/v1", name, spec={"host": host}))

    def chosen(version: str, selector: str) -> list[str]:
        found = client.get(f"{links(at, version)}?fieldSelector={selector}")
        return [item["metadata"]["name"] for item in found["items"]]

    assert chosen("v2", "spec.name=x") == ["a", "c"] and chosen("v2", "spec.name=x,spec.port=2") == ["c"]
    assert chosen("v1", "spec.host=y:1") == ["b"]
    with client.watch(f"{links(at, 'v2')}?fieldSelector=spec.name=x") as watch:
        assert [event["object"]["metadata"]["name"] for event in watch.take(2)] == ["a", "c"]
        client.patch(links(at, "v1") + "/b", {"spec": {"host": "x:5"}})
        client.patch(links(at, "v1") + "/a", {"spec": {"host": "z:5"}})
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in watch.take(2)] == [
            ("ADDED", "b"),
            ("DELETED", "a"),
        ]
