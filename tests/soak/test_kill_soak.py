"""Nothing lost: a server is killed a thousand times on each store under 16 writers and a watch.

`KUBIST_SOAK_KILLS` says how often.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.etcd_server import EtcdServer
from survival import survive

KILLS = int(os.environ.get("KUBIST_SOAK_KILLS", "1000"))


def test_sqlite_loses_nothing_in_a_thousand_kills(tmp_path: Path) -> None:
    survive(tmp_path, KILLS)


@pytest.mark.etcd
def test_etcd_loses_nothing_in_a_thousand_kills(tmp_path: Path, real_etcd: EtcdServer) -> None:
    survive(tmp_path, KILLS, f"--etcd-servers={real_etcd.endpoint}", "--etcd-prefix=/kills")
