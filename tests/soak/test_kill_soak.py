"""A server is killed 250 times on each store under 16 writers and a watch, without data loss.

`KUBIST_SOAK_KILLS` sets the number (short: 40).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.sizes import Note, size
from tests.storage.etcd_server import EtcdServer
from tests.survival import survive

KILLS = size("KILLS", 250, 40)


def test_killed_server_on_sqlite_loses_no_acknowledged_write(tmp_path: Path, note: Note) -> None:
    note(survive(tmp_path, KILLS))


@pytest.mark.etcd
def test_killed_server_on_etcd_loses_no_acknowledged_write(
    tmp_path: Path, real_etcd: EtcdServer, note: Note
) -> None:
    note(survive(tmp_path, KILLS, f"--etcd-servers={real_etcd.endpoint}", "--etcd-prefix=/kills"))
