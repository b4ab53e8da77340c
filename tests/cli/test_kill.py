"""A server that is killed at any moment under 16 writers restarts with every write that it answered, and
watches resume.

`KUBIST_SERVER_KILLS` sets the number of kills on each store; `make soak` does a thousand.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.etcd_server import EtcdServer
from tests.survival import survive

KILLS = int(os.environ.get("KUBIST_SERVER_KILLS", "10"))


def test_killed_server_has_every_answered_write(tmp_path: Path) -> None:
    survive(tmp_path, KILLS)


@pytest.mark.etcd
def test_killed_server_on_etcd_has_every_answered_write(tmp_path: Path, real_etcd: EtcdServer) -> None:
    prefix = f"/{os.urandom(8).hex()}"
    survive(tmp_path, KILLS, f"--etcd-servers={real_etcd.endpoint}", f"--etcd-prefix={prefix}")
