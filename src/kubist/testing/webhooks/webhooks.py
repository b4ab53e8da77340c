"""Webhooks of one cluster: registers functions, and removes them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kubist.api.resources.resource import Resources
from kubist.base.hints import did_you_mean
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testing.errors import Refused
from kubist.testing.webhooks.admission import AdmissionHook, AdmissionOptions, MutatingHook, ValidatingHook
from kubist.testing.webhooks.authorizer import AuthorizerHook
from kubist.testing.webhooks.conversion import ConversionHook
from kubist.testing.webhooks.hook import Function, Hook

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster
import asyncio
import base64
import contextlib
import json
import tempfile
from pathlib import Path

from kubist.base.http.limits import Limits
from kubist.base.http.messages import Request, Response
from kubist.base.http.server import HttpServer
from kubist.base.http.tls import certificates
from kubist.base.http.tls.contexts import HTTP1, server_context

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

H = TypeVar("H", bound=Hook[Any])
CRD_GROUP = "apiextensions.k8s.io"
CRDS = "customresourcedefinitions"


class Webhooks:
    """Webhooks of a cluster, in the order of their registration. The HTTPS server starts with the first one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.RLock()
        self._hooks: dict[str, Hook[Any]] = {}
        self._removed: list[Hook[Any]] = []
        self._server: _HttpsServer | None = None
        cluster.close_later(self.close)

    def __repr__(self) -> str:
        return f"<webhooks: {', '.join(self._hooks) or 'none'}>"

    def __iter__(self) -> Iterator[Hook[Any]]:
        return iter(list(self._hooks.values()))

    def __len__(self) -> int:
        return len(self._hooks)

    def add_mutating(
        self, resources: Sequence[str], options: AdmissionOptions
    ) -> Callable[[Function], AdmissionHook]:
        return self._add_admission(MutatingHook, resources, dict(options))

    def add_validating(
        self, resources: Sequence[str], options: AdmissionOptions
    ) -> Callable[[Function], AdmissionHook]:
        return self._add_admission(ValidatingHook, resources, dict(options))

    def _add_admission(
        self, kind: type[AdmissionHook], resources: Sequence[str], options: Object
    ) -> Callable[[Function], AdmissionHook]:
        """Decorator that registers an admission webhook."""
        known = AdmissionOptions.__annotations__
        for option in options:
            if option not in known:
                raise TypeError(f'{kind.kind}s have no option "{option}"{did_you_mean(option, known)}')

        def register(function: Function) -> AdmissionHook:
            settings = dict(options)
            name = self._name(settings.pop("name", ""), function)
            return self._add(kind(self, function, name, resources, settings))

        return register

    def add_conversion(self, crd: str) -> Callable[[Function], ConversionHook]:
        """Decorator that registers a conversion webhook."""
        if not isinstance(crd, str):
            raise TypeError(
                'a conversion webhook needs a CRD: @cluster.conversion_webhook("widgets.example.com")'
            )
        return lambda function: self._add(ConversionHook(self, function, self._name("", function), crd))

    def add_authorizer(self, function: Function) -> AuthorizerHook:
        if not callable(function):
            raise TypeError("an authorizer is a function: use @cluster.authorizer without arguments")
        return self._add(AuthorizerHook(self, function, self._name("", function)))

    def _add(self, hook: H) -> H:
        with self._lock:
            if self._server is None:
                server = _HttpsServer()
                self._cluster.run(server.start())
                self._server = server
            self._hooks[hook.name] = hook
            self._server.add(hook)
            try:
                hook.register()
            except BaseException:
                del self._hooks[hook.name]
                self._server.remove(hook)
                raise
        return hook

    def remove(self, hook: Hook[Any]) -> None:
        """Removes a hook from the cluster."""
        with self._lock:
            if self._server is None:
                return
            self._removed.append(hook)
            del self._hooks[hook.name]
            if self._cluster.loop is not None:
                hook.unregister()
            self._server.remove(hook)

    def close(self) -> None:
        """Removes all hooks and stops the HTTPS server."""
        for hook in reversed(list(self)):
            hook.remove()
        server, self._server = self._server, None
        if server is not None and self._cluster.loop is not None:
            self._cluster.run(server.stop())

    def take_unread_errors(self) -> list[str]:
        """Reports of errors of functions that the test did not read."""
        return [report for hook in (*self._removed, *self) for report in hook.take_unread_errors()]

    def _name(self, custom_name: str, function: Function) -> str:
        """A name for a function that no other webhook of the cluster has."""
        if custom_name:
            if custom_name in self._hooks:
                raise ValueError(f'there is already a webhook "{custom_name}"; remove it first')
            return custom_name
        plain = re.sub("[^a-z0-9]+", "-", str(getattr(function, "__name__", "")).lower()).strip("-")
        name = base = plain[:50].strip("-") or "webhook"
        number = 1
        while name in self._hooks:
            number += 1
            name = f"{base}-{number}"
        return name

    # For hooks:

    @property
    def served(self) -> Resources:
        """Resources that the cluster serves."""
        return self._cluster.inner.resources

    def client_config(self, hook: Hook[Any]) -> Object:
        assert self._server is not None
        return self._server.client_config(hook)

    def request(self, method: str, path: str, body: Object | None = None) -> None:
        self._cluster.request(method, path, body)

    # Objects are written without HTTP, so that fault rules and recordings of the test do not see it.

    def create_object(self, group: str, resource: str, obj: Object) -> None:
        objects = self._cluster.inner.api.cluster
        try:
            self._cluster.run(objects.create(resource, obj, group=group))
        except status.APIError as error:
            raise Refused(error.code, error.status()) from None

    def delete_object(self, group: str, resource: str, name: str) -> None:
        try:
            self._cluster.run(self._cluster.inner.api.cluster.delete(resource, name, group=group))
        except status.APIError as error:
            if error.code != 404:  # the test deleted it
                raise

    def set_conversion(self, crd: str, conversion: Object, *, instead_of: str = "") -> Object | None:
        """Sets the conversion of a CRD, with `instead_of` only if its webhook has this URL. Returns the one before."""
        before: list[Object] = []

        def edit(obj: Object) -> Object | None:
            current = obj["spec"].get("conversion") or {}
            url = (current.get("webhook") or {}).get("clientConfig", {}).get("url")
            if instead_of and url != instead_of:
                return None
            before[:] = [current]
            obj["spec"]["conversion"] = conversion
            return obj

        objects = self._cluster.inner.api.cluster
        try:
            self._cluster.run(objects.update(CRDS, crd, "", edit, group=CRD_GROUP))
        except status.APIError as error:
            raise Refused(error.code, error.status()) from None
        if not before and not instead_of:
            known = [str(obj["metadata"]["name"]) for obj in self._cluster.list("crd")]
            hint = did_you_mean(crd, known) or "; load it first"
            raise LookupError(f'there is no CRD "{crd}"{hint}')
        return before[0] if before else None


BODY_BYTES = 16 << 20
"""Maximum size of a review in bytes. It has the new and the old object, and each may have 3 MB."""
GRACE = 1.0
"""Seconds that calls may take while the server stops."""


class _HttpsServer:
    """Runs in the event loop of the cluster. Each call gets a thread, so functions may block and use the cluster."""

    def __init__(self) -> None:
        authority = certificates.new_authority("kubist-webhooks")
        self.ca_bundle = base64.b64encode(authority.cert_pem).decode()
        self._pair = authority.issue_server(["127.0.0.1", "localhost"])
        self._files = tempfile.TemporaryDirectory(prefix="kubist-webhooks-")
        self._hooks: dict[str, Hook[Any]] = {}
        self._port = 0
        self._server: HttpServer | None = None

    async def start(self) -> None:
        cert, key = (Path(self._files.name) / name for name in ("tls.crt", "tls.key"))
        certificates.save(self._pair, cert, key)
        context = server_context(cert, key, alpn=HTTP1)
        self._server = HttpServer(self._serve, ssl_context=context, limits=Limits(body_bytes=BODY_BYTES))
        self._port = await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(GRACE)
            self._server = None
        self._files.cleanup()

    def add(self, hook: Hook[Any]) -> None:
        self._hooks[_path(hook)] = hook

    def remove(self, hook: Hook[Any]) -> None:
        self._hooks.pop(_path(hook), None)

    def client_config(self, hook: Hook[Any]) -> Object:
        """`clientConfig` of a webhook: its URL and the CA."""
        return {"url": f"https://127.0.0.1:{self._port}{_path(hook)}", "caBundle": self.ca_bundle}

    async def _serve(self, request: Request) -> Response:
        hook = self._hooks.get(request.path)
        if hook is None:
            return _text(404, "no such webhook; it was removed")
        if request.method != "POST":
            return _text(405, "a webhook takes POST")
        if request.body_too_large:
            return _text(413, f"the review is larger than {BODY_BYTES} bytes")
        return await _run_in_thread(hook, request.body)


def _path(hook: Hook[Any]) -> str:
    return f"/{hook.kind.replace(' ', '-')}/{hook.name}"


async def _run_in_thread(hook: Hook[Any], body: bytes) -> Response:
    """Response of a hook. A thread for each call, not a pool: functions wait for requests that call other webhooks."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def finish(response: Response) -> None:
        if not done.done():
            done.set_result(response)

    def work() -> None:
        response = _answer(hook, body)
        with contextlib.suppress(RuntimeError):  # the cluster stopped meanwhile
            loop.call_soon_threadsafe(finish, response)

    threading.Thread(target=work, name=f"kubist-{hook.name}", daemon=True).start()
    return await done


def _answer(hook: Hook[Any], body: bytes) -> Response:
    try:
        review = json.loads(body)
    except ValueError as error:
        return _text(400, f"the body is not JSON: {error}")
    try:
        answer = json.dumps(hook.answer(review)).encode()
    except BaseException as error:  # pytest.fail raises no Exception
        return _text(500, hook.note_error(error))
    return Response(200, [(b"Content-Type", b"application/json")], answer)


def _text(code: int, text: str) -> Response:
    return Response(code, [(b"Content-Type", b"text/plain; charset=utf-8")], text.encode())
