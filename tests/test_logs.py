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

from kubist import logs
from tests.cli.processes import kubist, running
from tests.live import Live, Pki, configmap

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
