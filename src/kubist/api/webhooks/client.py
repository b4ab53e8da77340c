"""Webhook client for a WebhookClientConfig: a URL or a service of the cluster, and a CA bundle."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

from kubist.base.caching import bounded_cache
from kubist.base.http.client.calls import CallFailed, post
from kubist.base.http.client.redirects import PATH_SAFE
from kubist.base.http.tls.contexts import client_context
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Objects


LONGEST_BUNDLE = 1 << 18
"""Maximum length in characters of a CA bundle whose SSL context is cached. A system's whole CA bundle is shorter."""


class WebhookClient:
    """Client of one webhook's server."""

    def __init__(self, config: Object) -> None:
        self._url = clean_url(config["url"]) if config.get("url") else ""
        self._service: Object = config.get("service") or {}
        self._bundle: str = config.get("caBundle") or ""

    async def post(
        self, objects: Objects, body: bytes, *, timeout: float, query: str = "", user_agent: str = ""
    ) -> tuple[int, bytes]:
        """Posts a JSON body. Returns status and body of the response. Raises CallFailed without a response."""
        url = self._url or self._service_url()
        if query:
            url = f"{url}{'&' if '?' in url else '?'}{query}"
        host, port, server = "", None, ""
        if self._service:
            namespace, name = self._service["namespace"], self._service["name"]
            server = f"{name}.{namespace}.svc"
            try:
                host, port = resolve(objects, namespace, name, self._service.get("port", 443))
            except CallFailed as error:
                raise CallFailed(f'Post "{url}": {error}') from None
        try:
            context = await asyncio.to_thread(trust, self._bundle)
        except ValueError:
            raise CallFailed("unable to load root certificates: unable to parse bytes as PEM block") from None
        return await post(
            url,
            body,
            context=context,
            timeout=timeout,
            host=host,
            port=port,
            server_hostname=server,
            headers={"User-Agent": user_agent} if user_agent else None,
            pool=objects.connections,
        )

    def _service_url(self) -> str:
        service = self._service
        where = f"{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}"
        return f"https://{where}{clean_path(service.get('path', '').encode())}"


@bounded_cache(entries=32, key_length=LONGEST_BUNDLE)
def trust(bundle: str) -> ssl.SSLContext:
    """SSL context that trusts a CA bundle (base64 of PEM), or the system's authorities if the bundle is empty."""
    return client_context(base64.b64decode(bundle, validate=True))


def resolve(objects: Objects, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Address and port of a service: a ready endpoint if there is one, else the cluster IP."""
    service = objects.get("services", name, namespace)
    if service is None:
        raise CallFailed(f'service "{name}" not found')
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec.get("externalName", ""), port
    chosen = next((item for item in spec.get("ports") or () if item.get("port") == port), None)
    if chosen is None:
        raise CallFailed(f'no service port {port} found for service "{name}"')
    for endpoint_slice in objects.list("endpointslices", namespace, group="discovery.k8s.io"):
        labels = endpoint_slice["metadata"].get("labels") or {}
        if labels.get("kubernetes.io/service-name") != name:
            continue
        ports = endpoint_slice.get("ports") or ()
        target = next((p for p in ports if p.get("name", "") == chosen.get("name", "")), None)
        for endpoint in endpoint_slice.get("endpoints") or ():
            ready = (endpoint.get("conditions") or {}).get("ready", True)
            if ready and endpoint.get("addresses") and target is not None:
                return endpoint["addresses"][0], target.get("port") or port
    if spec.get("clusterIP") not in (None, "", "None"):
        return spec["clusterIP"], port
    raise CallFailed(f'no endpoints available for service "{name}"')


def clean_url(url: str) -> str:
    """URL with a clean path, without query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, clean_path(unquote_to_bytes(parts.path)), "", ""))


def clean_path(path: bytes) -> str:
    """Cleans and escapes a decoded path, like Go's `path.Join`: absolute, without empty segments, `.`, `..` and a
    trailing slash."""
    kept: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    return quote(b"/" + b"/".join(kept), safe=PATH_SAFE)
