"""Replay of recordings and audit logs on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

import orjson

from kubist.api.settings import Settings
from kubist.testbench.replay.client import ReplayClient, tls_context
from kubist.testbench.replay.replay import Report, replay_lines
from kubist.testbench.replay.source import check_lines
from kubist.testing.cluster import Cluster
from kubist.testing.recording import Requests

Source = str | Path | Requests
"""Path of a recording or audit log, or recorded requests."""


def replay(source: Source, *, impersonate: bool = False, **settings: Unpack[Settings]) -> Report:
    """Replays a recording or an audit log on a new cluster, which stops afterwards. Raises MalformedRecording.

    `impersonate` sends each request as its recorded user. `settings` are the fields of `kubist.Config`.
    """
    with _lines(source) as lines:
        check_lines(lines, _name(source))
    with Cluster(**settings) as cluster:
        return replay_to(cluster, source, impersonate=impersonate)


def replay_to(cluster: Cluster, source: Source, *, impersonate: bool = False) -> Report:
    """Replays a recording or an audit log on a cluster. Nothing is sent if a line is malformed."""
    with _lines(source) as lines:
        check_lines(lines, _name(source))
    client = ReplayClient(cluster.url, tls_context(str(cluster.ca)), cluster.token)
    try:
        with _lines(source) as lines:
            return replay_lines(client, lines, impersonate=impersonate)
    finally:
        client.close()


@contextmanager
def _lines(source: Source) -> Iterator[Iterable[bytes]]:
    if isinstance(source, Requests):
        yield (orjson.dumps(request.line) for request in source)
    else:
        with Path(source).open("rb") as file:
            yield file


def _name(source: Source) -> str:
    return "recording" if isinstance(source, Requests) else str(source)
