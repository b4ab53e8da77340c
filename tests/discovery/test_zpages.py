"""/flagz, /statusz, /metrics/slis and /debug: pages for operators, as kube-apiserver v1.36 serves them."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Iterator

import pytest
import yaml

from kubist.api.config import Config
from kubist.api.discovery.zpages import shown_flags
from kubist.cli import flags
from tests.live import Client, Live, Pki

FLAGZ = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"
STATUSZ = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"
NOT_ACCEPTABLE = "only the following media types are accepted: application/json, application/yaml, text/plain"


def ask(
    client: Client, path: str, accept: str = "", method: str = "GET", body: bytes | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = client.connect()
    try:
        connection.request(method, path, body, client.headers(**({"Accept": accept} if accept else {})))
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_flagz_is_text_by_default(client: Client) -> None:
    for accept in (
        "",
        "*/*",
        "text/*",
        "text/plain;charset=utf-8",
        "application/json,*/*",
        f"text/plain,{FLAGZ}",
    ):
        response, body = ask(client, "/flagz", accept)
        assert (response.status, response.headers["Content-Type"]) == (200, "text/plain; charset=utf-8"), (
            accept
        )
        lines = body.decode().split("\n")
        assert lines[:2] == ["", "apiserver flagz"] and lines[2].startswith(
            "Warning: This endpoint is not meant"
        )
        assert "authorization-mode=[RBAC]" in lines and "request-timeout=1m0s" in lines
        assert lines[3:-1] == sorted(lines[3:-1], key=lambda line: line.partition("=")[0])


def test_flagz_is_structured_on_request(client: Client) -> None:
    response, body = ask(client, "/flagz", FLAGZ + ",text/plain")
    assert response.headers["Content-Type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    found = yaml.safe_load(body)
    assert (found["kind"], found["apiVersion"]) == ("Flagz", "config.k8s.io/v1beta1")
    assert found["metadata"] == {"name": "apiserver"} and found["flags"]["anonymous-auth"] == "true"
    response, body = ask(client, "/flagz", FLAGZ.replace("json", "yaml"))
    assert response.headers["Content-Type"] == "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz"
    assert yaml.safe_load(body) == found
    response, _ = ask(client, "/flagz", FLAGZ.replace("v1beta1", "v1alpha1"))
    assert response.headers["Warning"] == (
        '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."'
    )


@pytest.mark.parametrize(
    "accept",
    ["application/json", STATUSZ, "text/html", "application/*", FLAGZ.replace("v1beta1", "v1"), FLAGZ[:-9]],
)
def test_other_forms_of_flagz_are_not_acceptable(client: Client, accept: str) -> None:
    response, body = ask(client, "/flagz", accept)
    assert response.status == 406 and NOT_ACCEPTABLE in body.decode()


def test_flagz_shows_all_flags_of_the_command_line() -> None:
    known = flags.of_kube_apiserver()
    given = (
        "--event-ttl=90m",
        "--kubelet-timeout=7s",
        "--watch-cache-sizes=a#1,b#2",
        "--v=2",
        "--api-audiences=a,b",
    )
    shown = shown_flags(flags.config(flags.parse(given, known), known, Config()))
    wanted = {
        "event-ttl": "1h30m0s",
        "kubelet-timeout": "7s",
        "watch-cache-sizes": "[a#1,b#2]",
        "v": "2",
        "api-audiences": "[a,b]",
        "etcd-compaction-interval": "5m0s",
        "min-request-timeout": "1800",
        "goaway-chance": "0",
        "log-json-split-stream": "false",
        "livez-grace-period": "0s",
        "tls-sni-cert-key": "[]",
    }
    assert {name: shown[name] for name in wanted} == wanted
    assert shown.keys() >= known.keys() - {"help", "version", "log-format"}


def test_flagz_shows_no_secrets(client: Client, server_pki: Pki) -> None:
    text = ask(client, "/flagz")[1].decode()
    assert f"token-auth-file={server_pki.path('tokens.csv')}" in text
    assert client.token not in text and "PRIVATE KEY" not in text


def test_statusz_has_versions_and_paths(client: Client) -> None:
    _, text = ask(client, "/statusz")
    lines = text.decode().split("\n")
    assert lines[1] == "apiserver statusz" and lines[3] == ""
    assert lines[7:10] == [
        "Binary version= 1.36.4",
        "Emulation version= 1.36",
        "Paths= /flagz /healthz /livez /metrics /readyz /statusz /version",
    ]
    response, body = ask(client, "/statusz", STATUSZ)
    assert response.headers["Content-Type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    found = yaml.safe_load(body)
    assert list(found) == [
        *("kind", "apiVersion", "metadata", "startTime", "uptimeSeconds", "goVersion", "binaryVersion"),
        *("emulationVersion", "paths"),
    ]
    assert ask(client, "/statusz", FLAGZ)[0].status == 406


def test_health_checks_are_counted_in_slis(live: Live) -> None:
    for path in ("/readyz", "/readyz", "/livez/ping"):
        assert live.client.ask("GET", path).status == 200
    response, body = ask(live.client, "/metrics/slis")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert int(response.headers["Process-Start-Time-Unix"]) <= time.time()
    lines = body.decode().splitlines()
    assert 'kubernetes_healthcheck{name="etcd",type="readyz"} 1' in lines
    assert 'kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 2' in lines
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1' in lines
    assert not any('name="log",type="livez"' in line for line in lines)


@pytest.mark.parametrize(
    ("path", "monitoring"),
    [
        ("/flagz", 200),
        ("/statusz", 200),
        ("/metrics", 200),
        ("/metrics/slis", 200),
        ("/debug/pprof/", 403),
        ("/debug/flags/v", 403),
    ],
)
def test_pages_need_permission(client: Client, path: str, monitoring: int) -> None:
    connection = client.connect()
    headers = client.headers(**{"Impersonate-User": "m", "Impersonate-Group": "system:monitoring"})
    connection.request("GET", path, headers=headers)
    assert connection.getresponse().status == monitoring
    connection.close()
    connection = client.connect()
    connection.request("GET", path, headers={"Authorization": "Bearer dev-token"})
    assert connection.getresponse().status == 403
    connection.close()


def test_pages_without_their_gate_are_not_found(server_pki: Pki) -> None:
    off = {"ComponentFlagz": False, "ComponentStatusz": False}
    with Live(server_pki, feature_gates=off, profiling=False) as live:
        for path in ("/flagz", "/statusz", "/debug/pprof/", "/debug/flags/v", "/debug/pprof"):
            assert live.client.ask("GET", path).body == b"404 page not found\n", path


def test_index_lists_the_pages_but_not_debug(client: Client) -> None:
    listed = client.get("/")["paths"]
    assert {"/flagz", "/statusz", "/metrics", "/metrics/slis"} <= set(listed)
    assert not any(path.startswith("/debug") for path in listed)


@pytest.mark.parametrize(
    "path", ["/flagz/", "/statusz/", "/metrics/slis/", "/metrics/foo", "/debug/", "/debug/foo"]
)
def test_paths_beside_the_pages_are_not_found(client: Client, path: str) -> None:
    assert ask(client, path)[1] == b"404 page not found\n"


def test_profile_is_taken_while_the_server_works(live: Live) -> None:
    client = live.client
    containers = [
        {"name": f"c{number}", "image": "a", "env": [{"name": "A", "value": "b"}]} for number in range(200)
    ]
    pod = json.dumps({"metadata": {"name": "busy"}, "spec": {"containers": containers}}).encode()
    results: list[tuple[http.client.HTTPResponse, bytes]] = []
    thread = threading.Thread(target=lambda: results.append(ask(client, "/debug/pprof/profile?seconds=1")))
    thread.start()
    answered = 0
    second = None
    while thread.is_alive():
        created = client.ask("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
        assert created.status == 201
        answered += 1
        if answered == 3:
            second = ask(client, "/debug/pprof/profile?seconds=1")
    thread.join()
    response, body = results[0]
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"] == 'attachment; filename="profile"'
    assert answered > 5, "the event loop goes on"
    profile = gzip.decompress(body)
    assert b"nanoseconds" in profile and b"API.__call__" in profile and b"application.py" in profile
    assert second is not None and second[0].status == 500
    assert second[1] == b"Could not enable CPU profiling: cpu profiling already in use\n"


def test_pprof_has_an_index_and_other_profiles(client: Client) -> None:
    response, body = ask(client, "/debug/pprof")
    assert (response.status, response.headers["Location"]) == (302, "/debug/pprof/")
    response, body = ask(client, "/debug/pprof/")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<a href='profile?debug=1'>profile</a>" in body
    assert ask(client, "/debug/pprof/symbol")[1] == b"num_symbols: 1\n"
    assert b"MainThread" in ask(client, "/debug/pprof/goroutine?debug=2")[1]
    response, body = ask(client, "/debug/pprof/nothing")
    assert (response.status, body, response.headers["X-Go-Pprof"]) == (404, b"Unknown profile\n", "1")


@pytest.fixture
def restored_verbosity() -> Iterator[None]:
    yield
    from kubist.api import logs

    logs.set_verbosity(0)


@pytest.mark.usefixtures("restored_verbosity")
def test_verbosity_can_be_changed(live: Live) -> None:
    response, body = ask(live.client, "/debug/flags/v")
    assert (response.status, body) == (406, b"unsupported http method\n")
    response, body = ask(live.client, "/debug/flags/v", method="PUT", body=b"3")
    assert (response.status, body) == (200, b"successfully set klog.logging.verbosity to 3\n")
    assert live.server.api._logs_all
    response, body = ask(live.client, "/debug/flags/v", method="PUT", body=b"9" * 5000)
    assert response.status == 400
    response, body = ask(live.client, "/debug/flags/v", method="PUT", body=b"abc")
    assert body == b'strconv.ParseUint: parsing "abc": invalid syntax\n'


def test_delete_resets_the_metrics(live: Live) -> None:
    live.client.get("/api/v1/namespaces")
    _, body = ask(live.client, "/metrics", method="DELETE")
    assert body == b"metrics reset\n"
    text = ask(live.client, "/metrics")[1].decode()
    assert 'resource="namespaces",scope="cluster",subresource="",verb="LIST"' not in text
