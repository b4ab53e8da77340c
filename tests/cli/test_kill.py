"""Killed at any moment under 16 writers, a server comes back with every write that it answered, and its watch goes on.

`KUBIST_SERVER_KILLS` says how often, on each store; `make soak` does it a thousand times.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.etcd_server import EtcdServer
from survival import survive

KILLS = int(os.environ.get("KUBIST_SERVER_KILLS", "10"))


def test_killed_server_has_every_answered_write(tmp_path: Path) -> None:
    survive(tmp_path, KILLS)


@pytest.mark.etcd
def test_killed_server_on_etcd_has_every_answered_write(tmp_path: Path, real_etcd: EtcdServer) -> None:
    prefix = f"/{os.urandom(8).hex()}"
    survive(tmp_path, KILLS, f"--etcd-servers={real_etcd.endpoint}", f"--etcd-prefix={prefix}")
