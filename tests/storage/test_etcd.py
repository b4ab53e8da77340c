"""Guarantees of the etcd store beyond the contract: outages, endpoints, TLS, shared etcd, compaction."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubist.storage.etcd import client as etcd_client
from kubist.storage.etcd import messages as pb
from kubist.storage.etcd import store as etcd_module
from kubist.storage.etcd.store import EtcdStore
from kubist.storage.store import Batch, Compacted, KeyValue, OpenFailed, Store, StoreError, Unavailable

from .etcd_server import EtcdServer

pytestmark = pytest.mark.etcd


@contextlib.asynccontextmanager
async def opened(*stores: EtcdStore) -> AsyncIterator[None]:
    for store in stores:
        await store.open()
    try:
        yield
    finally:
        for store in stores:
            await store.close()


@pytest.fixture
def server(etcd: EtcdServer, tmp_path: Path) -> Iterator[EtcdServer]:
    """etcd used by this test only, so that the test can stop it."""
    server = EtcdServer(tmp_path)
    server.start()
    server.wait()
    yield server
    server.stop()


async def read_until(watch: AsyncIterator[Batch], revision: int) -> list[str]:
    keys: list[str] = []
    async with asyncio.timeout(20):
        async for batch in watch:
            keys += [event.key for event in batch.events]
            if batch.revision >= revision:
                break
    return keys


async def persist(store: Store, key: str) -> int:
    """Creates a key and retries until it succeeds."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await store.create(key, b"")
            except Unavailable:
                await asyncio.sleep(0.05)


# Outages


async def test_etcd_outage_is_unavailable_at_once_and_recovers(server: EtcdServer) -> None:
    store = EtcdStore([server.endpoint])
    async with opened(store):
        watch = store.watch("/r/", await store.revision())
        await anext(watch)
        await store.create("/r/before", b"")
        server.stop()
        for attempt in (store.get("/r/a"), store.create("/r/a", b""), store.revision(), store.scan("/r/")):
            began = time.monotonic()
            with pytest.raises(Unavailable) as caught:
                await attempt
            assert time.monotonic() - began < 10
            assert server.endpoint in str(caught.value) and "\n" not in str(caught.value)
        server.start()
        last = await persist(store, "/r/after")
        assert await read_until(watch, last) == ["/r/before", "/r/after"]


async def test_watch_raises_compacted_after_missing_history(server: EtcdServer, tmp_path: Path) -> None:
    store = EtcdStore([server.endpoint])
    async with opened(store):
        after = await store.create("/r/a", b"")
        watch = store.watch("/r/", after)
        await anext(watch)
        store._tasks[0].cancel()
        await asyncio.wait(store._tasks[:1])
        for number in range(5):
            last = await store.create(f"/r/{number}", b"")
        await store.compact(last)
        store._tasks[0] = asyncio.create_task(store._follow())
        store._following.clear()
        await store._following.wait()
        with pytest.raises(Unavailable):
            await read_until(watch, last)
        with pytest.raises(Compacted) as caught:
            await read_until(store.watch("/r/", after), last)
        assert caught.value.revision == last


async def test_store_opens_when_etcd_starts_later(etcd: EtcdServer, tmp_path: Path) -> None:
    server = EtcdServer(tmp_path)
    store = EtcdStore([server.endpoint])
    opening = asyncio.ensure_future(store.open())
    await asyncio.sleep(0.3)
    server.start()
    await opening
    assert await store.create("/r/a", b"") > 0
    await store.close()
    server.stop()


async def test_opening_without_etcd_fails(
    monkeypatch: pytest.MonkeyPatch, etcd: EtcdServer, tmp_path: Path
) -> None:
    monkeypatch.setattr(etcd_module, "OPEN_SECONDS", 0.5)
    endpoint = EtcdServer(tmp_path).endpoint
    with pytest.raises(OpenFailed) as caught:
        await EtcdStore([endpoint]).open()
    assert str(caught.value) == f"etcd does not answer at {endpoint}"


async def test_minority_of_members_may_die(
    monkeypatch: pytest.MonkeyPatch, etcd: EtcdServer, tmp_path: Path
) -> None:
    monkeypatch.setattr(etcd_client, "CALL_SECONDS", 1.0)
    hasty = ("--heartbeat-interval", "50", "--election-timeout", "250")
    members = [EtcdServer(tmp_path, *hasty, name=name) for name in "abc"]
    for member in members:
        member.cluster = ",".join(other.member for other in members)
        member.start()
    try:
        store = EtcdStore([member.endpoint for member in members])
        async with opened(store):
            first = await persist(store, "/r/first")
            watch = store.watch("/r/", first)
            await anext(watch)
            for member in members:
                member.stop()
                last = await persist(store, f"/r/{member.endpoint[-5:]}")
                assert await store.revision() >= last
                member.start()
                member.wait()
            for member in members[1:]:
                member.stop()
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await store.create("/r/minority", b"")
            assert time.monotonic() - began < 15
            for member in members[1:]:
                member.start()
            await persist(store, "/r/majority")
            created = [f"/r/{member.endpoint[-5:]}" for member in members]
            assert [key for key in await read_until(watch, last) if key in created] == created
    finally:
        for member in members:
            member.stop()


async def test_first_endpoint_may_be_dead(etcd: EtcdServer, tmp_path: Path) -> None:
    dead = EtcdServer(tmp_path).endpoint
    store = EtcdStore([dead, etcd.endpoint], prefix=f"/{os.urandom(4).hex()}")
    async with opened(store):
        assert await store.create("/r/a", b"") > 0


# A shared etcd


async def test_keys_are_stored_under_the_prefix(etcd: EtcdServer) -> None:
    prefix = f"/{os.urandom(4).hex()}"
    inside, outside = EtcdStore([etcd.endpoint], prefix=prefix), EtcdStore([etcd.endpoint])
    async with opened(inside, outside):
        revision = await inside.create("/registry/pods/a", b"one")
        kv = await outside.get(f"{prefix}/registry/pods/a")
        assert kv == KeyValue(f"{prefix}/registry/pods/a", b"one", revision, revision)
        assert [kv.key for kv in (await inside.scan("")).items] == ["/registry/pods/a"]


async def test_two_servers_see_each_other(etcd: EtcdServer) -> None:
    prefix = f"/{os.urandom(4).hex()}"
    one, other = EtcdStore([etcd.endpoint], prefix=prefix), EtcdStore([etcd.endpoint], prefix=prefix)
    async with opened(one, other):
        watch = other.watch("/r/", await other.revision())
        revisions = [await one.create(f"/r/{number}", b"") for number in range(10)]
        assert await other.revision() >= revisions[-1]
        assert await read_until(watch, revisions[-1]) == [f"/r/{number}" for number in range(10)]


async def test_writes_outside_the_prefix_do_not_delay_watches(etcd: EtcdServer) -> None:
    store, stranger = (EtcdStore([etcd.endpoint], prefix=f"/{os.urandom(4).hex()}") for _ in range(2))
    async with opened(store, stranger):
        watch = store.watch("/r/", await store.revision())
        await anext(watch)
        for number in range(5):
            await stranger.create(f"/r/{number}", b"")
        async with asyncio.timeout(15):
            assert await read_until(watch, await store.revision()) == []


@pytest.mark.parametrize("prefix", ["", "/shared"])
async def test_history_ends_where_the_live_watch_begins(etcd: EtcdServer, prefix: str) -> None:
    root = f"/{os.urandom(4).hex()}/"
    writer = EtcdStore([etcd.endpoint], prefix=prefix)
    async with opened(writer):
        before = await writer.revision()
        last = [await writer.create(f"{root}{number}", b"") for number in range(5)][-1]
    late = EtcdStore([etcd.endpoint], prefix=prefix)
    async with opened(late):
        assert await read_until(late.watch(root, before), last) == [f"{root}{number}" for number in range(5)]
        assert await read_until(late.watch("/nothing/", before), last) == []


async def test_keys_written_together_share_a_lease(etcd: EtcdServer) -> None:
    store = EtcdStore([etcd.endpoint], prefix=f"/{os.urandom(4).hex()}")
    async with opened(store):
        await asyncio.gather(*(store.create(f"/r/{number}", b"", ttl=3600) for number in range(20)))
        await store.create("/r/short", b"", ttl=1800)
        response = await store._client.call(
            "Range", pb.RangeRequest(key=store._range[0], range_end=store._range[1])
        )
        leases = {kv.key[-5:]: kv.lease for kv in response.kvs if kv.lease}
        assert len(leases) == 21 and len(set(leases.values())) == 2


async def a_lease_that_never_was(ttl: int) -> int:
    return 4711


async def test_expired_lease_is_replaced(etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EtcdStore([etcd.endpoint], prefix=f"/{os.urandom(4).hex()}")
    async with opened(store):
        monkeypatch.setattr(store._leases, "_grant", a_lease_that_never_was)
        await store._leases.get(3600)
        monkeypatch.undo()
        assert await store.create("/r/a", b"", ttl=3600) > 0


async def test_value_too_large_for_etcd_is_rejected(etcd: EtcdServer) -> None:
    store = EtcdStore([etcd.endpoint], prefix=f"/{os.urandom(4).hex()}")
    async with opened(store):
        with pytest.raises(StoreError, match="as large as this"):
            await store.create("/r/a", b"x" * 3_000_000)
        assert await store.create("/r/a", b"x") > 0


async def test_one_of_several_servers_compacts_history(server: EtcdServer) -> None:
    stores = [EtcdStore([server.endpoint], compaction_interval=0.3) for _ in range(3)]
    async with opened(*stores):
        first = await stores[0].create("/r/a", b"one")
        await stores[0].update("/r/a", b"two", first)
        async with asyncio.timeout(10):
            while True:
                try:
                    await stores[1].get("/r/a", first)
                except Compacted:
                    break
                await asyncio.sleep(0.1)
        clock = await stores[0].get("compact_rev_key")
        assert clock is not None and int(clock.value) >= first
        for store in stores:
            kv = await store.get("/r/a")
            assert kv is not None and kv.value == b"two"


# TLS


def certificates(directory: Path) -> None:
    """ca.crt, and a certificate for 127.0.0.1 that is valid for server and client, as tls.crt and tls.key."""
    now = datetime.datetime.now(datetime.UTC)

    def issue(
        name: str,
        key: ec.EllipticCurvePrivateKey,
        issuer: x509.Name,
        signer: ec.EllipticCurvePrivateKey,
        ca: bool,
    ) -> x509.Certificate:
        builder = x509.CertificateBuilder(issuer, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
        builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        return builder.add_extension(addresses, critical=False).sign(signer, hashes.SHA256())

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    ca = issue("ca", ca_key, ca_name, ca_key, True)
    leaf = issue("etcd", key, ca_name, ca_key, False)
    pem = serialization.Encoding.PEM
    (directory / "ca.crt").write_bytes(ca.public_bytes(pem))
    (directory / "tls.crt").write_bytes(leaf.public_bytes(pem))
    (directory / "tls.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


async def test_tls_with_client_certificates(
    monkeypatch: pytest.MonkeyPatch, etcd: EtcdServer, tmp_path: Path
) -> None:
    certificates(tmp_path)
    ca, cert, key = (str(tmp_path / name) for name in ("ca.crt", "tls.crt", "tls.key"))
    options = ("--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth")
    server = EtcdServer(tmp_path, *options, scheme="https")
    server.start()
    server.wait()
    try:
        store = EtcdStore([server.endpoint], ca=ca, cert=cert, key=key)
        async with opened(store):
            assert await store.create("/r/a", b"") > 0
        leaf = EtcdStore([server.endpoint], ca=cert, cert=cert, key=key)
        async with opened(leaf):  # A certificate in the CA file is trusted, even if it is no authority.
            assert await leaf.revision() > 0
        monkeypatch.setattr(etcd_module, "OPEN_SECONDS", 0.5)
        with pytest.raises(OpenFailed):
            await EtcdStore([server.endpoint], ca=ca).open()
        with pytest.raises(OpenFailed):
            await EtcdStore([server.endpoint]).open()
    finally:
        server.stop()


async def test_missing_certificate_is_named_in_the_error() -> None:
    with pytest.raises(OpenFailed) as caught:
        await EtcdStore(["https://127.0.0.1:1"], ca="/nowhere/ca.crt").open()
    assert str(caught.value) == "/nowhere/ca.crt cannot be read: No such file or directory"
