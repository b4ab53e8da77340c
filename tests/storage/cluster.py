"""etcd cluster of three members that tests can kill, pause and restart."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from tests.waiting import wait_for

from .etcd_server import EtcdServer


class EtcdCluster:
    def __init__(self, directory: Path, size: int = 3) -> None:
        self.members = [EtcdServer(directory, name=name) for name in "abcde"[:size]]
        for member in self.members:
            member.cluster = ",".join(each.member for each in self.members)

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(member.endpoint for member in self.members)

    def start(self) -> None:
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait()

    def stop(self) -> None:
        for member in self.members:
            member.resume()
            member.stop()

    def leader(self) -> EtcdServer:
        """Member that is the raft leader."""
        leader = wait_for(lambda: next(filter(_is_leader, self.members), None), 30, pause=0.1)
        assert leader is not None
        return leader


def _is_leader(member: EtcdServer) -> bool:
    """Whether this member is the leader. It does not use etcdctl, which is a separate Debian package."""
    try:
        with urllib.request.urlopen(f"{member.endpoint}/metrics", timeout=2) as answer:
            return b"\netcd_server_is_leader 1\n" in answer.read()
    except OSError:
        return False
