"""Router: passes requests below /clusters/NAME to the cluster, and all others to the host."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping

from kubist.api.representation.status import render_status
from kubist.base.clock import CURRENT
from kubist.base.http.messages import Answer, HangUp, Request, Response
from kubist.model.meta import status
from kubist.server.clusters.cluster import GROUP, RESOURCE, Cluster
from kubist.server.server import Server
from kubist.storage.store import StoreError

log = logging.getLogger("kubist.clusters")

PREFIX = "/clusters/"


class Router:
    """Application of a host."""

    def __init__(self, host: Server, clusters: Mapping[str, Cluster]) -> None:
        self._host = host
        self._clusters = clusters

    def __call__(self, request: Request) -> Awaitable[Answer]:
        if request.path.startswith(PREFIX) and len(request.path) > len(PREFIX):
            return self._route(request)
        # The connection may have served a cluster with another clock before.
        CURRENT.set(self._host.api.clock)
        return self._host.application(request)

    async def _route(self, request: Request) -> Answer:
        name, _, rest = request.path[len(PREFIX) :].partition("/")
        try:
            cluster = self._clusters.get(name)
            if cluster is None:
                # Nobody authenticates this client, so it may send one request on an HTTP/2 connection.
                request.retires = True
                raise status.not_found(GROUP, RESOURCE, name[:253])
            return await cluster.answer(request, f"/{rest}")
        except HangUp:
            raise
        except status.APIError as error:
            return _failure(request, error)
        except (StoreError, OSError, ValueError) as error:
            log.error("the cluster %s cannot be loaded: %s", name, error)
            return _failure(request, status.unavailable(f"the cluster {name} cannot be loaded"))
        except Exception:
            log.exception("the cluster %s failed on %s %s", name, request.method, request.path)
            return _failure(request, status.internal_error("the request failed unexpectedly"))


def _failure(request: Request, error: status.APIError) -> Response:
    """Response for an error outside a cluster's own application."""
    body, content_type = render_status(request, error.status())
    headers = [(b"Content-Type", content_type.encode())]
    headers += [(name.encode(), value.encode()) for name, value in error.headers]
    return Response(error.code, headers, body)
