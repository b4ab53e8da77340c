"""Log lines of a server: all requests on demand, slow ones always, never a secret."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubist.api import application, logs
from kubist.api.resources.context import Context
from kubist.base.http.messages import Answer
from tests.cli.processes import kubist, running
from tests.live import TOKEN, Live, Pki, configmap
from tests.simulation.streams.upgraded import hang_up, open_spdy, open_websocket, path
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"


class Lines:
    """Collected log lines, formatted as the server does."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(logs.JsonFormatter())

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def of(self, logger: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.text.splitlines()) if line["logger"] == logger]


@pytest.fixture
def lines() -> Iterator[Lines]:
    found = Lines()
    root, level = logging.getLogger(), logs.access.level
    before = root.level
    root.addHandler(found.handler)
    root.setLevel(logging.INFO)
    logs.access.setLevel(logging.INFO)
    yield found
    root.removeHandler(found.handler)
    root.setLevel(before)
    logs.access.setLevel(level)


def test_request_line_has_the_audit_id_of_the_response(lines: Lines, server_pki: Pki) -> None:
    with Live(server_pki) as live:
        live.client.post(MAPS, configmap("a", word="body-of-the-request"))
        answer = live.client.ask("GET", f"{MAPS}/a?pretty=query-of-the-request")
        missing = live.client.ask("GET", f"{MAPS}/b")
        with live.client.watch(MAPS) as watch:
            watch.take(1)
    found = [line for line in lines.of("kubist.access") if line["path"].startswith(MAPS)]
    assert [(line["verb"], line["status"]) for line in found] == [
        ("create", 201),
        ("get", 200),
        ("get", 404),
        ("watch", 200),
    ]
    assert [line["auditID"] for line in found[1:3]] == [
        answer.headers["Audit-Id"],
        missing.headers["Audit-Id"],
    ]
    assert found[1]["path"] == f"{MAPS}/a"
    assert found[1]["user"] == "admin"
    assert 0 < found[1]["duration"] < 10
    for word in ("body-of-the-request", "query-of-the-request", "admin-token"):
        assert word not in lines.text
    messages = [line["message"] for line in lines.of("kubist")]
    assert re.match(r"read \d+ objects at revision \d+", messages[0])
    assert messages[-2:] == ["stopping", "stopped"]


def test_slow_request_is_always_logged(
    lines: Lines, server_pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.access.setLevel(logging.WARNING)
    with Live(server_pki) as live:
        live.client.get(MAPS)
        assert lines.of("kubist.access") == []
        monkeypatch.setattr(logs, "SLOW_SECONDS", 0.0)
        live.client.get(MAPS)
    (line,) = [line for line in lines.of("kubist.access") if line["path"] == MAPS]
    assert (line["level"], line["message"], line["verb"]) == ("warning", "slow request", "list")


class Seconds:
    """Clock of the durations in the log, which only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    made = Seconds()
    monkeypatch.setattr(application, "time", made)
    return made


def test_streams_are_logged_when_they_end_and_are_not_slow(
    lines: Lines, server_pki: Pki, seconds: Seconds
) -> None:
    pods = "/api/v1/namespaces/default/pods"
    with Live(server_pki, workloads=True) as live:
        live.client.post(
            pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        )
        wait_for(lambda: live.client.get(f"{pods}/p")["status"].get("phase") == "Running")
        place: Any = SimpleNamespace(port=live.server.port, token=TOKEN, ca=server_pki.path("ca.crt"))
        command = path("p", "exec", command=["cat"], stdin="true", stdout="true")
        log = open_websocket(place, path("p", "log", follow="true"))
        shell = open_websocket(place, command, "v5.channel.k8s.io")
        forward, _ = open_spdy(place, path("p", "portforward"), "portforward.k8s.io")
        with live.client.watch(pods) as watch:
            watch.take(1)
            seconds.now += 1000
        hang_up(log)
        hang_up(shell)
        forward.close()

        def ended() -> list[dict[str, Any]]:
            return [line for line in lines.of("kubist.access") if line["duration"] == 1000]

        wait_for(lambda: len(ended()) == 4)
    assert {(line["level"], line["message"]) for line in ended()} == {("info", "request")}
    assert {line["path"].rpartition("/")[2] for line in ended()} == {"pods", "log", "exec", "portforward"}


def test_stream_with_a_slow_start_is_slow(lines: Lines, server_pki: Pki, seconds: Seconds) -> None:
    with Live(server_pki) as live:
        serve = live.server.api.serve

        async def serve_late(ctx: Context) -> Answer:
            seconds.now += 2
            return await serve(ctx)

        live.server.api.serve = serve_late  # type: ignore[method-assign]
        with live.client.watch(MAPS):
            seconds.now += 1000
        wait_for(lambda: [line for line in lines.of("kubist.access") if line["verb"] == "watch"])
    (line,) = [line for line in lines.of("kubist.access") if line["verb"] == "watch"]
    assert (line["level"], line["message"], line["duration"]) == ("warning", "slow request", 1002)


@pytest.mark.parametrize(("late", "logged"), [(0.0, []), (2.0, [5.0])])
def test_wait_for_a_future_version_is_not_slow(
    lines: Lines, server_pki: Pki, seconds: Seconds, late: float, logged: list[float]
) -> None:
    logs.access.setLevel(logging.WARNING)
    with Live(server_pki) as live:

        async def wait(_: int, limit: float = 0.0) -> bool:
            seconds.now += limit + late
            return False

        live.cache.wait = wait  # type: ignore[assignment,method-assign]
        for query in ("", "&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"):
            live.client.ask("GET", f"{MAPS}?resourceVersion=999999999{query}")
        assert live.client.ask("GET", f"{MAPS}/a?resourceVersion=999999999").status == 504
    assert [line["duration"] for line in lines.of("kubist.access")] == logged * 3


def test_lines_during_a_request_carry_its_fields(
    lines: Lines, server_pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Live(server_pki) as live:

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("on purpose")

        monkeypatch.setattr(live.server.store, "create", fail)
        answer = live.client.ask("POST", MAPS, configmap("a"))
        monkeypatch.undo()
        assert answer.status == 500
    (failed, *_) = lines.of("kubist.api")
    assert failed["auditID"] == answer.headers["Audit-Id"]
    assert (failed["verb"], failed["path"], failed["user"]) == ("create", MAPS, "admin")
    assert "RuntimeError: on purpose" in failed["exception"]
    assert "auditID" not in lines.of("kubist")[-1]


def test_repeated_message_is_rate_limited() -> None:
    seldom = logs.Seldom(seconds=60, texts=2)
    assert [seldom.may(text) for text in ("a", "a", "b", "a")] == [True, False, True, False]
    assert seldom.may("c"), "and takes no more room than it has"


def test_text_log_escapes_line_breaks() -> None:
    record = logging.LogRecord("kubist", logging.ERROR, "", 0, "it said %s", ("a\nforged",), None)
    assert logs.TextFormatter().format(record).endswith(r"E kubist: it said a\nforged")


def test_text_log_escapes_quotes_in_fields() -> None:
    """HTTP/2 allows spaces and quotes in a path."""
    record = logging.LogRecord("kubist", logging.INFO, "", 0, "request", (), None)
    forged = '/a\\" user="admin'
    api = SimpleNamespace(config=SimpleNamespace(url_prefix=""))
    request, user = SimpleNamespace(path=forged), SimpleNamespace(name="jo")
    record.request = SimpleNamespace(audit_id="1", verb="get", api=api, request=request, user=user)
    line = logs.TextFormatter().format(record)
    assert line.endswith(r'request auditID=1 verb=get path="/a\\\" user=\"admin" user=jo')


@pytest.mark.parametrize("flag", ["--log-format=json", "--logging-format=json"])
def test_command_logs_json(home: Path, flag: str) -> None:
    arguments = ("apiserver", "--secure-port=0", "--bind-address=127.0.0.1", "--cert-dir=certs", flag)
    with running(home, *arguments) as server:
        server.wait_for(r"(serving on 127\.0\.0\.1)")
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.output.splitlines()]
    assert [set(line) for line in lines] == [{"time", "level", "logger", "message"}] * len(lines)
    assert lines[-1]["message"] == "stopped"


@pytest.mark.parametrize("command", ["serve", "apiserver"])
def test_unknown_log_format_is_rejected(home: Path, command: str) -> None:
    done = kubist(command, "--log-format=xml", home=home)
    assert done.returncode == 2
    assert done.stderr == 'kubist: invalid argument "xml" for "--log-format" flag: must be text or json\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path
