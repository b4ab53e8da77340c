"""Server: wires all components from one Config. A process may run several."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.api import bootstrap
from kubist.api.admission.chain import Admission
from kubist.api.admission.order import build
from kubist.api.application import API
from kubist.api.config import Config
from kubist.api.crd.controller import CRDController
from kubist.api.discovery.health import Health
from kubist.api.discovery.paths import Paths
from kubist.api.filters.browsers import with_browser_headers, without_compression
from kubist.api.filters.from_config import authentication, authorization, openid, token_signer
from kubist.api.object_store.registry import Registry
from kubist.api.resources.resource import Resources
from kubist.api.resources.runtime_config import served_resources
from kubist.base import eager_task, files
from kubist.base.clock import CURRENT, SYSTEM, Clock
from kubist.base.extras import missing_dependency
from kubist.base.http.client.pool import Pool
from kubist.base.http.limits import Limits
from kubist.base.http.messages import Application
from kubist.base.http.server import HttpServer
from kubist.base.listening import bound
from kubist.cluster.control.allocations import repair_allocations
from kubist.cluster.control.authentication_trust import keep_trust
from kubist.cluster.control.flowschema import keep_dangling_conditions
from kubist.cluster.control.kubernetes_service import KubernetesService, leased_addresses, leases_address
from kubist.errors import InvalidSettings
from kubist.model import feature_gates
from kubist.server.serving_tls import serving_context
from kubist.storage.cache.cache import ROOT
from kubist.storage.store import Store, StoreError

if TYPE_CHECKING:
    from kubist.cluster.control.loop import Loop

    # Saves start-up time: a server without control loops does not load them.
    from kubist.cluster.control.manager import Manager
    from kubist.storage.encryption.store import EncryptedStore, Values
    from kubist.storage.etcd.store import EtcdStore
    from kubist.storage.memory import StoreImage
    from kubist.testbench.bench import Bench

log = logging.getLogger("kubist")

STORE_SECONDS = 2.0
"""Seconds between two checks of a remote store, and timeout of each check."""


class Server:
    """API server on one store and one port. `chores`: runs the tasks that only one process of a server runs."""

    def __init__(self, config: Config, *, store: Store | None = None, chores: bool = True) -> None:
        self.config = config
        self.resources = served_resources(config.runtime_config, fairness=config.enable_priority_and_fairness)
        feature_gates.check(config.feature_gates)
        if chores:
            feature_gates.log_ineffective(config.feature_gates)
        self.store = store or make_store(config)
        self._encrypted = encrypted(config, self.store, self.resources)
        self.store = self._encrypted or self.store
        self.registry = Registry(config, self.resources, self.store)
        self.registry.encrypted = self._encrypted
        self.health = Health()
        self._silence = ""
        """Reason why a remote store does not respond. Empty if it does."""
        self.health.add("etcd", self._store_problem)
        self.health.add("etcd-readiness", self._write_problem, "readyz")
        self.ready = False
        if config.encryption_provider_config_automatic_reload:
            self.health.add("kms-providers", lambda: "")
        self.stopping = False
        self.health.add("informer-sync", lambda: "" if self.ready else "not ready", "readyz")
        self.health.add("shutdown", lambda: "process is shutting down" if self.stopping else "", "readyz")
        self._connections = Pool()
        clock = _clock(config)
        self.api = API(
            config,
            self.registry,
            authentication(config, self.registry, self._connections),
            authorization(config, self.registry, self._connections),
            Admission(build(config)),
            Paths(config, self.resources, self.health),
            clock=clock,
            chores=chores,
        )
        self.api.cluster.connections = self._connections
        self.api.cluster.tokens = token_signer(config)
        self.api.paths.others.update(openid(config))
        self.definitions = CRDController(self.registry, self.api.cluster, self.api.watchers, chores=chores)
        self.bench = _bench(self.api, self._switch)
        self.application: Application = self.api
        """Handles the requests of this server, whose paths start with `/api`, `/apis` and so on."""
        self._http: HttpServer | None = None
        self._chores: list[asyncio.Task[None]] = []
        self._loops: Manager | None = None
        self._address: KubernetesService | None = None
        self.port = 0

    def _store_problem(self) -> str:
        return self.registry.cache.problem or self._silence

    async def _write_problem(self) -> str:
        try:
            async with eager_task.timeout(STORE_SECONDS):
                await self.store.check()
        except (TimeoutError, StoreError) as error:
            return str(error) or f"no response of the store in {STORE_SECONDS:g} s"
        return ""

    async def _listen_to_store(self) -> None:
        """Checks a remote store periodically, for health checks and the log."""
        while True:
            task = asyncio.ensure_future(self.store.revision())
            try:
                await asyncio.wait([task], timeout=STORE_SECONDS)
                if not task.done():
                    self._heard(f"no response in {STORE_SECONDS:g} s")
                await task
                self._heard("")
            except StoreError as error:
                self._heard(str(error))
            finally:
                task.cancel()
            await asyncio.sleep(STORE_SECONDS)

    def _heard(self, silence: str) -> None:
        if silence and not self._silence:
            log.error("the store does not respond: %s", silence)
        elif self._silence and not silence:
            log.info("the store responds again")
        self._silence = silence

    async def start(self, *, sock: socket.socket | None = None) -> None:
        """Binds the port, opens the store, fills the cache, creates bootstrap objects, and listens."""
        sock = sock or bound(self.config.bind_address, self.config.secure_port)
        try:
            await self._start(sock.getsockname()[1], sock)
        except BaseException:
            sock.close()
            raise

    async def start_behind(self, port: int) -> None:
        """Starts without a socket: another server, which listens on `port`, passes requests to `application`."""
        self.port = port
        await self._start(port, None)

    async def _start(self, port: int, sock: socket.socket | None) -> None:
        CURRENT.set(self.api.clock)
        await self.store.open()
        try:
            await self._fill(port)
            self._simulate()
            self.application = self._wrapped(self._application())
            if sock is not None:
                await self._listen(sock)
            if self.api.chores:
                self._advertise()
                await self._control()
        except BaseException:
            await self.stop()
            raise
        self.ready = True

    async def _fill(self, port: int) -> None:
        """Fills the cache, creates bootstrap objects, and starts everything that follows the store."""
        await self.registry.start()
        count = sum(len(collection.entries) for collection in self.registry.cache.collections.values())
        log.info("read %d objects at revision %d", count, self.registry.cache.revision)
        self.api.admission.start(self.registry)
        if self.api.chores:
            await self._bootstrap(port)
        await self.definitions.start()
        await self.api.aggregation.start()
        self._chores += [asyncio.create_task(follow()) for follow in following(self.api)]
        if not self.store.local:
            self._chores.append(asyncio.create_task(self._listen_to_store()))
        if self.config.encryption_provider_config_automatic_reload:
            self._chores.append(asyncio.create_task(self._follow_encryption()))

    async def _bootstrap(self, port: int) -> None:
        config = dataclasses.replace(self.config, secure_port=port)
        alone = not leases_address(config) and not await leased_addresses(self.store)
        await bootstrap.ensure(self.registry, config, endpoints=alone)

    def _advertise(self) -> None:
        """Adds this server to the endpoints of the Service kubernetes, which all servers on one etcd share."""
        if leases_address(self.config):
            self._address = KubernetesService(self.registry, self.config, self.port)
            self._chores.append(asyncio.create_task(self._address.run()))

    def _simulate(self) -> None:
        """Lets simulated pods answer logs, exec and port-forward."""
        if self.config.workloads or self.config.simulated_nodes:
            # Saves start-up time: few servers simulate nodes.
            from kubist.cluster.simulation.kubelet_api.api import KubeletAPI
            from kubist.cluster.simulation.metrics import serve_metrics

            self.api.kubelet = KubeletAPI(self.api)
            serve_metrics(self.api)

    async def _control(self) -> None:
        """Starts repairs and the configured control loops."""
        self._chores += [
            asyncio.create_task(repair_allocations(self.api.cluster, self.store)),
            asyncio.create_task(keep_dangling_conditions(self.registry)),
            asyncio.create_task(keep_trust(self.api.cluster)),
        ]
        config = self.config
        simulated: list[type[Loop]] = []
        if config.workloads or config.simulated_nodes:
            # Saves start-up time: few servers simulate nodes.
            from kubist.cluster import simulation

            simulated = simulation.loops(config)
        if config.controllers or simulated:
            # Saves start-up time: a server without control loops does not load them.
            from kubist.cluster.control.manager import Manager

            self._loops = Manager(self.api, simulated)
            await self._loops.start()

    async def _follow_encryption(self) -> None:
        """Reloads the encryption configuration when it changes, then reloads values that were unreadable."""
        if self._encrypted is not None:
            async for _ in self._encrypted.follow(self.config.encryption_provider_config):
                await self.registry.cache.reload_unreadable()

    def _wrapped(self, application: Application) -> Application:
        """Application with the headers and the compression that the flags require."""
        config = self.config
        application = with_browser_headers(
            application, config.cors_allowed_origins, config.strict_transport_security_directives
        )
        if not feature_gates.enabled(config.feature_gates, "APIResponseCompression"):
            application = without_compression(application)
        return application

    def _switch(self, application: Application | None) -> None:
        """Passes requests to another application; None for this server's own."""
        self.application = self._wrapped(application or self._application())
        self._switch_outermost()

    def _switch_outermost(self) -> None:
        if self._http is not None:
            self._http.switch(self._outermost())

    async def _listen(self, sock: socket.socket) -> None:
        streams = self.config.http2_max_streams_per_connection
        limits = Limits(streams=streams) if streams else Limits()
        self._http = HttpServer(self._outermost(), ssl_context=await self._ssl_context(), limits=limits)
        self.port = await self._http.start(sock=sock)

    def _application(self) -> Application:
        return self.api

    def _outermost(self) -> Application:
        """Application that receives the socket's requests first."""
        return self.application

    async def _ssl_context(self) -> ssl.SSLContext:
        return await asyncio.to_thread(serving_context, self.config)

    async def stop(self, grace: float = 10.0) -> None:
        """Stops control loops, ends watches, finishes accepted requests, and closes the store."""
        log.info("stopping")
        self.ready, self.stopping = False, True
        if self.bench is not None:
            self.bench.release()
        for chore in self._chores:
            chore.cancel()
        if self._address is not None:
            await self._address.withdraw()
            self._address = None
        if self._loops is not None:
            await self._loops.stop()
            self._loops = None
        if self._http is not None:
            await self._http.stop(grace)
            self._http = None
        if self.api.authentication.jwt is not None:
            await self.api.authentication.jwt.close()
        await self.api.aggregation.stop()
        await self.definitions.stop()
        await self._connections.close()
        if self.api.handler_chain.audit is not None:
            await asyncio.to_thread(self.api.handler_chain.audit.log.close)
        await self.registry.stop()
        await self.store.close()
        if self.bench is not None:
            self.bench.close()
        log.info("stopped")


def following(api: API) -> list[Callable[[], Coroutine[None, None, None]]]:
    """Tasks that reload configuration files, in every process of a server."""
    authenticators, authorizers = api.authentication.jwt, api.authorization.file
    return [source.follow for source in (authenticators, authorizers) if source is not None]


def make_store(config: Config) -> Store:
    if config.snapshot and (config.etcd_servers or config.data_dir):
        raise InvalidSettings(
            "a server starts from a snapshot only in memory: use --in-memory, or `kubist restore` for a data directory"
        )
    if config.etcd_servers:
        return _etcd_store_class()(
            list(config.etcd_servers),
            prefix="/" + config.etcd_prefix.strip("/"),
            root=ROOT.rstrip("/"),
            ca=config.etcd_cafile or None,
            cert=config.etcd_certfile or None,
            key=config.etcd_keyfile or None,
            compaction_interval=config.etcd_compaction_interval,
        )
    if not config.data_dir:
        # Saves start-up time: only a server in memory needs it.
        from kubist.storage.memory import MemoryStore

        return MemoryStore(image=_snapshot(config))
    # Saves start-up time: a server on etcd or in memory needs no SQLite.
    from kubist.storage.sqlite.store import SqliteStore

    files.make_directory(Path(config.data_dir))
    return SqliteStore(str(Path(config.data_dir) / "kubist.db"))


def _etcd_store_class() -> type[EtcdStore]:
    """Class of the store on etcd. Raises MissingDependency if `kubist[etcd]` is not installed."""
    try:
        # Saves start-up time: grpc takes longer to load than the rest of the server.
        from kubist.storage.etcd.store import EtcdStore
    except ModuleNotFoundError:
        raise missing_dependency("--etcd-servers", "etcd", "grpcio and protobuf") from None
    return EtcdStore


def _snapshot(config: Config) -> StoreImage | None:
    """Content of the snapshot file from which the server starts."""
    if not config.snapshot:
        return None
    # Saves start-up time: only a server that starts from a snapshot needs it.
    from kubist.storage.backup.snapshot_file import read_image

    return read_image(Path(config.snapshot))


def _clock(config: Config) -> Clock:
    """The system's clock, or one that the test bench can move."""
    if not config.test_bench:
        return SYSTEM
    # Saves start-up time: only the test bench needs it.
    from kubist.testbench.clock.movable import MovableClock

    return MovableClock()


def _bench(api: API, switch: Callable[[Application | None], None]) -> Bench | None:
    """The test bench; None if it is off."""
    if not api.config.test_bench:
        return None
    # Saves start-up time: only the test bench needs it.
    from kubist.testbench.bench import Bench

    return Bench(api, switch)


def encrypted(config: Config, store: Store, resources: Resources) -> EncryptedStore | None:
    """Store with encryption at rest. None if no configuration file is set."""
    if not config.encryption_provider_config:
        if config.encryption_provider_config_automatic_reload:
            raise ValueError(
                "--encryption-provider-config-automatic-reload needs --encryption-provider-config"
            )
        return None
    # Saves start-up time: only --encryption-provider-config needs it.
    from kubist.storage.encryption.store import EncryptedStore

    prefix = "/" + config.etcd_prefix.strip("/")
    return EncryptedStore(store, encrypted_values(config.encryption_provider_config, resources, prefix))


def encrypted_values(path: str, resources: Resources, prefix: str = "/registry") -> Values:
    """Encryption of values by a configuration file."""
    # Saves start-up time: only --encryption-provider-config needs it.
    from kubist.storage.encryption.config import GroupResource, read
    from kubist.storage.encryption.store import Values

    kinds = {kind.prefix: GroupResource(kind.stored_group, kind.resource) for kind in resources}
    return Values(read(path), kinds, prefix=prefix)
