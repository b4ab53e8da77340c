"""Ready-made clients of a cluster for the installed client libraries. A library is imported on first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol


class Access(Protocol):
    """Address of a server, and credentials of one user."""

    @property
    def url(self) -> str: ...

    @property
    def ca(self) -> Path: ...

    @property
    def token(self) -> str: ...

    @property
    def kubeconfig(self) -> Path: ...


class Clients:
    """One client of each library, created on first use."""

    def __init__(self, server: Access) -> None:
        self._server = server

    @cached_property
    def kubernetes(self) -> Any:
        """A `kubernetes.client.ApiClient`: `CoreV1Api(cluster.clients.kubernetes)`."""
        # Saves start-up time: a test loads only the library that it uses.
        from kubernetes import client

        configuration = client.Configuration(host=self._server.url)
        configuration.proxy = None  # not the user's HTTPS_PROXY: the server is on this machine
        configuration.ssl_ca_cert = str(self._server.ca)
        configuration.api_key = {"authorization": f"Bearer {self._server.token}"}
        return client.ApiClient(configuration)

    @cached_property
    def lightkube(self) -> Any:
        """A `lightkube.Client`."""
        # Saves start-up time: a test loads only the library that it uses.
        # `import lightkube` succeeds without the library, because lightkube-models installs a folder of that name.
        from lightkube import Client, KubeConfig  # type: ignore[import-not-found, unused-ignore]

        return Client(config=KubeConfig.from_file(str(self._server.kubeconfig)), trust_env=False)  # no proxy

    @cached_property
    def kr8s(self) -> Any:
        """The synchronous API of `kr8s`. For the asynchronous one use
        `kr8s.asyncio.api(kubeconfig=cluster.kubeconfig)`."""
        # Saves start-up time: a test loads only the library that it uses.
        import kr8s  # type: ignore[import-not-found, unused-ignore]

        return kr8s.api(kubeconfig=str(self._server.kubeconfig))

    @cached_property
    def pykube(self) -> Any:
        """A `pykube.HTTPClient`, of pykube-ng."""
        # Saves start-up time: a test loads only the library that it uses.
        import pykube  # type: ignore[import-not-found, unused-ignore]

        made = pykube.HTTPClient(pykube.KubeConfig.from_file(str(self._server.kubeconfig)))
        made.session.trust_env = False  # no proxy, as above
        return made

    def close(self) -> None:
        made = self.__dict__.get("kubernetes")
        if made is not None:
            made.close()
            made.rest_client.pool_manager.clear()
        made = self.__dict__.get("lightkube")
        if made is not None and hasattr(made, "close"):  # old versions have no such method
            made.close()
        made = self.__dict__.get("pykube")
        if made is not None:
            made.session.close()
        made = self.__dict__.get("kr8s")
        if made is not None and (ca := getattr(made.auth, "server_ca_file", None)):
            Path(ca).unlink(missing_ok=True)  # kr8s copies it from the kubeconfig, and leaves it behind
