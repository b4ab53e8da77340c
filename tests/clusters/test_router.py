"""Router of a host: requests for clusters that do not exist."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kubist.base.http.messages import Request, Response
from kubist.server.clusters.hosting import Router


@pytest.mark.parametrize(
    "path", ["/clusters/none", "/clusters/none/api/v1/pods", "/clusters//api", "/clusters/../api"]
)
def test_unknown_cluster_ends_an_http2_connection(path: str) -> None:
    """Nobody authenticates the client, so it gets one request for each HTTP/2 connection, as anonymous clients do."""
    request = Request("GET", path, "", {})

    async def ask() -> Any:
        return await Router(cast("Any", None), {})(request)

    answer = asyncio.run(ask())
    assert isinstance(answer, Response) and answer.status == 404
    assert request.retires
