"""Nothing lost: a server is killed a thousand times on each store under 16 writers and a watch.

`KUBIST_SOAK_KILLS` says how often (short: 40).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sizes import Note, size

from storage.etcd_server import EtcdServer
from survival import survive

KILLS = size("KILLS", 1000, 40)


def test_sqlite_loses_nothing_when_servers_are_killed(tmp_path: Path, note: Note) -> None:
    note(survive(tmp_path, KILLS))


@pytest.mark.etcd
def test_etcd_loses_nothing_when_servers_are_killed(
    tmp_path: Path, real_etcd: EtcdServer, note: Note
) -> None:
    note(survive(tmp_path, KILLS, f"--etcd-servers={real_etcd.endpoint}", "--etcd-prefix=/kills"))
