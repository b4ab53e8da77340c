"""Webhook URLs are cleaned and redirects are followed as client-go does."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kubist.api.webhooks.client import WebhookClient, trust
from kubist.base.http.client.calls import CallFailed, get, post
from tests.admission.conftest import Client, WebhookServer, configuration, webhook

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CONFIGMAP = {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("path", "called"),
    [
        ("", "/"),
        ("//a", "/a"),
        ("/a/../b", "/b"),
        ("/../../b", "/b"),
        ("/a/", "/a"),
        ("/a/./b//c/", "/a/b/c"),
        ("/a%2Fb", "/a/b"),
        ("/a%2F%2e%2e%2Fb", "/b"),
        ("/a%20b", "/a%20b"),
        ("/a:b@c;d=e,f+g&h$i~", "/a:b@c;d=e,f+g&h$i~"),
        ("/(a)!*'", "/%28a%29%21%2A%27"),
        ("/ä", "/%C3%A4"),
    ],
)
def test_url_path_is_cleaned(hook: WebhookServer, path: str, called: str) -> None:
    assert WebhookClient(hook.client_config(path))._url == f"https://127.0.0.1:{hook.port}{called}"


@pytest.mark.parametrize(("path", "called"), [("/a/", "/a"), ("/", "/"), ("", "/"), ("/a%b", "/a%25b")])
def test_service_path_is_cleaned(path: str, called: str) -> None:
    client = WebhookClient({"service": {"namespace": "n", "name": "s", "path": path}})
    assert client._service_url() == f"https://s.n.svc:443{called}"


def test_webhook_is_called_at_the_clean_path(run: Callable[..., None], hook: WebhookServer) -> None:
    async def test(client: Client) -> None:
        hooks = webhook(hook, "CREATE", clientConfig=hook.client_config("//a/../b/"))
        assert (
            await client.post(CONFIGURATIONS, configuration("ValidatingWebhookConfiguration", hooks))
        ).code == 201
        assert (await client.post(CONFIGMAPS, CONFIGMAP)).code == 201
        assert hook.paths == ["/b?timeout=10s"]

    run(test)


@pytest.mark.parametrize("status", [307, 308])
def test_temporary_and_permanent_redirects_repeat_the_review(
    run: Callable[..., None], hook: WebhookServer, status: int
) -> None:
    hook.redirects["/hook"] = (status, "/elsewhere?x=1")

    async def test(client: Client) -> None:
        hooks = configuration("ValidatingWebhookConfiguration", webhook(hook, "CREATE"))
        assert (await client.post(CONFIGURATIONS, hooks)).code == 201
        assert (await client.post(CONFIGMAPS, CONFIGMAP)).code == 201
        assert hook.paths == ["/elsewhere?x=1"]
        assert hook.requests[0]["operation"] == "CREATE"
        _, _, headers = hook.seen[-1]
        assert headers["Referer"] == f"https://127.0.0.1:{hook.port}/hook?timeout=10s"
        assert headers["Content-Type"] == "application/json"

    run(test)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_other_redirects_become_a_get_without_a_body(
    run: Callable[..., None], hook: WebhookServer, status: int
) -> None:
    hook.redirects["/hook"] = (status, "/elsewhere")

    async def test(client: Client) -> None:
        hooks = configuration("ValidatingWebhookConfiguration", webhook(hook, "CREATE"))
        assert (await client.post(CONFIGURATIONS, hooks)).code == 201
        answer = await client.post(CONFIGMAPS, CONFIGMAP)
        assert answer.code == 500
        assert [(method, path) for method, path, _ in hook.seen] == [("POST", "/hook"), ("GET", "/elsewhere")]
        _, _, headers = hook.seen[-1]
        assert headers["Content-Type"] is None
        assert headers["Content-Length"] is None

    run(test)


def test_eleventh_request_of_a_call_is_refused(run: Callable[..., None], hook: WebhookServer) -> None:
    hook.redirects["/hook"] = (307, "/hook")

    async def test(client: Client) -> None:
        hooks = configuration("ValidatingWebhookConfiguration", webhook(hook, "CREATE"))
        assert (await client.post(CONFIGURATIONS, hooks)).code == 201
        answer = await client.post(CONFIGMAPS, CONFIGMAP)
        assert answer.message.endswith('failed to call webhook: Post "/hook": stopped after 10 redirects')
        assert len(hook.seen) == 10

    run(test)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("ftp://x/y", 'Post "ftp://x/y": unsupported protocol scheme "ftp"'),
        ("https:///y", 'Post "https:///y": http: no Host in request URL'),
        ("/%zz", 'failed to parse Location header "/%zz": invalid URL escape'),
    ],
)
def test_redirect_that_leads_nowhere_fails_the_call(hook: WebhookServer, location: str, why: str) -> None:
    hook.redirects["/hook"] = (307, location)
    url = hook.client_config()["url"]
    with pytest.raises(CallFailed, match=re.escape(why)):
        asyncio.run(post(url, b"{}", context=trust(hook.ca_bundle), timeout=5))


def test_redirect_without_a_location_is_the_response(hook: WebhookServer) -> None:
    hook.redirects["/hook"] = (307, "")
    url = hook.client_config()["url"]
    assert asyncio.run(post(url, b"{}", context=trust(hook.ca_bundle), timeout=5)) == (307, b"")


@pytest.mark.parametrize(("host", "sent"), [("localhost", "Bearer secret"), ("127.0.0.1", None)])
def test_credentials_are_not_sent_to_another_domain(hook: WebhookServer, host: str, sent: str | None) -> None:
    hook.redirects["/hook"] = (307, f"https://{host}:{hook.port}/elsewhere")
    url = f"https://localhost:{hook.port}/hook"
    headers = {"Authorization": "Bearer secret"}
    code, _ = asyncio.run(get(url, context=trust(hook.ca_bundle), timeout=5, headers=headers))
    assert code == 200
    assert [seen["Authorization"] for _, _, seen in hook.seen] == ["Bearer secret", sent]


def test_redirect_to_plain_http_is_followed(hook: WebhookServer) -> None:
    class Plain(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), Plain) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        hook.redirects["/hook"] = (308, f"http://127.0.0.1:{server.server_address[1]}/plain")
        url = hook.client_config()["url"]
        answer = asyncio.run(post(url, b'{"a":1}', context=trust(hook.ca_bundle), timeout=5))
    assert answer == (200, b'{"a":1}')
