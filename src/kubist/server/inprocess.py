"""Server inside another program: in a thread of its own, or in the event loop of the caller.

    with kubist.Server() as server:            # a thread
        print(server.url, server.kubeconfig)

    async with kubist.Server() as server:      # this event loop
        ...

It has the same certificates, tokens and control loops as `kubist serve`. Data is kept only if `data_dir` is set.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import json
import ssl
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, cast

from kubist.api.config import SERVE_DEFAULTS, Config
from kubist.api.settings import Settings
from kubist.base import files
from kubist.base.listening import reachable
from kubist.base.offload import on_loop
from kubist.errors import InvalidSettings, StartError
from kubist.server import server as api_server
from kubist.server.runtime import kubeconfig
from kubist.server.runtime.identity import OWN_FILES, Identity
from kubist.server.runtime.pki import front_proxy
from kubist.server.runtime.run import new_event_loop, start_error
from kubist.storage.image import Image, take_image
from kubist.storage.memory import MemoryStore
from kubist.storage.store import StoreError

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")

DEFAULTS = dataclasses.replace(SERVE_DEFAULTS, secure_port=0)
"""Defaults of `kubist serve`, on any free port."""


FORK_SETTINGS: Settings = {
    "secure_port": 0,
    "data_dir": "",
    "snapshot": "",
    "etcd_servers": (),
    "audit_log_path": "",
}
"""Settings of a fork that differ from its parent's, because both would use the same port or files."""


class Shared:
    """Resource with several users. The last one to release it closes it."""

    def __init__(self) -> None:
        self._users = 1
        self._lock = threading.Lock()

    def hold(self) -> Self:
        """Adds a user."""
        with self._lock:
            self._users += 1
        return self

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._users == 0
        if is_last:
            self.close()

    def close(self) -> None:
        raise NotImplementedError


class TemporaryFiles(Shared):
    """Temporary directory of a server and its forks."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory(prefix="kubist-")
        self.path = Path(self._directory.name)

    def close(self) -> None:
        self._directory.cleanup()


class LoopThread(Shared):
    """Event loop in a thread. It can run several servers."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name="kubist", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop and waits for its result from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class Inner(api_server.Server):
    """API server with a given TLS context, which may be shared. It starts empty, or in memory from an image."""

    def __init__(self, config: Config, context: ssl.SSLContext, image: Image | None = None) -> None:
        super().__init__(config, store=None if image is None else MemoryStore(image=image.store))
        self._context = context
        self._is_filled = image is not None
        if image is not None:
            self.registry.cache.starts_from = image.cache

    async def _ssl_context(self) -> ssl.SSLContext:
        return self._context

    async def _bootstrap(self, port: int) -> None:
        if not self._is_filled:
            await super()._bootstrap(port)


def _kind(config: Config) -> type[Inner]:
    """Class of the server for these settings."""
    if not config.clusters:
        return Inner
    # Saves start-up time: few servers have clusters.
    from kubist.server.clusters.hosting import Hosting

    class HostInner(Hosting, Inner):
        """Server with clusters below /clusters/NAME."""

    return HostInner


class Server:
    """Kubernetes API server in this process. The settings are the fields of `kubist.Config`.

        with kubist.Server(workloads=True) as server:        # in a thread of its own
            print(server.url, server.kubeconfig)

        async with kubist.Server(data_dir="./data") as server:  # in the running event loop
            ...

    `start()` and `stop()` do the same without a block. Clients need `url`, `ca` and `token`, or the file `kubeconfig`.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        identity: Identity | None = None,
        thread: LoopThread | None = None,
        files: TemporaryFiles | None = None,
        image: Image | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        self.config = dataclasses.replace(config or DEFAULTS, **cast("dict[str, Any]", settings))
        self._given_identity = identity
        self._given_thread = thread
        self._given_files = files
        self._image = image
        self._parent: api_server.Server | None = None
        """Server whose time and test users a fork takes over when it starts."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """Event loop of the running server. None if it is not running."""
        self._thread: LoopThread | None = None
        self._files: TemporaryFiles | None = None
        self._inner: api_server.Server | None = None
        self._identity: Identity | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        if self._inner is None:
            await self.start_here()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop_here()

    def start(self) -> None:
        """Starts the server in a thread. Returns when it is ready. A fork is already started. Raises
        `kubist.errors.StartError`."""
        if self._inner is not None:
            return
        self._thread = LoopThread() if self._given_thread is None else self._given_thread.hold()
        try:
            self._thread.run(self.start_here())
        except BaseException:
            self._end_thread()
            raise

    def stop(self) -> None:
        if self._thread is not None:
            try:
                self._thread.run(self.stop_here())
            finally:
                self._end_thread()

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._thread.release()
        self._thread = None

    async def start_here(self) -> None:
        """Starts the server in the running event loop. Raises `kubist.errors.StartError`."""
        try:
            await self._start()
        except (StartError, StoreError, ValueError, OSError) as error:
            self._give_up()
            raise start_error(error, self.config.bind_address, self.config.secure_port) from None
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        self._inner = None
        self._clean_up()

    async def _start(self) -> None:
        check_settings(self.config)
        for name in OWN_FILES:
            if getattr(self.config, name):
                raise InvalidSettings(
                    f"{name} cannot be set: a server in a program makes its own certificates, keys and tokens. "
                    "`kubist apiserver` uses those of files"
                )
        identity = self._given_identity
        if self._given_files is not None:
            self._files = self._given_files.hold()
        if identity is None:
            self._files = TemporaryFiles()
            where = Path(self.config.data_dir or self._files.path)
            identity = await asyncio.to_thread(Identity, where, self.config)
        self._identity = identity
        proxy = front_proxy(self.config, identity.pki)
        config = dataclasses.replace(self.config, **identity.files, **proxy)
        self._inner = inner = _kind(config)(config, identity.ssl_context, self._image)
        parent = self._parent
        if inner.bench is not None and parent is not None and parent.bench is not None:
            inner.bench.continue_from(parent.bench)
        await inner.start()
        if inner.bench is not None:
            inner.bench.changed()
        self._image = self._parent = None
        self.loop = asyncio.get_running_loop()

    async def fork_here(self) -> Self:
        """Starts a second, independent server with the same content, in memory, in the running event loop.

        Both share the bytes of all objects, the certificates, and the keys of tokens.
        """
        inner = self.inner
        config = dataclasses.replace(self.config, **cast("dict[str, Any]", FORK_SETTINGS))
        made = type(self)(config, identity=self.identity, thread=self._thread, files=self._files)
        made._image = await take_image(inner.registry.cache)
        made._parent = inner
        await made.start_here()
        return made

    def fork(self) -> Self:
        """Starts a second, independent server with the same content, in memory, in the thread of this server. The
        caller stops it, before or after this server."""
        made = self.run(self.fork_here())
        made._thread = None if self._thread is None else self._thread.hold()
        return made

    async def stop_here(self, grace: float = 1.0) -> None:
        inner, self._inner, self.loop = self._inner, None, None
        if inner is not None:
            await inner.stop(grace)
        self._clean_up()

    def _clean_up(self) -> None:
        if self._files is not None:
            self._files.release()
            self._files = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the server's event loop, from another thread."""
        if self.loop is None or on_loop() is self.loop:
            work.close()
            raise (
                self._not_running()
                if self.loop is None
                else RuntimeError(
                    "this blocks the event loop that runs the server; await the coroutine instead"
                )
            )
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def _not_running(self) -> RuntimeError:
        name = type(self).__name__
        return RuntimeError(
            f"the server is not running; start it with `with {name}() as {name.lower()}:` or `start()`"
        )

    @property
    def inner(self) -> api_server.Server:
        """The server object itself. Use it in its event loop only."""
        if self._inner is None:
            raise self._not_running()
        return self._inner

    @property
    def identity(self) -> Identity:
        if self._identity is None:
            raise self._not_running()
        return self._identity

    @property
    def port(self) -> int:
        return self.inner.port

    @property
    def url(self) -> str:
        return f"https://{reachable(self.config.bind_address)}:{self.port}"

    @property
    def ca(self) -> Path:
        """Path of the CA certificate that clients trust."""
        return self.identity.ca

    @property
    def token(self) -> str:
        """Bearer token of a user in system:masters."""
        return self.identity.token

    @property
    def kubeconfig(self) -> Path:
        """Path of a kubeconfig file with administrator credentials."""
        where = self.identity.directory if self._given_files is None else self._given_files.path
        path = where / f"kubeconfig-{self.port}"
        content = json.dumps(self.kubeconfig_document()).encode()
        if not path.exists() or path.read_bytes() != content:
            files.write(path, content)
        return path

    def kubeconfig_document(self) -> dict[str, Any]:
        identity = self.identity
        parts = (identity.ca, identity.client_certificate, identity.client_key)
        document = kubeconfig.document(self.url, *(part.read_bytes() for part in parts))
        document["users"][0]["user"] = {"token": self.token}
        return document


_DEFAULTS = Config()
_EXPECTED = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple: "a tuple of strings",
    dict: "a dict",
}


def check_settings(config: Config) -> None:
    """Raises ValueError for a value of the wrong type, for addresses and ports out of range, and for settings of
    simulated nodes."""
    for field in dataclasses.fields(config):
        value, kind = getattr(config, field.name), type(getattr(_DEFAULTS, field.name))
        if not _has_type(value, kind):
            raise InvalidSettings(f"{field.name} must be {_EXPECTED[kind]}, not {value!r}")
    if not 0 <= config.secure_port <= 65535:
        raise InvalidSettings(
            f"secure_port must be a port number, from 0 to 65535, not {config.secure_port}: 0 takes any free one"
        )
    try:
        ipaddress.ip_address(config.bind_address)
    except ValueError:
        raise InvalidSettings(f"bind_address must be an IP address, not {config.bind_address!r}") from None
    try:
        for part in config.service_cluster_ip_range.split(","):
            ipaddress.ip_network(part.strip())
    except ValueError as error:
        raise InvalidSettings(f"service_cluster_ip_range: {error}") from None
    if config.workloads or config.simulated_nodes:
        # Saves start-up time: few servers simulate nodes.
        from kubist.cluster.simulation.node_objects import template_of

        template_of(config)


def _has_type(value: Any, kind: type) -> bool:
    if kind is tuple:
        return isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)
