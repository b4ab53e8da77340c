"""Outages of etcd and disk errors while clients are working.

The long versions are in `soak/test_storage_outage.py`.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.server import server
from kubist.storage.etcd import client as etcd_client
from tests.live import Live, Pki
from tests.outages import Work
from tests.waiting import wait_for

from . import faults
from .cluster import EtcdCluster

RECOVERY = 30.0
"""Maximum seconds until writes succeed again. On an idle machine it takes one or two."""


@pytest.fixture
def one(etcd_directory: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(etcd_directory, 1)
    cluster.start()
    yield cluster
    cluster.stop()


def ready(live: Live, expected: int) -> None:
    wait_for(lambda: live.client.ask("GET", "/readyz/etcd").status == expected, 60, pause=0.05)


@pytest.mark.etcd
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_etcd_outage_is_503_and_then_recovers(
    one: EtcdCluster, server_pki: Pki, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (member,) = one.members
    with Live(server_pki, etcd_servers=one.endpoints) as live:
        # Only now: on a busy machine the start takes longer.
        monkeypatch.setattr(etcd_client, "CALL_SECONDS", 1.0)
        monkeypatch.setattr(server, "STORE_SECONDS", 0.3)
        with Work(live.server.port, server_pki) as work:
            time.sleep(0.5)
            member.stop() if how == "killed" else member.pause()
            ready(live, 500)
            assert live.client.ask("GET", "/livez/ping").status == 200
            work.wait_for_503("GET", "POST")
            if how == "killed":
                member.start()
            else:
                member.resume()
            work.recovered(RECOVERY)
            ready(live, 200)
            time.sleep(0.5)
        work.check()


@pytest.mark.etcd
def test_two_of_three_members_are_enough(
    etcd_cluster: EtcdCluster, server_pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Live(server_pki, etcd_servers=etcd_cluster.endpoints) as live:
        monkeypatch.setattr(etcd_client, "CALL_SECONDS", 2.0)
        with Work(live.server.port, server_pki) as work:
            time.sleep(0.5)
            for member in (etcd_cluster.leader(), etcd_cluster.members[0]):
                member.stop()
                work.recovered(RECOVERY)
                time.sleep(0.5)
                member.start()
                member.wait()
                etcd_cluster.leader()
            work.recovered(RECOVERY)
        work.check()


@pytest.mark.skipif(not faults.possible(), reason="SQLite's system calls cannot be replaced here")
def test_intermittent_disk_errors_lose_no_write(server_pki: Pki, tmp_path: Path) -> None:
    with Live(server_pki, data_dir=str(tmp_path)) as live:
        with Work(live.server.port, server_pki) as work:
            for number in (errno.ENOSPC, errno.EIO, errno.EROFS, errno.ENOSPC):
                time.sleep(0.3)
                with faults.failing_writes(number):
                    work.answers.clear()
                    work.wait_for_503("POST")
                    assert not work.answers["GET", 503], "reads go on"
                work.recovered(RECOVERY)
        work.check()
    with Live(server_pki, data_dir=str(tmp_path)) as live:
        work.check_held(live.client)
