"""Audit webhook: batches, retries, limits, and the server that takes the events."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.api.filters.audit import webhook as auditwebhook
from kubist.api.filters.audit.webhook import AuditWebhook, WebhookSettings
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta.object import Object
from tests.live import Live, Pki, configmap
from tests.waiting import wait_for


class Recorder:
    """Server of an audit webhook in memory. It fails `failures` times first."""

    def __init__(self, failures: int = 0) -> None:
        self.bodies: list[Object] = []
        self.failures = failures
        self.attempts = 0
        self.closed = False

    async def send(self, body: bytes) -> None:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise CallFailed("refused")
        self.bodies.append(json.loads(body))

    async def close(self) -> None:
        self.closed = True

    @property
    def sizes(self) -> list[int]:
        return [len(body["items"]) for body in self.bodies]


def event(number: int, **more: Any) -> Object:
    return {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": str(number), **more}


def delivered(recorder: Recorder, events: list[Object], attempts: int = 0, **settings: Any) -> list[Object]:
    """Puts events, waits for a number of attempts, closes the webhook, and returns what the server got."""

    async def run() -> None:
        webhook = AuditWebhook(recorder, WebhookSettings(**settings))
        for each in events:
            webhook.put(each)
        for _ in range(3000):
            if recorder.attempts >= attempts:
                break
            await asyncio.sleep(0.01)
        await asyncio.to_thread(webhook.close)

    asyncio.run(run())
    assert recorder.closed or not events
    return [item for body in recorder.bodies for item in body["items"]]


def test_events_are_sent_in_batches_and_in_order() -> None:
    recorder = Recorder()
    events = [event(number) for number in range(10)]
    assert delivered(recorder, events, max_size=4) == events
    assert recorder.sizes == [4, 4, 2]
    assert {name: recorder.bodies[0][name] for name in ("kind", "apiVersion", "metadata")} == {
        "kind": "EventList",
        "apiVersion": "audit.k8s.io/v1",
        "metadata": {},
    }


def test_incomplete_batch_is_sent_after_the_wait() -> None:
    recorder = Recorder()

    async def run() -> None:
        webhook = AuditWebhook(recorder, WebhookSettings(max_wait=0.05))
        webhook.put(event(1))
        for _ in range(200):
            await asyncio.sleep(0.02)
            if recorder.bodies:
                break
        assert recorder.sizes == [1]
        await asyncio.to_thread(webhook.close)

    asyncio.run(run())


def test_failed_batch_is_sent_again() -> None:
    recorder = Recorder(failures=3)
    settings = {"max_wait": 0.0, "initial_backoff": 0.001}
    assert delivered(recorder, [event(1)], 4, **settings) == [event(1)]
    assert recorder.attempts == 4


def test_batch_is_lost_after_five_attempts(caplog: Any) -> None:
    recorder = Recorder(failures=100)
    assert delivered(recorder, [event(1)], 5, max_wait=0.0, initial_backoff=0.001) == []
    assert recorder.attempts == 5
    assert "the audit webhook failed, 1 audit events are lost: refused" in caplog.text


def test_full_buffer_drops_events_and_logs_once(caplog: Any) -> None:
    recorder = Recorder()
    found = delivered(recorder, [event(number) for number in range(9)], buffer_size=5)
    assert [each["auditID"] for each in found] == ["0", "1", "2", "3", "4"]
    assert caplog.text.count("cannot keep up") == 1 and "4 audit events were dropped" in caplog.text


def test_large_events_are_limited_by_their_size(caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditwebhook, "BUFFER_BYTES", 2500)
    events = [event(number, requestObject={"data": "x" * 1000}) for number in range(4)]
    assert [each["auditID"] for each in delivered(Recorder(), events)] == ["0", "1"]
    assert "2 audit events were dropped" in caplog.text


def test_sent_events_make_room_for_others() -> None:
    recorder = Recorder()

    async def run() -> None:
        webhook = AuditWebhook(recorder, WebhookSettings(max_size=1, max_wait=0.0, throttle_qps=0))
        for number in range(5):
            webhook.put(event(number))
        for _ in range(500):
            await asyncio.sleep(0.01)
            if len(recorder.sizes) == 5 and not webhook._sending:
                break
        assert webhook._bytes == 0
        webhook._runner.cancel()  # type: ignore[union-attr]

    asyncio.run(run())


def test_rate_of_batches_is_limited() -> None:
    recorder = Recorder()

    async def run() -> None:
        webhook = AuditWebhook(recorder, WebhookSettings(max_size=1, throttle_qps=0.01, throttle_burst=2))
        for number in range(5):
            webhook.put(event(number))
        for _ in range(50):
            await asyncio.sleep(0.01)
        assert recorder.sizes == [1, 1]
        webhook._runner.cancel()  # type: ignore[union-attr]

    asyncio.run(run())


def test_long_events_lose_their_objects_and_long_batches_are_split(caplog: Any) -> None:
    recorder = Recorder()
    events = [
        event(1, requestObject={"data": "x" * 500}, annotations={"a": "b"}),
        event(2, requestURI="y" * 500),
        event(3),
        event(4),
    ]
    first, third, fourth = delivered(recorder, events, truncate_event=300, truncate_batch=220)
    assert "requestObject" not in first
    assert first["annotations"] == {"a": "b", "audit.k8s.io/truncated": "true"}
    assert (third["auditID"], fourth["auditID"]) == ("3", "4")
    assert recorder.sizes == [2, 1] and "is too long for the audit webhook" in caplog.text


class Server:
    """HTTP server that records posts."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], Object]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append((dict(self.headers), json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/audit"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def events(self) -> list[Object]:
        return [item for _, body in list(self.posts) for item in body["items"]]


@pytest.fixture
def taker() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def settings(directory: Path, url: str, **more: Any) -> dict[str, Any]:
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "audit", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "it", "context": {"cluster": "audit", "user": "me"}}],
        "current-context": "it",
    }
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
    (directory / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    (directory / "policy.yaml").write_text(yaml.safe_dump(policy))
    return {
        "audit_policy_file": str(directory / "policy.yaml"),
        "audit_webhook_config_file": str(directory / "kubeconfig"),
        **more,
    }


def test_server_sends_its_events_to_the_webhook(server_pki: Pki, tmp_path: Path, taker: Server) -> None:
    flags = settings(tmp_path, taker.url, audit_webhook_batch_max_wait=0.05)
    with Live(server_pki, **flags) as live:
        live.client.post("/api/v1/namespaces/default/configmaps", configmap("seen", a="b"))
        wait_for(lambda: any(each["stage"] == "ResponseComplete" for each in taker.events()))
    found = [each for each in taker.events() if each["objectRef"].get("resource") == "configmaps"]
    assert [each["stage"] for each in found] == ["RequestReceived", "ResponseComplete"]
    assert found[1]["responseObject"]["data"] == {"a": "b"}
    headers, body = taker.posts[0]
    assert headers["Authorization"] == "Bearer secret" and headers["Content-Type"] == "application/json"
    assert body["kind"] == "EventList"


def test_events_that_wait_are_sent_at_the_stop(server_pki: Pki, tmp_path: Path, taker: Server) -> None:
    log = tmp_path / "audit.log"
    with Live(server_pki, **settings(tmp_path, taker.url, audit_log_path=str(log))) as live:
        live.client.get("/api/v1/namespaces/default")
        assert taker.posts == []
    sent = [each for each in taker.events() if each["objectRef"]["name"] == "default"]
    assert [each["stage"] for each in sent] == ["RequestReceived", "ResponseComplete"]
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert written == taker.events()


def test_unreachable_webhook_delays_no_request(server_pki: Pki, tmp_path: Path) -> None:
    flags = settings(tmp_path, "http://127.0.0.1:1", audit_webhook_batch_max_wait=0.0)
    with Live(server_pki, **flags) as live:
        for _ in range(20):
            assert live.client.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"audit_webhook_batch_buffer_size": 0}, "buffer size 0"),
        ({"audit_webhook_batch_max_size": -1}, "max batch size -1"),
        ({"audit_webhook_batch_throttle_qps": 0.0}, "throttle QPS 0"),
        ({"audit_webhook_batch_throttle_burst": 0}, "throttle burst 0"),
    ],
)
def test_wrong_limits_stop_the_start(
    server_pki: Pki, tmp_path: Path, setting: dict[str, Any], message: str
) -> None:
    wanted = f"invalid audit batch webhook {message}, must be a positive number"
    with pytest.raises(ValueError, match=wanted):
        Live(server_pki, **settings(tmp_path, "http://127.0.0.1:1", **setting)).__enter__()
