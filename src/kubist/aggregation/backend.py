"""A backend: the API server behind the Service of an APIService. Address and TLS settings."""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubist.caching import bounded_cache
from kubist.http.tls import client_context
from kubist.meta.object import Object
from kubist.webhooks.client import LONGEST_BUNDLE, resolve

if TYPE_CHECKING:
    from kubist.config import Config
    from kubist.resources.context import Objects


@dataclass(slots=True, frozen=True)
class Backend:
    """Backend of a group-version, from the spec of an APIService. Two are equal if their specs are."""

    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    bundle: str
    insecure: bool

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    @property
    def server_name(self) -> str:
        """Name that the backend's certificate must contain."""
        return f"{self.service}.{self.namespace}.svc"

    def address(self, objects: Objects) -> tuple[str, int]:
        """Present address. Raises CallFailed if the service has none."""
        return resolve(objects, self.namespace, self.service, self.port)

    async def context(self, config: Config) -> ssl.SSLContext:
        """TLS context. Raises ValueError or OSError if certificates cannot be read."""
        return await asyncio.to_thread(
            _context, self.bundle, self.insecure, config.proxy_client_cert_file, config.proxy_client_key_file
        )


def backend_of(obj: Object) -> Backend | None:
    """Backend of an APIService; None if it is local."""
    spec = obj["spec"]
    service = spec.get("service")
    if service is None or not spec.get("group"):
        return None
    return Backend(
        name=obj["metadata"]["name"],
        group=spec["group"],
        version=spec["version"],
        namespace=service["namespace"],
        service=service["name"],
        port=service.get("port", 443),
        bundle=spec.get("caBundle") or "",
        insecure=spec.get("insecureSkipTLSVerify", False),
    )


@bounded_cache(entries=32, key_length=LONGEST_BUNDLE)
def _context(bundle: str, insecure: bool, certificate: str, key: str) -> ssl.SSLContext:
    context = client_context(base64.b64decode(bundle, validate=True))
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
