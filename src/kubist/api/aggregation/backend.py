"""A backend: the API server behind the Service of an APIService. Address and TLS settings."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubist.api.webhooks.client import LONGEST_BUNDLE, resolve
from kubist.base.caching import bounded_cache
from kubist.base.http.tls.contexts import client_context, stamp
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.resources.context import Objects

log = logging.getLogger("kubist.aggregation")

Version = tuple[tuple[int, int, int], ...]


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
        """Current address. Raises CallFailed if the service has none."""
        return resolve(objects, self.namespace, self.service, self.port)

    async def context(self, config: Config) -> ssl.SSLContext:
        """TLS context. Raises ValueError or OSError if certificates cannot be read."""
        files = config.proxy_client_cert_file, config.proxy_client_key_file
        return await asyncio.to_thread(_newest_context, self.bundle, self.insecure, *files)


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


class ClientPair:
    """Client certificate for backends, and its key. New connections use the newest files that match each other."""

    def __init__(self, certificate: str, key: str) -> None:
        self._files = [certificate, key or certificate]
        self._version_of_files: Version = tuple(stamp(self._files))
        self._version = self._version_of_files

    def version(self) -> Version:
        """Value that changes when the files change, unless the new files are unusable."""
        version = tuple(stamp(self._files))
        if version != self._version_of_files:
            self._version_of_files = version
            self._try(version)
        return self._version

    def _try(self, version: Version) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(*self._files)
        except (OSError, ValueError) as error:
            log.warning("keeping the old client certificate for backends: %s: %s", self._files[0], error)
        else:
            self._version = version
            log.info("reloaded the client certificate for backends %s", self._files[0])


@bounded_cache(entries=32, key_length=8192)
def _client_pair(certificate: str, key: str) -> ClientPair:
    return ClientPair(certificate, key)


def _newest_context(bundle: str, insecure: bool, certificate: str, key: str) -> ssl.SSLContext:
    version = _client_pair(certificate, key).version() if certificate else ()
    return _context(bundle, insecure, certificate, key, version)


@bounded_cache(entries=32, key_length=LONGEST_BUNDLE)
def _context(bundle: str, insecure: bool, certificate: str, key: str, _version: Version) -> ssl.SSLContext:
    context = client_context(base64.b64decode(bundle, validate=True))
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
